/* SPDX-License-Identifier: Apache-2.0 */
/* tar-source.c: libarchive pushes, the reader pulls. What libarchive writes goes straight into the
 * reader's buffer; only what does not fit (a header's rest, padding) waits in between. */
#include "workspace/tar-source.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <string.h>

#include "base/error.h"

/* What is given to libarchive at least, so that a reader with a tiny buffer does not make tiny
 * writes. */
#define MIN_PIECE (16 * 1024)

/* Two empty blocks. */
#define END_MARK 1024

struct TarSource {
  TarSourceNext next;
  void *user;
  struct archive *archive;
  TarSourceFile file;
  gsize written; /* bytes of file that libarchive has */
  gboolean has_file;
  gboolean primed; /* file is the first one and was not begun */
  gboolean ended;
  gboolean freeing;
  locale_t locale;     /* for libarchive's look at names; 0 where there is none */
  GByteArray *waiting; /* bytes for the next read */
  gsize waiting_at;
  guint8 *out; /* the reader's buffer, while it reads */
  gsize out_left;
  GError *error;
};

/* libarchive's write function; takes everything. */
static la_ssize_t take(struct archive *archive, void *user, const void *data, size_t length) {
  (void)archive;
  TarSource *source = user;
  if (source->freeing) {
    return (la_ssize_t)length; /* a file that was broken off is filled up with zeros */
  }
  gsize fits = MIN(length, source->out_left);
  if (fits > 0) {
    memcpy(source->out, data, fits);
    source->out += fits;
    source->out_left -= fits;
  }
  if (length > fits) {
    g_byte_array_append(source->waiting, (const guint8 *)data + fits, (guint)(length - fits));
  }
  return (la_ssize_t)length;
}

TarSource *tar_source_new(TarSourceNext next, void *user) {
  TarSource *source = g_new0(TarSource, 1);
  source->next = next;
  source->user = user;
  source->waiting = g_byte_array_new();
  source->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  return source;
}

void tar_source_free(TarSource *source) {
  if (!source) {
    return;
  }
  source->freeing = TRUE;
  if (source->archive) {
    archive_write_free(source->archive);
  }
  if (source->locale) {
    freelocale(source->locale);
  }
  g_byte_array_unref(source->waiting);
  g_clear_error(&source->error);
  g_free(source);
}

gboolean tar_source_is_empty(TarSource *source) {
  if (!source->primed && !source->has_file && !source->ended) {
    source->primed = source->next(source->user, &source->file);
    source->ended = !source->primed;
  }
  return source->ended && !source->has_file;
}

gboolean tar_source_is_ended(const TarSource *source) {
  return source->ended && source->waiting->len - source->waiting_at <= END_MARK;
}

const GError *tar_source_error(const TarSource *source) {
  return source->error;
}

static gboolean fail(TarSource *source) {
  const char *text = source->archive ? archive_error_string(source->archive) : NULL;
  g_set_error(&source->error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE,
              "could not pack the workspace's files: %s", text ? text : "out of memory");
  return FALSE;
}

static gboolean begin(TarSource *source) {
  source->archive = archive_write_new();
  /* Restricted: a plain header wherever one says everything. Block size 0: nothing is held back. */
  if (!source->archive || archive_write_set_format_pax_restricted(source->archive) != ARCHIVE_OK ||
      archive_write_set_bytes_per_block(source->archive, 0) != ARCHIVE_OK ||
      archive_write_set_bytes_in_last_block(source->archive, 1) != ARCHIVE_OK ||
      archive_write_open(source->archive, source, NULL, take, NULL) != ARCHIVE_OK) {
    return fail(source);
  }
  return TRUE;
}

static gboolean write_header(TarSource *source) {
  struct archive_entry *entry = archive_entry_new();
  if (!entry) {
    return fail(source);
  }
  const TarSourceFile *file = &source->file;
  /* As bytes: in the C locale libarchive 3.6 has no other form of a name that is not ASCII. */
  archive_entry_copy_pathname(entry, file->path);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_size(entry, (la_int64_t)file->length);
  archive_entry_set_mtime(entry, (time_t)(file->mtime / G_GINT64_CONSTANT(1000000000)), 0);
  /* Where the locale is UTF-8 a name goes out as it is; elsewhere it would be marked as binary,
   * which not every tar knows. The program's own locale may be any. */
  locale_t before = source->locale ? uselocale(source->locale) : (locale_t)0;
  int status = archive_write_header(source->archive, entry);
  if (before) {
    uselocale(before);
  }
  archive_entry_free(entry);
  /* A warning says that a name was marked; it is in the stream all the same. */
  return status >= ARCHIVE_WARN ? TRUE : fail(source);
}

/* Moves on by one header, one piece of content, or the end mark. */
static gboolean advance(TarSource *source) {
  if (source->has_file && source->written < source->file.length) {
    gsize piece = MIN(source->file.length - source->written, MAX(source->out_left, MIN_PIECE));
    la_ssize_t count =
        archive_write_data(source->archive, source->file.data + source->written, piece);
    if (count <= 0) {
      return fail(source);
    }
    source->written += (gsize)count;
    return TRUE;
  }
  source->has_file = source->primed || source->next(source->user, &source->file);
  source->primed = FALSE;
  source->written = 0;
  if (source->has_file) {
    return write_header(source);
  }
  source->ended = TRUE;
  return archive_write_close(source->archive) == ARCHIVE_OK ? TRUE : fail(source);
}

static void drain_waiting(TarSource *source) {
  gsize count = MIN(source->out_left, source->waiting->len - source->waiting_at);
  if (count > 0) {
    memcpy(source->out, source->waiting->data + source->waiting_at, count);
    source->out += count;
    source->out_left -= count;
    source->waiting_at += count;
  }
  if (source->waiting_at == source->waiting->len) {
    g_byte_array_set_size(source->waiting, 0);
    source->waiting_at = 0;
  }
}

static int64_t read_stream(void *user, void *buffer, size_t length) {
  TarSource *source = user;
  length = MIN(length, (size_t)G_MAXSSIZE);
  if (source->error || (!source->archive && !begin(source))) {
    return -1;
  }
  source->out = buffer;
  source->out_left = length;
  drain_waiting(source);
  while (source->out_left > 0 && !source->ended) {
    if (!advance(source)) {
      break;
    }
  }
  gsize filled = length - source->out_left;
  source->out = NULL;
  source->out_left = 0;
  return source->error ? -1 : (int64_t)filled;
}

struct sandhost_source tar_source_stream(TarSource *source) {
  return (struct sandhost_source){
      .size = sizeof(struct sandhost_source),
      .user = source,
      .read = read_stream,
  };
}
