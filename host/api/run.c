/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c: a run behind its handle. It knows how many commands are in it, so that its end waits for them; the rest is
 * the run room's. Locks are pthreads': the thread sanitizer sees those.
 */
#include <string.h>

#include "api/api-private.h"
#include "api/callbacks.h"
#include "base/error.h"
#include "run/approver.h"
#include "run/execute.h"
#include "run/run.h"

#define MAX_COMMAND JSON_MAX_BYTES
#define MAX_REQUEST (1u << 20)
#define MAX_TAG 1024u

/* ---- Hooks ------------------------------------------------------------------------------------------------------ */

static const char *target_of(const PolicyRequest *request) {
  const char *const targets[] = {request->target_host, request->target_path,
                                 request->target_resource};
  for (gsize i = 0; i < G_N_ELEMENTS(targets); i++) {
    if (targets[i]) {
      return targets[i];
    }
  }
  return "";
}

static char *answer(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                    const char *command) {
  (void)command; /* the program's own */
  const sandhost_run *run = user;
  g_autoptr(JsonObject) object = policy_request_json(request);
  g_autofree char *text = json_text(object);
  const struct sandhost_ask ask = {
      .size = sizeof ask,
      .run_id = run_id(run->run),
      .capability = request->capability,
      .target = target_of(request),
      .risk = risk_name(request->risk),
      .reason = decision->reason ? decision->reason : "",
      .request = text,
  };
  const char *approver = callback_answer(&run->hooks, &ask);
  /* As it is, and one byte more where it is too long: whether it will do is checked with all other answers. */
  return approver && *approver ? g_strndup(approver, APPROVER_MOST_NAME + 1) : NULL;
}

static void progress(void *user, const char *line) {
  const sandhost_run *run = user;
  callback_line(run->hooks.progress, run->hooks.user, line);
}

static void warning(void *user, const char *line) {
  const sandhost_run *run = user;
  callback_line(run->hooks.warning, run->hooks.user, line);
}

/* One command on its way: what the output hook is told with. */
typedef struct {
  const sandhost_run *run;
  const char *command; /* the program's own pointer */
} Following;

static gboolean output(void *user, guint32 stream, const void *data, gsize length) {
  const Following *following = user;
  return callback_output(&following->run->hooks, following->command, (int)stream, data, length) ==
         0;
}

/* ---- Life ------------------------------------------------------------------------------------------------------- */

void api_run_free(sandhost_run *run) {
  g_clear_pointer(&run->cancel, cancel_unref);
  g_clear_pointer(&run->host, host_unref);
  pthread_mutex_destroy(&run->lock);
  pthread_cond_destroy(&run->idle);
  g_clear_pointer(&run->stopped, g_ptr_array_unref);
  g_hash_table_unref(run->holds);
  g_free(run->request);
  g_free(run);
}

sandhost_run *api_run_new(sandhost *host, const struct sandhost_hooks *hooks, int *ret_status,
                          char **ret_error) {
  struct sandhost_hooks own = {.size = sizeof own};
  if (api_is_inherited(host->generation)) {
    *ret_status = api_refuse_inherited(ret_error);
    return NULL;
  }
  if (hooks &&
      !api_take_sized(hooks, API_SIZE_TO(struct sandhost_hooks, progress), &own, sizeof own)) {
    *ret_status = api_refuse(SANDHOST_STATUS_INVALID,
                             "hooks->size is not one that this libsandhost knows", ret_error);
    return NULL;
  }
  own.request = NULL; /* this and the names are read where they count */
  own.session_id = NULL;
  own.agent_name = NULL;
  sandhost_run *run = g_new0(sandhost_run, 1);
  run->generation = host->generation;
  run->host = host_ref(host);
  run->cancel = cancel_new();
  run->hooks = own;
  run->holds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  pthread_mutex_init(&run->lock, NULL);
  pthread_cond_init(&run->idle, NULL);
  return run;
}

RunHooks api_run_hooks(sandhost_run *run) {
  return (RunHooks){
      .answer = run->hooks.answer ? answer : NULL,
      .progress = run->hooks.progress ? progress : NULL,
      .slow = run->hooks.progress ? progress : NULL,
      .warn = run->hooks.warning ? warning : NULL,
      .user = run,
      .cancel = run->cancel,
  };
}

/* Names of the program's hooks, where those are long enough to have them; NULL: none. Borrowed. */
typedef struct {
  const char *session_id;
  const char *agent_name;
} Names;

static gboolean check_name(const char *member, const char *name, GError **error) {
  if (!name || config_name_is_good(name)) {
    return TRUE;
  }
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
              "hooks->%s must be valid UTF-8 of at most 256 bytes, and not empty", member);
  return FALSE;
}

