/* SPDX-License-Identifier: Apache-2.0 */
/* A tar stream that passes through the filter: one owner, the same content, and nothing forged. */
#include "fake-guest.h"

#include <archive.h>
#include <archive_entry.h>

/* The part under test. */
#include "../../plugins/docker/tar-owner.c"

/* ---- Archives --------------------------------------------------------------------------------- */

static la_ssize_t append_bytes(struct archive *archive, void *user, const void *data,
                               size_t length) {
  (void)archive;
  g_byte_array_append(user, data, (guint)length);
  return (la_ssize_t)length;
}

/* A file whose name and owner need an extended header, where long_name is set. */
static void add(struct archive *archive, const char *name, mode_t type, mode_t mode, int64_t uid,
                size_t length) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_set_pathname(entry, name);
  archive_entry_set_filetype(entry, type);
  archive_entry_set_perm(entry, mode);
  archive_entry_set_uid(entry, uid);
  archive_entry_set_gid(entry, uid);
  archive_entry_set_uname(entry, "somebody");
  archive_entry_set_gname(entry, "some");
  archive_entry_set_mtime(entry, 1700000000, 123456789);
  archive_entry_set_size(entry, (la_int64_t)length);
  if (type == AE_IFLNK) {
    archive_entry_set_symlink(entry, "/etc/passwd");
  }
  g_assert_cmpint(archive_write_header(archive, entry), ==, ARCHIVE_OK);
  g_autofree char *content = g_strnfill(length, 'c');
  g_assert_cmpint(archive_write_data(archive, content, length), ==, (la_ssize_t)length);
  archive_entry_free(entry);
}

static char *long_name(void) {
  g_autofree char *part = g_strnfill(150, 'n');
  return g_strdup_printf("%s/%s", part, part);
}

static GByteArray *make_archive(void) {
  GByteArray *bytes = g_byte_array_new();
  struct archive *archive = archive_write_new();
  archive_write_set_format_pax(archive);
  archive_write_set_bytes_per_block(archive, 0);
  g_assert_cmpint(archive_write_open(archive, bytes, NULL, append_bytes, NULL), ==, ARCHIVE_OK);
  g_autofree char *name = long_name();
  add(archive, "./", AE_IFDIR, 0700, 65534, 0);
  add(archive, "./a", AE_IFREG, 0640, 1, 3);
  add(archive, "./block", AE_IFREG, 0755, 3000000000, 512);
  add(archive, name, AE_IFREG, 0600, 3000000000, 1000);
  add(archive, "./link", AE_IFLNK, 0777, 0, 0);
  add(archive, "./pipe", AE_IFIFO, 0600, 0, 0);
  add(archive, "./empty", AE_IFREG, 0600, 0, 0);
  g_assert_cmpint(archive_write_close(archive), ==, ARCHIVE_OK);
  archive_write_free(archive);
  return bytes;
}

/* One line a member: type, mode, owner, name, target, content length. Owned. */
static char *list(const GByteArray *bytes) {
  GString *text = g_string_new(NULL);
  struct archive *archive = archive_read_new();
  struct archive_entry *entry = NULL;
  archive_read_support_format_tar(archive);
  g_assert_cmpint(archive_read_open_memory(archive, bytes->data, bytes->len), ==, ARCHIVE_OK);
  int result = ARCHIVE_OK;
  while ((result = archive_read_next_header(archive, &entry)) == ARCHIVE_OK) {
    g_assert_cmpint(archive_entry_mtime(entry), ==, 1700000000);
    char content[2048];
    la_ssize_t length = archive_read_data(archive, content, sizeof content);
    g_assert_cmpint(length, ==, archive_entry_size(entry));
    for (la_ssize_t i = 0; i < length; i++) {
      g_assert_cmpint(content[i], ==, 'c');
    }
    const char *user = archive_entry_uname(entry);
    g_string_append_printf(
        text, "%o %" G_GINT64_FORMAT ":%" G_GINT64_FORMAT " %s %s -> %s %d\n",
        archive_entry_mode(entry), (gint64)archive_entry_uid(entry),
        (gint64)archive_entry_gid(entry), user ? user : "", archive_entry_pathname(entry),
        archive_entry_symlink(entry) ? archive_entry_symlink(entry) : "", (int)length);
  }
  g_assert_cmpint(result, ==, ARCHIVE_EOF);
  archive_read_free(archive);
  return g_string_free(text, FALSE);
}

static gboolean keep(void *user, const void *data, size_t length) {
  g_byte_array_append(user, data, (guint)length);
  return TRUE;
}

