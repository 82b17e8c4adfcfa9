/* SPDX-License-Identifier: Apache-2.0 */
/* workspace-back.c: what comes back into the workspace after a command, and what is said of the
 * rest. */
#include "workspace-fake.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void test_changed_text_comes_back(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "sales.csv", "a,1\n");
  copy_in(fake);
  sandbox_put(fake, "total.txt", "1\n");
  sandbox_put(fake, "deep/er/caf\xc3\xa9", "x");
  sandbox_put(fake, "empty", "");
  copy_back(fake);
  assert_texts(fake->report->written, "deep/er/caf\xc3\xa9|empty|total.txt");
  assert_texts(fake->asked, "r sales.csv|w deep/er/caf\xc3\xa9|w empty|w total.txt");
  assert_skips(fake, "");
  assert_workspace(fake, "total.txt", "1\n");
  assert_workspace(fake, "deep/er/caf\xc3\xa9", "x");
  assert_workspace(fake, "empty", "");
  assert_workspace(fake, "sales.csv", "a,1\n");
  g_assert_cmpuint(fake->downloads, ==, 1);
}

static void test_nothing_changed(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "x");
  copy_in(fake);
  copy_back(fake);
  g_assert_cmpuint(fake->listed, ==, 0);
  g_assert_cmpuint(fake->downloads, ==, 0);
}

static void test_nothing_goes_round(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put(fake, "a", "x");
  copy_back(fake);
  copy_in(fake);
  copy_back(fake);
  g_assert_cmpuint(fake->uploads, ==, 0);
  g_assert_cmpuint(fake->downloads, ==, 1);
}

static void test_command_after_command(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "0");
  for (guint i = 1; i < 20; i++) {
    char text[8];
    g_snprintf(text, sizeof text, "%u", i);
    copy_in(fake);
    sandbox_put(fake, "a", text);
    copy_back(fake);
    assert_texts(fake->report->written, "a");
    assert_workspace(fake, "a", text);
  }
}

static void test_missing_workspace_is_made(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  fake_without_folder(fake);
  copy_back(fake);
  g_assert_false(g_file_test(fake->folder, G_FILE_TEST_EXISTS));
  sandbox_put(fake, "a/b", "x");
  copy_back(fake);
  assert_workspace(fake, "a/b", "x");
}

static void test_modes(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "script", "x");
  g_autofree char *script = fake_path(fake, "script");
  g_autofree char *fresh = fake_path(fake, "fresh");
  g_assert_cmpint(g_chmod(script, 04751), ==, 0);
  copy_in(fake);
  sandbox_put(fake, "script", "y");
  sandbox_put(fake, "fresh", "y");
  mode_t before = umask(077);
  copy_back(fake);
  umask(before);
  struct stat status;
  g_assert_cmpint(stat(script, &status), ==, 0);
  g_assert_cmpint(status.st_mode & 07777, ==, 0751);
  g_assert_cmpint(stat(fresh, &status), ==, 0);
  g_assert_cmpint(status.st_mode & 07777, ==, 0644);
}

static void test_owner_is_kept(void) {
  if (geteuid() != 0) {
    g_test_skip("only root can give files away");
    return;
  }
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "x");
  g_autofree char *path = fake_path(fake, "a");
  g_assert_cmpint(chown(path, 65534, 65534), ==, 0);
  copy_in(fake);
  sandbox_put(fake, "a", "y");
  copy_back(fake);
  struct stat status;
  g_assert_cmpint(stat(path, &status), ==, 0);
  g_assert_cmpuint(status.st_uid, ==, 65534);
  assert_workspace(fake, "a", "y");
}

static void test_binary_is_told_once(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put_bytes(fake, "a", "\0", 1);
  sandbox_put(fake, "b", "\xff");
  copy_back(fake);
  assert_skips(fake, "a: not text (only UTF-8 files are copied back)\n"
                     "b: not text (only UTF-8 files are copied back)");
  copy_back(fake);
  assert_skips(fake, "");
  g_assert_cmpuint(fake->listed, ==, 0);
  sandbox_put_bytes(fake, "a", "\0\0", 2);
  copy_back(fake);
  assert_skips(fake, "a: not text (only UTF-8 files are copied back)");
  assert_workspace(fake, "a", NULL);
}

