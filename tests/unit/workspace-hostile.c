/* SPDX-License-Identifier: Apache-2.0 */
/* workspace-hostile.c: a sandbox that lies in its listing and in its tar streams changes nothing
 * and is named. */
#include "memory-peak.h"
#include "workspace-fake.h"

/* ---- Listings -------------------------------------------------------------------------------- */

static struct sandhost_entry entry_for(const char *path, gsize length, uint64_t bytes) {
  struct sandhost_entry entry = {
      .size = sizeof entry,
      .path = {.data = path, .length = length},
      .kind = SANDHOST_KIND_FILE,
      .bytes = bytes,
      .flags = SANDHOST_ENTRY_SHA256,
  };
  digest_of("evil", 4, entry.sha256);
  return entry;
}

static void check_listing_refused(const char *path, gsize length, const char *message) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put(fake, "good", "x");
  const struct sandhost_entry entry = entry_for(path, length, 4);
  g_array_append_val(fake->entries, entry);
  g_autofree char *text = copy_back_fails(fake);
  g_assert_cmpstr(text, ==, message);
  g_assert_cmpuint(fake->downloads, ==, 0);
  assert_workspace(fake, "good", NULL);
}

#define LEADS_OUT                                                                                  \
  "could not read the sandbox's files: a path that leads out of the working directory: "

static void test_listing_leads_out(void) {
  check_listing_refused("/etc/passwd", 11, LEADS_OUT "'/etc/passwd'");
  check_listing_refused("../x", 4, LEADS_OUT "'../x'");
  check_listing_refused("a/../../x", 9, LEADS_OUT "'a/../../x'");
  check_listing_refused("a/..", 4, LEADS_OUT "'a/..'");
  check_listing_refused("./a", 3, LEADS_OUT "'./a'");
  check_listing_refused("a//b", 4, LEADS_OUT "'a//b'");
  check_listing_refused("a/", 2, LEADS_OUT "'a/'");
  check_listing_refused("", 0, LEADS_OUT "''");
  check_listing_refused("a\0b", 3, LEADS_OUT "'a'");
}

static void test_listing_with_endless_name(void) {
  g_autofree char *name = g_strnfill(5000, 'n');
  g_autofree char *start = g_strnfill(200, 'n');
  g_autofree char *message = g_strdup_printf(LEADS_OUT "'%s'", start);
  check_listing_refused(name, 5000, message);
}

static void test_listing_names_twice(void) {
  check_listing_refused("good", 4,
                        "could not read the sandbox's files: a path that is listed twice: 'good'");
}

static void test_listing_of_hidden_names(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put(fake, ".env", "evil");
  sandbox_put(fake, ".git/hooks/pre-commit", "evil");
  sandbox_put(fake, "a/.ssh/key", "evil");
  copy_back(fake);
  assert_skips(fake, "");
  assert_texts(fake->asked, "");
  g_assert_cmpuint(fake->downloads, ==, 0);
}

static gboolean list_without_end(void *user, const struct sandhost_known *known, gsize known_count,
                                 guint64 max_hash_bytes, const struct sandhost_entry_sink *sink,
                                 GError **error) {
  (void)known;
  (void)known_count;
  (void)max_hash_bytes;
  guint *count = user;
  for (;; (*count)++) {
    char name[32];
    g_snprintf(name, sizeof name, "f%u", *count);
    const struct sandhost_entry entry = entry_for(name, strlen(name), 4);
    if (sink->entry(sink->user, &entry) != SANDHOST_OK) {
      g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CANCELLED, "stopped");
      return FALSE;
    }
  }
}

static void test_listing_without_end(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  guint count = 0;
  fake->transport.user = &count;
  fake->transport.changes = list_without_end;
  g_autofree char *text = copy_back_fails(fake);
  g_assert_cmpstr(text, ==, "could not read the sandbox's files: more than 200000 files changed");
  g_assert_cmpuint(count, ==, 200000);
}

struct flood {
  const char *prefix;
  gsize length; /* of each name */
  guint count;  /* so many were taken */
  guint most;
};

/* Names that differ at their end. */
static gboolean list_flood(void *user, const struct sandhost_known *known, gsize known_count,
                           guint64 max_hash_bytes, const struct sandhost_entry_sink *sink,
                           GError **error) {
  (void)known;
  (void)known_count;
  (void)max_hash_bytes;
  struct flood *flood = user;
  g_autofree char *name = g_strnfill(flood->length, '0');
  memcpy(name, flood->prefix, strlen(flood->prefix));
  for (; flood->count < flood->most; flood->count++) {
    g_snprintf(name + flood->length - 8, 9, "%08u", flood->count);
    const struct sandhost_entry entry = entry_for(name, flood->length, 4);
    if (sink->entry(sink->user, &entry) != SANDHOST_OK) {
      g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CANCELLED, "stopped");
      return FALSE;
    }
  }
  return TRUE;
}

