/* SPDX-License-Identifier: Apache-2.0 */
/* request-told.c: a request in a person's words. What is not said is as the runtime itself would ask it, so
 * that a policy is tried with what it will meet. */
#include <string.h>

#include "base/repr.h"
#include "config/check.h"
#include "governance/capabilities.h"
#include "governance/requests.h"

static const char *const KEYS[] = {
    "capability", "command",  "data_classes", "host",    "mcp_server", "method", "path",
    "provider",   "resource", "risk",         "surface", "tool_name",  NULL};

/* What a capability is raised about: its provider and surface are the sandbox's, or its surface the
 * workspace and its target a path; nothing that this runtime raises. */
typedef enum { ABOUT_OTHER, ABOUT_SANDBOX, ABOUT_FILE } About;

/* What is usual for a capability (behaviour 4.9); every other one is of low risk. */
typedef struct {
  const char *capability;
  Risk risk;
  About about;
} Usual;

static const Usual USUAL[] = {
    {"sandbox.image.use", RISK_MEDIUM, ABOUT_SANDBOX},
    {"sandbox.network.configure", RISK_MEDIUM, ABOUT_SANDBOX},
    {"sandbox.environment.set", RISK_MEDIUM, ABOUT_SANDBOX},
    {"sandbox.resources.set", RISK_MEDIUM, ABOUT_SANDBOX},
    {"sandbox.filesystem.mount", RISK_MEDIUM, ABOUT_SANDBOX},
    {"sandbox.filesystem.cwd", RISK_MEDIUM, ABOUT_SANDBOX},
    {"secret.use", RISK_MEDIUM, ABOUT_SANDBOX},
    {"workspace.files.read", RISK_LOW, ABOUT_FILE},
    {"workspace.files.write", RISK_MEDIUM, ABOUT_FILE},
    {"workspace.files.move", RISK_MEDIUM, ABOUT_FILE},
    {"workspace.files.delete", RISK_HIGH, ABOUT_FILE},
    {"workspace.files.clear", RISK_CRITICAL, ABOUT_FILE},
    {"secret.read", RISK_CRITICAL, ABOUT_OTHER},
    {"mcp.server.start", RISK_MEDIUM, ABOUT_OTHER},
    {"network.http.post", RISK_MEDIUM, ABOUT_OTHER},
    {"network.http.put", RISK_MEDIUM, ABOUT_OTHER},
    {"network.http.patch", RISK_MEDIUM, ABOUT_OTHER},
    {"network.http.delete", RISK_MEDIUM, ABOUT_OTHER},
    {"package.install", RISK_HIGH, ABOUT_OTHER},
    {"filesystem.write", RISK_MEDIUM, ABOUT_OTHER},
    {"filesystem.delete", RISK_HIGH, ABOUT_OTHER},
    {"subagent.spawn", RISK_MEDIUM, ABOUT_OTHER},
    {"background.task.create", RISK_MEDIUM, ABOUT_OTHER},
    {"background.task.update", RISK_MEDIUM, ABOUT_OTHER},
    {"background.run.start", RISK_MEDIUM, ABOUT_OTHER},
    {"skill.script.run", RISK_HIGH, ABOUT_OTHER},
};

static void make_usual(PolicyRequest *request, const Usual *usual) {
  static const char *const CREDENTIAL[] = {"credential", NULL};
  request->risk = usual->risk;
  if (usual->about == ABOUT_SANDBOX) {
    request->provider = g_strdup("sandbox");
    request->execution_surface = g_strdup("sandbox");
  } else if (usual->about == ABOUT_FILE) {
    request->execution_surface = g_strdup("workspace");
    request->has_target = TRUE;
  }
  if (strcmp(usual->capability, "secret.read") == 0) {
    request->data_classes = g_strdupv((char **)(gsize)CREDENTIAL);
  }
}

/* A capability alone, as it is raised. Owned. */
static PolicyRequest *usual(const char *capability) {
  if (strcmp(capability, "sandbox.execute") == 0) {
    return request_execute();
  }
  if (strcmp(capability, "sandbox.workspace.sync") == 0) {
    return request_sync();
  }
  PolicyRequest *request = policy_request_new(capability, RISK_LOW);
  for (gsize i = 0; i < G_N_ELEMENTS(USUAL); i++) {
    if (strcmp(capability, USUAL[i].capability) == 0) {
      make_usual(request, &USUAL[i]);
    }
  }
  return request;
}

