/* SPDX-License-Identifier: Apache-2.0 */
/* plain-tar-source.c: a pax stream that is made piece by piece, as the engine takes it. */
#include "plain.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <time.h>

static la_ssize_t keep(struct archive *archive, void *user, const void *data, size_t length) {
  struct tar_source *source = user;
  (void)archive;
  g_byte_array_append(source->out, data, (guint)length);
  return (la_ssize_t)length;
}

static int64_t give(void *user, void *buffer, size_t length) {
  struct tar_source *source = user;
  while (source->at == source->out->len) {
    g_byte_array_set_size(source->out, 0);
    source->at = 0;
    if (source->ended) {
      return 0;
    }
    int more = source->step(source->user, source);
    if (more < 0) {
      return -1;
    }
    if (more == 0) {
      source->ended = TRUE;
      if (archive_write_close(source->archive) != ARCHIVE_OK) {
        return -1;
      }
    }
  }
  size_t part = MIN(length, source->out->len - source->at);
  memcpy(buffer, source->out->data + source->at, part);
  source->at += part;
  return (int64_t)part;
}

void tar_source_init(struct tar_source *source, int (*step)(void *user, struct tar_source *source),
                     void *user) {
  *source = (struct tar_source){.archive = archive_write_new(),
                                .out = g_byte_array_new(),
                                .step = step,
                                .user = user,
                                .source = {.size = sizeof source->source, .read = give}};
  source->source.user = source;
  archive_write_set_format_pax_restricted(source->archive);
  archive_write_set_options(source->archive, "hdrcharset=BINARY"); /* a name is bytes */
  archive_write_set_bytes_per_block(source->archive, 0);
  archive_write_open(source->archive, source, NULL, keep, NULL);
}

void tar_source_clear(struct tar_source *source) {
  if (source->archive) {
    archive_write_free(source->archive);
    g_byte_array_free(source->out, TRUE);
    source->archive = NULL;
  }
}

static int write_header(struct tar_source *source, struct archive_entry *entry) {
  int result = archive_write_header(source->archive, entry);
  archive_entry_free(entry);
  return result < ARCHIVE_WARN ? -1 : 0;
}

int tar_source_file(struct tar_source *source, const char *name, uint64_t bytes, uint32_t mode,
                    uint32_t uid, uint32_t gid, int64_t mtime) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, name);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, mode & 0777);
  archive_entry_set_size(entry, (la_int64_t)bytes);
  archive_entry_set_uid(entry, uid);
  archive_entry_set_gid(entry, gid);
  archive_entry_set_mtime(entry, mtime ? (time_t)(mtime / PLAIN_SECOND) : time(NULL), 0);
  return write_header(source, entry);
}

int tar_source_folder(struct tar_source *source, const char *name, uint32_t uid, uint32_t gid) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, name);
  archive_entry_set_filetype(entry, AE_IFDIR);
  archive_entry_set_perm(entry, 0755);
  archive_entry_set_uid(entry, uid);
  archive_entry_set_gid(entry, gid);
  archive_entry_set_mtime(entry, time(NULL), 0);
  return write_header(source, entry);
}

int tar_source_data(struct tar_source *source, const void *data, size_t length) {
  return archive_write_data(source->archive, data, length) == (la_ssize_t)length ? 0 : -1;
}
