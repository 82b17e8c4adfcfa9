/* SPDX-License-Identifier: Apache-2.0 */
/* plain-execute-request.c: a command as it was asked for: checked, and put into the words of the engine. */
#include "plain-execute.h"

#include "failure.h"

#include <errno.h>
#include <string.h>

#define MOST_WORDS ((size_t)16 << 20) /* of arguments and variables together */

/* ---- Parameters -------------------------------------------------------------------------------- */

static int32_t fail_invalid(const struct execution *execution, const char *message) {
  return fail_call(execution->sandbox->host, execution->call, SANDHOST_INVALID, "%s", message);
}

static gboolean count_bytes(size_t *total, size_t length) {
  if (length > MOST_WORDS || *total + length > MOST_WORDS) {
    return FALSE;
  }
  *total += length;
  return TRUE;
}

static gboolean has_nul(struct sandhost_text text) {
  return text.length > 0 && memchr(text.data, 0, text.length);
}

static int32_t check_contents(const struct execution *execution) {
  const struct sandhost_execute *request = execution->request;
  size_t total = 0;
  gboolean fits = TRUE;
  for (size_t i = 0; fits && i < request->argc; i++) {
    fits = count_bytes(&total, request->argv[i].length + 1);
    if (fits && has_nul(request->argv[i])) {
      return fail_invalid(execution, "an argument of the command holds a NUL");
    }
  }
  for (size_t i = 0; fits && i < request->environment_count; i++) {
    const struct sandhost_pair *pair = &request->environment[i];
    fits = count_bytes(&total, pair->name.length) && count_bytes(&total, pair->value.length + 2);
    if (fits && (pair->name.length == 0 || has_nul(pair->name) || has_nul(pair->value) ||
                 memchr(pair->name.data, '=', pair->name.length) ||
                 !g_utf8_validate_len(pair->name.data, pair->name.length, NULL) ||
                 !g_utf8_validate_len(pair->value.length ? pair->value.data : "",
                                      pair->value.length, NULL))) {
      return fail_invalid(execution, "a variable of the command has no sensible name or value");
    }
  }
  return fits ? SANDHOST_OK
              : fail_invalid(execution, "the command and its variables are too large");
}

int32_t execution_check(const struct execution *execution) {
  const struct sandhost_execute *request = execution->request;
  const struct sandhost_observer *observer = &execution->observer;
  if (request->flags & ~SANDHOST_EXECUTE_STDIN || request->reserved != 0) {
    return fail_invalid(execution, "the command has a flag that this provider does not know");
  }
  if (request->argc == 0 || request->argv[0].length == 0) {
    return fail_invalid(execution, "the command is empty");
  }
  if (request->limit < 0) {
    return fail_invalid(execution, "the limit of the command is negative");
  }
  if (!observer->output ||
      ((request->flags & SANDHOST_EXECUTE_STDIN) && (!observer->input || !observer->input_fd))) {
    return fail_invalid(execution, "the observer lacks a function that the command needs");
  }
  if (request->cwd.length > 0) {
    int32_t status = plain_check_absolute(execution->sandbox, execution->call,
                                          "working directory of the command", request->cwd);
    if (status != SANDHOST_OK) {
      return status;
    }
    if (!g_utf8_validate_len(request->cwd.data, request->cwd.length, NULL)) {
      return fail_invalid(execution, "the working directory of the command is no UTF-8");
    }
  }
  return check_contents(execution);
}

/* ---- The exec ---------------------------------------------------------------------------------- */

static GPtrArray *variables(const struct sandhost_execute *request) {
  GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
  for (size_t i = 0; i < request->environment_count; i++) {
    const struct sandhost_pair *pair = &request->environment[i];
    g_ptr_array_add(list, g_strdup_printf("%.*s=%.*s", (int)pair->name.length, pair->name.data,
                                          (int)pair->value.length,
                                          pair->value.length ? pair->value.data : ""));
  }
  g_ptr_array_add(list, NULL);
  return list;
}

static GPtrArray *bare_words(const struct sandhost_execute *request) {
  GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
  for (size_t i = 0; i < request->argc; i++) {
    g_ptr_array_add(words, g_strndup(request->argv[i].length ? request->argv[i].data : "",
                                     request->argv[i].length));
  }
  g_ptr_array_add(words, NULL);
  return words;
}

/* A script that is too long for an argument, as a hidden file, which is deleted before it is read. */
static int32_t put_script(struct execution *execution, char **ret_file) {
  const struct sandhost_text *script = &execution->request->argv[2];
  g_auto(Spool) spool = SPOOL_NONE;
  g_autofree char *name = g_strdup_printf(".sandhost-%.16s", execution->mark.nonce);
  struct sandhost_sandbox *sandbox = execution->sandbox;
  if (spool_append(&spool, script->data, script->length) < 0) {
    return fail_call_errno(sandbox->host, execution->call, SANDHOST_LIMIT, errno,
                           "cannot keep the command for the engine");
  }
  int32_t status =
      plain_put_file(sandbox, execution->call, sandbox->working_dir, name, 0600, &spool);
  if (status == SANDHOST_OK) {
    *ret_file = g_strdup_printf("%s/%s", sandbox->working_dir, name);
  }
  return status;
}

int32_t execution_open(struct execution *execution) {
  const struct sandhost_execute *request = execution->request;
  struct sandhost_sandbox *sandbox = execution->sandbox;
  g_autofree char *cwd = request->cwd.length > 0 ? g_strndup(request->cwd.data, request->cwd.length)
                                                 : g_strdup(sandbox->working_dir);
  g_autofree char *file = NULL;
  g_autoptr(GPtrArray) environment = variables(request);
  int32_t status = execution->how == HOW_SCRIPT && plain_script_is_long(request)
                       ? put_script(execution, &file)
                       : SANDHOST_OK;
  if (status != SANDHOST_OK) {
    return status;
  }
  g_autoptr(GPtrArray) words =
      execution->how == HOW_BARE
          ? bare_words(request)
          : plain_script_words(&execution->mark, request, cwd, sandbox->environment, file);
  struct plain_exec exec = {.argv = (const char *const *)(void *)words->pdata,
                            .environment = (const char *const *)(void *)environment->pdata,
                            .cwd = execution->how == HOW_BARE ? cwd : "/",
                            .has_input = (request->flags & SANDHOST_EXECUTE_STDIN) != 0};
  status = plain_exec_create(sandbox, execution->call, &exec, &execution->exec_id);
  return status == SANDHOST_OK
             ? plain_exec_start(sandbox, execution->call, execution->exec_id, &execution->channel)
             : status;
}
