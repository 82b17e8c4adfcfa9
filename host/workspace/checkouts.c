/* SPDX-License-Identifier: Apache-2.0 */
/* checkouts.c: each folder is asked once in a copy, since many files of it may have changed. */
#include "workspace/checkouts.h"

#include <fcntl.h>
#include <unistd.h>

#include "workspace/beneath.h"

void checkouts_clear(Checkouts *checkouts) {
  g_clear_pointer(&checkouts->folders, g_hash_table_unref);
}

static gboolean holds_git(int root, const char *folder) {
  g_autofree char *path = g_strconcat(folder, "/.git", NULL);
  int fd = beneath_open(root, path, O_PATH | O_NOFOLLOW);
  if (fd >= 0) {
    close(fd);
  }
  return fd >= 0;
}

static gboolean is_checkout(Checkouts *checkouts, int root, const char *folder) {
  gpointer known = NULL;
  if (!checkouts->folders) {
    checkouts->folders = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  }
  if (!g_hash_table_lookup_extended(checkouts->folders, folder, NULL, &known)) {
    known = GINT_TO_POINTER(holds_git(root, folder));
    g_hash_table_insert(checkouts->folders, g_strdup(folder), known);
  }
  return GPOINTER_TO_INT(known);
}

char *checkouts_find(Checkouts *checkouts, int root, const char *path) {
  g_autofree char *folder = g_strdup(path);
  for (char *at = folder; *at; at++) {
    if (*at == '/') {
      *at = '\0';
      if (is_checkout(checkouts, root, folder)) {
        return g_steal_pointer(&folder);
      }
      *at = '/';
    }
  }
  return NULL;
}
