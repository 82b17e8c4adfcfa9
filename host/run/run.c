/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: the beginning and the end of a run. */
#include "run/run.h"

#include "base/clock.h"
#include "base/ids.h"
#include "run/run-private.h"

Run *run_start(const Harness *harness, Record *record, const RunHooks *hooks, GError **error) {
  if (!harness_executes(harness, error)) {
    return NULL;
  }
  g_autofree char *id = id_new("run");
  g_autofree char *trace_id = id_new("trace");
  if (record) {
    g_autoptr(JsonObject) header = harness_header(harness);
    if (!record_begin(record, id, trace_id, header, error)) {
      return NULL;
    }
  }
  Run *run = g_new0(Run, 1);
  run->id = g_steal_pointer(&id);
  run->trace_id = g_steal_pointer(&trace_id);
  run->harness = harness;
  run->record = record;
  run->journal = journal_new(record, run->id);
  run->hooks = *hooks;
  if (hooks->cancel) {
    cancel_ref(hooks->cancel);
  }
  pthread_mutex_init(&run->answering, NULL);
  pthread_mutex_init(&run->opening, NULL);
  pthread_mutex_init(&run->copying, NULL);
  return run;
}

const char *run_id(const Run *run) {
  return run->id;
}

const char *run_trace_id(const Run *run) {
  return run->trace_id;
}

gboolean run_end(Run *take_run, const char *status, const char *reason, GError **error) {
  Run *run = take_run;
  g_clear_pointer(&run->session, session_unref);

  gboolean ok = journal_flush(run->journal, error);
  if (run->record) {
    ok = record_end(run->record, run->id, status, reason, ok ? error : NULL) && ok;
  }

  journal_free(run->journal);
  g_clear_pointer(&run->hooks.cancel, cancel_unref);
  pthread_mutex_destroy(&run->answering);
  pthread_mutex_destroy(&run->opening);
  pthread_mutex_destroy(&run->copying);
  g_free(run->trace_id);
  g_free(run->id);
  g_free(run);
  return ok;
}
