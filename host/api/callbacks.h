/* SPDX-License-Identifier: Apache-2.0 */
/* callbacks.h: where the program's own functions are called, and nothing else. What they are given is borrowed. */
#ifndef SANDHOST_API_CALLBACKS_H
#define SANDHOST_API_CALLBACKS_H

#include "sandhost.h"

/* Borrowed, as the hook gives it; NULL. */
const char *callback_answer(const struct sandhost_hooks *hooks, const struct sandhost_ask *ask);

int callback_output(const struct sandhost_hooks *hooks, const char *command, int stream,
                    const void *data, size_t length);

/* progress or warning. */
void callback_line(void (*hook)(void *user, const char *line), void *user, const char *line);

typedef int (*CallbackApprover)(void *user, const struct sandhost_decision *decision,
                                char **ret_refusal);
int callback_approver(CallbackApprover hook, void *user, const struct sandhost_decision *decision,
                      char **ret_refusal);

#endif
