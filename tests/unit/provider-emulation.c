/* SPDX-License-Identifier: Apache-2.0 */
/* provider-emulation.c: tar streams in and out that the host makes of one file at a time. */
#include "provider-files.h"

#include <archive.h>
#include <archive_entry.h>

static la_ssize_t stream_archive(struct archive *archive, void *user, const void *data,
                                 size_t length) {
  (void)archive;
  stream_write(user, data, length);
  return (la_ssize_t)length;
}

/* A tar that is being written into a stream. */
static struct archive *tar_begin(Stream *stream) {
  struct archive *tar = archive_write_new();
  archive_write_set_format_pax(tar);
  archive_write_set_options(tar, "hdrcharset=BINARY");
  g_assert_cmpint(archive_write_open(tar, stream, NULL, stream_archive, NULL), ==, ARCHIVE_OK);
  return tar;
}

static void tar_add(struct archive *tar, const char *name, unsigned type, const char *content,
                    gsize length) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, name);
  archive_entry_set_filetype(entry, type);
  archive_entry_set_perm(entry, type == AE_IFDIR ? 0755 : 0644);
  archive_entry_set_size(entry, (la_int64_t)length);
  if (type == AE_IFLNK) {
    archive_entry_copy_symlink(entry, content);
  }
  if (type != AE_IFREG) {
    archive_entry_set_size(entry, 0);
    length = 0;
  }
  g_assert_cmpint(archive_write_header(tar, entry), ==, ARCHIVE_OK);
  if (length > 0) {
    g_assert_cmpint(archive_write_data(tar, content, length), ==, (la_ssize_t)length);
  }
  archive_entry_free(entry);
}

static void tar_end(struct archive *tar) {
  archive_write_close(tar);
  archive_write_free(tar);
}

static gboolean upload(Sandbox *sandbox, Stream *stream, GError **error) {
  const struct sandhost_source source = {
      .size = sizeof source, .user = stream, .read = stream_read};
  gboolean ok = sandbox_upload(sandbox, minute(), &source, error);
  g_byte_array_unref(stream->bytes);
  return ok;
}

/* ---- Upload ------------------------------------------------------------------------------------------------ */

static void test_upload_names(void) {
  Zoo zoo = example_open();
  Stream stream = stream_new();
  struct archive *tar = tar_begin(&stream);
  for (gsize i = 0; i < G_N_ELEMENTS(ODD_NAMES); i++) {
    tar_add(tar, ODD_NAMES[i], AE_IFREG, ODD_NAMES[i], strlen(ODD_NAMES[i]));
  }
  tar_end(tar);
  g_autoptr(GError) error = NULL;
  upload(zoo.sandbox, &stream, &error);
  g_assert_no_error(error);
  for (gsize i = 0; i < G_N_ELEMENTS(ODD_NAMES); i++) {
    g_autofree char *content = get(zoo.sandbox, ODD_NAMES[i]);
    g_assert_cmpstr(content, ==, ODD_NAMES[i]);
  }
  example_close(&zoo);
}

static void test_upload_empty_folder(void) {
  Zoo zoo = example_open();
  Stream stream = stream_new();
  struct archive *tar = tar_begin(&stream);
  tar_add(tar, "./", AE_IFDIR, "", 0);
  tar_add(tar, "full/", AE_IFDIR, "", 0);
  tar_add(tar, "full/x", AE_IFREG, "1", 1);
  for (int i = 0; i < 60; i++) { /* more than one command line */
    g_autofree char *name = g_strdup_printf("empty/%d/", i);
    tar_add(tar, name, AE_IFDIR, "", 0);
  }
  tar_end(tar);
  g_autoptr(GError) error = NULL;
  upload(zoo.sandbox, &stream, &error);
  g_assert_no_error(error);
  shell(zoo.sandbox, "test -f full/x && test $(ls empty | wc -l) = 60");
  example_close(&zoo);
}

