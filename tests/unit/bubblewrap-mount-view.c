/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bubblewrap-mount-view.c: what is mounted for processes that the spawner starts, and that nothing changes for anybody
 * else. Each test has a child with a mount namespace of its own, in which it may mount what it likes.
 */
#include "../../plugins/bubblewrap/mount-view.c"
#include "../../plugins/bubblewrap/spawner.c"

#include <glib/gstdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- A machine with mounts ---------------------------------------------------------------------- */

typedef struct {
  char *root;
  char *kept;  /* mounted, as are the next */
  char *below; /* kept */
  char *far;   /* what the link leads to */
  char *other;
  char *other_below;
  char *link;
} Machine;

static char *mounted(const char *folder, const char *name) {
  char *path = g_build_filename(folder, name, NULL);
  g_assert_cmpint(g_mkdir(path, 0755), ==, 0);
  g_assert_cmpint(mount("test", path, "tmpfs", 0, "size=64k"), ==, 0);
  return path;
}

static void machine_init(Machine *machine, const char *root) {
  g_assert_cmpint(unshare(CLONE_NEWNS), ==, 0);
  g_assert_cmpint(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), ==, 0);
  machine->root = g_strdup(root);
  machine->kept = mounted(root, "kept");
  machine->below = mounted(machine->kept, "be low");
  machine->far = mounted(root, "far");
  machine->other = mounted(root, "ot\\her \xc3\xa9");
  machine->other_below = mounted(machine->other, "below");
  machine->link = g_build_filename(root, "link", NULL);
  g_assert_cmpint(symlink("far", machine->link), ==, 0);
  /* As most machines are: what happens in one namespace happens in the others. */
  g_assert_cmpint(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL), ==, 0);
}

static void machine_clear(Machine *machine) {
  g_free(machine->root);
  g_free(machine->kept);
  g_free(machine->below);
  g_free(machine->far);
  g_free(machine->other);
  g_free(machine->other_below);
  g_free(machine->link);
}

/* ---- What is mounted ------------------------------------------------------------------------------ */

/* The list as a process that the spawner starts reads it. */
static char *list_of(Spawner *spawner) {
  static const char *const argv[] = {"/bin/cat", "/proc/self/mountinfo", NULL};
  const struct guest_spawn_options options = {0};
  struct guest_process process = {0};
  g_autoptr(GString) text = g_string_new(NULL);
  char piece[4096];
  ssize_t count = 0;
  g_assert_cmpint(spawner_spawn(spawner, argv, &options, &process), ==, 0);
  while ((count = read(process.stream_fd, piece, sizeof piece)) > 0) {
    g_string_append_len(text, piece, count);
  }
  int status = -1;
  g_assert_cmpint(waitpid(process.pid, &status, 0), ==, process.pid);
  g_assert_cmpint(status, ==, 0);
  close(process.pidfd);
  close(process.stream_fd);
  close(process.error_fd);
  return g_string_free(g_steal_pointer(&text), FALSE);
}

static char *own_list(void) {
  char *text = NULL;
  g_assert_true(g_file_get_contents(MOUNTS, &text, NULL, NULL));
  return text;
}

static gboolean is_mounted(const char *list, const char *path) {
  g_auto(GStrv) lines = g_strsplit(list, "\n", -1);
  for (char **line = lines; *line; line++) {
    g_auto(GStrv) fields = g_strsplit(*line, " ", MOUNT_POINT + 2);
    if (g_strv_length(fields) > MOUNT_POINT) {
      g_autofree char *mount_point = g_strcompress(fields[MOUNT_POINT]);
      if (strcmp(mount_point, path) == 0) {
        return TRUE;
      }
    }
  }
  return FALSE;
}

/* Runs the test in a child, so that its mounts are nobody else's; skips where there can be none. */
static void in_child(void (*test)(const Machine *machine)) {
  if (geteuid() != 0) {
    g_test_skip("only root may mount");
    return;
  }
  g_autofree char *root = g_dir_make_tmp("sandhost-mounts-XXXXXX", NULL);
  g_assert_nonnull(root);
  pid_t pid = fork();
  if (pid == 0) {
    Machine machine;
    machine_init(&machine, root);
    test(&machine);
    machine_clear(&machine);
    _exit(0);
  }
  int status = -1;
  g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
  const char *const argv[] = {"/bin/rm", "-rf", "--one-file-system", root, NULL};
  g_assert_true(g_spawn_sync(NULL, (char **)(gsize)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL,
                             NULL, NULL, NULL));
  g_assert_cmpint(status, ==, 0);
}

