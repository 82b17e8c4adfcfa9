/* SPDX-License-Identifier: Apache-2.0 */
/* workspace-in.c: what goes into the sandbox before a command, and what is said of the rest. */
#include "workspace-fake.h"

#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

static void test_all_text_goes_in(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "sales.csv", "a,1\n");
  workspace_put(fake, "deep/er/notes.md", "caf\xc3\xa9\n");
  workspace_put(fake, "empty", "");
  copy_in(fake);
  assert_texts(fake->report->copied_in, "deep/er/notes.md|empty|sales.csv");
  assert_texts(fake->asked, "r deep/er/notes.md|r empty|r sales.csv");
  assert_skips(fake, "");
  assert_sandbox(fake, "sales.csv", "a,1\n");
  assert_sandbox(fake, "deep/er/notes.md", "caf\xc3\xa9\n");
  assert_sandbox(fake, "empty", "");
  g_assert_cmpuint(fake->uploads, ==, 1);
}

static void test_nothing_goes_in_twice(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "one");
  copy_in(fake);
  settle();
  copy_in(fake);
  copy_in(fake);
  g_assert_cmpuint(fake->uploads, ==, 1);
  assert_texts(fake->report->copied_in, "");
  assert_texts(fake->asked, "r a");
}

static void test_touched_file_stays(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "one");
  copy_in(fake);
  workspace_put(fake, "a", "one");
  copy_in(fake);
  g_assert_cmpuint(fake->uploads, ==, 1);
  assert_texts(fake->asked, "r a");
}

static void test_edit_within_one_tick(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  for (guint i = 0; i < 50; i++) {
    char text[8];
    g_snprintf(text, sizeof text, "%03u", i);
    workspace_put(fake, "a", text);
    copy_in(fake);
    assert_sandbox(fake, "a", text);
  }
  g_assert_cmpuint(fake->uploads, ==, 50);
}

static void test_edit_with_old_time(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "one");
  g_autofree char *path = fake_path(fake, "a");
  const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  g_assert_cmpint(utimensat(AT_FDCWD, path, times, 0), ==, 0);
  settle();
  copy_in(fake);
  workspace_put(fake, "a", "two");
  g_assert_cmpint(utimensat(AT_FDCWD, path, times, 0), ==, 0);
  copy_in(fake);
  assert_sandbox(fake, "a", "two");
}

static void test_hidden_links_and_special_files(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, ".env", "secret");
  workspace_put(fake, ".git/config", "secret");
  workspace_put(fake, "a/.b/c", "secret");
  workspace_put(fake, "plain", "in");
  g_autofree char *outside = g_build_filename(fake->around, "outside", NULL);
  g_assert_cmpint(g_mkdir(outside, 0755), ==, 0);
  g_autofree char *secret = g_build_filename(outside, "secret", NULL);
  g_assert_true(g_file_set_contents(secret, "secret", -1, NULL));
  g_autofree char *folder_link = fake_path(fake, "folder-link");
  g_autofree char *file_link = fake_path(fake, "file-link");
  g_autofree char *inner_link = fake_path(fake, "inner-link");
  g_autofree char *pipe = fake_path(fake, "pipe");
  g_assert_cmpint(symlink(outside, folder_link), ==, 0);
  g_assert_cmpint(symlink(secret, file_link), ==, 0);
  g_assert_cmpint(symlink("plain", inner_link), ==, 0);
  g_assert_cmpint(mkfifo(pipe, 0644), ==, 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  g_snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", fake->folder);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
  copy_in(fake);
  close(fd);
  assert_texts(fake->report->copied_in, "plain");
  assert_texts(fake->asked, "r plain");
  assert_skips(fake, "");
}

static void test_missing_workspace_is_empty(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  fake_without_folder(fake);
  copy_in(fake);
  g_assert_cmpuint(fake->uploads, ==, 0);
  g_assert_false(g_file_test(fake->folder, G_FILE_TEST_EXISTS));
}

