/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callbacks.c: the calls of the program's own functions. This file is compiled so that nothing can be unwound through
 * it (host/CMakeLists.txt): a C++ exception that leaves a callback ends in std::terminate, where it would otherwise go on
 * through the library, past every unlock, to a handler of the program.
 */
#include "api/callbacks.h"

const char *callback_answer(const struct sandhost_hooks *hooks, const struct sandhost_ask *ask) {
  return hooks->answer(hooks->user, ask);
}

int callback_output(const struct sandhost_hooks *hooks, const char *command, int stream,
                    const void *data, size_t length) {
  return hooks->output(hooks->user, command, stream, data, length);
}

void callback_line(void (*hook)(void *user, const char *line), void *user, const char *line) {
  hook(user, line);
}

int callback_approver(CallbackApprover hook, void *user, const struct sandhost_decision *decision,
                      char **ret_refusal) {
  return hook(user, decision, ret_refusal);
}
