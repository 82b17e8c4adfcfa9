/* SPDX-License-Identifier: Apache-2.0 */
/* floor-files.c: files without us, measured in the same run as ours. */
#include "floor-files.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

/* Whose files those of a tar are: nobody's, as in a sandbox. */
#define OWNER 65534

static int visit_nothing(const char *path, const struct stat *facts, int kind, struct FTW *where) {
  (void)path;
  (void)facts;
  (void)kind;
  (void)where;
  return 0;
}

gint64 floor_stat_walk(const char *folder) {
  gint64 from = clock_now();
  return nftw(folder, visit_nothing, 32, FTW_PHYS) == 0 ? clock_now() - from : -1;
}

void floor_fill(const char *folder, guint count, gsize size) {
  g_autofree char *text = g_malloc(size + 1);
  memset(text, 'x', size);
  text[size] = '\0';
  for (guint i = 0; i < count; i++) {
    g_autofree char *parent = g_strdup_printf("%s/d%u", folder, i / 100);
    g_autofree char *path = g_strdup_printf("%s/f%u.txt", parent, i);
    g_autofree char *head = g_strdup_printf("%u\n", i);
    g_mkdir_with_parents(parent, 0755);
    memcpy(text, head, MIN(strlen(head), size));
    g_file_set_contents(path, text, (gssize)size, NULL);
  }
}

/* ---- Read, tar, write: what no bridge can do without --------------------------------------------------------- */

static struct archive *packer;
static const char *packed_from;

static int pack(const char *path, const struct stat *facts, int kind, struct FTW *where) {
  (void)where;
  if (kind != FTW_F) {
    return 0;
  }
  g_autofree char *content = NULL;
  gsize length = 0;
  if (!g_file_get_contents(path, &content, &length, NULL)) {
    return -1;
  }
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, path + strlen(packed_from) + 1);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, facts->st_mode & 0777);
  archive_entry_set_size(entry, (la_int64_t)length);
  archive_write_header(packer, entry);
  archive_write_data(packer, content, length);
  archive_entry_free(entry);
  return 0;
}

static gboolean unpack(const void *tar, size_t length, const char *to) {
  struct archive *reader = archive_read_new();
  struct archive_entry *entry = NULL;
  gboolean ok = TRUE;
  archive_read_support_format_tar(reader);
  archive_read_open_memory(reader, tar, length);
  while (ok && archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
    g_autofree char *path = g_build_filename(to, archive_entry_pathname(entry), NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
      g_mkdir_with_parents(parent, 0755);
      fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    }
    ok = fd >= 0 && archive_read_data_into_fd(reader, fd) == ARCHIVE_OK;
    if (fd >= 0) {
      close(fd);
    }
  }
  archive_read_free(reader);
  return ok;
}

gint64 floor_copy(const char *from, const char *to) {
  const gsize room = 64u << 20;
  g_autofree char *tar = g_malloc(room);
  memset(tar, 0, room); /* pages are there before the clock starts */
  size_t used = 0;
  gint64 began = clock_now();
  packer = archive_write_new();
  packed_from = from;
  archive_write_set_format_pax_restricted(packer);
  archive_write_open_memory(packer, tar, room, &used);
  gboolean ok = nftw(from, pack, 32, FTW_PHYS) == 0 && archive_write_close(packer) == ARCHIVE_OK;
  archive_write_free(packer);
  ok = ok && unpack(tar, used, to);
  return ok ? clock_now() - began : -1;
}

/* ---- The three apart ----------------------------------------------------------------------------------------- */

static int read_one(const char *path, const struct stat *facts, int kind, struct FTW *where) {
  static char buffer[64 << 10];
  (void)facts;
  (void)where;
  if (kind != FTW_F) {
    return 0;
  }
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t count = fd < 0 ? -1 : 1;
  while (count > 0) {
    count = read(fd, buffer, sizeof buffer);
  }
  if (fd >= 0) {
    close(fd);
  }
  return count == 0 ? 0 : -1;
}

gint64 floor_read_files(const char *folder) {
  gint64 from = clock_now();
  return nftw(folder, read_one, 32, FTW_PHYS) == 0 ? clock_now() - from : -1;
}

gint64 floor_tar(guint count, gsize size, void *room, gsize room_size, gsize *ret_used) {
  g_autofree char *content = g_malloc(size);
  memset(content, 'x', size);
  gint64 from = clock_now();
  struct archive *archive = archive_write_new();
  gboolean ok = archive_write_set_format_ustar(archive) == ARCHIVE_OK &&
                archive_write_open_memory(archive, room, room_size, ret_used) == ARCHIVE_OK;
  for (guint i = 0; ok && i < count; i++) {
    struct archive_entry *entry = archive_entry_new();
    g_autofree char *name = g_strdup_printf("f%u.txt", i);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_uid(entry, OWNER);
    archive_entry_set_gid(entry, OWNER);
    archive_entry_set_size(entry, (la_int64_t)size);
    ok = archive_write_header(archive, entry) == ARCHIVE_OK &&
         archive_write_data(archive, content, size) == (la_ssize_t)size;
    archive_entry_free(entry);
  }
  ok = archive_write_close(archive) == ARCHIVE_OK && ok;
  archive_write_free(archive);
  return ok ? clock_now() - from : -1;
}

gint64 floor_write_files(const char *folder, guint count, gsize size) {
  g_autofree char *content = g_malloc(size);
  memset(content, 'x', size);
  gint64 from = clock_now();
  gboolean ok = TRUE;
  for (guint i = 0; ok && i < count; i++) {
    g_autofree char *path = g_strdup_printf("%s/f%u.txt", folder, i);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ok = fd >= 0 && write(fd, content, size) == (ssize_t)size;
    if (fd >= 0) {
      close(fd);
    }
  }
  return ok ? clock_now() - from : -1;
}