static void test_too_large(void) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 10, .max_file_bytes = 5, .max_copy_bytes = 100});
  sandbox_put(fake, "five", "12345");
  sandbox_put(fake, "six", "123456");
  copy_back(fake);
  assert_texts(fake->report->written, "five");
  assert_skips(fake, "six: too large to copy back (6 bytes)");
  copy_back(fake);
  assert_skips(fake, "");
  sandbox_put(fake, "six", "1234567");
  copy_back(fake);
  assert_skips(fake, "six: too large to copy back (7 bytes)");
}

static void test_files_of_one_copy(void) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 2, .max_file_bytes = 5, .max_copy_bytes = 100});
  sandbox_put(fake, "d", "d");
  sandbox_put(fake, "c", "c");
  sandbox_put(fake, "b", "b");
  sandbox_put(fake, "a", "too large");
  copy_back(fake);
  assert_texts(fake->report->written, "b|c");
  assert_skips(fake, "a: too large to copy back (9 bytes)\n"
                     "d: not copied back: over the bridge's limit of 2 files");
  assert_texts(fake->asked, "w b|w c");
  copy_back(fake);
  assert_texts(fake->report->written, "d");
  assert_skips(fake, "");
}

static void test_bytes_of_one_copy(void) {
  g_autoptr(Fake) fake =
      fake_new(&(BridgeSettings){.max_files = 10, .max_file_bytes = 100, .max_copy_bytes = 10});
  sandbox_put(fake, "a", "123456");
  sandbox_put(fake, "b", "123456");
  sandbox_put(fake, "c", "1234");
  copy_back(fake);
  assert_texts(fake->report->written, "a|c");
  assert_skips(fake, "b: not copied back: over the bridge's limit of 10 bytes in one copy");
  copy_back(fake);
  assert_texts(fake->report->written, "b");
  assert_skips(fake, "");
}

static void test_patterns(void) {
  const char *const exclude[] = {"*.log", NULL};
  g_autoptr(Fake) fake = fake_new(&(BridgeSettings){
      .exclude = exclude, .max_files = 10, .max_file_bytes = 100, .max_copy_bytes = 100});
  sandbox_put(fake, "a.log", "x");
  sandbox_put(fake, "a.txt", "x");
  copy_back(fake);
  assert_texts(fake->report->written, "a.txt");
  assert_skips(fake, "a.log: outside the bridge's include/exclude patterns");
  copy_back(fake);
  assert_skips(fake, "");
}

static void test_not_permitted(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  g_ptr_array_add(fake->denied, (gpointer)(gsize) "a");
  sandbox_put(fake, "a", "x");
  copy_back(fake);
  assert_skips(fake, "a: not permitted by policy");
  copy_back(fake);
  assert_skips(fake, "");
  sandbox_put(fake, "a", "y");
  copy_back(fake);
  assert_skips(fake, "a: not permitted by policy");
  assert_workspace(fake, "a", NULL);
}

static void test_broken_policy_stops(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put(fake, "a", "x");
  sandbox_put(fake, "b", "x");
  fake->broken = "b";
  g_autofree char *text = copy_back_fails(fake);
  g_assert_cmpstr(text, ==, "the policy is broken");
  assert_workspace(fake, "a", NULL);
}

static void test_run_records(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put(fake, "run_1/run.json", "x");
  sandbox_put(fake, "a/run_/events.jsonl", "x");
  sandbox_put(fake, "run.json", "x");
  sandbox_put(fake, "prerun_1/run.json", "x");
  copy_back(fake);
  assert_texts(fake->report->written, "prerun_1/run.json|run.json");
  assert_skips(fake, "a/run_/events.jsonl: a background run's record; the runtime's own\n"
                     "run_1/run.json: a background run's record; the runtime's own");
}

static void add_entry(Fake *fake, const char *path, uint32_t kind) {
  struct sandhost_entry entry = {
      .size = sizeof entry,
      .path = {.data = path, .length = strlen(path)},
      .kind = kind,
      .bytes = 1,
      .flags = SANDHOST_ENTRY_SHA256,
  };
  digest_of("x", 1, entry.sha256);
  g_array_append_val(fake->entries, entry);
}

