/* SPDX-License-Identifier: Apache-2.0 */
/* support-changes.c: lists of known files go in, lists of changed ones come out and are checked. */
#include <limits.h>

#include "support-peer.h"

/* ---- Changes --------------------------------------------------------------------------------- */

static void put_u32(GByteArray *to, uint32_t value) {
  unsigned char bytes[4];
  guest_put_u32(bytes, value);
  g_byte_array_append(to, bytes, sizeof bytes);
}

static void put_entry(GByteArray *to, uint32_t kind, uint32_t flags, const char *path,
                      size_t path_length) {
  unsigned char bytes[8];
  put_u32(to, kind);
  put_u32(to, flags);
  guest_put_u64(bytes, 12345678901);
  g_byte_array_append(to, bytes, 8);
  guest_put_u64(bytes, (uint64_t)-5);
  g_byte_array_append(to, bytes, 8);
  put_u32(to, 0100640);
  for (guint8 i = 0; i < 32; i++) {
    g_byte_array_append(to, &i, 1);
  }
  put_u32(to, (uint32_t)path_length);
  g_byte_array_append(to, (const guint8 *)path, (guint)path_length);
}

struct listed {
  GString *text;
  size_t stop_after;
  size_t count;
};

static int32_t list_entry(void *user, const struct sandhost_entry *entry) {
  struct listed *listed = user;
  g_assert_cmpuint(entry->size, ==, sizeof *entry);
  g_assert_cmpuint(strlen(entry->path.data), ==, entry->path.length);
  g_assert_cmpuint(entry->bytes, ==, 12345678901);
  g_assert_cmpint(entry->mtime, ==, -5);
  g_assert_cmpuint(entry->mode, ==, 0640);
  g_assert_cmpuint(entry->sha256[31], ==, entry->flags & SANDHOST_ENTRY_SHA256 ? 31 : 0);
  g_string_append_printf(listed->text, "%u %u %s;", entry->kind, entry->flags, entry->path.data);
  listed->count++;
  return listed->stop_after > 0 && listed->count >= listed->stop_after ? SANDHOST_LIMIT
                                                                       : SANDHOST_OK;
}

/* Lists what the guest gives, in pieces; the text of it is appended to listed. */
static int32_t list(const GByteArray *entries, size_t piece, uint64_t max_entries,
                    struct listed *listed, char **ret_message) {
  struct sandhost_entry_sink sink = {.size = sizeof sink, .user = listed, .entry = list_entry};
  struct sandhost_changes request = {
      .size = sizeof request, .root = fake_to_path("/workspace"), .max_entries = max_entries};
  struct fixture fixture;
  listed->text = g_string_new(NULL);
  fixture_begin(&fixture, (struct peer){.operation = GUEST_CHANGES,
                                        .got = g_byte_array_new(),
                                        .give = entries,
                                        .piece = piece});
  int32_t status = guest_client_changes(fixture.session.client, &fixture.call, &request, &sink);
  *ret_message = g_strdup(fixture.call.message);
  fixture_end(&fixture);
  fixture_free(&fixture);
  return status;
}

static void test_changes_cut_anywhere(void) {
  g_autoptr(GByteArray) entries = g_byte_array_new();
  g_autofree char *component = g_strnfill(250, 'n');
  g_autoptr(GString) longest = g_string_new(NULL);
  while (longest->len + 251 < PATH_MAX - 1) {
    g_string_append_printf(longest, "%s/", component);
  }
  g_string_append(longest, "e");
  put_entry(entries, SANDHOST_KIND_FILE, SANDHOST_ENTRY_SHA256, "a", 1);
  put_entry(entries, SANDHOST_KIND_FILE, 0, longest->str, longest->len);
  put_entry(entries, SANDHOST_KIND_CHECKOUT, 0, "dir/repo", 8);
  put_entry(entries, SANDHOST_KIND_FILE, 0, "..a/...", 7);
  g_autofree char *expected =
      g_strdup_printf("10 1 a;10 0 %s;20 0 dir/repo;10 0 ..a/...;", longest->str);
  for (size_t piece = 1; piece < 90; piece++) {
    struct listed listed = {0};
    g_autofree char *message = NULL;
    g_assert_cmpint(list(entries, piece, 4, &listed, &message), ==, SANDHOST_OK);
    g_assert_cmpstr(listed.text->str, ==, expected);
    g_string_free(listed.text, TRUE);
  }
}