/* What names may take, and half as much again for the records beside them. */
#define FLOOD_KIB MEMORY_PEAK_KIB(96 * 1024)

static void check_flood(const char *prefix, gsize length, const char *more_than) {
  g_autoptr(Fake) fake = fake_new(NULL);
  struct flood flood = {.prefix = prefix, .length = length, .most = 200001};
  fake->transport.user = &flood;
  fake->transport.changes = list_flood;
  gsize start = memory_peak_reset();
  g_autofree char *text = copy_back_fails(fake);
  gsize peak = memory_peak_above(start);
  g_autofree char *expected =
      g_strconcat("could not read the sandbox's files: more than ", more_than, NULL);
  g_assert_cmpstr(text, ==, expected);
  g_assert_cmpuint(flood.count, <=, 200000);
  g_assert_cmpuint(peak, <, FLOOD_KIB);
}

static void test_listing_floods(void) {
  static const char many[] = "200000 files changed";
  static const char long_names[] = "64 MiB of names of changed files";
  check_flood(".", 4000, many);
  check_flood("a/.", 4000, many);
  check_flood("f", 4000, long_names);
  check_flood("f", 2060, long_names); /* a little more than half of a page: waste would show */
  check_flood("f", 340, long_names);
  check_flood("f", 20, many);
}

static void test_listing_of_unknown_kinds(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  struct sandhost_entry entry = entry_for("device", 6, 4);
  entry.kind = 77;
  g_array_append_val(fake->entries, entry);
  copy_back(fake);
  assert_skips(fake, "");
}

static void test_listing_with_lying_sizes(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  const struct sandhost_entry huge = entry_for("huge", 4, G_MAXUINT64);
  g_array_append_val(fake->entries, huge);
  copy_back(fake);
  assert_skips(fake, "huge: too large to copy back (18446744073709551615 bytes)");
}

/* ---- Streams --------------------------------------------------------------------------------- */

static Fake *fake_with_answer(struct archive **ret_tar) {
  Fake *fake = fake_new(NULL);
  sandbox_put(fake, "a", "evil");
  sandbox_put(fake, "b", "evil");
  fake->answer = g_byte_array_new();
  *ret_tar = tar_begin(fake->answer);
  return fake;
}

/* Everything that is outside the workspace, and the workspace itself, is as it was. */
static void assert_untouched(Fake *fake) {
  g_autoptr(GDir) around = g_dir_open(fake->around, 0, NULL);
  g_assert_cmpstr(g_dir_read_name(around), ==, "files");
  g_assert_null(g_dir_read_name(around));
  g_autoptr(GDir) files = g_dir_open(fake->folder, 0, NULL);
  g_assert_null(g_dir_read_name(files));
}

static void check_member(const char *path, mode_t type, const char *message) {
  struct archive *tar;
  g_autoptr(Fake) fake = fake_with_answer(&tar);
  tar_add(tar, path, type, "evil", type == AE_IFREG ? 4 : 0);
  tar_end(tar);
  g_autofree char *text = copy_back_fails(fake);
  g_assert_cmpstr(text, ==, message);
  assert_untouched(fake);
}

#define NOT_ASKED "could not read the sandbox's files: a member that was not asked for: "
#define NOT_REGULAR "could not read the sandbox's files: a member is no regular file: "

static void test_members_not_asked_for(void) {
  check_member("/etc/passwd", AE_IFREG, NOT_ASKED "'/etc/passwd'");
  check_member("../a", AE_IFREG, NOT_ASKED "'../a'");
  check_member("./a", AE_IFREG, NOT_ASKED "'./a'");
  check_member("a/", AE_IFREG, NOT_REGULAR "'a/'");
  check_member("a/a", AE_IFREG, NOT_ASKED "'a/a'");
  check_member("c", AE_IFREG, NOT_ASKED "'c'");
}

static void test_members_that_are_no_files(void) {
  check_member("a", AE_IFDIR, NOT_REGULAR "'a/'");
  check_member("a", AE_IFIFO, NOT_REGULAR "'a'");
  check_member("a", AE_IFCHR, NOT_REGULAR "'a'");
  check_member("a", AE_IFBLK, NOT_REGULAR "'a'");
}

