/* SPDX-License-Identifier: Apache-2.0 */
/* resume.c: a run of an earlier process, or of this one, that goes on, and its end from outside. */
#include <string.h>

#include "api/api-private.h"
#include "base/error.h"
#include "run/execute.h"
#include "run/resume.h"

#define AT_ONCE 64u /* threads */

/* ---- Going on ---------------------------------------------------------------------------------------------------- */

/* A run is begun again by who began it: only that one knows the rest of its request. */
static gboolean check_surface(JsonObject *life, const char *id, GError **error) {
  const char *surface = json_get_text(json_get(life, "request"), "surface");
  if (g_strcmp0(surface, "api") == 0) {
    return TRUE;
  }
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFLICT,
              "Run %s was begun by sandhost %s; sandhost resume %s goes on with it", id,
              surface ? surface : "", id);
  return FALSE;
}

/* What the earlier segments left, as it is before this one adds anything. */
static gboolean find_stopped(sandhost_run *run, Record *record, const char *id, GError **error) {
  g_autoptr(JsonObject) recorded = NULL;
  run->stopped = resume_find_calls(record, id, &recorded, error);
  run->reset = recorded && resume_lost_sandbox(recorded);
  return run->stopped != NULL;
}

static gboolean go_on(sandhost_run *run, const char *wanted, GError **error) {
  Record *record = NULL;
  g_autofree char *id = host_find_run(run->host, wanted, &record, error);
  const Harness *harness = id ? host_harness(run->host, error) : NULL;
  if (!harness || !harness_executes(harness, error) || !record_can_resume(record, id, error)) {
    return FALSE;
  }
  g_autoptr(JsonObject) life = record_life(record, id, error);
  if (!life || !check_surface(life, id, error)) {
    return FALSE;
  }
  RunHooks hooks = api_run_hooks(run);
  hooks.session_id = json_get_text(json_get(life, "request"), "session");
  hooks.agent_name = json_get_text(json_get(life, "request"), "agent");
  run->run = run_resume(harness, record, id, &hooks, error);
  if (!run->run) {
    return FALSE;
  }
  if (!find_stopped(run, record, id, error)) {
    run_end(g_steal_pointer(&run->run), "interrupted", (*error)->message, NULL);
    return FALSE;
  }
  JsonObject *own = json_get(json_get(life, "request"), "request");
  run->request = own ? json_text(own) : NULL;
  return TRUE;
}

int sandhost_resume(sandhost *host, const char *run_id, const struct sandhost_hooks *hooks,
                    sandhost_run **ret_run, char **ret_error) {
  g_autoptr(GError) error = NULL;
  int status = SANDHOST_STATUS_OK;
  if (!host || !run_id || !ret_run) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host, run_id and ret_run must not be NULL",
                      ret_error);
  }
  sandhost_run *run = api_run_new(host, hooks, &status, ret_error);
  if (!run) {
    return status;
  }
  if (!go_on(run, run_id, &error)) {
    api_run_free(run);
    return api_fail(error, ret_error);
  }
  *ret_run = run;
  return SANDHOST_STATUS_OK;
}

/* ---- What was stopped -------------------------------------------------------------------------------------------- */

typedef struct {
  sandhost_run *run;
  const ResumeCall *call;
  JsonObject *result; /* owned */
} Stopped;

/* The thread's own, but for the texts that it reads. */
static gpointer run_again(gpointer data) {
  Stopped *stopped = data;
  JsonObject *arguments = stopped->call->arguments;
  const char *command = json_get_text(arguments, "command");
  const ApiCall call = {.command = command ? command : "",
                        .timeout = json_get_int(arguments, "timeout", 0),
                        .tool_call_id = stopped->call->tool_call_id};
  stopped->result = api_run_execute(stopped->run, &call);
  return NULL;
}

static void tell_unknown(Stopped *stopped) {
  const ResumeCall *call = stopped->call;
  ExecuteOutcome outcome;
  execute_unknown(stopped->run->run, call->tool_call_id, call->arguments, call->reported, &outcome);
  stopped->result = execute_outcome_json(stopped->run->run, &outcome);
  execute_outcome_clear(&outcome);
}

static void tell_withheld(Stopped *stopped) {
  const ResumeCall *call = stopped->call;
  ExecuteOutcome outcome;
  execute_withheld(stopped->run->run, call->tool_call_id, call->arguments, RESUME_WITHHELD_TEXT,
                   &outcome);
  stopped->result = execute_outcome_json(stopped->run->run, &outcome);
  execute_outcome_clear(&outcome);
}

static gboolean is_to_run(const ResumeCall *call) {
  return call->remains == REMAINS_AGAIN && !call->withheld;
}