static void test_changes_known(void) {
  const size_t count = 20000; /* more than a window of them */
  g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
  g_autofree struct sandhost_known *known = g_new0(struct sandhost_known, count);
  g_autoptr(GByteArray) expected = g_byte_array_new();
  for (size_t i = 0; i < count; i++) {
    char *name = g_strdup_printf("folder/some-file-or-other-%06zu", i);
    g_ptr_array_add(texts, name);
    known[i].path = fake_to_path(name);
    memset(known[i].sha256, (int)(i & 0xff), sizeof known[i].sha256);
    put_u32(expected, (uint32_t)strlen(name));
    g_byte_array_append(expected, (const guint8 *)name, (guint)strlen(name));
    g_byte_array_append(expected, known[i].sha256, 32);
  }
  struct listed listed = {.text = g_string_new(NULL)};
  struct sandhost_entry_sink sink = {.size = sizeof sink, .user = &listed, .entry = list_entry};
  struct sandhost_changes request = {.size = sizeof request,
                                     .root = fake_to_path("/workspace"),
                                     .known = known,
                                     .known_count = count,
                                     .max_hash_bytes = 1000};
  struct fixture fixture;
  fixture_begin(&fixture, (struct peer){.operation = GUEST_CHANGES, .got = g_byte_array_new()});
  g_assert_cmpint(guest_client_changes(fixture.session.client, &fixture.call, &request, &sink), ==,
                  SANDHOST_OK);
  fixture_end(&fixture);
  assert_same(fixture.peer.got, expected);
  struct guest_reader reader = {.data = fixture.peer.parameters->data,
                                .left = fixture.peer.parameters->len};
  assert_field(&reader, "/workspace");
  g_assert_cmpuint(guest_read_u64(&reader), ==, 1000);
  g_assert_cmpuint(guest_read_u64(&reader), ==, 0);
  fixture_free(&fixture);
  g_string_free(listed.text, TRUE);
}

static void test_changes_stopped_by_sink(void) {
  g_autoptr(GByteArray) entries = g_byte_array_new();
  for (int i = 0; i < 30000; i++) {
    put_entry(entries, SANDHOST_KIND_FILE, 0, "name", 4);
  }
  struct listed listed = {.stop_after = 3};
  g_autofree char *message = NULL;
  g_assert_cmpint(list(entries, 0, 0, &listed, &message), ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(message, ==, "the receiver of the list stopped");
  g_assert_cmpuint(listed.count, ==, 3);
  g_string_free(listed.text, TRUE);
}

static void check_bad_entries(const GByteArray *entries, uint64_t max_entries, const char *reason) {
  g_autofree char *expected = g_strconcat("it broke the protocol: ", reason, NULL);
  for (size_t piece = 0; piece < 3; piece++) {
    struct listed listed = {0};
    g_autofree char *message = NULL;
    g_assert_cmpint(list(entries, piece, max_entries, &listed, &message), ==, SANDHOST_PROTOCOL);
    g_assert_cmpstr(message, ==, expected);
    g_string_free(listed.text, TRUE);
  }
}

static void test_changes_bad_paths(void) {
  static const struct sandhost_path bad[] = {
      {"", 0},     {"/etc/passwd", 11}, {"..", 2}, {"a/../b", 6}, {"a/..", 4}, {"../a", 4},
      {"a//b", 4}, {"a/", 2},           {".", 1},  {"a/./b", 5},  {"a\0b", 3},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
    g_autoptr(GByteArray) entries = g_byte_array_new();
    put_entry(entries, SANDHOST_KIND_FILE, 0, "good", 4);
    put_entry(entries, SANDHOST_KIND_FILE, 0, bad[i].data, bad[i].length);
    check_bad_entries(entries, 0, "a listed file whose path leads elsewhere");
  }
  g_autofree char *longer = g_strnfill(PATH_MAX + 1, 'x');
  g_autoptr(GByteArray) entries = g_byte_array_new();
  put_entry(entries, SANDHOST_KIND_FILE, 0, longer, PATH_MAX + 1);
  check_bad_entries(entries, 0, "a listed file whose path is too long");
}

static void test_changes_bad_kinds(void) {
  g_autoptr(GByteArray) entries = g_byte_array_new();
  put_entry(entries, 11, 0, "a", 1);
  check_bad_entries(entries, 0, "a listed file of an unknown kind");
  static const uint32_t BAD[][2] = {
      {SANDHOST_KIND_FILE, 4},
      {SANDHOST_KIND_FILE, SANDHOST_ENTRY_SHA256 | SANDHOST_ENTRY_UNREAD_FOLDER},
      {SANDHOST_KIND_CHECKOUT, SANDHOST_ENTRY_UNREAD_FOLDER},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(BAD); i++) {
    g_byte_array_set_size(entries, 0);
    put_entry(entries, BAD[i][0], BAD[i][1], "a", 1);
    check_bad_entries(entries, 0, "a listed file of an unknown kind");
  }
}

static void test_changes_too_many(void) {
  g_autoptr(GByteArray) entries = g_byte_array_new();
  put_entry(entries, SANDHOST_KIND_FILE, 0, "a", 1);
  put_entry(entries, SANDHOST_KIND_FILE, 0, "b", 1);
  put_entry(entries, SANDHOST_KIND_FILE, 0, "c", 1);
  check_bad_entries(entries, 2, "more listed files than it was asked for");
}

static void test_changes_incomplete(void) {
  g_autoptr(GByteArray) entries = g_byte_array_new();
  put_entry(entries, SANDHOST_KIND_FILE, 0, "abc", 3);
  g_byte_array_set_size(entries, entries->len - 1);
  check_bad_entries(entries, 0, "a list that ends within a file");
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/support/changes/cut-anywhere", test_changes_cut_anywhere);
  g_test_add_func("/support/changes/known", test_changes_known);
  g_test_add_func("/support/changes/stopped-by-sink", test_changes_stopped_by_sink);
  g_test_add_func("/support/changes/bad-paths", test_changes_bad_paths);
  g_test_add_func("/support/changes/bad-kinds", test_changes_bad_kinds);
  g_test_add_func("/support/changes/too-many", test_changes_too_many);
  g_test_add_func("/support/changes/incomplete", test_changes_incomplete);
  return g_test_run();
}
