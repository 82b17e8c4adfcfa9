/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup-place.c: where this process may make control groups, found by looking only. */
#include "cgroup-private.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* The folder of all groups of this program, below the place. */
#define PARENT "sandhost"

static const char *const controller_names[CGROUP_CONTROLLERS] = {
    [CGROUP_MEMORY] = "memory", [CGROUP_CPU] = "cpu", [CGROUP_PIDS] = "pids"};

static gboolean may_write(const char *folder, const char *file) {
  g_autofree char *path = g_build_filename(folder, file, NULL);
  return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static gboolean has_file(const char *folder, const char *file) {
  g_autofree char *path = g_build_filename(folder, file, NULL);
  return access(path, F_OK) == 0;
}

/* Whether list, words between spaces or commas, has the word. */
static gboolean has_word(const char *list, const char *word, const char *separators) {
  const size_t length = strlen(word);
  while (*list) {
    size_t span = strcspn(list, separators);
    if (span == length && strncmp(list, word, length) == 0) {
      return TRUE;
    }
    list += span;
    list += strspn(list, separators);
  }
  return FALSE;
}

/* The path of this process in a hierarchy: that of the controller, or of version 2 where it is NULL.
 * Returns owned, or NULL. */
static char *own_path(const char *self_text, const char *controller) {
  g_auto(GStrv) lines = g_strsplit(self_text, "\n", -1);
  for (size_t i = 0; lines[i]; i++) {
    g_auto(GStrv) fields = g_strsplit(lines[i], ":", 3);
    if (g_strv_length(fields) != 3 || fields[2][0] != '/' || strstr(fields[2], "/..")) {
      continue; /* "/.." is what a process outside of the namespace sees */
    }
    if (controller ? has_word(fields[1], controller, ",") : strcmp(fields[0], "0") == 0) {
      return g_strdup(fields[2]);
    }
  }
  return NULL;
}

/* ---- Version 1 -------------------------------------------------------------------------------- */

static char *find_version_1(const char *root, const char *self_text, const char *controller) {
  g_autofree char *own = own_path(self_text, controller);
  if (!own) {
    return NULL;
  }
  g_autofree char *mount = g_build_filename(root, controller, NULL);
  g_autofree char *folder = g_build_filename(mount, own, NULL);
  /* In a container the path may be that of the machine, where only a part of it is mounted. */
  const char *place = g_file_test(folder, G_FILE_TEST_IS_DIR) ? folder : mount;
  if (!may_write(place, ".") || !has_file(place, "cgroup.procs")) {
    return NULL;
  }
  return g_build_filename(place, PARENT, NULL);
}

/* ---- Version 2 -------------------------------------------------------------------------------- */

static char *read_words(const char *folder, const char *file) {
  g_autofree char *path = g_build_filename(folder, file, NULL);
  char *text = NULL;
  return g_file_get_contents(path, &text, NULL, NULL) ? text : g_strdup("");
}

/* Which controllers groups below folder could have; bits by number. */
static unsigned int offered(const char *folder, gboolean *ret_enable) {
  /* Only the topmost group of all, which has no type, may have processes and pass controllers on. */
  gboolean top = !has_file(folder, "cgroup.type") && may_write(folder, "cgroup.subtree_control");
  g_autofree char *words =
      read_words(folder, top ? "cgroup.controllers" : "cgroup.subtree_control");
  unsigned int found = 0;
  for (unsigned int i = 0; i < CGROUP_CONTROLLERS; i++) {
    found |= has_word(words, controller_names[i], " \n") ? 1u << i : 0u;
  }
  *ret_enable = top;
  return found;
}

/* Goes up from this process's own group and takes the first with every controller, else the one with the
 * most. To move a process there, the common parent's cgroup.procs has to be writable as well; it is the
 * candidate itself. */
static void find_version_2(CgroupPlace *place, const char *root, const char *self_text) {
  g_autofree char *own = own_path(self_text, NULL);
  const unsigned int all = (1u << CGROUP_CONTROLLERS) - 1;
  g_autofree char *best = NULL;
  unsigned int best_found = 0;
  gboolean best_enable = FALSE;
  g_autofree char *path = g_strdup(own ? own : "/");
  do {
    char *slash = strrchr(path, '/');
    *slash = '\0';
    g_autofree char *folder = g_build_filename(root, path[0] ? path + 1 : ".", NULL);
    gboolean enable = FALSE;
    if (!may_write(folder, ".") || !may_write(folder, "cgroup.procs")) {
      continue;
    }
    unsigned int found = offered(folder, &enable);
    if (__builtin_popcount(found) > __builtin_popcount(best_found)) {
      g_free(best);
      best = g_steal_pointer(&folder);
      best_found = found;
      best_enable = enable;
    }
  } while (path[0] && best_found != all);
  for (unsigned int i = 0; best && i < CGROUP_CONTROLLERS; i++) {
    if (best_found & 1u << i) {
      place->parents[i] = g_build_filename(best, PARENT, NULL);
    }
  }
  place->enable = best_enable;
}

/* ---- Both ------------------------------------------------------------------------------------- */

CgroupPlace *cgroup_place_new(const char *root, const char *self) {
  CgroupPlace *place = g_new0(CgroupPlace, 1);
  g_autofree char *self_text = NULL;
  if (!g_file_get_contents(self, &self_text, NULL, NULL)) {
    return place;
  }
  if (has_file(root, "cgroup.controllers")) {
    place->version = 2;
    find_version_2(place, root, self_text);
    return place;
  }
  place->version = 1;
  for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
    place->parents[i] = find_version_1(root, self_text, controller_names[i]);
  }
  return place;
}

void cgroup_place_free(CgroupPlace *place) {
  if (!place) {
    return;
  }
  for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
    g_free(place->parents[i]);
  }
  g_free(place);
}

gboolean cgroup_place_has(const CgroupPlace *place, enum cgroup_controller controller) {
  return place->parents[controller] != NULL;
}
