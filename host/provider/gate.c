/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c: the caller's streams as a plugin gets them: counted, checked, and shut when the caller has left or the
 * operation has returned. The gate's lock is held while something of the caller runs, so that leaving waits for
 * it; a stream that is called from two threads at once is serialised.
 */
#include <string.h>

#include "provider/job.h"
#include "provider/text.h"

/* With the gate. What is open takes bytes. */
static gboolean is_open(const Job *job) {
  return !job->call.left && job->stopped == SANDHOST_OK && !job->breach;
}

/* Takes the gate. */
static Job *enter(void *user) {
  Job *job = user;
  pthread_mutex_lock(&job->call.gate);
  return job;
}

static void leave(Job *job) {
  pthread_mutex_unlock(&job->call.gate);
}

/* A status that stops, for a plugin that goes on regardless. */
static gint32 stop_status(const Job *job) {
  return job->stopped != SANDHOST_OK ? job->stopped : SANDHOST_CANCELLED;
}

static int32_t sink_write(void *user, const void *data, size_t length) {
  Job *job = enter(user);
  job->touched = TRUE;
  gint32 status = SANDHOST_OK;
  if (!is_open(job)) {
    status = stop_status(job);
  } else if (length > 0 && !data) {
    job->breach = "wrote bytes that are not there";
    status = SANDHOST_PROTOCOL;
  } else if (length > 0) {
    status = job->their_sink->write(job->their_sink->user, data, length);
    job->stopped = status;
  }
  leave(job);
  return status;
}

static int64_t source_read(void *user, void *buffer, size_t length) {
  Job *job = enter(user);
  job->touched = TRUE;
  gint64 count = -1;
  if (is_open(job)) {
    count = job->their_source->read(job->their_source->user, buffer, length);
    if (count < 0) {
      job->stopped = SANDHOST_CANCELLED;
    }
  }
  leave(job);
  return count;
}

static void observer_started(void *user, uint64_t execution) {
  Job *job = enter(user);
  if (is_open(job) && !job->started) {
    job->started = TRUE;
    if (job->their_observer->started) {
      job->their_observer->started(job->their_observer->user, execution);
    }
  }
  leave(job);
}

static gint32 deliver(Job *job, uint32_t stream, const void *data, size_t length) {
  if (!is_open(job)) {
    return stop_status(job);
  }
  if ((stream != SANDHOST_STDOUT && stream != SANDHOST_STDERR) || (length > 0 && !data)) {
    job->breach = "wrote to a stream that is not there";
    return SANDHOST_PROTOCOL;
  }
  /* What a plugin gives beyond the limit is dropped here, so that the limit means the same everywhere. */
  guint64 *delivered = &job->delivered[stream - SANDHOST_STDOUT];
  guint64 max = job->execute.max_output_bytes;
  guint64 room = max == 0 ? G_MAXUINT64 : max - *delivered;
  gsize give = room < length ? (gsize)room : length;
  if (give == 0) {
    return SANDHOST_OK;
  }
  *delivered += give;
  job->stopped = job->their_observer->output(job->their_observer->user, stream, data, give);
  return job->stopped;
}

static int32_t observer_output(void *user, uint32_t stream, const void *data, size_t length) {
  Job *job = enter(user);
  gint32 status = deliver(job, stream, data, length);
  leave(job);
  return status;
}

static int64_t observer_input(void *user, void *buffer, size_t length) {
  Job *job = enter(user);
  gint64 count = is_open(job) && job->their_observer->input
                     ? job->their_observer->input(job->their_observer->user, buffer, length)
                     : 0;
  leave(job);
  return count;
}

static int32_t observer_input_fd(void *user) {
  Job *job = enter(user);
  gint32 fd = is_open(job) && job->their_observer->input_fd
                  ? job->their_observer->input_fd(job->their_observer->user)
                  : -1;
  leave(job);
  return fd;
}

/* Relative, no empty, . or .. component, no NUL, of a length that a path can have. */
static gboolean path_is_inside(struct sandhost_path path) {
  if (!path.data || path.length == 0 || path.length > 4096 || memchr(path.data, 0, path.length)) {
    return FALSE;
  }
  const char *end = path.data + path.length;
  for (const char *at = path.data; at <= end;) {
    const char *slash = memchr(at, '/', (gsize)(end - at));
    gsize length = (gsize)((slash ? slash : end) - at);
    if (length == 0 || (length == 1 && at[0] == '.') || (length == 2 && !memcmp(at, "..", 2))) {
      return FALSE;
    }
    if (!slash) {
      break;
    }
    at = slash + 1;
  }
  return TRUE;
}

/* The path is shown as far as a person can read it. */
static void name_path(Job *job, const char *breach, struct sandhost_path path) {
  g_autofree char *start = g_strndup(path.data ? path.data : "", MIN(path.length, 200));
  g_autofree char *clean = text_clean_string(start, 200);
  g_snprintf(job->breach_text, sizeof job->breach_text, "%s: '%s'", breach, clean);
  job->breach = job->breach_text;
}

#define ENTRY_SIZE_1_0 (offsetof(struct sandhost_entry, sha256) + 32)

