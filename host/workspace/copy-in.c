/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy-in.c: before a command, what changed in the workspace goes into the sandbox (behaviour 8.1).
 *
 * First every changed file is looked at, and what goes in is chosen and permitted. Then the upload
 * pulls the chosen files one by one: each is read only then, so one is in memory at a time. What
 * the state says of a file changes only when the upload is over.
 */
#include "workspace/bridge-private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "workspace/listing.h"
#include "workspace/tar-source.h"
#include "workspace/text.h"

/* How much of a new file is looked at before it is chosen: enough to know most binary files. */
#define BEGINNING_BYTES ((gsize)4096)

typedef struct {
  FileState *state;
  FileIdentity identity;
  guint8 digest[DIGEST_BYTES]; /* once it was sent */
} Candidate;

typedef struct {
  Bridge *bridge;
  BridgeReport *report;
  int root;
  gint64 tick;     /* before anything was looked at */
  GArray *changed; /* Candidate */
  GArray *chosen;  /* Candidate */
  gsize next;      /* of chosen */
  GArray *sent;    /* Candidate */
  guint64 chosen_bytes;
  guint64 sent_bytes;
} CopyIn;

/* ---- What is left out ------------------------------------------------------------------------ */

static void report_once(CopyIn *copy, FileState *state, const FileIdentity *identity,
                        const char *reason) {
  guint hash = g_str_hash(reason) | 1u;
  if (state->in_reason == hash && file_identity_equal(&state->in_reported, identity)) {
    return;
  }
  state->in_reason = hash;
  state->in_reported = *identity;
  bridge_report_skip(copy->report, state->path, reason);
}

/* Left out until it changes. */
static void leave_out(CopyIn *copy, FileState *state, const FileIdentity *identity,
                      const char *reason) {
  report_once(copy, state, identity, reason);
  state->identity = *identity;
  state->settled = file_identity_is_settled(identity, copy->tick);
  state->has_base = FALSE;
}

/* Left out of this copy; the next one tries again. */
static void put_off(CopyIn *copy, FileState *state, const FileIdentity *identity,
                    char *take_reason) {
  report_once(copy, state, identity, take_reason);
  state->settled = FALSE;
  g_free(take_reason);
}

static void put_off_for_bytes(CopyIn *copy, FileState *state, const FileIdentity *identity) {
  put_off(copy, state, identity,
          g_strdup_printf("not copied in: over the bridge's limit of %" G_GUINT64_FORMAT
                          " bytes in one copy",
                          copy->bridge->max_copy_bytes));
}

static void leave_out_large(CopyIn *copy, FileState *state, const FileIdentity *identity) {
  g_autofree char *reason =
      g_strdup_printf("too large to copy in (%" G_GUINT64_FORMAT " bytes)", identity->bytes);
  leave_out(copy, state, identity, reason);
}

/* Deals with every outcome but FILE_READ_DONE. errno is that of the read. */
static void leave_out_unread(CopyIn *copy, FileState *state, const FileIdentity *identity,
                             FileRead outcome) {
  int error = errno;
  switch (outcome) {
  case FILE_READ_TOO_LARGE:
    leave_out_large(copy, state, &copy->bridge->buffer.identity);
    break;
  case FILE_READ_CHANGED:
    put_off(copy, state, identity, g_strdup("changed while it was being copied"));
    break;
  case FILE_READ_FAILED: {
    g_autofree char *reason = g_strdup_printf("could not be read (%s)", g_strerror(error));
    leave_out(copy, state, identity, reason);
    break;
  }
  default: /* it went away, or became a link: not reported */
    state->settled = FALSE;
    break;
  }
}

/* ---- What changed ---------------------------------------------------------------------------- */

static void visit_file(void *user, const char *path, const FileIdentity *identity) {
  CopyIn *copy = user;
  FileState *state = bridge_state(copy->bridge, path);
  if (state->unwanted || (state->settled && file_identity_equal(&state->identity, identity))) {
    return;
  }
  const Candidate candidate = {.state = state, .identity = *identity};
  g_array_append_val(copy->changed, candidate);
}

static void visit_trouble(void *user, const char *path, const FileIdentity *identity,
                          const char *reason) {
  CopyIn *copy = user;
  report_once(copy, bridge_state(copy->bridge, path), identity, reason);
}

static gint compare_candidates(gconstpointer a, gconstpointer b) {
  const Candidate *left = a;
  const Candidate *right = b;
  return strcmp(left->state->path, right->state->path);
}

