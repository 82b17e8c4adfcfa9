/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox-optional.c: the operations that a provider may leave out: native, emulated, or refused with advice. */
#include <string.h>

#include "provider/emulate.h"
#include "provider/text.h"

/* More files than this are no workspace. */
#define MAX_ENTRIES 200000u

static const struct sandhost_provider *table_of(const Sandbox *sandbox) {
  return &sandbox->instance->provider->table;
}

/* ---- A slot that is there and does not serve this sandbox ------------------------------------------------ */

static gboolean has(Sandbox *sandbox, gboolean present, guint slot) {
  return present && ((guint)g_atomic_int_get(&sandbox->absent) & slot) == 0;
}

/* The provider said that it cannot, and nothing has gone through the caller's stream: the emulation can still do the
 * whole of it, and does from here on. */
static gboolean falls_back(const Job *job, guint slot, const GError *failure) {
  if (job->touched || !provider_error_is(failure, SANDHOST_UNSUPPORTED)) {
    return FALSE;
  }
  g_atomic_int_or(&job->sandbox->absent, slot);
  return TRUE;
}

/* ---- Network, snapshot, signal ---------------------------------------------------------------------------- */

static gint32 invoke_network(Job *job) {
  return job->provider->table.set_network_policy(&job->call, job->sandbox->theirs, &job->network);
}

gboolean sandbox_set_network_policy(Sandbox *sandbox, const CallScope *scope,
                                    const struct sandhost_network *network, GError **error) {
  if (!table_of(sandbox)->set_network_policy) {
    return sandbox_cannot(sandbox,
                          "cannot change its network while it runs; put network_policy in the "
                          "manifest",
                          error);
  }
  g_autoptr(Job) job = sandbox_job(sandbox, "set_network_policy", scope, error);
  if (!job) {
    return FALSE;
  }
  job->invoke = invoke_network;
  job->network = *network;
  job->network.size = sizeof job->network;
  job->network.allowed_hosts = job_texts(job, network->allowed_hosts, network->allowed_count);
  job->network.denied_hosts = job_texts(job, network->denied_hosts, network->denied_count);
  return job_run(job, error);
}

static gint32 invoke_snapshot(Job *job) {
  return job->provider->table.snapshot(&job->call, job->sandbox->theirs);
}

char *sandbox_snapshot(Sandbox *sandbox, const CallScope *scope, GError **error) {
  if (!table_of(sandbox)->snapshot) {
    sandbox_cannot(sandbox, "keeps no snapshots; copy out the files that are to stay", error);
    return NULL;
  }
  g_autoptr(Job) job = sandbox_job(sandbox, "snapshot", scope, error);
  if (!job) {
    return NULL;
  }
  job->invoke = invoke_snapshot;
  if (!job_run(job, error)) {
    return NULL;
  }
  const char *id = call_reported(&job->call, SANDHOST_REPORT_SNAPSHOT);
  if (!id || *id == '\0') {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL,
                "%s: snapshot said that it succeeded and gave no id", table_of(sandbox)->name);
    return NULL;
  }
  return g_strdup(id);
}

static gint32 invoke_signal(Job *job) {
  return job->provider->table.signal(&job->call, job->sandbox->theirs, job->execution,
                                     job->signal_number);
}

gboolean sandbox_signal(Sandbox *sandbox, const CallScope *scope, guint64 execution,
                        int signal_number, GError **error) {
  if (!table_of(sandbox)->signal) {
    return sandbox_cannot(sandbox, "cannot signal a command; cancel it instead", error);
  }
  g_autoptr(Job) job = sandbox_job(sandbox, "signal", scope, error);
  if (!job) {
    return FALSE;
  }
  job->invoke = invoke_signal;
  job->execution = execution;
  job->signal_number = signal_number;
  return job_run(job, error);
}

/* ---- Files --------------------------------------------------------------------------------------------------- */

static gint32 invoke_upload(Job *job) {
  return job->provider->table.upload(&job->call, job->sandbox->theirs, job->path, &job->source);
}

gboolean sandbox_upload(Sandbox *sandbox, const CallScope *scope, const struct sandhost_source *tar,
                        GError **error) {
  if (!has(sandbox, table_of(sandbox)->upload != NULL, SLOT_UPLOAD)) {
    return emulate_upload(sandbox, scope, tar, error);
  }
  g_autoptr(Job) job = sandbox_job(sandbox, "upload", scope, error);
  if (!job) {
    return FALSE;
  }
  job->invoke = invoke_upload;
  job->path = job_path(job, path_of(sandbox->working_dir));
  gate_source(job, tar);
  g_autoptr(GError) failure = NULL;
  if (job_run(job, &failure)) {
    return TRUE;
  }
  if (falls_back(job, SLOT_UPLOAD, failure)) {
    return emulate_upload(sandbox, scope, tar, error);
  }
  g_propagate_error(error, g_steal_pointer(&failure));
  return FALSE;
}

static gint32 invoke_download(Job *job) {
  return job->provider->table.download(&job->call, job->sandbox->theirs, job->path, job->names,
                                       job->name_count, &job->sink);
}

