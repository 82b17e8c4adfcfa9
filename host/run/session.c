/* SPDX-License-Identifier: Apache-2.0 */
/* session.c: opening, sharing and ending the sandbox of a run. */
#include "run/session.h"

#include "base/clock.h"
#include "base/ids.h"
#include "run/guarded.h"
#include "run/network-check.h"

static void record_created(Session *session, const char *isolation) {
  const Harness *harness = session->harness;
  const Manifest *manifest = harness->config->manifest;
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "sandbox_session_id", session->id);
  json_add_text(facts, "sandbox_provider", provider_instance_name(harness->instance));
  json_add_text(facts, "sandbox_ref", sandbox_ref(session->sandbox));
  const char *image = sandbox_image(session->sandbox);
  json_add_text(facts, "image", image ? image : manifest->image);
  json_add_text(facts, "network", manifest->network ? "allow" : "deny");
  json_add_text(facts, "working_dir", manifest->working_dir);
  json_add_text(facts, "network_isolation", isolation);
  journal_add(session->journal, "sandbox_session_created", facts, NULL);
}

/* lost: why, perhaps empty; NULL for one that was not lost. */
static void record_closed(Session *session, const char *ref, const char *lost,
                          const GError *failure) {
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "sandbox_session_id", session->id);
  json_add_text(facts, "sandbox_ref", ref);
  json_add_int(facts, "commands", g_atomic_int_get(&session->commands));
  json_add_double(facts, "duration_ms",
                  (double)(clock_now() - session->opened) / (double)CLOCK_MILLISECOND);
  json_add_bool(facts, "lost", lost != NULL);
  if (lost && *lost) {
    json_add_text(facts, "lost_reason", lost);
  }
  json_add_text(facts, "error", failure ? failure->message : NULL);
  journal_add(session->journal, "sandbox_session_closed", facts, NULL);
}

static gboolean permit_copy(void *user, gboolean write, const char *path, GError **error) {
  const Session *session = user;
  return session->permit(session->copier, write, path, error);
}

static GString *filter_copy(void *user, const void *data, gsize length) {
  return privacy_text(user, PRIVACY_WORKSPACE, data, length);
}

static gboolean copy_holds_credential(void *user, const void *data, gsize length) {
  const Needles *needles = privacy_needles(user);
  return needles && needles_any(needles, data, length);
}

static const char *why_withheld(void *user, const char *path) {
  return guarded_is_used(user, path) ? "says what the run may do; never copied in" : NULL;
}

static Bridge *bridge_for(Session *session, WorkspaceFolder *folder) {
  const Config *config = session->harness->config;
  if (!config->enable_workspace_files || !provider_instance_isolates(session->harness->instance)) {
    return NULL;
  }
  const BridgeSettings settings = {
      .folder = folder,
      .include = (const char *const *)config->include,
      .exclude = (const char *const *)config->exclude,
      .max_files = config->max_files,
      .max_file_bytes = config->max_file_bytes,
      .max_copy_bytes = config->max_copy_bytes,
      .withheld = why_withheld,
      .withheld_user = (void *)(gsize)session->harness,
  };
  Bridge *bridge = bridge_new(&settings, permit_copy, session);
  Privacy *privacy = session->harness->privacy;
  if (!privacy_is_idle(privacy, PRIVACY_WORKSPACE)) {
    const BridgeFilter filter = {
        .user = privacy, .replace = filter_copy, .holds_credential = copy_holds_credential};
    bridge_set_filter(bridge, &filter);
  }
  return bridge;
}