static void check_link(gboolean hard) {
  struct archive *tar;
  g_autoptr(Fake) fake = fake_with_answer(&tar);
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, "a");
  archive_entry_set_filetype(entry, hard ? AE_IFREG : AE_IFLNK);
  if (hard) {
    archive_entry_copy_hardlink(entry, "/etc/passwd");
  } else {
    archive_entry_copy_symlink(entry, "..");
  }
  g_assert_cmpint(archive_write_header(tar, entry), ==, ARCHIVE_OK);
  archive_entry_free(entry);
  tar_add(tar, "a/b", AE_IFREG, "evil", 4);
  tar_end(tar);
  g_autofree char *text = copy_back_fails(fake);
  g_assert_cmpstr(text, ==, NOT_REGULAR "'a'");
  assert_untouched(fake);
}

static void test_link_then_file_through_it(void) {
  check_link(FALSE);
  check_link(TRUE);
}

static void test_members_out_of_order(void) {
  struct archive *tar;
  g_autoptr(Fake) fake = fake_with_answer(&tar);
  tar_add(tar, "b", AE_IFREG, "evil", 4);
  tar_add(tar, "a", AE_IFREG, "evil", 4);
  tar_end(tar);
  g_autofree char *text = copy_back_fails(fake);
  g_assert_cmpstr(
      text, ==,
      "could not read the sandbox's files: a member out of the order that was asked for: 'a'");
  assert_workspace(fake, "a", NULL);
}

static void test_member_twice(void) {
  struct archive *tar;
  g_autoptr(Fake) fake = fake_with_answer(&tar);
  tar_add(tar, "a", AE_IFREG, "evil", 4);
  tar_add(tar, "a", AE_IFREG, "more", 4);
  tar_end(tar);
  g_autofree char *text = copy_back_fails(fake);
  g_assert_cmpstr(text, ==, "could not read the sandbox's files: a member that came twice: 'a'");
  assert_workspace(fake, "a", "evil");
}

static void test_other_content_than_listed(void) {
  struct archive *tar;
  g_autoptr(Fake) fake = fake_with_answer(&tar);
  tar_add(tar, "a", AE_IFREG, "else", 4);
  tar_add(tar, "b", AE_IFREG, "longer than listed", 18);
  tar_end(tar);
  copy_back(fake);
  assert_skips(fake, "a: changed while it was being copied\nb: changed while it was being copied");
  assert_untouched(fake);
}

static void test_grown_over_the_limit(void) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 10, .max_file_bytes = 5, .max_copy_bytes = 100});
  sandbox_put(fake, "a", "12345");
  sandbox_put(fake, "b", "12345");
  fake->answer = g_byte_array_new();
  struct archive *tar = tar_begin(fake->answer);
  tar_add(tar, "a", AE_IFREG, "123456", 6);
  tar_add(tar, "b", AE_IFREG, "12345", 5);
  tar_end(tar);
  copy_back(fake);
  assert_texts(fake->report->written, "b");
  assert_skips(fake, "a: changed while it was being copied");
}

/* 100,000 members of nothing: the first one ends it. */
static void test_many_members(void) {
  struct archive *tar;
  g_autoptr(Fake) fake = fake_with_answer(&tar);
  for (guint i = 0; i < 100000; i++) {
    char name[16];
    g_snprintf(name, sizeof name, "f%u", i);
    tar_add(tar, name, AE_IFREG, "", 0);
  }
  tar_end(tar);
  g_autofree char *text = copy_back_fails(fake);
  g_assert_cmpstr(text, ==, NOT_ASKED "'f0'");
  assert_untouched(fake);
}

/* The header promises 8 GB; what is promised is never allocated. */
static void test_huge_member(void) {
  struct archive *tar;
  g_autoptr(Fake) fake = fake_with_answer(&tar);
  tar_add(tar, "a", AE_IFREG, "evil", 4);
  tar_end(tar);
  guint8 *header = fake->answer->data;
  memcpy(header + 124, "77777777777", 11);
  memset(header + 148, ' ', 8);
  guint sum = 0;
  for (gsize i = 0; i < 512; i++) {
    sum += header[i];
  }
  g_snprintf((char *)header + 148, 8, "%06o", sum);
  g_autofree char *text = copy_back_fails(fake);
  /* The end of the sentence is libarchive's. */
  g_assert_true(g_str_has_prefix(text, "could not read the sandbox's files: Truncated "));
  assert_untouched(fake);
}

