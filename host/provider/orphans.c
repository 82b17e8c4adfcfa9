/* SPDX-License-Identifier: Apache-2.0 */
/* orphans.c: what an instance is asked about things that outlived their run: sandboxes and snapshots. */
#include "provider/job.h"
#include "provider/text.h"

void orphan_free(Orphan *orphan) {
  if (orphan) {
    g_free(orphan->ref);
    g_free(orphan->run_id);
    g_free(orphan);
  }
}

gboolean provider_instance_sweeps(const ProviderInstance *instance) {
  return instance->provider->table.sweep != NULL;
}

static gint32 invoke_sweep(Job *job) {
  return job->provider->table.sweep(&job->call, job->instance->theirs, &job->sweep, &job->orphans);
}

gboolean provider_instance_sweep(ProviderInstance *instance, const SweepRequest *request,
                                 GPtrArray *orphans, const CallScope *scope, GError **error) {
  if (!provider_instance_sweeps(instance)) {
    return TRUE;
  }
  g_autoptr(Job) job = job_new("sweep", scope, instance->provider, instance, NULL, instance->tests);
  job->invoke = invoke_sweep;
  job->sweep = (struct sandhost_sweep){
      .size = sizeof job->sweep,
      .run_id = job_text(job, text_of(request->run_id)),
      .min_age = request->min_age,
      .dry_run = request->dry_run ? 1 : 0,
  };
  gsize count = 0;
  while (request->keep && request->keep[count]) {
    count++;
  }
  struct sandhost_text *keep = job_alloc(job, count, sizeof *keep);
  for (gsize i = 0; i < count; i++) {
    keep[i] = job_text(job, text_of(request->keep[i]));
  }
  job->sweep.keep = keep;
  job->sweep.keep_count = count;
  gate_orphans(job, orphans);
  return job_run(job, error);
}

static gint32 invoke_delete_snapshot(Job *job) {
  return job->provider->table.delete_snapshot(&job->call, job->instance->theirs, job->text);
}

gboolean provider_instance_delete_snapshot(ProviderInstance *instance, const char *id,
                                           const CallScope *scope, GError **error) {
  if (!instance->provider->table.delete_snapshot) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED, "the %s sandbox keeps no snapshots",
                provider_instance_name(instance));
    return FALSE;
  }
  g_autoptr(Job) job =
      job_new("delete_snapshot", scope, instance->provider, instance, NULL, instance->tests);
  job->invoke = invoke_delete_snapshot;
  job->text = job_text(job, text_of(id));
  return job_run(job, error);
}