Session *session_open(const Harness *harness, Journal *journal, const char *run_id,
                      WorkspaceFolder *folder, SessionPermit permit, const SessionEar *ear,
                      const CallScope *scope, GError **error) {
  g_autofree char *id = id_new("sandbox");
  if (!guarded_check_mount(harness, error)) {
    return NULL;
  }
  GError *failure = NULL;
  Sandbox *sandbox =
      sandbox_create(harness->instance, harness->config->manifest, id, run_id, scope, &failure);
  if (!sandbox) {
    session_tell_uncertain(harness, ear, failure);
    g_propagate_error(error, failure);
    return NULL;
  }
  const char *isolation = NULL;
  if (!network_check(sandbox, harness->instance, harness->config->manifest, scope, &isolation,
                     error)) {
    /* What does not keep its word holds nothing yet. */
    session_end_sandbox(harness, sandbox, ear, NULL);
    return NULL;
  }
  Session *session = g_new0(Session, 1);
  session->references = 1;
  session->id = g_steal_pointer(&id);
  session->sandbox = sandbox;
  session->journal = journal;
  session->harness = harness;
  session->opened = clock_now();
  session->paid = session->opened;
  session->permit = permit;
  session->ear = *ear;
  session->bridge = bridge_for(session, folder);
  record_created(session, isolation);
  return session;
}

Session *session_ref(Session *session) {
  g_atomic_int_inc(&session->references);
  return session;
}

void session_unref(Session *session) {
  if (!session || !g_atomic_int_dec_and_test(&session->references)) {
    return;
  }
  g_autoptr(GError) failure = NULL;
  g_autofree char *ref = g_strdup(sandbox_ref(session->sandbox));
  const char *reason = sandbox_lost_reason(session->sandbox);
  g_autofree char *lost = session_is_lost(session) ? g_strdup(reason ? reason : "") : NULL;
  session_end_sandbox(session->harness, g_steal_pointer(&session->sandbox), &session->ear,
                      &failure);
  journal_owe(session->journal, BUDGET_SANDBOX_SECONDS, session_unpaid(session));
  record_closed(session, ref, lost, failure);
  bridge_free(session->bridge);
  g_free(session->id);
  g_free(session);
}

gint64 session_unpaid(Session *session) {
  gint64 now = clock_now();
  return (now - __atomic_exchange_n(&session->paid, now, __ATOMIC_SEQ_CST)) / 1000;
}

void session_mark_lost(Session *session) {
  g_atomic_int_set(&session->lost, 1);
}

gboolean session_is_lost(Session *session) {
  return g_atomic_int_get(&session->lost) != 0 || sandbox_lost_reason(session->sandbox) != NULL;
}

const char *session_lost_reason(Session *session) {
  const char *reason = sandbox_lost_reason(session->sandbox);
  return reason && *reason ? reason : "it stopped";
}

/* ---- The bridge's way to the sandbox -------------------------------------------------------------- */

static gboolean transport_upload(void *user, const struct sandhost_source *tar, GError **error) {
  const SessionTransport *transport = user;
  if (!journal_flush(transport->session->journal, error)) {
    return FALSE;
  }
  return sandbox_upload(transport->session->sandbox, transport->scope, tar, error);
}

static gboolean transport_changes(void *user, const struct sandhost_known *known, gsize known_count,
                                  guint64 max_hash_bytes, const struct sandhost_entry_sink *sink,
                                  GError **error) {
  const SessionTransport *transport = user;
  return sandbox_changes(transport->session->sandbox, transport->scope, known, known_count,
                         max_hash_bytes, sink, error);
}

static gboolean transport_download(void *user, const struct sandhost_path *names, gsize name_count,
                                   const struct sandhost_sink *tar, GError **error) {
  const SessionTransport *transport = user;
  if (!journal_flush(transport->session->journal, error)) {
    return FALSE;
  }
  return sandbox_download(transport->session->sandbox, transport->scope, names, name_count, tar,
                          error);
}

BridgeTransport session_transport(SessionTransport *transport) {
  return (BridgeTransport){
      .user = transport,
      .name = provider_instance_name(transport->session->harness->instance),
      .upload = transport_upload,
      .changes = transport_changes,
      .download = transport_download,
  };
}