/* Whether the sandbox has this content already; then nothing is left to do for it. */
static gboolean is_same(CopyIn *copy, FileState *state, guint8 ret_digest[DIGEST_BYTES]) {
  const FileContent *content = &copy->bridge->buffer;
  digest_of(content->data, content->length, ret_digest);
  if (state->apart && state->has_base && memcmp(state->base, ret_digest, DIGEST_BYTES) == 0) {
    /* What a filter keeps apart does not take the sandbox's own copy away. */
    state->identity = content->identity;
    state->settled = file_identity_is_settled(&content->identity, copy->tick);
    return TRUE;
  }
  if (!state->in_sandbox || memcmp(state->sandbox, ret_digest, DIGEST_BYTES) != 0) {
    return FALSE;
  }
  bridge_set_same(copy->bridge, state, ret_digest, &content->identity, copy->tick);
  return TRUE;
}

/* A file that the sandbox has in some form: often only its times changed. FALSE: dealt with. */
static gboolean differs(CopyIn *copy, const Candidate *candidate) {
  FileState *state = candidate->state;
  if (!state->in_sandbox || candidate->identity.bytes > copy->bridge->max_file_bytes) {
    return TRUE;
  }
  FileRead outcome =
      file_read(copy->root, state->path, copy->bridge->max_file_bytes, &copy->bridge->buffer);
  if (outcome == FILE_READ_TOO_LARGE || outcome == FILE_READ_FAILED) {
    return TRUE; /* told after the permission was asked for */
  }
  if (outcome != FILE_READ_DONE) {
    leave_out_unread(copy, state, &candidate->identity, outcome);
    return FALSE;
  }
  guint8 digest[DIGEST_BYTES];
  return !is_same(copy, state, digest);
}

/* Whether a permitted file is one that may go in. */
static gboolean is_fit(CopyIn *copy, const Candidate *candidate) {
  Bridge *bridge = copy->bridge;
  FileState *state = candidate->state;
  FileContent *content = &bridge->buffer;
  FileRead outcome = file_read_beginning(copy->root, state->path, BEGINNING_BYTES, content);
  if (outcome == FILE_READ_DONE && content->identity.bytes > bridge->max_file_bytes) {
    outcome = FILE_READ_TOO_LARGE;
  }
  if (outcome != FILE_READ_DONE) {
    leave_out_unread(copy, state, &candidate->identity, outcome);
    return FALSE;
  }
  gboolean whole = content->length == content->identity.bytes;
  if (whole ? !text_is_utf8(content->data, content->length)
            : !text_may_begin(content->data, content->length)) {
    leave_out(copy, state, &content->identity, "not text (only UTF-8 files are copied in)");
    return FALSE;
  }
  if (content->identity.bytes > bridge->max_copy_bytes - copy->chosen_bytes) {
    put_off_for_bytes(copy, state, &content->identity);
    return FALSE;
  }
  copy->chosen_bytes += content->identity.bytes;
  return TRUE;
}

/* FALSE with *error: the copy stops. */
static gboolean choose(CopyIn *copy, const Candidate *candidate, GError **error) {
  Bridge *bridge = copy->bridge;
  FileState *state = candidate->state;
  if (!differs(copy, candidate)) {
    return TRUE;
  }
  if (copy->chosen->len >= bridge->max_files) {
    put_off(copy, state, &candidate->identity,
            g_strdup_printf("not copied in: over the bridge's limit of %" G_GUINT64_FORMAT " files",
                            bridge->max_files));
    return TRUE;
  }
  const char *withheld =
      bridge->withheld ? bridge->withheld(bridge->withheld_user, state->path) : NULL;
  if (withheld) {
    leave_out(copy, state, &candidate->identity, withheld);
    return TRUE;
  }
  GError *failure = NULL;
  if (!bridge->permit(bridge->permit_user, FALSE, state->path, &failure)) {
    if (failure) {
      g_propagate_error(error, failure);
      return FALSE;
    }
    leave_out(copy, state, &candidate->identity, "not permitted by policy");
    return TRUE;
  }
  if (is_fit(copy, candidate)) {
    g_array_append_val(copy->chosen, *candidate);
  }
  return TRUE;
}

static gboolean choose_all(CopyIn *copy, GError **error) {
  const ListingVisitor visitor = {
      .user = copy,
      .file = visit_file,
      .trouble = visit_trouble,
  };
  listing_walk(copy->root, &visitor);
  g_array_sort(copy->changed, compare_candidates);
  for (guint i = 0; i < copy->changed->len; i++) {
    if (!choose(copy, &g_array_index(copy->changed, Candidate, i), error)) {
      return FALSE;
    }
  }
  return TRUE;
}