static void test_workspace_that_is_a_file(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  fake_without_folder(fake);
  g_assert_true(g_file_set_contents(fake->folder, "", -1, NULL));
  g_autoptr(GError) error = NULL;
  g_assert_false(bridge_copy_in(fake->bridge, &fake->transport, fake->report, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE);
  g_autofree char *text =
      g_strdup_printf("could not open the workspace folder '%s': Not a directory", fake->folder);
  g_assert_cmpstr(error->message, ==, text);
}

static void test_binary_is_told_once(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put_bytes(fake, "nul", "a\0b", 3);
  workspace_put(fake, "latin", "caf\xe9");
  g_autofree char *late = g_strnfill(10000, 'x');
  late[9000] = '\xff';
  workspace_put(fake, "late", late);
  copy_in(fake);
  assert_skips(fake, "latin: not text (only UTF-8 files are copied in)\n"
                     "nul: not text (only UTF-8 files are copied in)\n"
                     "late: not text (only UTF-8 files are copied in)");
  settle();
  copy_in(fake);
  copy_in(fake);
  assert_skips(fake, "");
  g_assert_cmpuint(fake->uploads, ==, 0);
  workspace_put_bytes(fake, "nul", "c\0d", 3);
  copy_in(fake);
  assert_skips(fake, "nul: not text (only UTF-8 files are copied in)");
}

static void test_character_cut_by_the_first_look(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  g_autoptr(GString) text = g_string_new(NULL);
  for (guint i = 0; i < 4095; i++) {
    g_string_append_c(text, 'x');
  }
  g_string_append(text, "\xe6\xbc\xa2 and on");
  workspace_put(fake, "a", text->str);
  copy_in(fake);
  assert_sandbox(fake, "a", text->str);
}

static void test_too_large(void) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 10, .max_file_bytes = 5, .max_copy_bytes = 100});
  workspace_put(fake, "five", "12345");
  workspace_put(fake, "six", "123456");
  copy_in(fake);
  assert_texts(fake->report->copied_in, "five");
  assert_skips(fake, "six: too large to copy in (6 bytes)");
  copy_in(fake);
  assert_skips(fake, "");
  workspace_put(fake, "six", "1234567");
  copy_in(fake);
  assert_skips(fake, "six: too large to copy in (7 bytes)");
}

static void test_grown_too_large(void) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 10, .max_file_bytes = 5, .max_copy_bytes = 100});
  workspace_put(fake, "a", "12345");
  copy_in(fake);
  workspace_put(fake, "a", "123456");
  copy_in(fake);
  assert_skips(fake, "a: too large to copy in (6 bytes)");
  assert_sandbox(fake, "a", "12345");
}

static void test_bytes_of_one_copy(void) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 10, .max_file_bytes = 100, .max_copy_bytes = 10});
  workspace_put(fake, "a", "123456");
  workspace_put(fake, "b", "123456");
  workspace_put(fake, "c", "1234");
  copy_in(fake);
  assert_texts(fake->report->copied_in, "a|c");
  assert_skips(fake, "b: not copied in: over the bridge's limit of 10 bytes in one copy");
  copy_in(fake);
  assert_texts(fake->report->copied_in, "b");
  assert_skips(fake, "");
}

static void test_bytes_told_once(void) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 10, .max_file_bytes = 100, .max_copy_bytes = 10});
  workspace_put(fake, "a", "12345678901");
  copy_in(fake);
  assert_skips(fake, "a: not copied in: over the bridge's limit of 10 bytes in one copy");
  copy_in(fake);
  assert_skips(fake, "");
}

static void test_files_of_one_copy(void) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 2, .max_file_bytes = 100, .max_copy_bytes = 100});
  workspace_put(fake, "c", "c");
  workspace_put(fake, "b", "b");
  workspace_put(fake, "a", "a");
  workspace_put_bytes(fake, "0", "\0", 1);
  copy_in(fake);
  assert_texts(fake->report->copied_in, "a|b");
  assert_skips(fake, "0: not text (only UTF-8 files are copied in)\n"
                     "c: not copied in: over the bridge's limit of 2 files");
  assert_texts(fake->asked, "r 0|r a|r b");
  copy_in(fake);
  assert_texts(fake->report->copied_in, "c");
  assert_skips(fake, "");
}

static void test_files_told_once(void) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 1, .max_file_bytes = 100, .max_copy_bytes = 100});
  workspace_put(fake, "a", "a");
  workspace_put(fake, "b", "b");
  workspace_put(fake, "c", "c");
  copy_in(fake);
  assert_skips(fake, "b: not copied in: over the bridge's limit of 1 files\n"
                     "c: not copied in: over the bridge's limit of 1 files");
  copy_in(fake);
  assert_texts(fake->report->copied_in, "b");
  assert_skips(fake, "");
}

static void test_not_permitted(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  g_ptr_array_add(fake->denied, (gpointer)(gsize) "secret");
  workspace_put(fake, "secret", "x");
  workspace_put(fake, "open", "x");
  copy_in(fake);
  assert_texts(fake->report->copied_in, "open");
  assert_skips(fake, "secret: not permitted by policy");
  settle();
  copy_in(fake);
  assert_skips(fake, "");
  workspace_put(fake, "secret", "yy");
  copy_in(fake);
  assert_skips(fake, "secret: not permitted by policy");
  assert_sandbox(fake, "secret", NULL);
}

