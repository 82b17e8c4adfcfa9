/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy-back.c: after a command, text files that it changed come back into the workspace
 * (behaviour 8.2).
 *
 * First the sandbox lists what differs from what it is known to hold, and what comes back is chosen
 * and permitted. Then one download brings the chosen files; each is checked again and written
 * before the next one is looked at.
 */
#include "workspace/bridge-private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/glob.h"
#include "workspace/checkouts.h"
#include "workspace/names.h"
#include "workspace/safe-write.h"
#include "workspace/sandbox-list.h"
#include "workspace/tar-sink.h"
#include "workspace/text.h"

#define OWNERS_CREDENTIAL "holds a credential, as the workspace's own copy does; not written"
#define CHANGED_MEANWHILE "changed while it was being copied"

/* What a stream may hold besides content: headers of a long name for each file, and padding. */
#define HEADER_BYTES ((guint64)16 * 1024)
#define PADDING_BYTES ((guint64)1024 * 1024)

typedef struct {
  const SandboxFile *file;
  FileState *state;
  gboolean came;
} Wanted;

typedef struct {
  Bridge *bridge;
  BridgeReport *report;
  int root;            /* -1: there is no workspace yet */
  Checkouts checkouts; /* of the workspace */
  GArray *wanted;      /* Wanted, sorted by path */
  guint64 wanted_bytes;
  SafeWriter writer;
} CopyBack;

/* ---- What does not come back ----------------------------------------------------------------- */

static void report_once(CopyBack *copy, FileState *state, const SandboxFile *file,
                        const char *reason) {
  guint hash = g_str_hash(reason) | 1u;
  if (state->back_reason == hash &&
      memcmp(state->back_reported, file->version, DIGEST_BYTES) == 0) {
    return;
  }
  state->back_reason = hash;
  memcpy(state->back_reported, file->version, DIGEST_BYTES);
  bridge_report_skip(copy->report, file->path, reason);
}

/* Not looked at again until it changes. */
static void pass_over(CopyBack *copy, FileState *state, const SandboxFile *file) {
  if (file->has_digest) {
    bridge_set_sandbox(copy->bridge, state, file->digest);
  } else {
    bridge_unset_sandbox(copy->bridge, state);
  }
}

static void leave_there(CopyBack *copy, FileState *state, const SandboxFile *file,
                        const char *reason) {
  report_once(copy, state, file, reason);
  pass_over(copy, state, file);
}

static void leave_large(CopyBack *copy, FileState *state, const SandboxFile *file) {
  g_autofree char *reason =
      g_strdup_printf("too large to copy back (%" G_GUINT64_FORMAT " bytes)", file->bytes);
  leave_there(copy, state, file, reason);
}

static void put_off(CopyBack *copy, FileState *state, const SandboxFile *file, guint64 limit,
                    const char *unit) {
  g_autofree char *reason = g_strdup_printf(
      "not copied back: over the bridge's limit of %" G_GUINT64_FORMAT " %s", limit, unit);
  report_once(copy, state, file, reason);
}

static void report_checkout(CopyBack *copy, FileState *state, const char *path) {
  if (!state->checkout_reported) {
    state->checkout_reported = TRUE;
    bridge_report_skip(copy->report, path,
                       "a git checkout; not copied back: clone repositories outside the workspace "
                       "folder");
  }
}

/* The sandbox does not see what makes a folder of the workspace a checkout: hidden names are not copied in. */
static gboolean is_in_checkout(CopyBack *copy, FileState *state, const SandboxFile *file) {
  g_autofree char *checkout =
      copy->root >= 0 ? checkouts_find(&copy->checkouts, copy->root, file->path) : NULL;
  if (checkout) {
    report_checkout(copy, bridge_state(copy->bridge, checkout), checkout);
    pass_over(copy, state, file);
  }
  return checkout != NULL;
}

/* ---- What comes back ------------------------------------------------------------------------- */

static gboolean holds_credential(const Bridge *bridge, const void *data, gsize length) {
  const BridgeFilter *filter = &bridge->filter;
  return filter->holds_credential && filter->holds_credential(filter->user, data, length);
}

