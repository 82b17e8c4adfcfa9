/* SPDX-License-Identifier: Apache-2.0 */
/* policy-file.c: a policy from a file that the agent cannot have written. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "governance/policy-private.h"

static Policy *refuse(GError **error, const char *text, const char *what) {
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "%s: %s", text, what);
  return NULL;
}

static gboolean is_below(const char *path, const char *folder) {
  gsize length = strlen(folder);
  while (length > 1 && folder[length - 1] == '/') {
    length--;
  }
  return strncmp(path, folder, length) == 0 && (length == 1 || path[length] == '/');
}

/* The folder with every link in it resolved; itself where it does not exist. Owned. */
static char *resolve(const char *folder) {
  char *real = realpath(folder, NULL);
  char *copy = g_strdup(real ? real : folder);
  free(real);
  return copy;
}

/* A folder of the agent's, or one with a name that such folders have, anywhere between the root and the file. */
static gboolean agent_may_write(const char *path, const char *root, const char *const *agent_dirs) {
  static const char *const NAMES[] = {"workspace", "workspaces", "artifact", "artifacts", "output",
                                      "outputs",   "tmp",        "temp",     NULL};
  for (gsize i = 0; agent_dirs && agent_dirs[i]; i++) {
    g_autofree char *folder = resolve(agent_dirs[i]);
    if (is_below(path, folder)) {
      return TRUE;
    }
  }
  const char *rest = path + (strcmp(root, "/") == 0 ? 0 : strlen(root));
  g_auto(GStrv) parts = g_strsplit(rest, "/", -1);
  for (gsize i = 0; parts[i] && parts[i + 1]; i++) {
    if (g_strv_contains(NAMES, parts[i])) {
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean check_name(const char *path, GError **error) {
  const char *slash = strrchr(path, '/');
  const char *dot = strrchr(slash ? slash : path, '.');
  if (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)) {
    g_set_error_literal(
        error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
        "YAML policies are not supported. Use a JSON policy file or a policy in code.");
    return FALSE;
  }
  if (g_strcmp0(dot, ".json") != 0) {
    refuse(error, "Unsupported policy file extension", dot ? dot : "none");
    return FALSE;
  }
  return TRUE;
}

Policy *policy_load(const char *path, const char *project_root, const char *const *agent_dirs,
                    GError **error) {
  g_autoptr(GError) failure = NULL;
  if (!check_name(path, error)) {
    return NULL;
  }
  char *found = realpath(path, NULL);
  if (!found) {
    return refuse(error, "Policy file not found", path);
  }
  g_autofree char *real = g_strdup(found);
  free(found);
  g_autofree char *root = resolve(project_root);
  if (!is_below(real, root)) {
    return refuse(error, "Policy file escapes trusted project root", path);
  }
  if (agent_may_write(real, root, agent_dirs)) {
    return refuse(error, "Policy file is inside an agent-writable directory", path);
  }
  g_autofree char *content = NULL;
  gsize length = 0;
  if (!g_file_get_contents(real, &content, &length, NULL)) {
    return refuse(error, "Could not read policy file", path);
  }
  g_autoptr(JsonObject) source = json_parse(path, content, length, &failure);
  if (failure) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "Invalid JSON policy file: %s (%s)",
                path, failure->message);
    return NULL;
  }
  Policy *policy = policy_new(source, &failure);
  if (!policy) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "Invalid policy file: %s (%s)", path,
                failure->message);
  }
  return policy;
}
