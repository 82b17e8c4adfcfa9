/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar-sink.c: the provider pushes, libarchive pulls, so a thread of its own stands in between with
 * a ring of bytes.
 *
 * One lock, sink->lock, guards the ring and the flags. Nothing is called while it is held.
 */
#include "workspace/tar-sink.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <string.h>

#include "base/error.h"

#define RING_BYTES ((gsize)256 * 1024)
/* What a header, with all that extends it, may take of the stream beyond what is in libarchive's hands already: a pax
 * header has a path or two, but the map of a sparse file costs libarchive a dozen times its length in memory, and has
 * no end of its own. */
#define HEADER_BYTES ((gsize)128 * 1024)

struct TarSink {
  TarSinkRequest request;
  TarSinkFile file;
  void *user;
  GThread *thread;

  /* Of pthread, which the thread sanitizer knows; it does not know GLib's. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  guint8 *ring;
  gsize begin; /* of the bytes not yet read */
  gsize filled;
  guint64 received; /* bytes of the stream so far */
  gboolean closed;  /* no more bytes come */
  gboolean broken;  /* closed before the stream was complete */
  gboolean too_long;
  gboolean done; /* nobody reads any more */

  /* Only used by the thread. */
  gsize lent; /* bytes at begin that libarchive looks at */
  gboolean in_header;
  gsize header_bytes; /* lent since it began */
  gsize next;         /* index of the first name that may still come */
  gboolean *came;     /* for each name */
  guint8 *data;       /* of one file */
  gsize capacity;
  GError *error; /* read by others once the thread has ended */
};

static gboolean fail(TarSink *sink, const char *text) {
  if (!sink->error) {
    g_autofree char *valid = g_utf8_make_valid(text ? text : "out of memory", -1);
    g_set_error(&sink->error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE,
                "could not read the sandbox's files: %s", valid);
  }
  return FALSE;
}

static gboolean fail_member(TarSink *sink, const char *what, const char *path) {
  g_autofree char *text = g_strdup_printf("%s: '%.200s'", what, path ? path : "");
  return fail(sink, text);
}

/* ---- The ring -------------------------------------------------------------------------------- */

/* Copies what fits; under the lock. */
static gsize put(TarSink *sink, const guint8 *data, gsize length) {
  gsize end = (sink->begin + sink->filled) % RING_BYTES;
  gsize fits = MIN(length, RING_BYTES - sink->filled);
  gsize first = MIN(fits, RING_BYTES - end);
  memcpy(sink->ring + end, data, first);
  memcpy(sink->ring, data + first, fits - first);
  sink->filled += fits;
  return fits;
}

static int32_t write_stream(void *user, const void *data, size_t length) {
  TarSink *sink = user;
  const guint8 *at = data;
  pthread_mutex_lock(&sink->lock);
  if (length > sink->request.max_bytes - sink->received) {
    sink->too_long = TRUE;
    sink->closed = TRUE;
    pthread_cond_broadcast(&sink->changed);
  } else {
    sink->received += length;
  }
  while (length > 0 && !sink->done && !sink->closed) {
    gsize count = put(sink, at, length);
    at += count;
    length -= count;
    if (count > 0) {
      pthread_cond_broadcast(&sink->changed);
    } else {
      pthread_cond_wait(&sink->changed, &sink->lock);
    }
  }
  /* After the archive's end the rest is padding, which is dropped. */
  gboolean stop = sink->too_long || sink->closed || (sink->done && sink->error);
  pthread_mutex_unlock(&sink->lock);
  return stop ? SANDHOST_CANCELLED : SANDHOST_OK;
}

/* libarchive's read function: gives back what it had and lends what there is. */
static la_ssize_t lend(struct archive *archive, void *user, const void **ret_data) {
  (void)archive;
  TarSink *sink = user;
  pthread_mutex_lock(&sink->lock);
  sink->begin = (sink->begin + sink->lent) % RING_BYTES;
  sink->filled -= sink->lent;
  sink->lent = 0;
  pthread_cond_broadcast(&sink->changed);
  while (sink->filled == 0 && !sink->closed) {
    pthread_cond_wait(&sink->changed, &sink->lock);
  }
  gboolean cut = sink->too_long || sink->broken;
  sink->lent = MIN(sink->filled, RING_BYTES - sink->begin);
  *ret_data = sink->ring + sink->begin;
  pthread_mutex_unlock(&sink->lock);
  if (sink->in_header) {
    if (sink->header_bytes > HEADER_BYTES) {
      archive_set_error(archive, EPROTO, "a member's header is too long");
      return -1;
    }
    sink->header_bytes += sink->lent;
  }
  if (cut) {
    archive_set_error(archive, EPROTO, "the stream is longer than its files");
    return -1;
  }
  return (la_ssize_t)sink->lent;
}

/* ---- The members ----------------------------------------------------------------------------- */

