/* SPDX-License-Identifier: Apache-2.0 */
/* workspace-parts.c: the rules under the bridge: text, names, staying beneath, whole writes. */
#include "workspace-fake.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "workspace/names.h"
#include "workspace/safe-write.h"
#include "workspace/text.h"

static void test_text(void) {
  g_assert_true(text_is_utf8("", 0));
  g_assert_true(text_is_utf8("plain", 5));
  g_assert_true(text_is_utf8("caf\xc3\xa9", 5));
  g_assert_true(text_is_utf8("12345678\xf0\x9f\x98\x80"
                             "12345678",
                             20));
  g_assert_false(text_is_utf8("caf\xc3", 4));
  g_assert_false(text_is_utf8("\xff", 1));
  g_assert_false(text_is_utf8("\xed\xa0\x80", 3));     /* half of a pair */
  g_assert_false(text_is_utf8("\xc0\x80", 2));         /* longer than needed */
  g_assert_false(text_is_utf8("\xf4\x90\x80\x80", 4)); /* past the last character */
}

/* One bad byte at every place of every short text, so that no step of the fast way skips one. */
static void test_text_at_every_place(void) {
  static const guint8 bad[] = {0x00, 0x80, 0xff};
  for (gsize length = 1; length < 40; length++) {
    for (gsize at = 0; at < length; at++) {
      for (gsize i = 0; i < sizeof bad; i++) {
        g_autofree char *text = g_strnfill(length, '\x7f');
        g_assert_true(text_is_utf8(text, length));
        text[at] = (char)bad[i];
        g_assert_false(text_is_utf8(text, length));
      }
    }
  }
}

static void test_text_beginnings(void) {
  g_assert_true(text_may_begin("", 0));
  g_assert_true(text_may_begin("caf\xc3\xa9", 5));
  g_assert_true(text_may_begin("caf\xc3", 4));
  g_assert_true(text_may_begin("\xf0\x9f\x98", 3));
  g_assert_false(text_may_begin("\xff", 1));
  g_assert_false(text_may_begin("a\0", 2));
  g_assert_false(text_may_begin("\xc3(", 2));
  g_assert_false(text_may_begin("\xc3\xa9\xc3 rest", 8));
}

static void test_run_records(void) {
  g_assert_true(name_is_run_record("run_1/run.json"));
  g_assert_true(name_is_run_record("a/b/run_/events.jsonl"));
  g_assert_false(name_is_run_record("run.json"));
  g_assert_false(name_is_run_record("run_1/x/run.json"));
  g_assert_false(name_is_run_record("run_1/run.json.bak"));
  g_assert_false(name_is_run_record("prerun_1/run.json"));
  g_assert_false(name_is_run_record("run_1run.json"));
}

static void test_hidden(void) {
  g_assert_true(name_is_hidden(".a", 2));
  g_assert_true(name_is_hidden("a/.b/c", 6));
  g_assert_true(name_is_hidden("a/b/.c", 6));
  g_assert_false(name_is_hidden("a.b/c.", 6));
  g_assert_false(name_is_hidden("a/.b", 2));
  g_assert_false(name_is_hidden("", 0));
}

/* ---- Beneath --------------------------------------------------------------------------------- */

typedef int (*Open)(int root, const char *path, int flags);

static void check_open(Open open_it, int root, const char *path, int flags, int error) {
  errno = 0;
  int fd = open_it(root, path, flags);
  if (error) {
    g_assert_cmpint(fd, ==, -1);
    g_assert_cmpint(errno, ==, error);
  } else {
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(fcntl(fd, F_GETFD) & FD_CLOEXEC, !=, 0);
    close(fd);
  }
}

