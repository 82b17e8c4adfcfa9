/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.c: what the bridge remembers of each path between two copies, and the report of one
 * command. */
#include "workspace/bridge-private.h"

#include <string.h>

#include "base/glob.h"
#include "workspace/names.h"

/* A sandbox can name as many files as it likes, command after command; this is where it ends. */
#define MAX_STATES 1000000u
#define MAX_PATH_BYTES ((gsize)128 * 1024 * 1024)

/* ---- The report ------------------------------------------------------------------------------ */

static void skip_free(gpointer data) {
  BridgeSkip *skip = data;
  g_free(skip->path);
  g_free(skip->reason);
  g_free(skip);
}

BridgeReport *bridge_report_new(void) {
  BridgeReport *report = g_new0(BridgeReport, 1);
  report->copied_in = g_ptr_array_new_with_free_func(g_free);
  report->written = g_ptr_array_new_with_free_func(g_free);
  report->redacted = g_ptr_array_new_with_free_func(g_free);
  report->skipped = g_ptr_array_new_with_free_func(skip_free);
  return report;
}

void bridge_report_free(BridgeReport *report) {
  if (!report) {
    return;
  }
  g_ptr_array_unref(report->copied_in);
  g_ptr_array_unref(report->written);
  g_ptr_array_unref(report->redacted);
  g_ptr_array_unref(report->skipped);
  g_free(report);
}

/* The last place tells of all that have none. */
static void count_more(BridgeReport *report) {
  BridgeSkip *last = g_ptr_array_index(report->skipped, BRIDGE_MOST_SKIPS - 1);
  report->more_skipped += report->more_skipped == 0 ? 2 : 1; /* the one that stood there, too */
  g_free(last->path);
  g_free(last->reason);
  last->path = g_strdup("*");
  last->reason =
      g_strdup_printf("%" G_GUINT64_FORMAT
                      " more were left out; governance_config.workspace_bridge sets patterns and "
                      "limits",
                      report->more_skipped);
}

void bridge_report_skip(BridgeReport *report, const char *path, const char *reason) {
  if (report->skipped->len >= BRIDGE_MOST_SKIPS && strcmp(path, "*") != 0) {
    count_more(report);
    return;
  }
  BridgeSkip *skip = g_new0(BridgeSkip, 1);
  skip->path = g_utf8_make_valid(path, -1);
  skip->reason = g_utf8_make_valid(reason, -1);
  g_ptr_array_add(report->skipped, skip);
}

/* ---- The bridge ------------------------------------------------------------------------------ */

static void state_free(gpointer data) {
  FileState *state = data;
  g_free(state->path);
  g_free(state);
}

Bridge *bridge_new(const BridgeSettings *settings, BridgePermit permit, void *permit_user) {
  Bridge *bridge = g_new0(Bridge, 1);
  bridge->folder = settings->folder;
  bridge->include = g_strdupv((char **)(gsize)settings->include);
  bridge->exclude = g_strdupv((char **)(gsize)settings->exclude);
  bridge->max_files = settings->max_files;
  bridge->max_file_bytes = settings->max_file_bytes;
  bridge->max_copy_bytes = settings->max_copy_bytes;
  bridge->withheld = settings->withheld;
  bridge->withheld_user = settings->withheld_user;
  bridge->permit = permit;
  bridge->permit_user = permit_user;
  bridge->files = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, state_free);
  return bridge;
}

void bridge_set_filter(Bridge *bridge, const BridgeFilter *filter) {
  bridge->filter = *filter;
}

void bridge_free(Bridge *bridge) {
  if (!bridge) {
    return;
  }
  g_strfreev(bridge->include);
  g_strfreev(bridge->exclude);
  g_hash_table_unref(bridge->files);
  g_clear_pointer(&bridge->known, g_ptr_array_unref);
  file_content_clear(&bridge->buffer);
  g_free(bridge);
}

/* What was reported stays reported: the files that were left out are still the same. */
void bridge_forget(Bridge *bridge) {
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init(&iter, bridge->files);
  while (g_hash_table_iter_next(&iter, NULL, &value)) {
    FileState *state = value;
    state->settled = FALSE;
    state->has_base = FALSE;
    state->in_sandbox = FALSE;
    state->apart = FALSE;
    state->checkout_reported = FALSE;
  }
  g_clear_pointer(&bridge->known, g_ptr_array_unref);
}

/* ---- States ---------------------------------------------------------------------------------- */

FileState *bridge_find(const Bridge *bridge, const char *path) {
  return g_hash_table_lookup(bridge->files, path);
}

FileState *bridge_state(Bridge *bridge, const char *path) {
  FileState *state = bridge_find(bridge, path);
  if (!state) {
    state = g_new0(FileState, 1);
    state->path = g_strdup(path);
    state->length = strlen(path);
    state->unwanted = name_is_run_record(path) || !bridge_is_wanted(bridge, path);
    bridge->path_bytes += state->length;
    g_hash_table_insert(bridge->files, state->path, state);
  }
  return state;
}

gboolean bridge_is_full(const Bridge *bridge) {
  return g_hash_table_size(bridge->files) >= MAX_STATES || bridge->path_bytes >= MAX_PATH_BYTES;
}

gboolean bridge_is_wanted(const Bridge *bridge, const char *path) {
  gboolean all = !bridge->include || !bridge->include[0];
  return (all || glob_match_any((const char *const *)bridge->include, path)) &&
         !glob_match_any((const char *const *)bridge->exclude, path);
}

void bridge_set_sandbox(Bridge *bridge, FileState *state, const guint8 digest[DIGEST_BYTES]) {
  if (!state->in_sandbox) {
    g_clear_pointer(&bridge->known, g_ptr_array_unref);
  }
  state->in_sandbox = TRUE;
  state->apart = FALSE;
  memcpy(state->sandbox, digest, DIGEST_BYTES);
}

void bridge_unset_sandbox(Bridge *bridge, FileState *state) {
  if (state->in_sandbox) {
    g_clear_pointer(&bridge->known, g_ptr_array_unref);
  }
  state->in_sandbox = FALSE;
  state->apart = FALSE;
}

void bridge_set_redacted(Bridge *bridge, FileState *state, const guint8 sandbox[DIGEST_BYTES],
                         const guint8 workspace[DIGEST_BYTES], const FileIdentity *identity,
                         gint64 tick) {
  bridge_set_same(bridge, state, workspace, identity, tick);
  bridge_set_sandbox(bridge, state, sandbox);
  state->apart = TRUE;
}

void bridge_set_same(Bridge *bridge, FileState *state, const guint8 digest[DIGEST_BYTES],
                     const FileIdentity *identity, gint64 tick) {
  bridge_set_sandbox(bridge, state, digest);
  memcpy(state->base, digest, DIGEST_BYTES);
  state->has_base = TRUE;
  state->identity = *identity;
  state->settled = file_identity_is_settled(identity, tick);
}

static gint compare_paths(gconstpointer a, gconstpointer b) {
  const FileState *const *left = a;
  const FileState *const *right = b;
  return strcmp((*left)->path, (*right)->path);
}

GPtrArray *bridge_known(Bridge *bridge) {
  if (!bridge->known) {
    bridge->known = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, bridge->files);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
      if (((const FileState *)value)->in_sandbox) {
        g_ptr_array_add(bridge->known, value);
      }
    }
    g_ptr_array_sort(bridge->known, compare_paths);
  }
  return bridge->known;
}
