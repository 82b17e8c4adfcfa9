/* SPDX-License-Identifier: Apache-2.0 */
/* request-recorded.c: a request out of the record. A record is a file that somebody may have changed, and a
 * request that is read wrongly would be decided wrongly: what is not as it is written here is refused. */
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "base/repr.h"
#include "governance/policy.h"

static const char *const KEYS[] = {
    "request_id", "capability",   "actor",  "target", "provider",   "execution_surface",
    "risk_level", "data_classes", "method", "host",   "mcp_server", "metadata",
    NULL};
static const char *const TARGET_KEYS[] = {"path",      "host",       "resource",
                                          "tool_name", "mcp_server", NULL};

static gboolean refuse(GError **error, const char *key, const char *what) {
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_FAILED,
              "the recorded request is damaged: %s %s", key, what);
  return FALSE;
}

static gboolean check_keys(JsonObject *object, const char *const *known, GError **error) {
  json_object_object_foreach(object, key, value) {
    (void)value;
    if (!g_strv_contains(known, key)) {
      g_autofree char *shown = repr_text(key);
      return refuse(error, shown, "is no key of it");
    }
  }
  return TRUE;
}

/* A NUL would make two texts out of one. */
static gboolean is_text(JsonObject *value) {
  return json_object_is_type(value, json_type_string) &&
         strlen(json_object_get_string(value)) == (gsize)json_object_get_string_len(value);
}

/* A text or null. */
static gboolean read_text(JsonObject *object, const char *key, char **ret_text, GError **error) {
  JsonObject *value = json_get(object, key);
  if (value && !is_text(value)) {
    return refuse(error, key, "is no text");
  }
  *ret_text = value ? g_strdup(json_object_get_string(value)) : NULL;
  return TRUE;
}

static gboolean read_names(PolicyRequest *request, JsonObject *object, GError **error) {
  g_autofree char *actor = NULL;
  g_free(request->request_id);
  request->request_id = NULL;
  if (!read_text(object, "request_id", &request->request_id, error) ||
      !read_text(object, "capability", &request->capability, error) ||
      !read_text(object, "actor", &actor, error)) {
    return FALSE;
  }
  if (!request->request_id || !id_is(request->request_id, "authreq")) {
    return refuse(error, "request_id", "is no id of a request");
  }
  if (!request->capability || !*request->capability) {
    return refuse(error, "capability", "is empty");
  }
  gboolean runtime = g_strcmp0(actor, "runtime") == 0;
  request->actor = runtime ? "runtime" : "agent";
  return runtime || g_strcmp0(actor, "agent") == 0 || refuse(error, "actor", "is nobody's name");
}

static gboolean read_target(PolicyRequest *request, JsonObject *object, GError **error) {
  JsonObject *target = json_get(object, "target");
  if (!target) {
    return TRUE;
  }
  if (!json_object_is_type(target, json_type_object)) {
    return refuse(error, "target", "is no object");
  }
  request->has_target = TRUE;
  return check_keys(target, TARGET_KEYS, error) &&
         read_text(target, "path", &request->target_path, error) &&
         read_text(target, "host", &request->target_host, error) &&
         read_text(target, "resource", &request->target_resource, error) &&
         read_text(target, "tool_name", &request->target_tool_name, error) &&
         read_text(target, "mcp_server", &request->target_mcp_server, error);
}

static gboolean read_risk(PolicyRequest *request, JsonObject *object, GError **error) {
  g_autofree char *name = NULL;
  if (!read_text(object, "risk_level", &name, error)) {
    return FALSE;
  }
  for (Risk risk = RISK_LOW; risk <= RISK_CRITICAL; risk++) {
    if (g_strcmp0(name, risk_name(risk)) == 0) {
      request->risk = risk;
      return TRUE;
    }
  }
  return refuse(error, "risk_level", "is none");
}

static gboolean read_classes(PolicyRequest *request, JsonObject *object, GError **error) {
  JsonObject *classes = json_get(object, "data_classes");
  if (!classes) {
    return TRUE;
  }
  gboolean ok = json_object_is_type(classes, json_type_array);
  for (gsize i = 0; ok && i < json_object_array_length(classes); i++) {
    ok = is_text(json_object_array_get_idx(classes, i));
  }
  if (!ok) {
    return refuse(error, "data_classes", "is no list of texts");
  }
  request->data_classes = json_object_array_length(classes) > 0 ? json_get_strv(classes) : NULL;
  return TRUE;
}

static gboolean read_metadata(PolicyRequest *request, JsonObject *object, GError **error) {
  JsonObject *metadata = json_get(object, "metadata");
  if (metadata && !json_object_is_type(metadata, json_type_object)) {
    return refuse(error, "metadata", "is no object");
  }
  request->metadata = metadata ? json_object_get(metadata) : NULL;
  return TRUE;
}

PolicyRequest *policy_request_from_json(JsonObject *object, GError **error) {
  if (!json_object_is_type(object, json_type_object)) {
    refuse(error, "it", "is no object");
    return NULL;
  }
  g_autoptr(PolicyRequest) request = policy_request_new(NULL, RISK_LOW);
  if (!check_keys(object, KEYS, error) || !read_names(request, object, error) ||
      !read_target(request, object, error) ||
      !read_text(object, "provider", &request->provider, error) ||
      !read_text(object, "execution_surface", &request->execution_surface, error) ||
      !read_risk(request, object, error) || !read_classes(request, object, error) ||
      !read_text(object, "method", &request->method, error) ||
      !read_text(object, "host", &request->host, error) ||
      !read_text(object, "mcp_server", &request->mcp_server, error) ||
      !read_metadata(request, object, error)) {
    return NULL;
  }
  return g_steal_pointer(&request);
}