/* What follows the end mark is dropped, but not for ever. */
static void test_stream_without_end(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put(fake, "a", "evil");
  fake->answer = g_byte_array_new();
  g_byte_array_set_size(fake->answer, 8 * 1024 * 1024);
  memset(fake->answer->data, 0, fake->answer->len);
  g_autofree char *text = copy_back_fails(fake);
  g_assert_cmpstr(text, ==,
                  "could not read the sandbox's files: the stream is longer than its files");
}

static void check_bytes(const char *bytes, gsize length) {
  struct archive *tar;
  g_autoptr(Fake) fake = fake_with_answer(&tar);
  archive_write_free(tar);
  g_byte_array_set_size(fake->answer, 0);
  g_byte_array_append(fake->answer, (const guint8 *)bytes, (guint)length);
  g_autofree char *text = copy_back_fails(fake);
  g_assert_true(g_str_has_prefix(text, "could not read the sandbox's files: "));
  assert_untouched(fake);
}

static void test_no_tar_at_all(void) {
  g_autofree char *noise = g_strnfill(4096, '\x5a');
  check_bytes(noise, 4096);
  check_bytes("short", 5);
  /* Compressed streams are not even looked into. */
  check_bytes("\x1f\x8b\x08\0\0\0\0\0\0\3", 10);
}

static void test_cut_streams(void) {
  struct archive *tar;
  g_autoptr(Fake) whole = fake_with_answer(&tar);
  tar_add(tar, "a", AE_IFREG, "evil", 4);
  tar_end(tar);
  check_bytes((const char *)whole->answer->data, 100);
  check_bytes((const char *)whole->answer->data, 514);
}

static void test_empty_stream(void) {
  struct archive *tar;
  g_autoptr(Fake) fake = fake_with_answer(&tar);
  archive_write_free(tar);
  g_byte_array_set_size(fake->answer, 0);
  copy_back(fake);
  assert_skips(fake, "a: changed while it was being copied\nb: changed while it was being copied");
}

/* A link that appears after the listing and before the write. */
static void plant_link(Fake *fake) {
  g_autofree char *path = fake_path(fake, "d");
  g_assert_cmpint(g_rmdir(path), ==, 0);
  g_assert_cmpint(symlink("..", path), ==, 0);
}

static void test_link_planted_meanwhile(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  g_autofree char *path = fake_path(fake, "d");
  g_assert_cmpint(g_mkdir(path, 0755), ==, 0);
  sandbox_put(fake, "d/a", "evil");
  fake->before_download = plant_link;
  copy_back(fake);
  assert_skips(fake, "d/a: a link out of the workspace; not written");
  g_autofree char *outside = g_build_filename(fake->around, "a", NULL);
  g_assert_false(g_file_test(outside, G_FILE_TEST_EXISTS));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/workspace/hostile/listing/leads-out", test_listing_leads_out);
  g_test_add_func("/workspace/hostile/listing/endless-name", test_listing_with_endless_name);
  g_test_add_func("/workspace/hostile/listing/twice", test_listing_names_twice);
  g_test_add_func("/workspace/hostile/listing/hidden", test_listing_of_hidden_names);
  g_test_add_func("/workspace/hostile/listing/without-end", test_listing_without_end);
  g_test_add_func("/workspace/hostile/listing/floods", test_listing_floods);
  g_test_add_func("/workspace/hostile/listing/unknown-kinds", test_listing_of_unknown_kinds);
  g_test_add_func("/workspace/hostile/listing/sizes", test_listing_with_lying_sizes);
  g_test_add_func("/workspace/hostile/stream/not-asked", test_members_not_asked_for);
  g_test_add_func("/workspace/hostile/stream/no-files", test_members_that_are_no_files);
  g_test_add_func("/workspace/hostile/stream/links", test_link_then_file_through_it);
  g_test_add_func("/workspace/hostile/stream/order", test_members_out_of_order);
  g_test_add_func("/workspace/hostile/stream/twice", test_member_twice);
  g_test_add_func("/workspace/hostile/stream/other-content", test_other_content_than_listed);
  g_test_add_func("/workspace/hostile/stream/grown", test_grown_over_the_limit);
  g_test_add_func("/workspace/hostile/stream/many-members", test_many_members);
  g_test_add_func("/workspace/hostile/stream/huge-member", test_huge_member);
  g_test_add_func("/workspace/hostile/stream/without-end", test_stream_without_end);
  g_test_add_func("/workspace/hostile/stream/no-tar", test_no_tar_at_all);
  g_test_add_func("/workspace/hostile/stream/cut", test_cut_streams);
  g_test_add_func("/workspace/hostile/stream/empty", test_empty_stream);
  g_test_add_func("/workspace/hostile/stream/link-planted", test_link_planted_meanwhile);
  return g_test_run();
}
