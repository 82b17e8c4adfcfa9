/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bubblewrap-cgroup.c: where control groups are made, for both versions, in made-up trees of plain files;
 * and, where the machine lets us, real ones.
 */
#include "../../plugins/bubblewrap/cgroup-place.c"
#include "../../plugins/bubblewrap/cgroup.c"

#include "control-groups.h"

#include <glib/gstdio.h>

/* A made-up /sys/fs/cgroup, and a file in place of /proc/self/cgroup. */
struct tree {
  char *root;
  char *self;
};

static struct tree tree_new(const char *self_text) {
  struct tree tree;
  tree.root = g_dir_make_tmp("sandhost-cgroup-XXXXXX", NULL);
  g_assert_nonnull(tree.root);
  tree.self = g_build_filename(tree.root, "self", NULL);
  g_assert_true(g_file_set_contents(tree.self, self_text, -1, NULL));
  return tree;
}

/* Makes a group's folder with cgroup.procs and the file named, where it is. */
static void tree_add(const struct tree *tree, const char *group, const char *file,
                     const char *content) {
  g_autofree char *folder = g_build_filename(tree->root, group, NULL);
  g_autofree char *procs = g_build_filename(folder, "cgroup.procs", NULL);
  g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
  g_assert_true(g_file_set_contents(procs, "", -1, NULL));
  if (file) {
    g_autofree char *path = g_build_filename(folder, file, NULL);
    g_assert_true(g_file_set_contents(path, content, -1, NULL));
  }
}

static void tree_free(struct tree *tree) {
  const char *const argv[] = {"/bin/rm", "-rf", tree->root, NULL};
  g_assert_true(g_spawn_sync(NULL, (char **)(gsize)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL,
                             NULL, NULL, NULL));
  g_free(tree->root);
  g_free(tree->self);
}

static void expect_parent(const struct tree *tree, const CgroupPlace *place,
                          enum cgroup_controller controller, const char *expected) {
  g_assert_cmpint(cgroup_place_has(place, controller), ==, expected != NULL);
  if (expected) {
    g_autofree char *path = g_build_filename(tree->root, expected, NULL);
    g_autofree char *found = g_canonicalize_filename(place->parents[controller], NULL);
    g_assert_cmpstr(found, ==, path);
  }
}

/* ---- Version 1 -------------------------------------------------------------------------------- */

static void test_version_1_below_own(void) {
  struct tree tree = tree_new("8:pids:/\n4:memory:/jobs/one\n3:cpu,cpuacct:/jobs\n0::/\n");
  tree_add(&tree, "memory/jobs/one", NULL, NULL);
  tree_add(&tree, "cpu/jobs", NULL, NULL);
  tree_add(&tree, "pids", NULL, NULL);
  g_autoptr(CgroupPlace) place = cgroup_place_new(tree.root, tree.self);
  g_assert_cmpint(place->version, ==, 1);
  expect_parent(&tree, place, CGROUP_MEMORY, "memory/jobs/one/sandhost");
  expect_parent(&tree, place, CGROUP_CPU, "cpu/jobs/sandhost");
  expect_parent(&tree, place, CGROUP_PIDS, "pids/sandhost");
  tree_free(&tree);
}

static void test_version_1_in_a_container(void) {
  struct tree tree = tree_new("4:memory:/docker/0123\n3:cpu:/..\n");
  tree_add(&tree, "memory", NULL, NULL);
  tree_add(&tree, "cpu", NULL, NULL);
  g_autoptr(CgroupPlace) place = cgroup_place_new(tree.root, tree.self);
  expect_parent(&tree, place, CGROUP_MEMORY, "memory/sandhost");
  expect_parent(&tree, place, CGROUP_CPU, NULL);
  expect_parent(&tree, place, CGROUP_PIDS, NULL);
  tree_free(&tree);
}

/* ---- Version 2 -------------------------------------------------------------------------------- */

static void test_version_2_beside_own(void) {
  struct tree tree = tree_new("0::/user.slice/app.slice/one.scope\n");
  tree_add(&tree, ".", "cgroup.controllers", "cpu memory pids\n");
  tree_add(&tree, "user.slice", "cgroup.subtree_control", "cpu memory pids\n");
  tree_add(&tree, "user.slice/app.slice", "cgroup.type", "domain\n");
  tree_add(&tree, "user.slice/app.slice", "cgroup.subtree_control", "cpu memory pids io\n");
  tree_add(&tree, "user.slice/app.slice/one.scope", "cgroup.subtree_control", "");
  g_autoptr(CgroupPlace) place = cgroup_place_new(tree.root, tree.self);
  g_assert_cmpint(place->version, ==, 2);
  expect_parent(&tree, place, CGROUP_MEMORY, "user.slice/app.slice/sandhost");
  expect_parent(&tree, place, CGROUP_CPU, "user.slice/app.slice/sandhost");
  expect_parent(&tree, place, CGROUP_PIDS, "user.slice/app.slice/sandhost");
  tree_free(&tree);
}

static void test_version_2_higher_up_has_more(void) {
  struct tree tree = tree_new("0::/user.slice/app.slice/one.scope\n");
  tree_add(&tree, ".", "cgroup.controllers", "cpu memory pids\n");
  tree_add(&tree, ".", "cgroup.type", "domain\n");
  tree_add(&tree, "user.slice", "cgroup.type", "domain\n");
  tree_add(&tree, "user.slice", "cgroup.subtree_control", "cpu memory pids\n");
  tree_add(&tree, "user.slice/app.slice", "cgroup.type", "domain\n");
  tree_add(&tree, "user.slice/app.slice", "cgroup.subtree_control", "memory pids\n");
  g_autoptr(CgroupPlace) place = cgroup_place_new(tree.root, tree.self);
  expect_parent(&tree, place, CGROUP_CPU, "user.slice/sandhost");
  tree_free(&tree);
}