/* process.exec, with or without what it runs. Owned. */
static PolicyRequest *usual_command(const char *script, gboolean isolated) {
  g_autofree char *line = request_script(script ? script : "");
  const char *const argv[] = {"sh", "-c", line, NULL};
  PolicyRequest *request = request_command(argv, isolated);
  if (!script) {
    g_clear_pointer(&request->command, command_line_free);
    g_clear_pointer(&request->metadata, json_object_put);
  }
  return request;
}

static gboolean read_risk(PolicyRequest *request, JsonObject *object, const char *where,
                          GError **error) {
  static const char *const NAMES[] = {"low", "medium", "high", "critical", NULL};
  g_autofree char *name = NULL;
  if (!check_choice(object, where, "risk", NAMES, &name, error)) {
    return FALSE;
  }
  for (Risk risk = RISK_LOW; name && risk <= RISK_CRITICAL; risk++) {
    request->risk = strcmp(name, risk_name(risk)) == 0 ? risk : request->risk;
  }
  return TRUE;
}

static gboolean read_target(PolicyRequest *request, JsonObject *object, const char *where,
                            GError **error) {
  struct {
    const char *key;
    char **text;
  } const PARTS[] = {
      {"path", &request->target_path},
      {"host", &request->target_host},
      {"resource", &request->target_resource},
      {"tool_name", &request->target_tool_name},
      {"mcp_server", &request->target_mcp_server},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(PARTS); i++) {
    if (!check_text(object, where, PARTS[i].key, PARTS[i].text, error)) {
      return FALSE;
    }
    request->has_target = request->has_target || *PARTS[i].text != NULL;
  }
  return TRUE;
}

/* A misspelt name would prove nothing, whatever is made of it. */
static gboolean check_capability(const char *capability, const char *where, GError **error) {
  if (capability[strcspn(capability, "*?[")] || capability_is_known(capability, NULL)) {
    return TRUE;
  }
  g_autofree char *shown = repr_text(capability);
  const char *near = capability_near(capability);
  return check_refuse(error, "%s.capability: %s is no known capability%s%s%s", where, shown,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static gboolean check_surface(const char *surface, const char *where, GError **error) {
  if (!surface || g_strv_contains(CAPABILITY_SURFACES, surface)) {
    return TRUE;
  }
  g_autofree char *shown = repr_text(surface);
  g_autofree char *known = check_join(CAPABILITY_SURFACES, ", ");
  return check_refuse(error, "%s.surface: %s is no execution surface. Surfaces: %s", where, shown,
                      known);
}

static gboolean read_rest(PolicyRequest *request, JsonObject *object, const char *where,
                          GError **error) {
  gboolean whole = g_strcmp0(request->target_host, "*") == 0 &&
                   strcmp(request->capability, "sandbox.network.configure") == 0;
  request->risk = whole ? RISK_HIGH : request->risk;
  request->mcp_server = g_strdup(request->target_mcp_server);
  return check_text(object, where, "provider", &request->provider, error) &&
         check_text(object, where, "surface", &request->execution_surface, error) &&
         check_surface(request->execution_surface, where, error) &&
         check_text(object, where, "method", &request->method, error) &&
         check_strv(object, where, "data_classes", &request->data_classes, error) &&
         read_risk(request, object, where, error);
}

PolicyRequest *request_told(JsonObject *object, const char *where, GError **error) {
  g_autofree char *capability = NULL;
  g_autofree char *script = NULL;
  if (!check_keys(object, where, KEYS, error) ||
      !check_full_text(object, where, "capability", &capability, error) ||
      !check_full_text(object, where, "command", &script, error)) {
    return NULL;
  }
  if (!capability && !script) {
    check_refuse(error, "%s needs a capability or a command", where);
    return NULL;
  }
  gboolean runs = !capability || strcmp(capability, "process.exec") == 0;
  if (script && !runs) {
    check_refuse(error, "%s.command goes with process.exec, not with %s", where, capability);
    return NULL;
  }
  gboolean isolated = g_strcmp0(json_get_text(object, "surface"), "host") != 0;
  g_autoptr(PolicyRequest) request = runs ? usual_command(script, isolated) : usual(capability);
  return read_target(request, object, where, error) && read_rest(request, object, where, error) &&
                 (!capability || check_capability(capability, where, error))
             ? g_steal_pointer(&request)
             : NULL;
}