/* ---- What goes in ---------------------------------------------------------------------------- */

/* Reads a chosen file into the bridge's buffer. FALSE: it does not go in after all. */
static gboolean load(CopyIn *copy, Candidate *candidate) {
  Bridge *bridge = copy->bridge;
  FileState *state = candidate->state;
  FileContent *content = &bridge->buffer;
  FileRead outcome = file_read(copy->root, state->path, bridge->max_file_bytes, content);
  if (outcome != FILE_READ_DONE) {
    leave_out_unread(copy, state, &candidate->identity, outcome);
    return FALSE;
  }
  candidate->identity = content->identity;
  if (!text_is_utf8(content->data, content->length)) {
    leave_out(copy, state, &content->identity, "not text (only UTF-8 files are copied in)");
    return FALSE;
  }
  if (content->length > bridge->max_copy_bytes - copy->sent_bytes) {
    put_off_for_bytes(copy, state, &content->identity);
    return FALSE;
  }
  return !is_same(copy, state, candidate->digest);
}

/* TarSourceNext. Runs in the thread that the provider reads in; bridge_copy_in waits for it. */
static gboolean next_file(void *user, TarSourceFile *ret_file) {
  CopyIn *copy = user;
  while (copy->next < copy->chosen->len) {
    Candidate *candidate = &g_array_index(copy->chosen, Candidate, copy->next++);
    if (!load(copy, candidate)) {
      continue;
    }
    const FileContent *content = &copy->bridge->buffer;
    copy->sent_bytes += content->length;
    g_array_append_val(copy->sent, *candidate);
    *ret_file = (TarSourceFile){
        .path = candidate->state->path,
        .data = content->data,
        .length = content->length,
        .mtime = content->identity.mtime,
    };
    return TRUE;
  }
  return FALSE;
}

static void note_sent(CopyIn *copy, gboolean arrived) {
  for (guint i = 0; i < copy->sent->len; i++) {
    const Candidate *candidate = &g_array_index(copy->sent, Candidate, i);
    FileState *state = candidate->state;
    if (arrived) {
      bridge_set_same(copy->bridge, state, candidate->digest, &candidate->identity, copy->tick);
      state->in_reason = 0;
      g_ptr_array_add(copy->report->copied_in, g_strdup(state->path));
    } else {
      /* The sandbox holds the old content, the new one, or a part. */
      bridge_unset_sandbox(copy->bridge, state);
      state->settled = FALSE;
    }
  }
}

static gboolean send_all(CopyIn *copy, const BridgeTransport *transport, GError **error) {
  g_autoptr(TarSource) source = tar_source_new(next_file, copy);
  if (tar_source_is_empty(source)) {
    return TRUE;
  }
  const struct sandhost_source stream = tar_source_stream(source);
  g_autoptr(GError) failure = NULL;
  gboolean ok = transport->upload(transport->user, &stream, &failure);
  if (tar_source_error(source)) {
    g_propagate_error(error, g_error_copy(tar_source_error(source)));
    ok = FALSE;
  } else if (!ok) {
    g_propagate_error(error, g_steal_pointer(&failure));
  } else if (!tar_source_is_ended(source)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE,
                "the sandbox took only a part of the workspace's files");
    ok = FALSE;
  }
  note_sent(copy, ok);
  return ok;
}

gboolean bridge_copy_in(Bridge *bridge, const BridgeTransport *transport, BridgeReport *report,
                        GError **error) {
  CopyIn copy = {.bridge = bridge, .report = report, .root = -1, .tick = file_tick()};
  if (!workspace_folder_open(bridge->folder, FALSE, &copy.root, error)) {
    return FALSE;
  }
  if (copy.root < 0) {
    return TRUE;
  }
  copy.changed = g_array_new(FALSE, FALSE, sizeof(Candidate));
  copy.chosen = g_array_new(FALSE, FALSE, sizeof(Candidate));
  copy.sent = g_array_new(FALSE, FALSE, sizeof(Candidate));
  gboolean ok = choose_all(&copy, error) && send_all(&copy, transport, error);
  g_array_unref(copy.changed);
  g_array_unref(copy.chosen);
  g_array_unref(copy.sent);
  close(copy.root);
  return ok;
}