static void test_version_2_partial(void) {
  struct tree tree = tree_new("0::/app.slice/one.scope\n");
  tree_add(&tree, ".", "cgroup.controllers", "cpu memory pids\n");
  tree_add(&tree, ".", "cgroup.type", "domain\n");
  tree_add(&tree, "app.slice", "cgroup.type", "domain\n");
  tree_add(&tree, "app.slice", "cgroup.subtree_control", "pids\n");
  g_autoptr(CgroupPlace) place = cgroup_place_new(tree.root, tree.self);
  expect_parent(&tree, place, CGROUP_MEMORY, NULL);
  expect_parent(&tree, place, CGROUP_CPU, NULL);
  expect_parent(&tree, place, CGROUP_PIDS, "app.slice/sandhost");
  tree_free(&tree);
}

static void test_version_2_at_the_top(void) {
  struct tree tree = tree_new("0::/\n");
  tree_add(&tree, ".", "cgroup.controllers", "cpuset cpu io memory pids\n");
  tree_add(&tree, ".", "cgroup.subtree_control", "");
  g_autoptr(CgroupPlace) place = cgroup_place_new(tree.root, tree.self);
  expect_parent(&tree, place, CGROUP_MEMORY, "sandhost");
  g_assert_true(place->enable);
  tree_free(&tree);
}

static void test_version_2_inside_a_container(void) {
  /* The top of what is seen has processes and may not pass on what it does not pass on already. */
  struct tree tree = tree_new("0::/\n");
  tree_add(&tree, ".", "cgroup.controllers", "cpu memory pids\n");
  tree_add(&tree, ".", "cgroup.type", "domain\n");
  tree_add(&tree, ".", "cgroup.subtree_control", "");
  g_autoptr(CgroupPlace) place = cgroup_place_new(tree.root, tree.self);
  expect_parent(&tree, place, CGROUP_MEMORY, NULL);
  tree_free(&tree);
}

static void test_nowhere(void) {
  g_autoptr(CgroupPlace) place = cgroup_place_new("/nowhere", "/nowhere/self");
  for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
    g_assert_false(cgroup_place_has(place, (enum cgroup_controller)i));
  }
}

/* ---- Real groups ------------------------------------------------------------------------------ */

static char *read_limit(const Cgroup *group, const char *file) {
  for (size_t i = 0; i < group->count; i++) {
    g_autofree char *path = g_build_filename(group->ones[i].path, file, NULL);
    char *text = NULL;
    if (g_file_get_contents(path, &text, NULL, NULL)) {
      return g_strstrip(text);
    }
  }
  return NULL;
}

static void test_real_groups(void) {
  g_autoptr(CgroupPlace) place = cgroup_place_new("/sys/fs/cgroup", "/proc/self/cgroup");
  struct cgroup_limits limits = {.memory_bytes = 64 << 20, .cpu_millis = 500, .pids = 7};
  Cgroup *group = NULL;
  Cgroup *second = NULL;
  g_autofree char *what = NULL;
  for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
    if (!cgroup_place_has(place, (enum cgroup_controller)i)) {
      g_assert_false(control_groups_are_ours(controller_names[i]));
      g_test_skip("this user cannot make control groups here");
      return;
    }
  }
  g_autofree char *name = g_strdup_printf("test-real-%d", (int)getpid());
  g_assert_cmpint(cgroup_new(place, name, &limits, &group, &what), ==, 0);
  g_autofree char *memory =
      read_limit(group, place->version == 2 ? "memory.max" : "memory.limit_in_bytes");
  g_autofree char *cpu = read_limit(group, place->version == 2 ? "cpu.max" : "cpu.cfs_quota_us");
  g_autofree char *pids = read_limit(group, "pids.max");
  g_assert_cmpstr(memory, ==, "67108864");
  g_assert_cmpstr(cpu, ==, place->version == 2 ? "50000 100000" : "50000");
  g_assert_cmpstr(pids, ==, "7");
  g_assert_cmpuint(cgroup_oom_kills(group), ==, 0);
  /* A sweep leaves it alone until it is joined, and then removes it because it is empty. */
  cgroup_place_sweep(place);
  g_assert_true(g_file_test(group->ones[0].path, G_FILE_TEST_IS_DIR));
  cgroup_joined(group);
  cgroup_place_sweep(place);
  g_assert_false(g_file_test(group->ones[0].path, G_FILE_TEST_IS_DIR));
  g_assert_cmpint(cgroup_new(place, name, &limits, &second, &what), ==, 0);
  g_assert_cmpint(cgroup_remove(second, 0), ==, 0);
  g_assert_cmpint(cgroup_remove(group, 0), ==, 0);
  cgroup_free(second);
  cgroup_free(group);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/bubblewrap-cgroup/version-1-below-own", test_version_1_below_own);
  g_test_add_func("/bubblewrap-cgroup/version-1-in-a-container", test_version_1_in_a_container);
  g_test_add_func("/bubblewrap-cgroup/version-2-beside-own", test_version_2_beside_own);
  g_test_add_func("/bubblewrap-cgroup/version-2-higher-up-has-more",
                  test_version_2_higher_up_has_more);
  g_test_add_func("/bubblewrap-cgroup/version-2-partial", test_version_2_partial);
  g_test_add_func("/bubblewrap-cgroup/version-2-at-the-top", test_version_2_at_the_top);
  g_test_add_func("/bubblewrap-cgroup/version-2-inside-a-container",
                  test_version_2_inside_a_container);
  g_test_add_func("/bubblewrap-cgroup/nowhere", test_nowhere);
  g_test_add_func("/bubblewrap-cgroup/real-groups", test_real_groups);
  return g_test_run();
}