static gint32 pass_entry(Job *job, const struct sandhost_entry *entry) {
  if (!is_open(job)) {
    return stop_status(job);
  }
  /* A kind of a later contract is the caller's to pass over. */
  if (!entry || entry->size < ENTRY_SIZE_1_0 || entry->kind == 0) {
    job->breach = "listed something that is no entry";
    return SANDHOST_PROTOCOL;
  }
  if (!path_is_inside(entry->path)) {
    name_path(job, "listed a path that is not below the root", entry->path);
    return SANDHOST_PROTOCOL;
  }
  job->entry_count++;
  if (job->changes.max_entries != 0 && job->entry_count > job->changes.max_entries) {
    job->breach = "listed more entries than were asked for";
    return SANDHOST_PROTOCOL;
  }
  struct sandhost_entry copy = {0};
  memcpy(&copy, entry, MIN(entry->size, sizeof copy));
  copy.size = sizeof copy;
  job->stopped = job->their_entries->entry(job->their_entries->user, &copy);
  return job->stopped;
}

static int32_t entries_entry(void *user, const struct sandhost_entry *entry) {
  Job *job = enter(user);
  job->touched = TRUE;
  gint32 status = pass_entry(job, entry);
  leave(job);
  return status;
}

/* ---- Sandboxes that a sweep lists ------------------------------------------------------------------------- */

#define ORPHAN_SIZE_1_0 (offsetof(struct sandhost_orphan, reserved) + sizeof(int32_t))
/* No account has more; a provider that lists for ever is stopped. */
#define MAX_ORPHANS 100000u
#define MAX_REF_BYTES 1024u
#define MAX_RUN_ID_BYTES 256u

/* A copy of text that is one line of at most max bytes without control characters; NULL for anything else. */
static char *checked_text(struct sandhost_text text, gsize max) {
  if (!text.data || text.length == 0 || text.length > max || memchr(text.data, 0, text.length)) {
    return NULL;
  }
  g_autofree char *copy = g_strndup(text.data, text.length);
  return text_checked_line(copy, max);
}

static gboolean is_kept(const struct sandhost_sweep *sweep, const char *ref) {
  gsize length = strlen(ref);
  for (gsize i = 0; i < sweep->keep_count; i++) {
    if (sweep->keep[i].length == length && memcmp(sweep->keep[i].data, ref, length) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

/* A ref is given back to the provider, so it must be text that stays itself. A run's name is only compared and shown;
 * anybody may have written it onto something that looks like ours, so one that is no text counts as unknown. */
static const char *orphan_breach(const Job *job, const struct sandhost_orphan *orphan,
                                 Orphan *take_into) {
  const struct sandhost_sweep *sweep = &job->sweep;
  take_into->ref = checked_text(orphan->ref, MAX_REF_BYTES);
  take_into->run_id = checked_text(orphan->run_id, MAX_RUN_ID_BYTES);
  take_into->age = orphan->age < 0 ? -1 : orphan->age;
  take_into->removed = orphan->removed != 0;
  if (!take_into->ref) {
    return "listed a sandbox without a name that is text";
  }
  if (sweep->run_id.length > 0 &&
      (orphan->run_id.length != sweep->run_id.length || !take_into->run_id ||
       strcmp(take_into->run_id, sweep->run_id.data) != 0)) {
    return "listed a sandbox of another run";
  }
  if (take_into->removed && sweep->dry_run) {
    return "removed a sandbox that was only to be listed";
  }
  if (take_into->removed && is_kept(sweep, take_into->ref)) {
    return "removed a sandbox that was to be kept";
  }
  return NULL;
}

static int32_t orphans_orphan(void *user, const struct sandhost_orphan *orphan) {
  Job *job = enter(user);
  gint32 status = SANDHOST_OK;
  if (!is_open(job)) {
    status = stop_status(job);
  } else if (!orphan || orphan->size < ORPHAN_SIZE_1_0) {
    job->breach = "listed something that is no sandbox";
  } else if (job->entry_count >= MAX_ORPHANS) {
    job->breach = "listed more sandboxes than there can be";
  } else {
    Orphan *ours = g_new0(Orphan, 1);
    job->entry_count++;
    job->breach = orphan_breach(job, orphan, ours);
    if (job->breach) {
      orphan_free(ours);
    } else {
      g_ptr_array_add(job->their_orphans, ours);
    }
  }
  status = job->breach ? SANDHOST_PROTOCOL : status;
  leave(job);
  return status;
}

void gate_orphans(Job *job, GPtrArray *orphans) {
  job->their_orphans = orphans;
  job->orphans = (struct sandhost_orphan_sink){
      .size = sizeof job->orphans, .user = job, .orphan = orphans_orphan};
}

/* ---- What a job gets ---------------------------------------------------------------------------------------- */

void gate_sink(Job *job, const struct sandhost_sink *sink) {
  job->their_sink = sink;
  job->sink = (struct sandhost_sink){.size = sizeof job->sink, .user = job, .write = sink_write};
}

void gate_source(Job *job, const struct sandhost_source *source) {
  job->their_source = source;
  job->source =
      (struct sandhost_source){.size = sizeof job->source, .user = job, .read = source_read};
}

void gate_observer(Job *job, const struct sandhost_observer *observer) {
  gboolean input = (job->execute.flags & SANDHOST_EXECUTE_STDIN) != 0;
  job->their_observer = observer;
  job->observer = (struct sandhost_observer){
      .size = sizeof job->observer,
      .user = job,
      .started = observer_started,
      .output = observer_output,
      .input = input ? observer_input : NULL,
      .input_fd = input ? observer_input_fd : NULL,
  };
}

void gate_entries(Job *job, const struct sandhost_entry_sink *entries) {
  job->their_entries = entries;
  job->entries = (struct sandhost_entry_sink){
      .size = sizeof job->entries, .user = job, .entry = entries_entry};
}
