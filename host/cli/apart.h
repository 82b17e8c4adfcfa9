/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apart.h: looks at a provider in a process of its own, since a plugin may crash, hang or end the program, also while it is
 * loaded. For a program that has one thread.
 */
#ifndef SANDHOST_CLI_APART_H
#define SANDHOST_CLI_APART_H

#include "base/cancel.h"
#include "base/json.h"

typedef struct {
  JsonObject *(*look)(void *user); /* runs in the other process; owned, never NULL */
  void *user;
  Cancel *cancel; /* raised: the other process is told to end; NULL: never */
} Apart;

/* What look returned. NULL: it did not come to that, and *ret_why (owned) tells what became of it, as in "it crashes
 * (Aborted)". */
JsonObject *apart_look(const Apart *apart, char **ret_why);

/* For look: the plugin is loaded. From here on it has the time that opening it and a try may take. */
void apart_loaded(void);

#endif