/* A reason that needs no question to the policy, or NULL. */
static const char *plain_reason(const Bridge *bridge, const FileState *state,
                                const SandboxFile *file) {
  if (!g_utf8_validate(file->path, -1, NULL)) {
    return "name is not UTF-8";
  }
  if (name_is_run_record(file->path)) {
    return "a background run's record; the runtime's own";
  }
  /* What a folder holds may be wanted where its own path is not. */
  if (file->unread_folder ? glob_match_any((const char *const *)bridge->exclude, file->path)
                          : state->unwanted) {
    return "outside the bridge's include/exclude patterns";
  }
  /* A name is not rewritten: another file may have that one. */
  return holds_credential(bridge, file->path, strlen(file->path))
             ? "its name holds a credential; not written"
             : NULL;
}

/* FALSE with *error: the copy stops. */
static gboolean ask_permission(CopyBack *copy, FileState *state, const SandboxFile *file,
                               gboolean *ret_permitted, GError **error) {
  const Bridge *bridge = copy->bridge;
  GError *failure = NULL;
  gboolean permitted = bridge->permit(bridge->permit_user, TRUE, file->path, &failure);
  if (!permitted && failure) {
    g_propagate_error(error, failure);
    return FALSE;
  }
  if (!permitted) {
    leave_there(copy, state, file, "not permitted by policy");
  }
  *ret_permitted = permitted;
  return TRUE;
}

static gboolean choose_permitted(CopyBack *copy, FileState *state, const SandboxFile *file,
                                 GError **error) {
  const Bridge *bridge = copy->bridge;
  if (copy->wanted->len >= bridge->max_files) {
    put_off(copy, state, file, bridge->max_files, "files");
    return TRUE;
  }
  gboolean permitted = FALSE;
  if (!ask_permission(copy, state, file, &permitted, error)) {
    return FALSE;
  }
  if (!permitted) {
    return TRUE;
  }
  if (file->bytes > bridge->max_copy_bytes - copy->wanted_bytes) {
    put_off(copy, state, file, bridge->max_copy_bytes, "bytes in one copy");
    return TRUE;
  }
  copy->wanted_bytes += file->bytes;
  const Wanted wanted = {.file = file, .state = state};
  g_array_append_val(copy->wanted, wanted);
  return TRUE;
}

/* FALSE with *error: the copy stops. */
static gboolean choose(CopyBack *copy, const SandboxFile *file, GError **error) {
  Bridge *bridge = copy->bridge;
  FileState *state = bridge_state(bridge, file->path);
  if (file->checkout) {
    report_checkout(copy, state, file->path);
    return TRUE;
  }
  if (file->has_digest && state->in_sandbox &&
      memcmp(state->sandbox, file->digest, DIGEST_BYTES) == 0) {
    return TRUE; /* known, although it should not have been listed */
  }
  if (file->has_digest && state->has_base && memcmp(state->base, file->digest, DIGEST_BYTES) == 0) {
    /* It went back to what the workspace had. */
    bridge_set_sandbox(bridge, state, file->digest);
    return TRUE;
  }
  if (is_in_checkout(copy, state, file)) {
    return TRUE;
  }
  const char *reason = plain_reason(bridge, state, file);
  if (reason) {
    leave_there(copy, state, file, reason);
    return TRUE;
  }
  if (!file->unread_folder && file->bytes > bridge->max_file_bytes) {
    leave_large(copy, state, file);
    return TRUE;
  }
  if (!file->has_digest) {
    leave_there(copy, state, file, "could not be read in the sandbox");
    return TRUE;
  }
  return choose_permitted(copy, state, file, error);
}

static gboolean choose_all(CopyBack *copy, const SandboxList *list, GError **error) {
  for (gsize i = 0; i < sandbox_list_count(list); i++) {
    if (bridge_is_full(copy->bridge)) {
      g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE,
                  "could not read the sandbox's files: more of them than the bridge can follow");
      return FALSE;
    }
    if (!choose(copy, sandbox_list_at(list, i), error)) {
      return FALSE;
    }
  }
  return TRUE;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Whether the workspace's file still has the content that both sides had. NULL, or the reason why
 * it counts as not, owned. */