/* Passes bytes in pieces of step. *ret_whole may be NULL. */
static enum tar_filter_result pass(const GByteArray *bytes, const struct tar_owner *owner,
                                   size_t step, GByteArray *out, gboolean *ret_whole) {
  g_autoptr(TarFilter) filter = tar_filter_new(owner, keep, out);
  enum tar_filter_result result = TAR_FILTER_OK;
  for (size_t at = 0; at < bytes->len && result == TAR_FILTER_OK; at += step) {
    result = tar_filter_take(filter, bytes->data + at, MIN(step, bytes->len - at));
  }
  if (ret_whole) {
    *ret_whole = tar_filter_is_whole(filter);
  }
  return result;
}

/* ---- Tests ------------------------------------------------------------------------------------ */

static void check_owner(uint32_t uid, uint32_t gid) {
  static const size_t steps[] = {1, 7, 511, 512, 513, 1000000};
  g_autofree char *name = long_name();
  g_autoptr(GByteArray) bytes = make_archive();
  const struct tar_owner owner = {.uid = uid, .gid = gid};
  g_autofree char *id = g_strdup_printf("%u:%u", uid, gid);
  g_autofree char *expected = g_strdup_printf(
      "40700 %s  ./ ->  0\n100640 %s  ./a ->  3\n100755 %s  ./block ->  512\n"
      "100600 %s  %s ->  1000\n120777 %s  ./link -> /etc/passwd 0\n10600 %s  ./pipe ->  0\n"
      "100600 %s  ./empty ->  0\n",
      id, id, id, id, name, id, id, id);
  for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
    g_autoptr(GByteArray) out = g_byte_array_new();
    gboolean whole = FALSE;
    g_assert_cmpint(pass(bytes, &owner, steps[i], out, &whole), ==, TAR_FILTER_OK);
    g_assert_true(whole);
    g_autofree char *listed = list(out);
    g_assert_cmpstr(listed, ==, expected);
  }
}

static void test_owner(void) {
  check_owner(65534, 1000);
}

/* Owners that eight octal digits cannot hold. */
static void test_large_owner(void) {
  check_owner(4000000000u, 2097152);
}

static void test_owner_kept(void) {
  g_autoptr(GByteArray) bytes = make_archive();
  g_autoptr(GByteArray) out = g_byte_array_new();
  g_assert_cmpint(pass(bytes, NULL, 100, out, NULL), ==, TAR_FILTER_OK);
  g_autofree char *before = list(bytes);
  g_autofree char *after = list(out);
  g_assert_cmpstr(after, ==, before);
}

/* Every cut is told from a whole stream. */
static void test_cut(void) {
  const struct tar_owner owner = {.uid = 1, .gid = 1};
  g_autoptr(GByteArray) bytes = make_archive();
  guint length = bytes->len;
  while (length >= BLOCK && is_zero(bytes->data + length - BLOCK)) {
    length -= BLOCK;
  }
  for (guint cut = 0; cut < length + 2 * BLOCK; cut += 256) {
    g_autoptr(GByteArray) part = g_byte_array_new();
    g_autoptr(GByteArray) out = g_byte_array_new();
    gboolean whole = TRUE;
    g_byte_array_append(part, bytes->data, cut);
    g_assert_cmpint(pass(part, &owner, 4096, out, &whole), ==, TAR_FILTER_OK);
    g_assert_false(whole);
  }
}

static enum tar_filter_result pass_block(const uint8_t *block) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  g_autoptr(GByteArray) out = g_byte_array_new();
  g_byte_array_append(bytes, block, BLOCK);
  return pass(bytes, NULL, BLOCK, out, NULL);
}

static void fill_block(uint8_t *block) {
  g_autoptr(GByteArray) tar = g_byte_array_new();
  tar_append_folder(tar, "x", 0700);
  memcpy(block, tar->data, BLOCK);
}

static void test_bad_sum(void) {
  uint8_t block[BLOCK];
  fill_block(block);
  g_assert_cmpint(pass_block(block), ==, TAR_FILTER_OK);
  block[0] = 'y';
  g_assert_cmpint(pass_block(block), ==, TAR_FILTER_BROKEN);
}

static void test_devices(void) {
  static const char refused[] = "34SVMg";
  for (size_t i = 0; i < strlen(refused); i++) {
    uint8_t block[BLOCK];
    fill_block(block);
    block[AT_TYPE] = (uint8_t)refused[i];
    write_sum(block);
    g_assert_cmpint(pass_block(block), ==, TAR_FILTER_BROKEN);
  }
}

static void test_large_sizes(void) {
  uint8_t block[BLOCK];
  fill_block(block);
  block[AT_TYPE] = '0';
  memset(block + AT_SIZE, 0xff, SIZE_LENGTH);
  write_sum(block);
  g_assert_cmpint(pass_block(block), ==, TAR_FILTER_BROKEN);
  block[AT_TYPE] = 'x'; /* an extended header of two megabytes */
  write_octal(block + AT_SIZE, SIZE_LENGTH, 2 * MAX_EXTENDED);
  write_sum(block);
  g_assert_cmpint(pass_block(block), ==, TAR_FILTER_BROKEN);
}