gboolean sandbox_download(Sandbox *sandbox, const CallScope *scope,
                          const struct sandhost_path *names, gsize name_count,
                          const struct sandhost_sink *tar, GError **error) {
  if (!has(sandbox, table_of(sandbox)->download != NULL, SLOT_DOWNLOAD)) {
    return emulate_download(sandbox, scope, names, name_count, tar, error);
  }
  g_autoptr(Job) job = sandbox_job(sandbox, "download", scope, error);
  if (!job) {
    return FALSE;
  }
  job->invoke = invoke_download;
  job->path = job_path(job, path_of(sandbox->working_dir));
  struct sandhost_path *copies = job_alloc(job, name_count, sizeof *copies);
  for (gsize i = 0; i < name_count; i++) {
    copies[i] = job_path(job, names[i]);
  }
  job->names = copies;
  job->name_count = name_count;
  gate_sink(job, tar);
  g_autoptr(GError) failure = NULL;
  if (job_run(job, &failure)) {
    return TRUE;
  }
  if (falls_back(job, SLOT_DOWNLOAD, failure)) {
    return emulate_download(sandbox, scope, names, name_count, tar, error);
  }
  g_propagate_error(error, g_steal_pointer(&failure));
  return FALSE;
}

static gint32 invoke_changes(Job *job) {
  return job->provider->table.changes(&job->call, job->sandbox->theirs, &job->changes,
                                      &job->entries);
}

/* One block for all paths: there may be ten thousand before each command. */
static struct sandhost_known *copy_known(Job *job, const struct sandhost_known *known,
                                         gsize count) {
  gsize bytes = 0;
  for (gsize i = 0; i < count; i++) {
    bytes += known[i].path.length + 1;
  }
  struct sandhost_known *copies = job_alloc(job, count, sizeof *copies);
  char *at = job_alloc(job, bytes, 1);
  for (gsize i = 0; i < count; i++) {
    copies[i] = known[i];
    memcpy(at, known[i].path.data, known[i].path.length);
    copies[i].path.data = at;
    at += known[i].path.length + 1;
  }
  return copies;
}

gboolean sandbox_changes(Sandbox *sandbox, const CallScope *scope,
                         const struct sandhost_known *known, gsize known_count,
                         guint64 max_hash_bytes, const struct sandhost_entry_sink *sink,
                         GError **error) {
  const struct sandhost_changes request = {
      .size = sizeof request,
      .root = path_of(sandbox->working_dir),
      .known = known,
      .known_count = known_count,
      .max_hash_bytes = max_hash_bytes,
      .max_entries = MAX_ENTRIES,
  };
  if (!has(sandbox, table_of(sandbox)->changes != NULL, SLOT_CHANGES)) {
    return emulate_changes(sandbox, scope, &request, sink, error);
  }
  g_autoptr(Job) job = sandbox_job(sandbox, "changes", scope, error);
  if (!job) {
    return FALSE;
  }
  job->invoke = invoke_changes;
  job->changes = request;
  job->changes.root = job_path(job, request.root);
  job->changes.known = copy_known(job, known, known_count);
  gate_entries(job, sink);
  g_autoptr(GError) failure = NULL;
  if (job_run(job, &failure)) {
    return TRUE;
  }
  if (falls_back(job, SLOT_CHANGES, failure)) {
    return emulate_changes(sandbox, scope, &request, sink, error);
  }
  g_propagate_error(error, g_steal_pointer(&failure));
  return FALSE;
}

/* ---- Probe ----------------------------------------------------------------------------------------------------- */

static gint32 invoke_probe(Job *job) {
  return job->provider->table.probe(&job->call, job->sandbox->theirs, &job->probe,
                                    &job->ret_verdict);
}

gboolean sandbox_probe(Sandbox *sandbox, const CallScope *scope, const struct sandhost_probe *probe,
                       guint32 *ret_verdict, GError **error) {
  if (!has(sandbox, table_of(sandbox)->probe != NULL, SLOT_PROBE)) {
    return emulate_probe(sandbox, scope, probe, ret_verdict, error);
  }
  g_autoptr(Job) job = sandbox_job(sandbox, "probe", scope, error);
  if (!job) {
    return FALSE;
  }
  job->invoke = invoke_probe;
  job->probe = *probe;
  job->probe.size = sizeof job->probe;
  job->probe.address = job_text(job, probe->address);
  g_autoptr(GError) failure = NULL;
  if (!job_run(job, &failure)) {
    if (falls_back(job, SLOT_PROBE, failure)) {
      return emulate_probe(sandbox, scope, probe, ret_verdict, error);
    }
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
  }
  if (job->ret_verdict != SANDHOST_PROBE_REACHED && job->ret_verdict != SANDHOST_PROBE_BLOCKED) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL, "%s: probe gave a verdict that is none",
                table_of(sandbox)->name);
    return FALSE;
  }
  *ret_verdict = job->ret_verdict;
  return TRUE;
}