/* Side by side, as they were; so many at a time. What finds no room for a thread runs here. */
static void run_all(Stopped *all, guint count) {
  GThread *threads[AT_ONCE];
  for (guint from = 0; from < count; from += AT_ONCE) {
    guint some = MIN(count - from, AT_ONCE);
    for (guint i = 0; i < some; i++) {
      Stopped *stopped = &all[from + i];
      threads[i] = NULL;
      if (is_to_run(stopped->call)) {
        threads[i] = g_thread_try_new("stopped", run_again, stopped, NULL);
        if (!threads[i]) {
          run_again(stopped);
        }
      }
    }
    for (guint i = 0; i < some; i++) {
      if (threads[i]) {
        g_thread_join(threads[i]);
      } else if (all[from + i].call->remains == REMAINS_UNKNOWN) {
        tell_unknown(&all[from + i]);
      } else if (all[from + i].call->remains == REMAINS_AGAIN && all[from + i].call->withheld) {
        tell_withheld(&all[from + i]);
      }
    }
  }
}

/* An approval holds them as they are to be run; they are told as any result is. */
static JsonObject *arguments_of(const Stopped *stopped) {
  const Harness *harness = host_harness(stopped->run->host, NULL);
  return privacy_json(harness->privacy, PRIVACY_RESULT, stopped->call->arguments, FALSE, NULL);
}

static JsonObject *results_of(const Stopped *all, guint count) {
  JsonObject *results = json_object_new_array();
  for (guint i = 0; i < count; i++) {
    if (all[i].result) {
      json_add_text(all[i].result, "tool_call_id", all[i].call->tool_call_id);
      json_add_take(all[i].result, "tag", json_object_get(all[i].call->tag));
      json_add_take(all[i].result, "arguments", arguments_of(&all[i]));
      json_object_array_add(results, all[i].result);
    }
  }
  return results;
}

static GPtrArray *take_stopped(sandhost_run *run, gboolean *ret_reset) {
  pthread_mutex_lock(&run->lock);
  GPtrArray *calls = g_steal_pointer(&run->stopped);
  *ret_reset = calls && run->reset;
  pthread_mutex_unlock(&run->lock);
  return calls;
}

int sandhost_execute_stopped(sandhost_run *run, char **ret_results, char **ret_error) {
  if (!run || !ret_results) {
    return api_refuse(SANDHOST_STATUS_INVALID, "run and ret_results must not be NULL", ret_error);
  }
  int entered = api_run_enter(run, ret_error);
  if (entered != SANDHOST_STATUS_OK) {
    return entered;
  }
  gboolean reset = FALSE;
  g_autoptr(GPtrArray) calls = take_stopped(run, &reset);
  guint count = calls ? calls->len : 0;
  g_autofree Stopped *all = g_new0(Stopped, count + 1);
  for (guint i = 0; i < count; i++) {
    all[i] = (Stopped){.run = run, .call = g_ptr_array_index(calls, i)};
  }
  run_all(all, count);
  g_autoptr(JsonObject) told = json_object_new_object();
  json_add_text(told, "run_id", run_id(run->run));
  json_add_text(told, "trace_id", run_trace_id(run->run));
  json_add_text(told, "notice", reset ? RESUME_RESET_TEXT : NULL);
  json_add_take(told, "results", results_of(all, count));
  api_run_leave(run);
  api_give(told, ret_results);
  return SANDHOST_STATUS_OK;
}

/* ---- The end from outside ---------------------------------------------------------------------------------------- */

static const char *reason_of(const char *status, const char *reason) {
  if (reason) {
    return reason;
  }
  return strcmp(status, "timeout") == 0 ? "The run's deadline passed"
                                        : "The run was ended from outside";
}

/* Only once the run is nobody's any more. */
static gboolean sweep(sandhost *host, const char *id, GError **error) {
  g_autoptr(GError) failure = NULL;
  const Harness *harness = host_harness(host, &failure);
  if (harness && (!harness->instance || run_sweep_leftovers(harness, id, NULL, NULL, &failure))) {
    return TRUE;
  }
  g_propagate_prefixed_error(error, g_steal_pointer(&failure),
                             "Run %s is ended, and sandboxes of it may be left: ", id);
  return FALSE;
}

static gboolean abandon(sandhost *host, const char *wanted, const char *status, const char *reason,
                        char **ret_status, GError **error) {
  Record *record = NULL;
  gboolean changed = FALSE;
  g_autofree char *id = host_find_run(host, wanted, &record, error);
  if (!id ||
      !resume_abandon(record, id, status, reason_of(status, reason), host_privacy(host), &changed,
                      error) ||
      (changed && !sweep(host, id, error))) {
    return FALSE;
  }
  g_autoptr(JsonObject) life = record_life(record, id, error);
  if (life && ret_status) {
    *ret_status = g_strdup(json_get_text(life, "status"));
  }
  return life != NULL;
}

int sandhost_abandon(sandhost *host, const char *run_id, const char *status, const char *reason,
                     char **ret_status, char **ret_error) {
  static const char *const KNOWN[] = {"cancelled", "failed", "timeout", NULL};
  g_autoptr(GError) error = NULL;
  if (!host || !run_id) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host and run_id must not be NULL", ret_error);
  }
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  if (status && !g_strv_contains(KNOWN, status)) {
    return api_refuse(SANDHOST_STATUS_INVALID, "status must be cancelled, failed or timeout",
                      ret_error);
  }
  return abandon(host, run_id, status ? status : "cancelled", reason, ret_status, &error)
             ? SANDHOST_STATUS_OK
             : api_fail(error, ret_error);
}
