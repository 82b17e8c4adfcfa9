/* SPDX-License-Identifier: Apache-2.0 */
/* plain-execute-result.c: how a command ended, or why it never began. */
#include "plain-execute.h"

#include "call-relay.h"
#include "failure.h"

#include <signal.h>
#include <string.h>

#define CODE_PATIENCE (5 * PLAIN_SECOND)
#define END_LOOKS 10
#define END_TICK (20 * PLAIN_MILLISECOND)

/* A container that has ended takes every command along. */
static gboolean container_runs(struct execution *execution) {
  struct sandhost_sandbox *sandbox = execution->sandbox;
  g_autofree char *path = g_strdup_printf("/containers/%s/json", sandbox->id);
  for (int look = 0; look < END_LOOKS; look++) {
    struct engine_request request = {.method = "GET", .path = path};
    struct engine_reply reply = {0};
    if (engine_send(sandbox->instance->engine, execution->call, &request, &reply) != SANDHOST_OK) {
      return FALSE;
    }
    gboolean runs = reply.status == 200 && engine_boolean(reply.json, "State/Running", FALSE);
    engine_reply_clear(&reply);
    if (!runs) {
      return FALSE;
    }
    (void)sandbox->host->wait(execution->call, -1, 0, END_TICK);
  }
  return TRUE;
}

/* The stream has ended without the words that end it, which the script holds open as long as it runs: it was killed, and
 * the engine knows so at once, or the engine has broken the stream off. */
static int32_t ask_code(struct execution *execution) {
  struct sandhost_sandbox *sandbox = execution->sandbox;
  const struct sandhost_host *host = sandbox->host;
  g_auto(CallRelay)
      relay = {.host = host,
               .call = execution->call,
               .quiet = TRUE,
               .deadline = MIN(host->deadline(execution->call), contract_now() + CODE_PATIENCE)};
  int32_t status =
      plain_exec_code(sandbox, call_relay_call(&relay), execution->exec_id, &execution->code);
  /* The code of a script that has begun and was not killed is the engine's own invention. */
  gboolean is_invented = status == SANDHOST_OK && execution->begun_at && execution->code <= 128;
  if (is_invented || (status == SANDHOST_TIMEOUT && !host->cancelled(execution->call))) {
    return fail_call(host, execution->call, SANDHOST_UNAVAILABLE,
                     "%s broke the connection off while the command ran",
                     engine_name(sandbox->instance->engine));
  }
  return status == SANDHOST_OK ? status
                               : fail_call(host, execution->call, status, "%s",
                                           relay.failure ? relay.failure : "no answer");
}

int32_t execution_learn_code(struct execution *execution) {
  if (execution->code >= 0) {
    return SANDHOST_OK;
  }
  execution_release_held(execution);
  /* A bare command may close its streams and go on. */
  int32_t status = execution->how == HOW_SCRIPT
                       ? ask_code(execution)
                       : plain_exec_code(execution->sandbox, execution->call, execution->exec_id,
                                         &execution->code);
  if (status == SANDHOST_OK && execution->code == 128 + SIGKILL && !container_runs(execution)) {
    return fail_call(execution->sandbox->host, execution->call, SANDHOST_LOST,
                     "its container has ended");
  }
  execution->told = 2;
  execution->ended_at = contract_now();
  return status;
}

/* Shells tell of no interrupt and of no broken pipe, and bash of nothing at all. */
static gboolean is_signal(const struct execution *execution) {
  int number = execution->code - 128;
  return number >= 1 && number <= 64 &&
         (execution->told == 1 || number == SIGINT || number == SIGPIPE ||
          (execution->told == 2 && number < 32));
}