static void test_checkout(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  add_entry(fake, "clone", SANDHOST_KIND_CHECKOUT);
  sandbox_put(fake, "clone/README", "x");
  sandbox_put(fake, "clone-notes", "x");
  sandbox_put(fake, "clone.txt", "x");
  copy_back(fake);
  assert_texts(fake->report->written, "clone-notes|clone.txt");
  assert_skips(fake, "clone: a git checkout; not copied back: clone repositories outside the "
                     "workspace folder");
  copy_back(fake);
  assert_skips(fake, "");
  assert_workspace(fake, "clone/README", NULL);
}

/* The sandbox does not get .git, so only the workspace tells. */
static void test_checkout_of_the_workspace(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, ".git/HEAD", "top");
  workspace_put(fake, "vendor/.git/HEAD", "a");
  workspace_put(fake, "vendor/deep/source", "0");
  workspace_put(fake, "module/.git", "gitdir: elsewhere");
  workspace_put(fake, "module/source", "0");
  copy_in(fake);
  assert_texts(fake->report->copied_in, "module/source|vendor/deep/source");
  sandbox_put(fake, "vendor/deep/source", "1");
  sandbox_put(fake, "vendor/made", "1");
  sandbox_put(fake, "module/made/deep", "1");
  sandbox_put(fake, "vendor.txt", "1");
  copy_back(fake);
  assert_texts(fake->report->written, "vendor.txt");
  assert_skips(fake, "module: a git checkout; not copied back: clone repositories outside the "
                     "workspace folder\nvendor: a git checkout; not copied back: clone "
                     "repositories outside the workspace folder");
  assert_workspace(fake, "vendor/deep/source", "0");
  assert_workspace(fake, "vendor/made", NULL);
  assert_workspace(fake, "module/made/deep", NULL);
  copy_in(fake);
  copy_back(fake);
  assert_skips(fake, "");
  sandbox_put(fake, "vendor/deep/source", "2");
  copy_back(fake);
  assert_skips(fake, "");
  assert_workspace(fake, "vendor/deep/source", "0");
}

static void test_unreadable_in_the_sandbox(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  add_entry(fake, "a", SANDHOST_KIND_FILE);
  g_array_index(fake->entries, struct sandhost_entry, 0).flags = 0;
  copy_back(fake);
  assert_skips(fake, "a: could not be read in the sandbox");
  copy_back(fake);
  assert_skips(fake, "");
}

/* What it holds may be wanted though it is not. */
static void test_unread_folder(void) {
  const char *const include[] = {"**/*.txt", NULL};
  const char *const exclude[] = {"private", NULL};
  g_autoptr(Fake) fake = fake_new(&(BridgeSettings){.include = include,
                                                    .exclude = exclude,
                                                    .max_files = 10,
                                                    .max_file_bytes = 5,
                                                    .max_copy_bytes = 100});
  add_entry(fake, "out", SANDHOST_KIND_FILE);
  add_entry(fake, "private", SANDHOST_KIND_FILE);
  for (guint i = 0; i < 2; i++) {
    struct sandhost_entry *entry = &g_array_index(fake->entries, struct sandhost_entry, i);
    entry->flags = SANDHOST_ENTRY_UNREAD_FOLDER;
    entry->bytes = 4096;
  }
  copy_back(fake);
  assert_skips(fake, "out: could not be read in the sandbox\n"
                     "private: outside the bridge's include/exclude patterns");
  copy_back(fake);
  assert_skips(fake, "");
  g_array_index(fake->entries, struct sandhost_entry, 0).mtime = 7;
  copy_back(fake);
  assert_skips(fake, "out: could not be read in the sandbox");
}

static void change_again(Fake *fake) {
  sandbox_put(fake, "a", "third");
  g_hash_table_remove(fake->files, "b");
}

static void test_changed_while_copied(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put(fake, "a", "x");
  sandbox_put(fake, "b", "x");
  sandbox_put(fake, "c", "x");
  fake->before_download = change_again;
  copy_back(fake);
  assert_texts(fake->report->written, "c");
  assert_skips(fake, "a: changed while it was being copied\nb: changed while it was being copied");
  fake->before_download = NULL;
  copy_back(fake);
  assert_texts(fake->report->written, "a");
  assert_workspace(fake, "a", "third");
}

#define CONFLICT "changed in the workspace meanwhile; the sandbox's copy was not written"