static void test_broken_policy_stops(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "x");
  workspace_put(fake, "b", "x");
  fake->broken = "b";
  g_autoptr(GError) error = NULL;
  g_assert_false(bridge_copy_in(fake->bridge, &fake->transport, fake->report, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_EVALUATION);
  g_assert_cmpuint(fake->uploads, ==, 0);
  fake->broken = NULL;
  copy_in(fake);
  assert_texts(fake->report->copied_in, "a|b");
}

static void test_unreadable(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "x");
  workspace_put(fake, "b/c", "x");
  g_autofree char *file = fake_path(fake, "a");
  g_autofree char *folder = fake_path(fake, "b");
  g_assert_cmpint(g_chmod(file, 0), ==, 0);
  g_assert_cmpint(g_chmod(folder, 0), ==, 0);
  g_assert_cmpint(g_chmod(fake->around, 0755), ==, 0);
  gboolean root = geteuid() == 0;
  g_assert_true(!root || seteuid(65534) == 0);
  copy_in(fake);
  g_assert_true(!root || seteuid(0) == 0);
  assert_skips(fake, "b: could not be read (Permission denied)\n"
                     "a: could not be read (Permission denied)");
  g_assert_cmpint(g_chmod(folder, 0755), ==, 0);
  g_assert_cmpint(g_chmod(file, 0644), ==, 0);
  copy_in(fake);
  assert_texts(fake->report->copied_in, "a|b/c");
}

static void test_patterns_and_run_records(void) {
  const char *const include[] = {"src/*", "*.md", NULL};
  const char *const exclude[] = {"*.log", NULL};
  g_autoptr(Fake) fake = fake_new(&(BridgeSettings){.include = include,
                                                    .exclude = exclude,
                                                    .max_files = 10,
                                                    .max_file_bytes = 100,
                                                    .max_copy_bytes = 100});
  workspace_put(fake, "src/deep/a.c", "x");
  workspace_put(fake, "src/a.log", "x");
  workspace_put(fake, "README.md", "x");
  workspace_put(fake, "data.csv", "x");
  workspace_put(fake, "src/run_1/run.json", "x");
  workspace_put(fake, "src/run_1/events.jsonl", "x");
  workspace_put(fake, "src/run_1/run.json5", "x");
  workspace_put(fake, "src/other/run.json", "x");
  copy_in(fake);
  assert_texts(fake->report->copied_in,
               "README.md|src/deep/a.c|src/other/run.json|src/run_1/run.json5");
  assert_skips(fake, "");
}

static void test_odd_names(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "new\nline", "1");
  workspace_put(fake, "-rf", "2");
  workspace_put(fake, "\xe6\xbc\xa2 \xf0\x9f\x98\x80", "3");
  workspace_put(fake, "nfd-e\xcc\x81", "4");
  workspace_put(fake, "bad\xff", "5");
  workspace_put(fake, "dir\xfe/below", "6");
  copy_in(fake);
  assert_texts(fake->report->copied_in,
               "-rf|new\nline|nfd-e\xcc\x81|\xe6\xbc\xa2 \xf0\x9f\x98\x80");
  assert_sandbox(fake, "nfd-e\xcc\x81", "4");
  assert_sandbox(fake, "\xe6\xbc\xa2 \xf0\x9f\x98\x80", "3");
  g_assert_cmpuint(fake->report->skipped->len, ==, 2);
  for (guint i = 0; i < 2; i++) {
    const BridgeSkip *skip = g_ptr_array_index(fake->report->skipped, i);
    g_assert_cmpstr(skip->reason, ==, "name is not UTF-8");
    g_assert_true(strcmp(skip->path, "bad\xef\xbf\xbd") == 0 ||
                  strcmp(skip->path, "dir\xef\xbf\xbd") == 0);
  }
  copy_in(fake);
  assert_skips(fake, "");
}

static void test_names_need_no_marks(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "caf\xc3\xa9", "1");
  copy_in(fake);
  g_assert_nonnull(memmem(fake->tar->data, fake->tar->len, " path=caf\xc3\xa9\n", 13));
  g_assert_null(memmem(fake->tar->data, fake->tar->len, "hdrcharset", 10));
}

