/* SPDX-License-Identifier: Apache-2.0 */
/* enforcement.h: what a provider keeps, in words for people and names for programs. */
#ifndef SANDHOST_CLI_ENFORCEMENT_H
#define SANDHOST_CLI_ENFORCEMENT_H

#include <glib.h>
#include <sandhost/provider.h>

typedef struct {
  guint32 setting;
  const char *heading; /* of a column */
  const char *name;    /* in JSON */
  const char *words;
} Enforcement;

#define ENFORCEMENT_COUNT 15u
extern const Enforcement ENFORCEMENT[ENFORCEMENT_COUNT];

/* "yes", "checked", "forward", "-" for a SANDHOST_LEVEL_*. Constant. */
const char *enforcement_word(guint32 level);

/* As the code declares it; what this machine lowers only an opened provider knows. */
guint32 enforcement_declared(const struct sandhost_provider *table, guint32 setting);

#endif