void execution_fill_result(struct execution *execution, struct sandhost_result *ret_result) {
  struct sandhost_result result = {.size = ret_result->size,
                                   .ended = SANDHOST_ENDED_EXIT,
                                   .exit_code = execution->code,
                                   .stdout_bytes = execution->written[SANDHOST_STDOUT],
                                   .stderr_bytes = execution->written[SANDHOST_STDERR]};
  result.duration = execution->begun_at ? MAX(execution->ended_at - execution->begun_at, 1) : 0;
  if (execution->at_limit && execution->code == 128 + SIGKILL) {
    result.ended = SANDHOST_ENDED_LIMIT;
    result.signal = SIGKILL;
  } else if (execution->code == 128 + SIGKILL &&
             plain_out_of_memory(execution->sandbox, execution->call,
                                 contract_now() - (execution->begun_at ? execution->begun_at
                                                                       : execution->opened_at))) {
    result.ended = SANDHOST_ENDED_MEMORY;
    result.signal = SIGKILL;
  } else if (is_signal(execution)) {
    result.ended = SANDHOST_ENDED_SIGNAL;
    result.signal = execution->code - 128;
  }
  memcpy(ret_result, &result, MIN(ret_result->size, sizeof result));
}

/* ---- What could not be started ------------------------------------------------------------------ */

static gboolean head_has(const struct execution *execution, const char *text) {
  return strcasestr(execution->head->str, text) != NULL;
}

void execution_tell_not_begun(const struct execution *execution) {
  const struct sandhost_failure details = {
      .size = sizeof details, .service_code = {.data = ""}, .may_have_happened = 0};
  execution->sandbox->host->fail_details(execution->call, &details);
}

/* The engine's complaint in the words of every other provider. */
static int32_t tell_start_failure(struct execution *execution) {
  const struct sandhost_text *program = &execution->request->argv[0];
  const char *why = head_has(execution, "argument list too long") ? "Argument list too long"
                    : head_has(execution, "permission denied")    ? "Permission denied"
                    : head_has(execution, "exec format error")    ? "Exec format error"
                                                                  : "No such file or directory";
  g_autofree char *name = g_strndup(program->data, MIN(program->length, (size_t)4000));
  g_autofree char *text = g_strdup_printf("sandhost: %s: %s\n", name, why);
  execution->code = strcmp(why, "No such file or directory") == 0 ? 127 : 126;
  execution->told = 0;
  execution->begun_at = 0;
  return execution_deliver(execution, SANDHOST_STDERR, text, strlen(text));
}

/* Nothing ran: the engine said why in place of the command's output. *ret_again: there is no shell. */
int32_t execution_explain_head(struct execution *execution, gboolean *ret_again) {
  const struct sandhost_host *host = execution->sandbox->host;
  if (!execution->head_open || execution->head->len == 0 ||
      !g_str_has_prefix(execution->head->str, ENGINE_COMPLAINT)) {
    return execution->head_open ? execution_close_head(execution) : SANDHOST_OK;
  }
  if (head_has(execution, "resource temporarily unavailable") ||
      head_has(execution, "cannot allocate memory") || head_has(execution, "no space left")) {
    return fail_call(host, execution->call, SANDHOST_LIMIT,
                     "the sandbox cannot start a process: Resource temporarily unavailable");
  }
  if (head_has(execution, "not running") || head_has(execution, "stopped container")) {
    execution_tell_not_begun(execution);
    return fail_call(host, execution->call, SANDHOST_LOST, "its container is not running");
  }
  gboolean missing =
      head_has(execution, "no such file") || head_has(execution, "executable file not found");
  if (execution->how == HOW_SCRIPT && missing) {
    *ret_again = TRUE;
    return SANDHOST_OK;
  }
  if (missing || head_has(execution, "permission denied") ||
      head_has(execution, "argument list too long") || head_has(execution, "exec format error")) {
    return tell_start_failure(execution);
  }
  g_autofree char *clean = plain_clean(execution->head->str, execution->head->len);
  return fail_call(host, execution->call, SANDHOST_UNAVAILABLE,
                   "the engine cannot start the command: %s", clean);
}