static void test_conflict_with_an_edit(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "base");
  copy_in(fake);
  workspace_put(fake, "a", "mine");
  sandbox_put(fake, "a", "theirs");
  copy_back(fake);
  assert_texts(fake->report->written, "");
  assert_skips(fake, "a: " CONFLICT);
  assert_workspace(fake, "a", "mine");
  copy_back(fake);
  assert_skips(fake, "");
  copy_in(fake);
  assert_sandbox(fake, "a", "mine");
}

static void test_conflict_with_a_new_file(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  copy_in(fake);
  workspace_put(fake, "a", "mine");
  sandbox_put(fake, "a", "theirs");
  copy_back(fake);
  assert_skips(fake, "a: " CONFLICT);
  assert_workspace(fake, "a", "mine");
}

static void test_conflict_with_a_file_left_out(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "text");
  copy_in(fake);
  workspace_put_bytes(fake, "a", "\0\1", 2);
  settle();
  copy_in(fake);
  sandbox_put(fake, "a", "theirs");
  copy_back(fake);
  assert_skips(fake, "a: " CONFLICT);
}

static void edit_workspace(Fake *fake) {
  workspace_put(fake, "a", "mine");
}

static void test_conflict_while_downloading(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "base");
  settle();
  copy_in(fake);
  sandbox_put(fake, "a", "theirs");
  fake->before_download = edit_workspace;
  copy_back(fake);
  assert_skips(fake, "a: " CONFLICT);
  assert_workspace(fake, "a", "mine");
}

static void test_touched_file_is_no_conflict(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "base");
  copy_in(fake);
  workspace_put(fake, "a", "base");
  sandbox_put(fake, "a", "theirs");
  copy_back(fake);
  assert_workspace(fake, "a", "theirs");
}

static void test_removed_file_comes_back(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "base");
  copy_in(fake);
  g_autofree char *path = fake_path(fake, "a");
  g_assert_cmpint(unlink(path), ==, 0);
  sandbox_put(fake, "a", "new");
  copy_back(fake);
  assert_workspace(fake, "a", "new");
}

static void test_content_that_went_back(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "base");
  copy_in(fake);
  sandbox_put_bytes(fake, "a", "\0", 1);
  copy_back(fake);
  sandbox_put(fake, "a", "base");
  copy_back(fake);
  assert_texts(fake->report->written, "");
  assert_skips(fake, "");
  g_assert_cmpuint(fake->downloads, ==, 1);
}

/* Every s becomes an X. */
static GString *filter_text(void *user, const void *data, gsize length) {
  (void)user;
  GString *text = g_string_new_len(data, (gssize)length);
  guint count = g_string_replace(text, "s", "X", 0);
  if (count == 0) {
    g_string_free(text, TRUE);
    return NULL;
  }
  return text;
}

static gboolean holds_s(void *user, const void *data, gsize length) {
  (void)user;
  return length > 0 && memchr(data, 's', length) != NULL;
}

static const BridgeFilter FILTER = {.replace = filter_text, .holds_credential = holds_s};

static void test_filter(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  bridge_set_filter(fake->bridge, &FILTER);
  sandbox_put(fake, "a", "a secret");
  sandbox_put(fake, "b", "open");
  sandbox_put(fake, "name-is", "open");
  copy_back(fake);
  assert_texts(fake->report->written, "a|b");
  assert_texts(fake->report->redacted, "a");
  assert_skips(fake, "name-is: its name holds a credential; not written");
  assert_workspace(fake, "a", "a Xecret");
  assert_workspace(fake, "b", "open");

  /* The two sides differ and are left so, also when the file is touched. */
  copy_in(fake);
  copy_back(fake);
  assert_texts(fake->report->written, "");
  workspace_put(fake, "a", "a Xecret");
  copy_in(fake);
  g_assert_cmpuint(fake->uploads, ==, 0);
  assert_sandbox(fake, "a", "a secret");
  copy_back(fake);
  g_assert_cmpuint(fake->downloads, ==, 1);
}