static void test_readers_of_any_buffer(void) {
  static const gsize pieces[] = {1, 7, 511, 512, 513, 4096, 100000, 10000000};
  g_autofree char *large = g_strnfill(70000, 'y');
  g_autofree char *name = g_strnfill(240, 'n');
  for (gsize i = 0; i < G_N_ELEMENTS(pieces); i++) {
    g_autoptr(Fake) fake = fake_new(NULL);
    fake->piece = pieces[i];
    workspace_put(fake, "a", "x");
    workspace_put(fake, "b", large);
    workspace_put(fake, "c", "");
    workspace_put(fake, name, "long");
    copy_in(fake);
    g_assert_cmpuint(fake->tar->len % 512, ==, 0);
    assert_sandbox(fake, "a", "x");
    assert_sandbox(fake, "b", large);
    assert_sandbox(fake, "c", "");
    assert_sandbox(fake, name, "long");
  }
}

static void replace_by_binary(Fake *fake) {
  workspace_put_bytes(fake, "b", "\0\0", 2);
}

static void replace_by_link(Fake *fake) {
  g_autofree char *path = fake_path(fake, "b");
  g_assert_cmpint(unlink(path), ==, 0);
  g_assert_cmpint(symlink("/etc/passwd", path), ==, 0);
}

static void replace_by_pipe(Fake *fake) {
  g_autofree char *path = fake_path(fake, "b");
  g_assert_cmpint(unlink(path), ==, 0);
  g_assert_cmpint(mkfifo(path, 0644), ==, 0);
}

static void grow(Fake *fake) {
  workspace_put(fake, "b", "12345678901");
}

/* The file is changed after it was chosen and before it is read for the upload. */
static void check_change_between(void (*change)(Fake *), const char *skips) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 10, .max_file_bytes = 10, .max_copy_bytes = 100});
  workspace_put(fake, "a", "x");
  workspace_put(fake, "b", "x");
  fake->while_uploading = change;
  copy_in(fake);
  assert_texts(fake->report->copied_in, "a");
  assert_skips(fake, skips);
  assert_sandbox(fake, "b", NULL);
}

static void test_changes_between_look_and_read(void) {
  check_change_between(replace_by_binary, "b: not text (only UTF-8 files are copied in)");
  check_change_between(replace_by_link, "");
  check_change_between(replace_by_pipe, "");
  check_change_between(grow, "b: too large to copy in (11 bytes)");
}

static void test_failed_upload_goes_again(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "x");
  settle();
  fake->upload_fails = g_error_new_literal(SANDHOST_ERROR, SANDHOST_ERROR_FAILED, "it broke");
  g_autoptr(GError) error = NULL;
  g_assert_false(bridge_copy_in(fake->bridge, &fake->transport, fake->report, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_FAILED);
  g_assert_cmpstr(error->message, ==, "it broke");
  assert_texts(fake->report->copied_in, "");
  g_clear_error(&fake->upload_fails);
  copy_in(fake);
  assert_texts(fake->report->copied_in, "a");
}

static gboolean upload_half(void *user, const struct sandhost_source *tar, GError **error) {
  (void)user;
  (void)error;
  char buffer[512];
  return tar->read(tar->user, buffer, sizeof buffer) == sizeof buffer;
}

static void test_upload_that_reads_half(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  g_autofree char *large = g_strnfill(70000, 'y');
  workspace_put(fake, "a", large);
  BridgeTransport transport = fake->transport;
  transport.upload = upload_half;
  g_autoptr(GError) error = NULL;
  g_assert_false(bridge_copy_in(fake->bridge, &transport, fake->report, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE);
  g_assert_cmpstr(error->message, ==, "the sandbox took only a part of the workspace's files");
}

static void test_forget(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "x");
  workspace_put_bytes(fake, "binary", "\0", 1);
  settle();
  copy_in(fake);
  bridge_forget(fake->bridge);
  g_hash_table_remove_all(fake->files);
  copy_in(fake);
  assert_texts(fake->report->copied_in, "a");
  assert_skips(fake, "");
  assert_sandbox(fake, "a", "x");
}

static void test_removed_file_stays_in_the_sandbox(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "x");
  copy_in(fake);
  g_autofree char *path = fake_path(fake, "a");
  g_assert_cmpint(unlink(path), ==, 0);
  copy_in(fake);
  copy_back(fake);
  assert_sandbox(fake, "a", "x");
  assert_workspace(fake, "a", NULL);
  assert_texts(fake->report->written, "");
}

static void set_old(Fake *fake, const char *path) {
  const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  g_autofree char *full = fake_path(fake, path);
  g_assert_cmpint(utimensat(AT_FDCWD, full, times, 0), ==, 0);
}