/* Finds path at or after the index from. */
static gboolean find_name(const TarSink *sink, const char *path, gsize from, gsize *ret_index) {
  gsize length = strlen(path);
  for (gsize i = from; i < sink->request.count; i++) {
    const struct sandhost_path *name = &sink->request.names[i];
    if (name->length == length && memcmp(name->data, path, length) == 0) {
      *ret_index = i;
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean read_data(TarSink *sink, struct archive *archive, gsize length) {
  if (length > sink->capacity) {
    gpointer data = g_try_realloc(sink->data, length);
    if (!data) {
      return fail(sink, NULL);
    }
    sink->data = data;
    sink->capacity = length;
  }
  gsize filled = 0;
  while (filled < length) {
    la_ssize_t count = archive_read_data(archive, sink->data + filled, length - filled);
    if (count < 0) {
      return fail(sink, archive_error_string(archive));
    }
    if (count == 0) {
      return fail(sink, "a file is shorter than announced");
    }
    filled += (gsize)count;
  }
  return TRUE;
}

/* path is at none of the places that may still come. */
static const char *why_not_expected(const TarSink *sink, const char *path) {
  gsize index = 0;
  if (!path || !find_name(sink, path, 0, &index)) {
    return "a member that was not asked for";
  }
  return sink->came[index] ? "a member that came twice"
                           : "a member out of the order that was asked for";
}

static gboolean take_member(TarSink *sink, struct archive *archive, struct archive_entry *entry) {
  const char *path = archive_entry_pathname(entry);
  if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) ||
      archive_entry_symlink(entry) || !archive_entry_size_is_set(entry)) {
    return fail_member(sink, "a member is no regular file", path);
  }
  gsize index = 0;
  if (!path || !find_name(sink, path, sink->next, &index)) {
    return fail_member(sink, why_not_expected(sink, path), path);
  }
  sink->next = index + 1;
  sink->came[index] = TRUE;
  la_int64_t size = archive_entry_size(entry);
  if (size < 0) {
    return fail_member(sink, "a member of negative size", path);
  }
  if ((guint64)size > sink->request.max_file_bytes) {
    return TRUE; /* it has grown since it was listed; libarchive passes over its content */
  }
  return read_data(sink, archive, (gsize)size) &&
         sink->file(sink->user, index, sink->data, (gsize)size, &sink->error);
}

/* What was not read of the member before is passed over first: it is no part of the header. */
static int next_header(TarSink *sink, struct archive *archive, struct archive_entry **ret_entry) {
  int status = *ret_entry ? archive_read_data_skip(archive) : ARCHIVE_OK;
  if (status < ARCHIVE_WARN) {
    return status;
  }
  sink->in_header = TRUE;
  sink->header_bytes = 0;
  status = archive_read_next_header(archive, ret_entry);
  sink->in_header = FALSE;
  return status;
}

static gboolean take_members(TarSink *sink, struct archive *archive) {
  struct archive_entry *entry = NULL;
  for (;;) {
    int status = next_header(sink, archive, &entry);
    if (status == ARCHIVE_EOF) {
      return TRUE;
    }
    /* A warning: a name that is not ASCII. It is compared as bytes. */
    if (status < ARCHIVE_WARN) {
      return fail(sink, archive_error_string(archive));
    }
    if (!take_member(sink, archive, entry)) {
      return FALSE;
    }
  }
}

static void read_archive(TarSink *sink) {
  struct archive *archive = archive_read_new();
  /* No filter is registered: nothing is ever decompressed. */
  if (!archive || archive_read_support_format_tar(archive) != ARCHIVE_OK ||
      archive_read_support_format_empty(archive) != ARCHIVE_OK ||
      archive_read_open(archive, sink, NULL, lend, NULL) != ARCHIVE_OK) {
    fail(sink, archive ? archive_error_string(archive) : NULL);
  } else {
    take_members(sink, archive);
  }
  if (archive) {
    archive_read_free(archive);
  }
}

static gpointer run(gpointer user) {
  TarSink *sink = user;
  /* In a UTF-8 locale libarchive composes decomposed names, which then are other names. */
  locale_t plain = newlocale(LC_CTYPE_MASK, "C", (locale_t)0);
  locale_t before = plain ? uselocale(plain) : (locale_t)0;
  read_archive(sink);
  if (plain) {
    uselocale(before);
    freelocale(plain);
  }
  pthread_mutex_lock(&sink->lock);
  sink->done = TRUE;
  pthread_cond_broadcast(&sink->changed);
  pthread_mutex_unlock(&sink->lock);
  return NULL;
}

/* ---- The outside ----------------------------------------------------------------------------- */

static void sink_free(TarSink *sink) {
  pthread_mutex_destroy(&sink->lock);
  pthread_cond_destroy(&sink->changed);
  g_free(sink->ring);
  g_free(sink->came);
  g_free(sink->data);
  g_clear_error(&sink->error);
  g_free(sink);
}

TarSink *tar_sink_start(const TarSinkRequest *request, TarSinkFile file, void *user,
                        GError **error) {
  TarSink *sink = g_new0(TarSink, 1);
  sink->request = *request;
  sink->file = file;
  sink->user = user;
  sink->ring = g_malloc(RING_BYTES);
  sink->came = g_new0(gboolean, request->count);
  pthread_mutex_init(&sink->lock, NULL);
  pthread_cond_init(&sink->changed, NULL);
  sink->thread = g_thread_try_new("workspace-tar", run, sink, error);
  if (!sink->thread) {
    sink_free(sink);
    return NULL;
  }
  return sink;
}

struct sandhost_sink tar_sink_stream(TarSink *sink) {
  return (struct sandhost_sink){
      .size = sizeof(struct sandhost_sink),
      .user = sink,
      .write = write_stream,
  };
}

gboolean tar_sink_finish(TarSink *take_sink, gboolean complete, GError **error) {
  pthread_mutex_lock(&take_sink->lock);
  take_sink->broken = !complete && !take_sink->done;
  take_sink->closed = TRUE;
  pthread_cond_broadcast(&take_sink->changed);
  pthread_mutex_unlock(&take_sink->lock);
  g_thread_join(take_sink->thread);

  gboolean ok = !take_sink->error || take_sink->broken;
  if (take_sink->too_long && ok) {
    fail(take_sink, "the stream is longer than its files");
    ok = FALSE;
  }
  if (!ok) {
    g_propagate_error(error, g_steal_pointer(&take_sink->error));
  }
  sink_free(take_sink);
  return ok;
}
