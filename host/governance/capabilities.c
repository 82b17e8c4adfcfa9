/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities.c: the table of behaviour 4.9. */
#include "governance/capabilities.h"

#include <string.h>

#include "base/glob.h"
#include "config/check.h"

const char *const CAPABILITY_SURFACES[] = {
    "artifact", "background", "code",   "filesystem",    "host",  "mcp",      "memory",
    "network",  "sandbox",    "secret", "secret_broker", "serve", "subagent", "telemetry",
    "tool",     "workspace",  NULL};

typedef struct {
  const char *name;
  TargetParts parts;
} Known;

static const Known KNOWN[] = {
    {"sandbox.execute", TARGET_TOOL},
    {"process.exec", TARGET_RESOURCE},
    {"sandbox.image.use", TARGET_RESOURCE},
    {"sandbox.network.configure", TARGET_HOST},
    {"sandbox.environment.set", TARGET_NONE},
    {"sandbox.resources.set", TARGET_NONE},
    {"sandbox.filesystem.mount", TARGET_PATH | TARGET_RESOURCE},
    {"sandbox.filesystem.cwd", TARGET_PATH},
    {"sandbox.workspace.sync", TARGET_RESOURCE},
    {"workspace.files.read", TARGET_PATH},
    {"workspace.files.write", TARGET_PATH},
    {"workspace.files.move", TARGET_PATH},
    {"workspace.files.delete", TARGET_PATH},
    {"workspace.files.clear", TARGET_PATH},
    {"workspace.files.call", TARGET_RESOURCE},
    {"workspace.artifacts.read", TARGET_RESOURCE},
    {"workspace.artifacts.call", TARGET_RESOURCE},
    {"tool.local.call", TARGET_TOOL | TARGET_SERVER},
    {"tool.mcp.call", TARGET_TOOL | TARGET_SERVER},
    {"mcp.server.start", TARGET_SERVER},
    {"mcp.server.connect", TARGET_SERVER},
    {"network.http.get", TARGET_HOST},
    {"network.http.head", TARGET_HOST},
    {"network.http.post", TARGET_HOST},
    {"network.http.put", TARGET_HOST},
    {"network.http.patch", TARGET_HOST},
    {"network.http.delete", TARGET_HOST},
    {"package.install", TARGET_RESOURCE | TARGET_HOST},
    {"filesystem.read", TARGET_PATH},
    {"filesystem.write", TARGET_PATH},
    {"filesystem.delete", TARGET_PATH},
    {"secret.use", TARGET_RESOURCE},
    {"secret.read", TARGET_RESOURCE},
    {"subagent.spawn", TARGET_RESOURCE},
    {"background.task.create", TARGET_RESOURCE},
    {"background.task.update", TARGET_RESOURCE},
    {"background.run.start", TARGET_RESOURCE},
    {"skill.script.run", TARGET_ANY},
    {"skill.files.read", TARGET_ANY},
    {"code.run", TARGET_ANY},
};

/* Every name behind these counts. */
static const char *const FAMILIES[] = {"background.", "code.", "memory.", "skill.", "telemetry."};

static gboolean is_of_family(const char *glob) {
  gsize literal = strcspn(glob, "*?[");
  for (gsize i = 0; i < G_N_ELEMENTS(FAMILIES); i++) {
    gsize length = strlen(FAMILIES[i]);
    gboolean reaches = literal < length && glob[literal]; /* a wildcard stands for the rest */
    if (strncmp(glob, FAMILIES[i], reaches ? literal : length) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

gboolean capability_is_known(const char *glob, TargetParts *ret_parts) {
  TargetParts parts = TARGET_NONE;
  gboolean known = is_of_family(glob);
  if (known) {
    parts = TARGET_ANY;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(KNOWN); i++) {
    if (glob_match(glob, KNOWN[i].name)) {
      known = TRUE;
      parts |= KNOWN[i].parts;
    }
  }
  if (ret_parts) {
    *ret_parts = parts;
  }
  return known;
}

const char *capability_near(const char *name) {
  const char *names[G_N_ELEMENTS(KNOWN) + 1] = {NULL};
  for (gsize i = 0; i < G_N_ELEMENTS(KNOWN); i++) {
    names[i] = KNOWN[i].name;
  }
  return check_near(name, names);
}