/* What a killed host left goes at once, and what a living one writes stays; so does what only looks like it. */
static void test_left_over_temporary_files(void) {
  static const char *const OTHERS[] = {"d/.sandhost-notes", "d/.sandhost-0123456789abcdeF",
                                       "d/.sandhost-0123456789abcdef0", "d/.sandhost-"};
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "d/.sandhost-0123456789abcdef", "left in d");
  workspace_put(fake, ".sandhost-fedcba9876543210", "left above");
  for (gsize i = 0; i < G_N_ELEMENTS(OTHERS); i++) {
    workspace_put(fake, OTHERS[i], "mine");
    set_old(fake, OTHERS[i]);
  }
  g_autofree char *folder = fake_path(fake, "d");
  int writer = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_assert_cmpint(flock(writer, LOCK_SH), ==, 0);
  copy_in(fake);
  assert_workspace(fake, ".sandhost-fedcba9876543210", NULL);
  assert_workspace(fake, "d/.sandhost-0123456789abcdef", "left in d");
  close(writer);
  copy_in(fake);
  assert_workspace(fake, "d/.sandhost-0123456789abcdef", NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(OTHERS); i++) {
    assert_workspace(fake, OTHERS[i], "mine");
    g_autofree char *full = fake_path(fake, OTHERS[i]);
    g_assert_cmpint(unlink(full), ==, 0);
  }
}

/* Locks are not everywhere: what is old enough belongs to nobody. */
static void test_left_over_long_ago(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "d/.sandhost-0123456789abcdef", "old");
  set_old(fake, "d/.sandhost-0123456789abcdef");
  g_autofree char *folder = fake_path(fake, "d");
  int stranger = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_assert_cmpint(flock(stranger, LOCK_SH), ==, 0);
  copy_in(fake);
  assert_workspace(fake, "d/.sandhost-0123456789abcdef", NULL);
  close(stranger);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/workspace/in/all-text", test_all_text_goes_in);
  g_test_add_func("/workspace/in/not-twice", test_nothing_goes_in_twice);
  g_test_add_func("/workspace/in/touched", test_touched_file_stays);
  g_test_add_func("/workspace/in/edit-within-one-tick", test_edit_within_one_tick);
  g_test_add_func("/workspace/in/edit-with-old-time", test_edit_with_old_time);
  g_test_add_func("/workspace/in/hidden-links-special", test_hidden_links_and_special_files);
  g_test_add_func("/workspace/in/missing-workspace", test_missing_workspace_is_empty);
  g_test_add_func("/workspace/in/workspace-is-a-file", test_workspace_that_is_a_file);
  g_test_add_func("/workspace/in/binary", test_binary_is_told_once);
  g_test_add_func("/workspace/in/cut-character", test_character_cut_by_the_first_look);
  g_test_add_func("/workspace/in/too-large", test_too_large);
  g_test_add_func("/workspace/in/grown-too-large", test_grown_too_large);
  g_test_add_func("/workspace/in/bytes-limit", test_bytes_of_one_copy);
  g_test_add_func("/workspace/in/bytes-limit-told-once", test_bytes_told_once);
  g_test_add_func("/workspace/in/files-limit", test_files_of_one_copy);
  g_test_add_func("/workspace/in/files-limit-told-once", test_files_told_once);
  g_test_add_func("/workspace/in/not-permitted", test_not_permitted);
  g_test_add_func("/workspace/in/broken-policy", test_broken_policy_stops);
  g_test_add_func("/workspace/in/unreadable", test_unreadable);
  g_test_add_func("/workspace/in/patterns", test_patterns_and_run_records);
  g_test_add_func("/workspace/in/odd-names", test_odd_names);
  g_test_add_func("/workspace/in/names-need-no-marks", test_names_need_no_marks);
  g_test_add_func("/workspace/in/any-buffer", test_readers_of_any_buffer);
  g_test_add_func("/workspace/in/changes-between", test_changes_between_look_and_read);
  g_test_add_func("/workspace/in/failed-upload", test_failed_upload_goes_again);
  g_test_add_func("/workspace/in/half-upload", test_upload_that_reads_half);
  g_test_add_func("/workspace/in/forget", test_forget);
  g_test_add_func("/workspace/in/removed", test_removed_file_stays_in_the_sandbox);
  g_test_add_func("/workspace/in/left-over", test_left_over_temporary_files);
  g_test_add_func("/workspace/in/left-over-long-ago", test_left_over_long_ago);
  return g_test_run();
}
