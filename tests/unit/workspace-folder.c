/* SPDX-License-Identifier: Apache-2.0 */
/* workspace-folder.c: the workspace stays the folder that was opened when the run began. */
#include "workspace-fake.h"

/* Something else now has the name of the folder that was opened. */
static char *swap(Fake *fake) {
  char *moved = g_build_filename(fake->around, "moved", NULL);
  g_autofree char *other = g_build_filename(fake->around, "other", NULL);
  g_assert_cmpint(rename(fake->folder, moved), ==, 0);
  g_assert_cmpint(g_mkdir(other, 0755), ==, 0);
  g_assert_cmpint(symlink("other", fake->folder), ==, 0);
  workspace_put(fake, "a", "not ours");
  return moved;
}

static void assert_content(const char *folder, const char *name, const char *expected) {
  g_autofree char *path = g_build_filename(folder, name, NULL);
  g_autofree char *content = NULL;
  g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
  g_assert_cmpstr(content, ==, expected);
}

static void test_folder_that_was_swapped(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  workspace_put(fake, "a", "0");
  copy_in(fake);
  sandbox_put(fake, "a", "1");
  sandbox_put(fake, "d/b", "1");
  g_autofree char *moved = swap(fake);
  copy_back(fake);
  assert_texts(fake->report->written, "a|d/b");
  assert_content(moved, "a", "1");
  assert_content(moved, "d/b", "1");
  assert_workspace(fake, "a", "not ours");
  assert_workspace(fake, "d/b", NULL);
  g_autofree char *made = g_build_filename(moved, "made", NULL);
  g_assert_true(g_file_set_contents(made, "2", -1, NULL));
  copy_in(fake);
  assert_texts(fake->report->copied_in, "made");
}

/* Before the first copy already. */
static void test_folder_that_was_swapped_early(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  g_autofree char *moved = swap(fake);
  copy_in(fake);
  assert_texts(fake->report->copied_in, "");
  sandbox_put(fake, "a", "1");
  copy_back(fake);
  assert_content(moved, "a", "1");
  assert_workspace(fake, "a", "not ours");
}

static void test_folder_that_was_deleted(void) {
  g_autoptr(Fake) fake = fake_new(NULL);
  copy_in(fake);
  g_assert_cmpint(g_rmdir(fake->folder), ==, 0);
  copy_back(fake); /* there is nothing to lose */
  sandbox_put(fake, "a", "1");
  g_assert_cmpint(g_mkdir(fake->folder, 0755), ==, 0);
  for (int i = 0; i < 2; i++) {
    copy_in(fake);
    g_autofree char *text = copy_back_fails(fake);
    g_assert_true(g_str_has_prefix(text, "the workspace folder '"));
    g_assert_nonnull(strstr(text, "' was deleted during the run, so nothing can be copied back"));
  }
  assert_workspace(fake, "a", NULL);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/workspace/folder/swapped", test_folder_that_was_swapped);
  g_test_add_func("/workspace/folder/swapped-early", test_folder_that_was_swapped_early);
  g_test_add_func("/workspace/folder/deleted", test_folder_that_was_deleted);
  return g_test_run();
}