/* A size that only the extended header says, as for files over eight gigabytes. */
static void test_extended_size(void) {
  static const char record[] = "13 size=1024\n";
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  g_autoptr(GByteArray) out = g_byte_array_new();
  uint8_t block[BLOCK];
  fill_block(block);
  block[AT_TYPE] = 'x';
  write_octal(block + AT_SIZE, SIZE_LENGTH, strlen(record));
  write_sum(block);
  g_byte_array_append(bytes, block, BLOCK);
  memset(block, 0, BLOCK);
  memcpy(block, record, strlen(record));
  g_byte_array_append(bytes, block, BLOCK);
  fill_block(block);
  block[AT_TYPE] = '0';
  write_sum(block);
  g_byte_array_append(bytes, block, BLOCK);
  memset(block, 'c', BLOCK); /* content, which is no header */
  g_byte_array_append(bytes, block, BLOCK);
  g_byte_array_append(bytes, block, BLOCK);
  tar_append_end(bytes);
  gboolean whole = FALSE;
  g_assert_cmpint(pass(bytes, NULL, 100, out, &whole), ==, TAR_FILTER_OK);
  g_assert_true(whole);
  g_assert_cmpuint(out->len, ==, bytes->len);
  g_assert_cmpint(memcmp(out->data, bytes->data, bytes->len), ==, 0);
}

static void test_bad_records(void) {
  static const char *const records[] = {"0 a=b\n",   "9 a=b\n",       "6 a=b?",      "x a=b\n",
                                        "99999999 ", "11 size=-12\n", "10 size=x\n", "4 a\n5 b\n",
                                        " 6 a=b\n",  "6\ta=b\n"};
  for (size_t i = 0; i < G_N_ELEMENTS(records); i++) {
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GByteArray) out = g_byte_array_new();
    uint8_t block[BLOCK];
    fill_block(block);
    block[AT_TYPE] = 'x';
    write_octal(block + AT_SIZE, SIZE_LENGTH, strlen(records[i]));
    write_sum(block);
    g_byte_array_append(bytes, block, BLOCK);
    memset(block, 0, BLOCK);
    memcpy(block, records[i], strlen(records[i]));
    g_byte_array_append(bytes, block, BLOCK);
    g_assert_cmpint(pass(bytes, NULL, BLOCK, out, NULL), ==, TAR_FILTER_BROKEN);
  }
}

static gboolean refuse(void *user, const void *data, size_t length) {
  (void)user;
  (void)data;
  (void)length;
  return FALSE;
}

static void test_stopped(void) {
  g_autoptr(GByteArray) bytes = make_archive();
  g_autoptr(TarFilter) filter = tar_filter_new(NULL, refuse, NULL);
  g_assert_cmpint(tar_filter_take(filter, bytes->data, bytes->len), ==, TAR_FILTER_STOPPED);
}

/* Random damage never does more than break or bend the stream. */
static void test_damage(void) {
  const struct tar_owner owner = {.uid = 1, .gid = 1};
  g_autoptr(GByteArray) bytes = make_archive();
  g_autoptr(GRand) rand = g_rand_new_with_seed(1);
  for (int i = 0; i < 2000; i++) {
    g_autoptr(GByteArray) copy = g_byte_array_new();
    g_autoptr(GByteArray) out = g_byte_array_new();
    g_byte_array_append(copy, bytes->data, bytes->len);
    for (int hits = g_rand_int_range(rand, 1, 20); hits > 0; hits--) {
      copy->data[g_rand_int_range(rand, 0, (gint32)copy->len)] =
          (guint8)g_rand_int_range(rand, 0, 256);
    }
    (void)pass(copy, &owner, (size_t)g_rand_int_range(rand, 1, 3000), out, NULL);
    g_assert_cmpuint(out->len, <=, copy->len);
  }
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/docker/tar/owner", test_owner);
  g_test_add_func("/docker/tar/large-owner", test_large_owner);
  g_test_add_func("/docker/tar/owner-kept", test_owner_kept);
  g_test_add_func("/docker/tar/cut", test_cut);
  g_test_add_func("/docker/tar/bad-sum", test_bad_sum);
  g_test_add_func("/docker/tar/devices", test_devices);
  g_test_add_func("/docker/tar/large-sizes", test_large_sizes);
  g_test_add_func("/docker/tar/extended-size", test_extended_size);
  g_test_add_func("/docker/tar/bad-records", test_bad_records);
  g_test_add_func("/docker/tar/stopped", test_stopped);
  g_test_add_func("/docker/tar/damage", test_damage);
  return g_test_run();
}