static gboolean take_names(const struct sandhost_hooks *hooks, Names *ret_names, GError **error) {
  gboolean has_session = hooks && hooks->size >= API_SIZE_TO(struct sandhost_hooks, session_id);
  gboolean has_agent = hooks && hooks->size >= API_SIZE_TO(struct sandhost_hooks, agent_name);
  ret_names->session_id = has_session ? hooks->session_id : NULL;
  ret_names->agent_name = has_agent ? hooks->agent_name : NULL;
  return check_name("session_id", ret_names->session_id, error) &&
         check_name("agent_name", ret_names->agent_name, error);
}

/* What is stored of the program's request, with the names that the run has also later; NULL for none. Owned. */
static JsonObject *request_of(JsonObject *own, const Names *names) {
  if (!own) {
    return NULL;
  }
  JsonObject *request = json_object_new_object();
  json_add_text(request, "surface", "api");
  json_add_take(request, "request", json_object_get(own));
  json_add_text(request, "session", names->session_id);
  json_add_text(request, "agent", names->agent_name);
  return request;
}

static gboolean start(sandhost_run *run, JsonObject *own, const Names *names, GError **error) {
  const Harness *harness = host_harness(run->host, error);
  if (!harness || !harness_executes(harness, error)) {
    return FALSE;
  }
  Record *record = host_record(run->host, error);
  if (!record) {
    return FALSE;
  }
  g_autoptr(JsonObject) request = request_of(own, names);
  RunHooks hooks = api_run_hooks(run);
  hooks.request = request;
  hooks.session_id = names->session_id;
  hooks.agent_name = names->agent_name;
  run->run = run_start(harness, record, &hooks, error);
  return run->run != NULL;
}

/* The program's request, where its hooks are long enough to have one. */
static gboolean take_request(const struct sandhost_hooks *hooks, JsonObject **ret_request,
                             GError **error) {
  gboolean has = hooks && hooks->size >= API_SIZE_TO(struct sandhost_hooks, request);
  const char *text = has ? hooks->request : NULL;
  if (text && strnlen(text, MAX_REQUEST + 1) > MAX_REQUEST) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                        "hooks->request is longer than 1 MiB");
    return FALSE;
  }
  return api_take_object("hooks->request", text, ret_request, error);
}

int sandhost_run_start(sandhost *host, const struct sandhost_hooks *hooks, sandhost_run **ret_run,
                       char **ret_error) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) request = NULL;
  Names names = {0};
  int status = SANDHOST_STATUS_OK;
  if (!host || !ret_run) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host and ret_run must not be NULL", ret_error);
  }
  sandhost_run *run = api_run_new(host, hooks, &status, ret_error);
  if (!run) {
    return status;
  }
  if (!take_request(hooks, &request, &error) || !take_names(hooks, &names, &error)) {
    api_run_free(run);
    return api_fail_argument(error, ret_error);
  }
  if (!start(run, request, &names, &error)) {
    api_run_free(run);
    return api_fail(error, ret_error);
  }
  run->request = request ? json_text(request) : NULL;
  *ret_run = run;
  return SANDHOST_STATUS_OK;
}

const char *sandhost_run_id(const sandhost_run *run) {
  return run ? run_id(run->run) : NULL;
}

const char *sandhost_run_request(const sandhost_run *run) {
  return run ? run->request : NULL;
}

void sandhost_cancel(sandhost_run *run) {
  if (run && !api_is_inherited(run->generation)) {
    cancel_raise(run->cancel);
  }
}

static gboolean status_is_known(const char *status) {
  static const char *const KNOWN[] = {"completed", "failed", "cancelled", NULL};
  return g_strv_contains(KNOWN, status);
}

const char *api_run_status(sandhost_run *run) {
  g_autofree char *exhausted = run_exhausted(run->run);
  g_autoptr(JsonObject) approvals = run_waiting(run->run);
  g_autoptr(JsonObject) budgets = run_waiting_budgets(run->run);
  return cancel_raised(run->cancel)                ? "cancelled"
         : exhausted                               ? "failed"
         : json_object_array_length(approvals) > 0 ? "awaiting_approval"
         : json_object_array_length(budgets) > 0   ? "awaiting_budget"
                                                   : "completed";
}

int sandhost_run_end(sandhost_run *run, const char *status, const char *reason, char **ret_error) {
  if (!run) {
    return api_refuse(SANDHOST_STATUS_INVALID, "run must not be NULL", ret_error);
  }
  if (api_is_inherited(run->generation)) {
    return api_refuse_inherited(ret_error);
  }
  pthread_mutex_lock(&run->lock);
  run->ending = TRUE;
  while (run->executing > 0) {
    pthread_cond_wait(&run->idle, &run->lock);
  }
  pthread_mutex_unlock(&run->lock);

  g_autoptr(GError) error = NULL;
  gboolean known = !status || status_is_known(status);
  if (!status) {
    status = api_run_status(run);
  }
  gboolean ok = run_end(g_steal_pointer(&run->run), known ? status : "failed", reason, &error);
  run_retain(host_harness(run->host, NULL), host_record(run->host, NULL));
  api_run_free(run);
  if (!ok) {
    return api_fail(error, ret_error);
  }
  return known ? SANDHOST_STATUS_OK
               : api_refuse(SANDHOST_STATUS_INVALID,
                            "status must be completed, failed or cancelled; the run is recorded as "
                            "failed",
                            ret_error);
}