static void check_beneath(Open open_it) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "d/e/f", "x");
  g_autofree char *inner = fake_path(fake, "inner");
  g_autofree char *outer = fake_path(fake, "outer");
  g_assert_cmpint(symlink("d", inner), ==, 0);
  g_assert_cmpint(symlink("/", outer), ==, 0);
  int root = open(fake->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  check_open(open_it, root, "d", O_RDONLY | O_DIRECTORY, 0);
  check_open(open_it, root, "d/e/f", O_RDONLY, 0);
  check_open(open_it, root, "d/e/none", O_RDONLY, ENOENT);
  check_open(open_it, root, "d/e/f/g", O_RDONLY, ENOTDIR);
  check_open(open_it, root, "inner/e/f", O_RDONLY, ELOOP);
  check_open(open_it, root, "outer/etc/passwd", O_RDONLY, ELOOP);
  check_open(open_it, root, "outer", O_RDONLY, ELOOP);
  check_open(open_it, root, "outer", O_RDONLY | O_DIRECTORY, ELOOP);
  check_open(open_it, root, "outer", O_PATH | O_NOFOLLOW, 0);
  check_open(open_it, root, "/etc/passwd", O_RDONLY, EXDEV);
  check_open(open_it, root, "../outside", O_RDONLY, EXDEV);
  close(root);
}

static void test_beneath(void) {
  check_beneath(beneath_open);
}

static void test_beneath_by_hand(void) {
  check_beneath(beneath_open_by_hand);
}

static void test_settled(void) {
  const gint64 second = G_GINT64_CONSTANT(1000000000);
  const gint64 now = 1000 * second + 5;
  FileIdentity identity = {.mtime = now - 1, .ctime = now - 1};
  g_assert_true(file_identity_is_settled(&identity, now));
  identity.ctime = now;
  g_assert_false(file_identity_is_settled(&identity, now));
  identity = (FileIdentity){.mtime = 999 * second, .ctime = 999 * second};
  g_assert_false(file_identity_is_settled(&identity, now));
  identity = (FileIdentity){.mtime = 997 * second, .ctime = 997 * second};
  g_assert_true(file_identity_is_settled(&identity, now));
}

/* ---- Whole writes ---------------------------------------------------------------------------- */

typedef struct {
  Fake *fake;
  int root;
  SafeWriter writer;
} Writing;

/* named: as on a file system that has no files without a name. */
static Writing writing_begin(gconstpointer named) {
  Writing writing = {.fake = fake_new(NULL)};
  writing.root = open(writing.fake->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  writing.writer = safe_writer_for(writing.root);
  writing.writer.named = GPOINTER_TO_INT(named);
  return writing;
}

static void writing_end(Writing *writing) {
  safe_writer_clear(&writing->writer);
  close(writing->root);
  fake_free(writing->fake);
}

static void check_write(Writing *writing, const char *path, const SafeTarget *target,
                        const char *reason) {
  FileIdentity identity = {0};
  g_autofree char *is = safe_writer_write(&writing->writer, path, "new", 3, target, &identity);
  g_assert_cmpstr(is, ==, reason);
  g_assert_cmpuint(count_temporary(writing->fake->folder), ==, 0);
  if (!reason) {
    struct stat status;
    g_autofree char *full = fake_path(writing->fake, path);
    g_assert_cmpint(stat(full, &status), ==, 0);
    const FileIdentity now = file_identity_of(&status);
    g_assert_true(file_identity_equal(&identity, &now));
  }
}

static void test_new_file_that_came_meanwhile(gconstpointer named) {
  Writing writing = writing_begin(named);
  workspace_put(writing.fake, "a", "mine");
  const SafeTarget none = {0};
  check_write(&writing, "a", &none, SAFE_WRITE_CONFLICT);
  check_write(&writing, "b", &none, NULL);
  check_write(&writing, "d/e/c", &none, NULL);
  assert_workspace(writing.fake, "a", "mine");
  writing_end(&writing);
}

static void test_file_that_changed_meanwhile(gconstpointer named) {
  Writing writing = writing_begin(named);
  workspace_put(writing.fake, "a", "base");
  SafeTarget target;
  g_assert_null(safe_target_look(writing.root, "a", &target));
  check_write(&writing, "a", &target, NULL);
  /* The one that was looked at is gone; another stands there. */
  check_write(&writing, "a", &target, SAFE_WRITE_CONFLICT);
  assert_workspace(writing.fake, "a", "new");
  g_autofree char *path = fake_path(writing.fake, "a");
  g_assert_cmpint(unlink(path), ==, 0);
  check_write(&writing, "a", &target, SAFE_WRITE_CONFLICT);
  g_assert_cmpint(g_mkdir(path, 0755), ==, 0);
  workspace_put(writing.fake, "a/inner", "mine");
  check_write(&writing, "a", &target, SAFE_WRITE_CONFLICT);
  assert_workspace(writing.fake, "a/inner", "mine");
  writing_end(&writing);
}

static void test_hard_links_are_not_written_through(gconstpointer named) {
  Writing writing = writing_begin(named);
  g_autofree char *outside = g_build_filename(writing.fake->around, "outside", NULL);
  g_autofree char *inside = fake_path(writing.fake, "a");
  g_assert_true(g_file_set_contents(outside, "whole", -1, NULL));
  g_assert_cmpint(link(outside, inside), ==, 0);
  SafeTarget target;
  g_assert_null(safe_target_look(writing.root, "a", &target));
  check_write(&writing, "a", &target, NULL);
  g_autofree char *is = NULL;
  g_assert_true(g_file_get_contents(outside, &is, NULL, NULL));
  g_assert_cmpstr(is, ==, "whole");
  writing_end(&writing);
}

/* From here on the kernel says that it has neither openat2 nor renameat2, nor this one. */
static void become_old(guint also) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, also, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {.len = G_N_ELEMENTS(rules), .filter = rules};
  g_assert_cmpint(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
  g_assert_cmpint(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), ==, 0);
}