static void test_upload_large(void) {
  Zoo zoo = example_open();
  gsize length = 3 * 1024 * 1024 + 17;
  g_autofree char *content = g_malloc(length);
  for (gsize i = 0; i < length; i++) {
    content[i] = (char)('a' + i % 26);
  }
  Stream stream = stream_new();
  struct archive *tar = tar_begin(&stream);
  tar_add(tar, "large", AE_IFREG, content, length);
  tar_add(tar, "after", AE_IFREG, "x", 1);
  tar_end(tar);
  g_autoptr(GError) error = NULL;
  upload(zoo.sandbox, &stream, &error);
  g_assert_no_error(error);
  g_autofree char *back = get(zoo.sandbox, "large");
  g_assert_cmpuint(strlen(back), ==, length);
  g_assert_true(memcmp(back, content, length) == 0);
  example_close(&zoo);
}

static void assert_member_refused(const char *name, unsigned type, const char *text) {
  Zoo zoo = example_open();
  Stream stream = stream_new();
  struct archive *tar = tar_begin(&stream);
  tar_add(tar, name, type, "/etc", 4);
  tar_end(tar);
  GError *error = NULL;
  g_assert_false(upload(zoo.sandbox, &stream, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_INVALID);
  g_assert_cmpstr(error->message, ==, text);
  g_error_free(error);
  example_close(&zoo);
}

static void test_upload_hostile(void) {
  assert_member_refused("../x", AE_IFREG, "example: upload: a member leads out of the folder");
  assert_member_refused("/etc/x", AE_IFREG, "example: upload: a member leads out of the folder");
  assert_member_refused("a/../x", AE_IFREG, "example: upload: a member leads out of the folder");
  assert_member_refused("link", AE_IFLNK,
                        "example: upload: a member is neither a regular file nor a folder");
  assert_member_refused("pipe", AE_IFIFO,
                        "example: upload: a member is neither a regular file nor a folder");
}

static int64_t stopping_read(void *user, void *buffer, size_t length) {
  (void)user;
  (void)buffer;
  (void)length;
  return -1;
}

static void test_upload_stopped(void) {
  Zoo zoo = example_open();
  const struct sandhost_source source = {.size = sizeof source, .read = stopping_read};
  GError *error = NULL;
  g_assert_false(sandbox_upload(zoo.sandbox, minute(), &source, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_CANCELLED);
  g_assert_cmpstr(error->message, ==, "example: upload: stopped by its source");
  g_error_free(error);
  example_close(&zoo);
}

static void test_upload_cut(void) {
  Zoo zoo = example_open();
  Stream stream = stream_new();
  struct archive *tar = tar_begin(&stream);
  g_autofree char *content = g_strnfill(5000, 'x');
  tar_add(tar, "cut", AE_IFREG, content, 5000);
  tar_end(tar);
  g_byte_array_set_size(stream.bytes, 512 * 5);
  GError *error = NULL;
  g_assert_false(upload(zoo.sandbox, &stream, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_INVALID);
  g_error_free(error);
  g_autofree char *back = get(zoo.sandbox, "cut");
  g_assert_null(back);
  example_close(&zoo);
}

/* ---- Download ------------------------------------------------------------------------------------------------ */

static gboolean download(Sandbox *sandbox, const char *const *names, gsize count, Stream *stream,
                         GError **error) {
  g_autofree struct sandhost_path *paths = g_new0(struct sandhost_path, count);
  for (gsize i = 0; i < count; i++) {
    paths[i] = (struct sandhost_path){.data = names[i], .length = strlen(names[i])};
  }
  const struct sandhost_sink sink = {.size = sizeof sink, .user = stream, .write = stream_write};
  return sandbox_download(sandbox, minute(), paths, count, &sink, error);
}

static void test_download_names(void) {
  Zoo zoo = example_open();
  for (gsize i = 0; i < G_N_ELEMENTS(ODD_NAMES); i++) {
    put(zoo.sandbox, ODD_NAMES[i], ODD_NAMES[i]);
  }
  Stream stream = stream_new();
  g_autoptr(GError) error = NULL;
  download(zoo.sandbox, ODD_NAMES, G_N_ELEMENTS(ODD_NAMES), &stream, &error);
  g_assert_no_error(error);
  struct archive *tar = archive_read_new();
  archive_read_support_format_tar(tar);
  g_assert_cmpint(archive_read_open_memory(tar, stream.bytes->data, stream.bytes->len), ==, 0);
  for (gsize i = 0; i < G_N_ELEMENTS(ODD_NAMES); i++) {
    struct archive_entry *entry = NULL;
    char content[100] = "";
    g_assert_cmpint(archive_read_next_header(tar, &entry), ==, ARCHIVE_OK);
    g_assert_cmpstr(archive_entry_pathname(entry), ==, ODD_NAMES[i]);
    archive_read_data(tar, content, sizeof content);
    g_assert_cmpstr(content, ==, ODD_NAMES[i]);
  }
  archive_read_free(tar);
  g_byte_array_unref(stream.bytes);
  example_close(&zoo);
}

static void test_download_leaves_out(void) {
  Zoo zoo = example_open();
  put(zoo.sandbox, "here", "1");
  shell(zoo.sandbox, "mkdir folder; ln -s /etc/passwd link; mkfifo pipe");
  const char *const names[] = {"gone", "folder", "link", "pipe", "here"};
  Stream stream = stream_new();
  g_autoptr(GError) error = NULL;
  download(zoo.sandbox, names, G_N_ELEMENTS(names), &stream, &error);
  g_assert_no_error(error);
  struct archive *tar = archive_read_new();
  struct archive_entry *entry = NULL;
  archive_read_support_format_tar(tar);
  archive_read_open_memory(tar, stream.bytes->data, stream.bytes->len);
  g_assert_cmpint(archive_read_next_header(tar, &entry), ==, ARCHIVE_OK);
  g_assert_cmpstr(archive_entry_pathname(entry), ==, "here");
  g_assert_cmpint(archive_read_next_header(tar, &entry), ==, ARCHIVE_EOF);
  archive_read_free(tar);
  g_byte_array_unref(stream.bytes);
  example_close(&zoo);
}

/* Past the memory of the spool, so that its file is used. */
static void test_download_large(void) {
  Zoo zoo = example_open();
  shell(zoo.sandbox, "head -c 3000017 /dev/zero | tr '\\0' x >large");
  const char *const names[] = {"large"};
  Stream stream = stream_new();
  g_autoptr(GError) error = NULL;
  download(zoo.sandbox, names, 1, &stream, &error);
  g_assert_no_error(error);
  struct archive *tar = archive_read_new();
  struct archive_entry *entry = NULL;
  archive_read_support_format_tar(tar);
  archive_read_open_memory(tar, stream.bytes->data, stream.bytes->len);
  g_assert_cmpint(archive_read_next_header(tar, &entry), ==, ARCHIVE_OK);
  g_assert_cmpint(archive_entry_size(entry), ==, 3000017);
  archive_read_free(tar);
  g_byte_array_unref(stream.bytes);
  example_close(&zoo);
}

static void test_download_stopped(void) {
  Zoo zoo = example_open();
  put(zoo.sandbox, "here", "1");
  const char *const names[] = {"here"};
  Stream stream = stream_new();
  stream.answer = SANDHOST_LIMIT;
  GError *error = NULL;
  g_assert_false(download(zoo.sandbox, names, 1, &stream, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_CANCELLED);
  g_assert_cmpstr(error->message, ==, "example: download: stopped by its sink");
  g_error_free(error);
  g_byte_array_unref(stream.bytes);
  example_close(&zoo);
}

static void test_download_outside(void) {
  Zoo zoo = example_open();
  const char *const names[] = {"../x"};
  Stream stream = stream_new();
  GError *error = NULL;
  g_assert_false(download(zoo.sandbox, names, 1, &stream, &error));
  g_assert_cmpstr(error->message, ==, "example: download: a name leads out of the folder");
  g_error_free(error);
  g_byte_array_unref(stream.bytes);
  example_close(&zoo);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define TEST(name, function) g_test_add_func("/provider/emulation/" name, function)
  TEST("upload-names", test_upload_names);
  TEST("upload-empty-folder", test_upload_empty_folder);
  TEST("upload-large", test_upload_large);
  TEST("upload-hostile", test_upload_hostile);
  TEST("upload-stopped", test_upload_stopped);
  TEST("upload-cut", test_upload_cut);
  TEST("download-names", test_download_names);
  TEST("download-leaves-out", test_download_leaves_out);
  TEST("download-large", test_download_large);
  TEST("download-stopped", test_download_stopped);
  TEST("download-outside", test_download_outside);
  return g_test_run();
}