/* ---- Commands --------------------------------------------------------------------------------------------------- */

int api_run_enter(sandhost_run *run, char **ret_error) {
  if (api_is_inherited(run->generation)) {
    return api_refuse_inherited(ret_error);
  }
  pthread_mutex_lock(&run->lock);
  gboolean ok = !run->ending;
  run->executing += ok ? 1 : 0;
  pthread_mutex_unlock(&run->lock);
  return ok ? SANDHOST_STATUS_OK
            : api_refuse(SANDHOST_STATUS_STATE, "the run is ending", ret_error);
}

void api_run_leave(sandhost_run *run) {
  pthread_mutex_lock(&run->lock);
  run->executing--;
  pthread_cond_broadcast(&run->idle);
  pthread_mutex_unlock(&run->lock);
}

/* What is wrong with a call, in words for the model that made it; NULL: nothing. Owned. */
static char *fault_of(const sandhost_run *run, const char *command, gint64 timeout) {
  gsize length = strnlen(command, MAX_COMMAND + 1);
  if (length > MAX_COMMAND) {
    return g_strdup("the command is longer than 16 MiB");
  }
  if (!g_utf8_validate(command, (gssize)length, NULL)) {
    return g_strdup("command must be valid UTF-8");
  }
  if (timeout < 0) {
    return g_strdup_printf(
        "timeout must be a whole number of seconds between 1 and %" G_GINT64_FORMAT,
        run->host->harness->config->tool_call_timeout);
  }
  return NULL;
}

JsonObject *api_run_execute(sandhost_run *run, const ApiCall *request) {
  ExecuteOutcome outcome;
  g_autofree char *fault = fault_of(run, request->command, request->timeout);
  if (fault) {
    execute_reject(run->run, NULL, fault, &outcome);
  } else {
    Following following = {.run = run, .command = request->command};
    const ExecuteCall call = {
        .command = request->command,
        .timeout = request->timeout,
        .tool_call_id = request->tool_call_id,
        .tag = request->tag,
        .user = &following,
        .output = run->hooks.output ? output : NULL,
    };
    execute_run(run->run, &call, &outcome);
  }
  JsonObject *result = execute_outcome_json(run->run, &outcome);
  execute_outcome_clear(&outcome);
  return result;
}

/* Nothing is put into the result where there is no tag. */
static int execute(sandhost_run *run, const ApiCall *call, char **ret_result, char **ret_error) {
  int entered = api_run_enter(run, ret_error);
  if (entered != SANDHOST_STATUS_OK) {
    return entered;
  }
  g_autoptr(JsonObject) result = api_run_execute(run, call);
  api_run_leave(run);
  if (call->tag) {
    json_add_text(result, "tag", json_object_get_string(call->tag));
  }
  api_give(result, ret_result);
  return SANDHOST_STATUS_OK;
}

int sandhost_execute(sandhost_run *run, const char *command, int timeout_seconds, char **ret_result,
                     char **ret_error) {
  if (!run || !command || !ret_result) {
    return api_refuse(SANDHOST_STATUS_INVALID, "run, command and ret_result must not be NULL",
                      ret_error);
  }
  const ApiCall call = {.command = command, .timeout = timeout_seconds};
  return execute(run, &call, ret_result, ret_error);
}

int sandhost_execute_tagged(sandhost_run *run, const char *tag, const char *command,
                            int timeout_seconds, char **ret_result, char **ret_error) {
  if (!run || !command || !ret_result) {
    return api_refuse(SANDHOST_STATUS_INVALID, "run, command and ret_result must not be NULL",
                      ret_error);
  }
  gsize length = tag ? strnlen(tag, MAX_TAG + 1) : 0;
  if (length > MAX_TAG || (tag && !g_utf8_validate(tag, (gssize)length, NULL))) {
    return api_refuse(SANDHOST_STATUS_INVALID, "tag must be valid UTF-8 of at most 1024 bytes",
                      ret_error);
  }
  g_autoptr(JsonObject) text = tag ? json_object_new_string(tag) : NULL;
  const ApiCall call = {.command = command, .timeout = timeout_seconds, .tag = text};
  return execute(run, &call, ret_result, ret_error);
}
