/* SPDX-License-Identifier: Apache-2.0 */
/* trusted-place.c: the folders and the names that are an agent's. */
#include "governance/trusted-place.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

gboolean place_is_below(const char *path, const char *folder) {
  gsize length = strlen(folder);
  if (length == 1) {
    return TRUE; /* the root of everything */
  }
  return strncmp(path, folder, length) == 0 && path[length] == '/';
}

char *place_resolve(const char *folder) {
  char *real = realpath(folder, NULL);
  char *copy = real ? g_strdup(real) : g_canonicalize_filename(folder, NULL);
  free(real);
  return copy;
}

static gboolean below_agent_dir(const char *path, const char *const *agent_dirs) {
  for (gsize i = 0; agent_dirs && agent_dirs[i]; i++) {
    g_autofree char *lexical = g_canonicalize_filename(agent_dirs[i], NULL);
    g_autofree char *real = place_resolve(agent_dirs[i]);
    if (place_is_below(path, lexical) || place_is_below(path, real)) {
      return TRUE;
    }
  }
  return FALSE;
}

/* Whether a folder between root and path has a name that agents' folders have. */
static gboolean below_such_name(const char *path, const char *root) {
  static const char *const NAMES[] = {"workspace", "workspaces", "artifact", "artifacts", "output",
                                      "outputs",   "tmp",        "temp",     NULL};
  if (!place_is_below(path, root)) {
    return FALSE;
  }
  g_auto(GStrv) parts = g_strsplit(path + (strlen(root) == 1 ? 0 : strlen(root)), "/", -1);
  for (gsize i = 0; parts[i] && parts[i + 1]; i++) {
    if (g_strv_contains(NAMES, parts[i])) {
      return TRUE;
    }
  }
  return FALSE;
}

char *place_of(int fd) {
  char link[64];
  char place[PATH_MAX];
  g_snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, place, sizeof place);
  gboolean whole = length > 0 && (gsize)length < sizeof place && place[0] == '/';
  return whole ? g_strndup(place, (gsize)length) : NULL;
}

gboolean place_is_agents(const char *real, const char *lexical, const char *project_root,
                         const char *const *agent_dirs) {
  g_autofree char *lexical_root = g_canonicalize_filename(project_root, NULL);
  g_autofree char *root = place_resolve(project_root);
  return below_agent_dir(real, agent_dirs) || below_agent_dir(lexical, agent_dirs) ||
         below_such_name(real, root) || below_such_name(lexical, root) ||
         below_such_name(lexical, lexical_root);
}