static void write_on_old_kernel(guint also) {
  Writing writing = writing_begin(NULL);
  workspace_put(writing.fake, "a", "base");
  g_autofree char *link = fake_path(writing.fake, "link");
  g_assert_cmpint(symlink("..", link), ==, 0);
  become_old(also);
  g_assert_cmpint(beneath_open(writing.root, "link/files/a", O_RDONLY), ==, -1);
  g_assert_cmpint(errno, ==, ELOOP);
  SafeTarget target;
  const SafeTarget none = {0};
  g_assert_null(safe_target_look(writing.root, "a", &target));
  check_write(&writing, "a", &none, SAFE_WRITE_CONFLICT);
  check_write(&writing, "a", &target, NULL);
  check_write(&writing, "a", &target, SAFE_WRITE_CONFLICT);
  check_write(&writing, "d/e/b", &none, NULL);
  check_write(&writing, "link/c", &none, SAFE_WRITE_LINK);
  writing_end(&writing);
}

static void test_old_kernel(gconstpointer also) {
  pid_t child = fork();
  g_assert_cmpint(child, >=, 0);
  if (child == 0) {
    write_on_old_kernel(GPOINTER_TO_UINT(also));
    _exit(0);
  }
  int status = 0;
  g_assert_cmpint(waitpid(child, &status, 0), ==, child);
  g_assert_cmpint(status, ==, 0);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/workspace/parts/text", test_text);
  g_test_add_func("/workspace/parts/text-at-every-place", test_text_at_every_place);
  g_test_add_func("/workspace/parts/text-beginnings", test_text_beginnings);
  g_test_add_func("/workspace/parts/run-records", test_run_records);
  g_test_add_func("/workspace/parts/hidden", test_hidden);
  g_test_add_func("/workspace/parts/beneath", test_beneath);
  g_test_add_func("/workspace/parts/beneath-by-hand", test_beneath_by_hand);
  g_test_add_func("/workspace/parts/settled", test_settled);
  for (int named = 0; named < 2; named++) {
    static const char *const WAYS[] = {"nameless", "named"};
    const struct {
      const char *name;
      void (*test)(gconstpointer named);
    } tests[] = {{"new-file-meanwhile", test_new_file_that_came_meanwhile},
                 {"changed-meanwhile", test_file_that_changed_meanwhile},
                 {"hard-links", test_hard_links_are_not_written_through}};
    for (gsize i = 0; i < G_N_ELEMENTS(tests); i++) {
      g_autofree char *path = g_strdup_printf("/workspace/parts/%s/%s", tests[i].name, WAYS[named]);
      g_test_add_data_func(path, GINT_TO_POINTER(named), tests[i].test);
    }
  }
  g_test_add_data_func("/workspace/parts/old-kernel", GUINT_TO_POINTER(SYS_openat2),
                       test_old_kernel);
  /* As without /proc: a file that was begun without a name cannot get one. */
  g_test_add_data_func("/workspace/parts/no-links", GUINT_TO_POINTER(SYS_linkat), test_old_kernel);
  return g_test_run();
}