static void test_filtered_changes(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  bridge_set_filter(fake->bridge, &FILTER);
  sandbox_put(fake, "a", "secret");
  copy_back(fake);
  sandbox_put(fake, "a", "secrets");
  copy_back(fake);
  assert_texts(fake->report->redacted, "a");
  assert_workspace(fake, "a", "XecretX");
  /* The workspace's own change goes in, and then both are the same. */
  workspace_put(fake, "a", "edited");
  copy_in(fake);
  assert_texts(fake->report->copied_in, "a");
  assert_sandbox(fake, "a", "edited");
  workspace_put(fake, "a", "XecretX");
  copy_in(fake);
  assert_sandbox(fake, "a", "XecretX");
  /* A change on both sides is a conflict as ever. */
  sandbox_put(fake, "a", "s1");
  copy_back(fake);
  assert_workspace(fake, "a", "X1");
  workspace_put(fake, "a", "mine");
  sandbox_put(fake, "a", "s2");
  copy_back(fake);
  assert_workspace(fake, "a", "mine");
  assert_texts(fake->report->written, "");
}

static void test_filtered_then_forgotten(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  bridge_set_filter(fake->bridge, &FILTER);
  sandbox_put(fake, "a", "secret");
  copy_back(fake);
  bridge_forget(fake->bridge);
  copy_in(fake);
  assert_sandbox(fake, "a", "Xecret"); /* there is no other one any more */
}

/* What its owner has written there is not taken away. */
static void test_filter_leaves_the_owners(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  bridge_set_filter(fake->bridge, &FILTER);
  workspace_put(fake, "a", "a secret");
  copy_in(fake);
  sandbox_put(fake, "a", "a secret, and more");
  copy_back(fake);
  assert_texts(fake->report->written, "");
  assert_skips(fake, "a: holds a credential, as the workspace's own copy does; not written");
  assert_workspace(fake, "a", "a secret");
  copy_in(fake);
  copy_back(fake);
  assert_skips(fake, ""); /* told once */
  assert_sandbox(fake, "a", "a secret, and more");
  sandbox_put(fake, "a", "open");
  copy_back(fake);
  assert_workspace(fake, "a", "open");
}

static void test_links_in_the_way(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  g_autofree char *outside = g_build_filename(fake->around, "outside", NULL);
  g_autofree char *victim = g_build_filename(outside, "victim", NULL);
  g_assert_cmpint(g_mkdir(outside, 0755), ==, 0);
  g_assert_true(g_file_set_contents(victim, "whole", -1, NULL));
  g_autofree char *file_link = fake_path(fake, "file-link");
  g_autofree char *folder_link = fake_path(fake, "folder-link");
  g_autofree char *dangling = fake_path(fake, "dangling");
  g_assert_cmpint(symlink("../outside/victim", file_link), ==, 0);
  g_assert_cmpint(symlink(outside, folder_link), ==, 0);
  g_assert_cmpint(symlink("../outside/new", dangling), ==, 0);
  sandbox_put(fake, "file-link", "evil");
  sandbox_put(fake, "folder-link/victim", "evil");
  sandbox_put(fake, "folder-link/deep/new", "evil");
  sandbox_put(fake, "dangling", "evil");
  sandbox_put(fake, "good", "good");
  copy_back(fake);
  assert_texts(fake->report->written, "good");
  assert_skips(fake, "dangling: a link out of the workspace; not written\n"
                     "file-link: a link out of the workspace; not written\n"
                     "folder-link/deep/new: a link out of the workspace; not written\n"
                     "folder-link/victim: a link out of the workspace; not written");
  g_autofree char *is = NULL;
  g_assert_true(g_file_get_contents(victim, &is, NULL, NULL));
  g_assert_cmpstr(is, ==, "whole");
  g_autoptr(GDir) folder = g_dir_open(outside, 0, NULL);
  g_assert_cmpstr(g_dir_read_name(folder), ==, "victim");
  g_assert_null(g_dir_read_name(folder));
  copy_back(fake);
  assert_skips(fake, "");
}

static void test_other_things_in_the_way(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "folder/inner", "x");
  workspace_put(fake, "file", "x");
  g_autofree char *pipe = fake_path(fake, "pipe");
  g_assert_cmpint(mkfifo(pipe, 0644), ==, 0);
  sandbox_put(fake, "folder", "y");
  sandbox_put(fake, "file/below", "y");
  sandbox_put(fake, "pipe", "y");
  copy_back(fake);
  assert_texts(fake->report->written, "");
  assert_skips(fake,
               "file/below: a file of the workspace is where its folder would be; not written\n"
               "folder: a folder of the workspace has this name; not written\n"
               "pipe: not a regular file in the workspace; not written");
}