/* ---- Tests ---------------------------------------------------------------------------------------- */

static void keeps_what_is_needed(const Machine *machine) {
  const char *const needed[] = {machine->below, machine->link, "/nowhere", NULL};
  g_autofree char *before = own_list();
  Spawner *spawner = spawner_new(needed);
  g_autofree char *list = list_of(spawner);
  g_assert_true(is_mounted(list, "/"));
  g_assert_true(is_mounted(list, "/proc"));
  g_assert_true(is_mounted(list, machine->kept)); /* above what is needed */
  g_assert_true(is_mounted(list, machine->below));
  g_assert_true(is_mounted(list, machine->far));
  g_assert_false(is_mounted(list, machine->other));
  g_assert_false(is_mounted(list, machine->other_below));
  g_assert_false(is_mounted(list, "/sys"));
  g_autofree char *after = own_list();
  g_assert_cmpstr(after, ==, before);
  spawner_free(spawner);
}

static void keeps_what_is_below(const Machine *machine) {
  const char *const needed[] = {machine->kept, NULL};
  Spawner *spawner = spawner_new(needed);
  g_autofree char *list = list_of(spawner);
  g_assert_true(is_mounted(list, machine->below));
  g_assert_false(is_mounted(list, machine->far));
  spawner_free(spawner);
}

static void follows_the_machine(const Machine *machine) {
  const char *const needed[] = {machine->kept, NULL};
  Spawner *spawner = spawner_new(needed);
  g_autofree char *first = list_of(spawner);
  g_autofree char *later = mounted(machine->kept, "later");
  g_assert_false(is_mounted(first, later));
  g_autofree char *second = list_of(spawner);
  g_assert_true(is_mounted(second, later));
  g_autofree char *elsewhere = mounted(machine->root, "elsewhere");
  g_assert_cmpint(umount2(machine->below, 0), ==, 0); /* it is busy nowhere */
  g_autofree char *third = list_of(spawner);
  g_assert_false(is_mounted(third, machine->below));
  g_assert_false(is_mounted(third, elsewhere));
  g_autofree char *own = own_list();
  g_assert_true(is_mounted(own, elsewhere));
  spawner_free(spawner);
}

static void leaves_all_where_nobody_knows(const Machine *machine) {
  (void)machine;
  Spawner *spawner = spawner_new(NULL);
  g_autofree char *list = list_of(spawner);
  g_autofree char *own = own_list();
  g_assert_cmpstr(list, ==, own);
  spawner_free(spawner);
}

static void test_needed(void) {
  in_child(keeps_what_is_needed);
}

static void test_below(void) {
  in_child(keeps_what_is_below);
}

static void test_later(void) {
  in_child(follows_the_machine);
}

static void test_unknown(void) {
  in_child(leaves_all_where_nobody_knows);
}

/* Whoever may not have a namespace starts processes all the same. */
static void without_rights(void) {
  static const char *const needed[] = {"/usr", NULL};
  g_autofree char *own = own_list();
  Spawner *spawner = spawner_new(needed);
  g_autofree char *list = list_of(spawner);
  g_assert_cmpstr(list, ==, own);
  spawner_free(spawner);
}

static void test_without_rights(void) {
  pid_t pid = fork();
  if (pid == 0) {
    g_assert_true(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
    without_rights();
    _exit(0);
  }
  int status = -1;
  g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
  g_assert_cmpint(status, ==, 0);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/bubblewrap/mount-view/needed", test_needed);
  g_test_add_func("/bubblewrap/mount-view/below", test_below);
  g_test_add_func("/bubblewrap/mount-view/later", test_later);
  g_test_add_func("/bubblewrap/mount-view/unknown", test_unknown);
  g_test_add_func("/bubblewrap/mount-view/without-rights", test_without_rights);
  return g_test_run();
}
