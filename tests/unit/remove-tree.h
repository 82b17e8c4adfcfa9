/* SPDX-License-Identifier: Apache-2.0 */
/* remove-tree.h: a folder's end, with all that is in it. */
#ifndef SANDHOST_TESTS_REMOVE_TREE_H
#define SANDHOST_TESTS_REMOVE_TREE_H

#include <glib.h>
#include <stdio.h>
#include <sys/stat.h>

/* Links are removed, not followed. What cannot be removed fails the test. */
__attribute__((unused)) static void remove_tree(const char *path) {
  struct stat status;
  if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
    g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
    const char *name;
    while (folder && (name = g_dir_read_name(folder))) {
      g_autofree char *below = g_build_filename(path, name, NULL);
      remove_tree(below);
    }
  }
  g_assert_cmpint(remove(path), ==, 0);
}

#endif