static char *check_conflict(CopyBack *copy, const FileState *state, const SafeTarget *target) {
  if (!target->exists || (state->has_base && state->settled &&
                          file_identity_equal(&state->identity, &target->identity))) {
    return NULL;
  }
  if (!state->has_base) {
    return g_strdup(SAFE_WRITE_CONFLICT);
  }
  FileContent *content = &copy->bridge->buffer;
  FileRead outcome = file_read(copy->root, state->path, copy->bridge->max_file_bytes, content);
  if (outcome == FILE_READ_FAILED) {
    return g_strdup_printf("could not be read (%s)", g_strerror(errno));
  }
  guint8 digest[DIGEST_BYTES];
  if (outcome == FILE_READ_DONE && file_identity_equal(&content->identity, &target->identity)) {
    digest_of(content->data, content->length, digest);
    if (memcmp(digest, state->base, DIGEST_BYTES) == 0) {
      return NULL;
    }
  }
  return g_strdup(SAFE_WRITE_CONFLICT);
}

/* A credential that stands in the workspace's own file is its owner's: a marker in its place would help nobody. NULL, or
 * the reason why the file stays as it is, owned. */
static char *check_owner(CopyBack *copy, const FileState *state) {
  FileContent *content = &copy->bridge->buffer;
  FileRead outcome = file_read(copy->root, state->path, copy->bridge->max_file_bytes, content);
  return outcome == FILE_READ_DONE && holds_credential(copy->bridge, content->data, content->length)
             ? g_strdup(OWNERS_CREDENTIAL)
             : NULL;
}

static void note_written(CopyBack *copy, const Wanted *wanted, const GString *redacted,
                         const FileIdentity *identity, gint64 tick) {
  FileState *state = wanted->state;
  if (redacted) {
    guint8 digest[DIGEST_BYTES];
    digest_of(redacted->str, redacted->len, digest);
    bridge_set_redacted(copy->bridge, state, wanted->file->digest, digest, identity, tick);
    g_ptr_array_add(copy->report->redacted, g_strdup(state->path));
  } else {
    bridge_set_same(copy->bridge, state, wanted->file->digest, identity, tick);
  }
  state->in_reason = 0;
  state->back_reason = 0;
  g_ptr_array_add(copy->report->written, g_strdup(state->path));
}

/* NULL: written. Otherwise the reason why not, owned. redacted is written in the place of data; NULL: data is. */
static char *write_file(CopyBack *copy, const Wanted *wanted, const guint8 *data, gsize length,
                        const GString *redacted) {
  FileState *state = wanted->state;
  SafeTarget target;
  FileIdentity identity;
  gint64 tick = file_tick();
  char *reason = safe_target_look(copy->root, state->path, &target);
  if (!reason) {
    reason = check_conflict(copy, state, &target);
  }
  if (!reason && redacted && target.exists) {
    reason = check_owner(copy, state);
  }
  if (!reason) {
    reason =
        safe_writer_write(&copy->writer, state->path, redacted ? redacted->str : (const void *)data,
                          redacted ? redacted->len : length, &target, &identity);
  }
  if (!reason) {
    note_written(copy, wanted, redacted, &identity, tick);
  }
  return reason;
}

/* TarSinkFile. Runs in the sink's thread while bridge_copy_back waits for it. */
static gboolean take_file(void *user, gsize index, const guint8 *data, gsize length,
                          GError **error) {
  (void)error;
  CopyBack *copy = user;
  Wanted *wanted = &g_array_index(copy->wanted, Wanted, index);
  guint8 digest[DIGEST_BYTES];
  digest_of(data, length, digest);
  if (memcmp(digest, wanted->file->digest, DIGEST_BYTES) != 0) {
    return TRUE; /* as if it had not come */
  }
  wanted->came = TRUE;
  if (!text_is_utf8(data, length)) {
    leave_there(copy, wanted->state, wanted->file, "not text (only UTF-8 files are copied back)");
    return TRUE;
  }
  const Bridge *bridge = copy->bridge;
  const BridgeFilter *filter = &bridge->filter;
  GString *redacted = filter->replace ? filter->replace(filter->user, data, length) : NULL;
  g_autofree char *reason = write_file(copy, wanted, data, length, redacted);
  if (redacted) {
    g_string_free(redacted, TRUE);
  }
  if (!reason) {
    return TRUE;
  }
  if (g_str_has_prefix(reason, "could not be ")) {
    report_once(copy, wanted->state, wanted->file, reason); /* a full disk: tried again */
  } else {
    leave_there(copy, wanted->state, wanted->file, reason);
    wanted->state->apart = strcmp(reason, OWNERS_CREDENTIAL) == 0;
  }
  return TRUE;
}