static void test_full_disk_is_tried_again(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  g_autofree char *large = g_strnfill(100000, 'x');
  workspace_put(fake, "a", "base");
  copy_in(fake);
  sandbox_put(fake, "a", large);
  struct rlimit before;
  g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
  const struct rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &small), ==, 0);
  copy_back(fake);
  g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
  signal(SIGXFSZ, handler);
  assert_skips(fake, "a: could not be written (File too large)");
  assert_workspace(fake, "a", "base");
  g_assert_cmpuint(count_temporary(fake->folder), ==, 0);
  copy_back(fake);
  assert_texts(fake->report->written, "a");
  assert_workspace(fake, "a", large);
}

static void test_long_names(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  g_autofree char *fits = g_strnfill(255, 'n');
  g_autofree char *over = g_strnfill(256, 'n');
  g_autofree char *deep = g_strconcat("d/", fits, "/", fits, "/x", NULL);
  sandbox_put(fake, fits, "x");
  sandbox_put(fake, over, "x");
  sandbox_put(fake, deep, "x");
  copy_back(fake);
  assert_workspace(fake, fits, "x");
  assert_workspace(fake, deep, "x");
  g_autofree char *skip = g_strconcat(over, ": could not be written (File name too long)", NULL);
  assert_skips(fake, skip);
}

static void test_odd_names(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put(fake, "new\nline", "1");
  sandbox_put(fake, "nfd-e\xcc\x81", "2");
  sandbox_put(fake, "\xf0\x9f\x98\x80", "3");
  sandbox_put(fake, "bad\xff", "4");
  copy_back(fake);
  assert_texts(fake->report->written, "new\nline|nfd-e\xcc\x81|\xf0\x9f\x98\x80");
  assert_workspace(fake, "nfd-e\xcc\x81", "2");
  assert_skips(fake, "bad\xef\xbf\xbd: name is not UTF-8");
  copy_back(fake);
  assert_skips(fake, "");
}

static void test_writers_of_any_piece(void) {
  static const gsize pieces[] = {1, 511, 513, 100000, 10000000};
  g_autofree char *large = g_strnfill(700000, 'y');
  for (gsize i = 0; i < G_N_ELEMENTS(pieces); i++) {
    g_autoptr(Fake) fake = fake_new(NULL);
    fake->piece = pieces[i];
    sandbox_put(fake, "a", "x");
    sandbox_put(fake, "b", large);
    sandbox_put(fake, "c", "z");
    copy_back(fake);
    assert_texts(fake->report->written, "a|b|c");
    assert_workspace(fake, "b", large);
  }
}

static void test_transport_errors_pass_untouched(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  sandbox_put(fake, "a", "x");
  fake->changes_fails = g_error_new_literal(SANDHOST_ERROR, SANDHOST_ERROR_FAILED, "no listing");
  g_autofree char *listing = copy_back_fails(fake);
  g_assert_cmpstr(listing, ==, "no listing");
  g_clear_error(&fake->changes_fails);
  fake->download_fails = g_error_new_literal(SANDHOST_ERROR, SANDHOST_ERROR_FAILED, "cut");
  g_autofree char *download = copy_back_fails(fake);
  g_assert_cmpstr(download, ==, "cut");
}

static void test_forget(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "x");
  copy_in(fake);
  bridge_forget(fake->bridge);
  g_hash_table_remove_all(fake->files);
  copy_in(fake);
  sandbox_put(fake, "a", "y");
  copy_back(fake);
  assert_texts(fake->report->written, "a");
  assert_workspace(fake, "a", "y");
}

