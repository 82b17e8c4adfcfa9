/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c: tar streams as a host has them. */
#include "transfer.h"

#include <archive_entry.h>
#include <string.h>

/* ---- Tar -------------------------------------------------------------------------------------------------------- */

static la_ssize_t collect(struct archive *archive, void *user, const void *data, size_t length) {
  (void)archive;
  g_byte_array_append(user, data, (guint)length);
  return (la_ssize_t)length;
}

struct archive *tar_begin(GByteArray *into) {
  struct archive *tar = archive_write_new();
  archive_write_set_format_pax(tar);
  archive_write_set_options(tar, "hdrcharset=BINARY");
  archive_write_set_bytes_per_block(tar, 0);
  archive_write_open(tar, into, NULL, collect, NULL);
  return tar;
}

static void add(struct archive *tar, const char *name, unsigned type, unsigned mode,
                const char *content, const char *link) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, name);
  archive_entry_set_filetype(entry, type);
  archive_entry_set_perm(entry, mode);
  archive_entry_set_size(entry, (la_int64_t)strlen(content));
  if (link && type == AE_IFREG) {
    archive_entry_copy_hardlink(entry, link);
    archive_entry_set_size(entry, 0);
  } else if (link) {
    archive_entry_copy_symlink(entry, link);
  }
  archive_write_header(tar, entry);
  if (!link) {
    archive_write_data(tar, content, strlen(content));
  }
  archive_entry_free(entry);
}

void tar_add(struct archive *tar, const char *name, unsigned type, const char *content,
             const char *link) {
  add(tar, name, type, 0644, content, link);
}

void tar_add_file(struct archive *tar, const char *name, unsigned mode, const char *content) {
  add(tar, name, AE_IFREG, mode, content, NULL);
}

void tar_end(struct archive *tar) {
  archive_write_close(tar);
  archive_write_free(tar);
}

gboolean slot_is_absent(gint32 status, const char *slot, gboolean touched, Verdict *verdict) {
  if (status == SANDHOST_UNSUPPORTED && touched) {
    wrong(verdict, "%s returned UNSUPPORTED when it had touched its stream already", slot);
  } else if (status == SANDHOST_UNSUPPORTED) {
    skipped(verdict, "no %s in this sandbox", slot);
  }
  return status == SANDHOST_UNSUPPORTED;
}

gint32 box_upload(Box *box, const GByteArray *tar, gboolean *ret_touched) {
  Rest rest = {.data = (const char *)tar->data, .left = tar->len};
  const struct sandhost_source source = rest_source(&rest);
  struct sandhost_call call;
  call_init(&call, 60);
  gint32 status =
      box->subject->table->upload(&call, box->handle, as_path(box->subject->working_dir), &source);
  call_clear(&call);
  *ret_touched = rest.left < tar->len;
  return status;
}

static int32_t take(void *user, const void *data, size_t length) {
  g_byte_array_append(user, data, (guint)length);
  return SANDHOST_OK;
}

gint32 box_download(Box *box, const char *const *names, gsize count, GByteArray *into) {
  struct sandhost_path paths[16];
  for (gsize i = 0; i < count; i++) {
    paths[i] = as_path(names[i]);
  }
  const struct sandhost_sink sink = {.size = sizeof sink, .user = into, .write = take};
  struct sandhost_call call;
  call_init(&call, 60);
  gint32 status = box->subject->table->download(
      &call, box->handle, as_path(box->subject->working_dir), paths, count, &sink);
  call_clear(&call);
  return status;
}