/* Also those that the sandbox left out. Told each time, and tried again. */
static void report_changed(CopyBack *copy) {
  for (guint i = 0; i < copy->wanted->len; i++) {
    const Wanted *wanted = &g_array_index(copy->wanted, Wanted, i);
    if (!wanted->came) {
      bridge_report_skip(copy->report, wanted->file->path, CHANGED_MEANWHILE);
    }
  }
}

/* A file may have grown since it was listed, so twice the content. */
static guint64 stream_limit(const CopyBack *copy) {
  const guint64 huge = G_MAXUINT64 / 8; /* settings may be any number */
  return 2 * MIN(copy->wanted_bytes, huge) + MIN(copy->bridge->max_file_bytes, huge) +
         copy->wanted->len * HEADER_BYTES + PADDING_BYTES;
}

/* Where what the sandbox sent is refused: says who sent it. A provider's own error does. */
static void blame(const BridgeTransport *transport, GError **error) {
  if (transport->name && error && *error && (*error)->domain == SANDHOST_ERROR) {
    g_prefix_error(error, "%s: ", transport->name);
  }
}

static gboolean receive(CopyBack *copy, const BridgeTransport *transport,
                        const struct sandhost_path *names, GError **error) {
  const Bridge *bridge = copy->bridge;
  const TarSinkRequest request = {
      .names = names,
      .count = copy->wanted->len,
      .max_file_bytes = bridge->max_file_bytes,
      .max_bytes = stream_limit(copy),
  };
  TarSink *sink = tar_sink_start(&request, take_file, copy, error);
  if (!sink) {
    return FALSE;
  }
  const struct sandhost_sink stream = tar_sink_stream(sink);
  GError *failure = NULL;
  gboolean complete =
      transport->download(transport->user, names, copy->wanted->len, &stream, &failure);
  if (!tar_sink_finish(sink, complete, error)) {
    blame(transport, error);
    g_clear_error(&failure);
    return FALSE;
  }
  if (!complete) {
    g_propagate_error(error, failure);
    return FALSE;
  }
  report_changed(copy);
  return TRUE;
}

static gboolean receive_all(CopyBack *copy, const BridgeTransport *transport, GError **error) {
  if (copy->wanted->len == 0) {
    return TRUE;
  }
  if (copy->root < 0 && !workspace_folder_open(copy->bridge->folder, TRUE, &copy->root, error)) {
    return FALSE;
  }
  copy->writer = safe_writer_for(copy->root);
  g_autofree struct sandhost_path *names = g_new0(struct sandhost_path, copy->wanted->len);
  for (guint i = 0; i < copy->wanted->len; i++) {
    const FileState *state = g_array_index(copy->wanted, Wanted, i).state;
    names[i] = (struct sandhost_path){.data = state->path, .length = state->length};
  }
  gboolean ok = receive(copy, transport, names, error);
  safe_writer_clear(&copy->writer);
  return ok;
}

/* ---- The listing ----------------------------------------------------------------------------- */

static SandboxList *list_sandbox(Bridge *bridge, const BridgeTransport *transport, GError **error) {
  const GPtrArray *states = bridge_known(bridge);
  g_autofree struct sandhost_known *known = g_new0(struct sandhost_known, states->len);
  for (guint i = 0; i < states->len; i++) {
    const FileState *state = g_ptr_array_index(states, i);
    known[i].path = (struct sandhost_path){.data = state->path, .length = state->length};
    memcpy(known[i].sha256, state->sandbox, DIGEST_BYTES);
  }
  return sandbox_list_get(transport, known, states->len, bridge->max_file_bytes, error);
}

gboolean bridge_copy_back(Bridge *bridge, const BridgeTransport *transport, BridgeReport *report,
                          GError **error) {
  g_autoptr(SandboxList) list = list_sandbox(bridge, transport, error);
  if (!list) {
    blame(transport, error);
    return FALSE;
  }
  CopyBack copy = {.bridge = bridge, .report = report, .root = -1};
  if (sandbox_list_count(list) > 0 &&
      !workspace_folder_open(bridge->folder, FALSE, &copy.root, error)) {
    return FALSE;
  }
  copy.wanted = g_array_new(FALSE, TRUE, sizeof(Wanted));
  gboolean ok = choose_all(&copy, list, error) && receive_all(&copy, transport, error);
  g_array_unref(copy.wanted);
  checkouts_clear(&copy.checkouts);
  if (copy.root >= 0) {
    close(copy.root);
  }
  return ok;
}