/* A killed host leaves whole files and nothing that a later copy stumbles over. */
static void test_kill_leaves_whole_files(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  g_autofree char *first = g_strnfill(50000, 'a');
  g_autofree char *second = g_strnfill(50000, 'b');
  const char *const texts[2] = {first, second};
  guint killed = 0;
  for (guint round = 0; round < 20; round++) {
    for (guint i = 0; i < 100; i++) {
      g_autofree char *name = g_strdup_printf("d/%03u", i);
      sandbox_put(fake, name, texts[round % 2]);
    }
    bridge_forget(fake->bridge);
    copy_in(fake);
    for (guint i = 0; i < 100; i++) {
      g_autofree char *name = g_strdup_printf("d/%03u", i);
      sandbox_put(fake, name, texts[round % 2]);
    }
    pid_t child = fork();
    g_assert_cmpint(child, >=, 0);
    if (child == 0) {
      copy_back(fake);
      _exit(0);
    }
    g_usleep((gulong)g_test_rand_int_range(0, 12000));
    kill(child, SIGKILL);
    int status = 0;
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    for (guint i = 0; i < 100; i++) {
      g_autofree char *name = g_strdup_printf("d/%03u", i);
      g_autofree char *is = workspace_get(fake, name);
      g_assert_true(!is || strcmp(is, texts[0]) == 0 || strcmp(is, texts[1]) == 0);
    }
  }
  g_assert_cmpuint(killed, >, 0);
  copy_in(fake);
  g_assert_cmpuint(count_temporary(fake->folder), ==, 0);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/workspace/back/changed-text", test_changed_text_comes_back);
  g_test_add_func("/workspace/back/nothing-changed", test_nothing_changed);
  g_test_add_func("/workspace/back/nothing-goes-round", test_nothing_goes_round);
  g_test_add_func("/workspace/back/command-after-command", test_command_after_command);
  g_test_add_func("/workspace/back/missing-workspace", test_missing_workspace_is_made);
  g_test_add_func("/workspace/back/modes", test_modes);
  g_test_add_func("/workspace/back/owner", test_owner_is_kept);
  g_test_add_func("/workspace/back/binary", test_binary_is_told_once);
  g_test_add_func("/workspace/back/too-large", test_too_large);
  g_test_add_func("/workspace/back/files-limit", test_files_of_one_copy);
  g_test_add_func("/workspace/back/bytes-limit", test_bytes_of_one_copy);
  g_test_add_func("/workspace/back/patterns", test_patterns);
  g_test_add_func("/workspace/back/not-permitted", test_not_permitted);
  g_test_add_func("/workspace/back/broken-policy", test_broken_policy_stops);
  g_test_add_func("/workspace/back/run-records", test_run_records);
  g_test_add_func("/workspace/back/checkout", test_checkout);
  g_test_add_func("/workspace/back/checkout-of-the-workspace", test_checkout_of_the_workspace);
  g_test_add_func("/workspace/back/unreadable", test_unreadable_in_the_sandbox);
  g_test_add_func("/workspace/back/unread-folder", test_unread_folder);
  g_test_add_func("/workspace/back/changed-while-copied", test_changed_while_copied);
  g_test_add_func("/workspace/back/conflict-edit", test_conflict_with_an_edit);
  g_test_add_func("/workspace/back/conflict-new", test_conflict_with_a_new_file);
  g_test_add_func("/workspace/back/conflict-left-out", test_conflict_with_a_file_left_out);
  g_test_add_func("/workspace/back/conflict-downloading", test_conflict_while_downloading);
  g_test_add_func("/workspace/back/touched", test_touched_file_is_no_conflict);
  g_test_add_func("/workspace/back/removed", test_removed_file_comes_back);
  g_test_add_func("/workspace/back/went-back", test_content_that_went_back);
  g_test_add_func("/workspace/back/filter", test_filter);
  g_test_add_func("/workspace/back/filter-leaves-the-owners", test_filter_leaves_the_owners);
  g_test_add_func("/workspace/back/filtered-changes", test_filtered_changes);
  g_test_add_func("/workspace/back/filtered-then-forgotten", test_filtered_then_forgotten);
  g_test_add_func("/workspace/back/links", test_links_in_the_way);
  g_test_add_func("/workspace/back/in-the-way", test_other_things_in_the_way);
  g_test_add_func("/workspace/back/full-disk", test_full_disk_is_tried_again);
  g_test_add_func("/workspace/back/long-names", test_long_names);
  g_test_add_func("/workspace/back/odd-names", test_odd_names);
  g_test_add_func("/workspace/back/any-piece", test_writers_of_any_piece);
  g_test_add_func("/workspace/back/transport-errors", test_transport_errors_pass_untouched);
  g_test_add_func("/workspace/back/forget", test_forget);
  g_test_add_func("/workspace/back/kill", test_kill_leaves_whole_files);
  return g_test_run();
}
