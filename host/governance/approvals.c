/* SPDX-License-Identifier: Apache-2.0 */
/* approvals.c: one ask as it is stored and shown, and the digest that binds an answer to exactly it. */
#include "governance/approvals.h"

#include <string.h>

#include "base/ask-digest.h"
#include "base/clock.h"
#include "base/error.h"
#include "governance/command-tell.h"

/* All five members, null where unused. */
static JsonObject *target_of(const PolicyRequest *request) {
  JsonObject *target = json_object_new_object();
  json_add_text(target, "path", request->target_path);
  json_add_text(target, "host", request->target_host);
  json_add_text(target, "resource", request->target_resource);
  json_add_text(target, "tool_name", request->target_tool_name);
  json_add_text(target, "mcp_server", request->target_mcp_server);
  return target;
}

JsonObject *approval_asked(const PolicyRequest *request) {
  JsonObject *asked = json_object_new_object();
  json_add_text(asked, "capability", request->capability);
  json_add_text(asked, "actor", request->actor);
  json_add_take(asked, "target", target_of(request));
  json_add_text(asked, "provider", request->provider);
  json_add_text(asked, "method", request->method);
  json_add_text(asked, "host", request->host);
  json_add_text(asked, "mcp_server", request->mcp_server);
  /* What a request does with its target: the network allowed to a host or denied, a mount that can be written. */
  json_add_text(asked, "target_role", json_get_text(request->metadata, "mode"));
  json_add_text(asked, "tool_name", "execute");
  json_add_text(asked, "tool_provider", "sandhost");
  json_add_text(asked, "tool_server", NULL);
  return asked;
}

static const char *argv_digest_of(const PolicyRequest *request) {
  return json_get_text(json_get(request->metadata, "command"), "digest");
}

char *approval_request_digest(const PolicyRequest *request, JsonObject *arguments) {
  g_autoptr(JsonObject) asked = approval_asked(request);
  return ask_digest(asked, arguments, argv_digest_of(request));
}

/* What whoever approves reads of the command; NULL where none is asked about. */
static JsonObject *command_of(const PolicyRequest *request) {
  JsonObject *facts = json_get(request->metadata, "command");
  if (!facts || !request->command) {
    return NULL;
  }
  JsonObject *command = json_object_new_object();
  json_object_object_foreach(facts, key, value) {
    json_add_take(command, key, json_object_get(value));
  }
  g_autofree char *summary = command_summary(request->command);
  json_add_text(command, "summary", summary);
  json_add_take(command, "opaque_reasons", command_opaque_reasons(request->command));
  return command;
}

static void add_undecided(JsonObject *approval) {
  static const char *const LATER[] = {
      "approver",         "note",
      "decided_at",       "decision",
      "edited_arguments", "original_request_digest",
      "used_at",          "used_for_approval_id",
  };
  for (gsize i = 0; i < G_N_ELEMENTS(LATER); i++) {
    json_add_take(approval, LATER[i], NULL);
  }
}

static void add_time(JsonObject *object, const char *key, gint64 wall) {
  g_autofree char *text = clock_format(wall);
  json_add_text(object, key, text);
}

JsonObject *approval_new(const PolicyRequest *request, const PolicyDecision *decision,
                         const ApprovalCall *call) {
  g_autofree char *digest = approval_request_digest(request, call->arguments);
  g_autofree char *arguments_digest = ask_digest_json(call->arguments);
  gint64 seconds = decision->approval_expires_seconds ? decision->approval_expires_seconds
                                                      : APPROVAL_DEFAULT_SECONDS;
  gint64 left = (G_MAXINT64 - call->now) / CLOCK_SECOND;
  gint64 expires = call->now + MIN(seconds, left) * CLOCK_SECOND;

  JsonObject *approval = json_object_new_object();
  json_add_text(approval, "approval_id", decision->approval_id);
  json_add_text(approval, "request_digest", digest);
  json_add_text(approval, "status", "pending");
  json_add_text(approval, "capability", request->capability);
  json_add_take(approval, "target", target_of(request));
  json_add_text(approval, "risk_level", risk_name(request->risk));
  json_add_text(approval, "reason", decision->reason);
  json_add_text(approval, "tool_name", "execute");
  json_add_text(approval, "tool_provider", "sandhost");
  json_add_text(approval, "tool_server", NULL);
  json_add_text(approval, "tool_call_id", call->tool_call_id);
  json_add_take(approval, "arguments", json_object_get(call->arguments));
  json_add_text(approval, "arguments_digest", arguments_digest);
  add_time(approval, "created_at", call->now);
  add_time(approval, "expires_at", expires);
  add_undecided(approval);
  json_add_text(approval, "request_id", request->request_id);
  json_add_text(approval, "policy_hash", decision->policy_hash);
  json_add_text(approval, "manifest_digest", call->manifest_digest);
  json_add_take(approval, "command", command_of(request));
  json_add_take(approval, "asked", approval_asked(request));
  json_add_text(approval, "command_argv_digest", argv_digest_of(request));
  json_add_int(approval, "expires", expires);
  json_add_int(approval, "created", call->now);
  return approval;
}

void approval_edit(JsonObject *approval, JsonObject *arguments, const char *argv_digest) {
  gboolean commanded = json_get_text(approval, "command_argv_digest") != NULL;
  g_autofree char *digest =
      ask_digest(json_get(approval, "asked"), arguments, commanded ? argv_digest : NULL);
  g_autofree char *original = g_strdup(json_get_text(approval, "request_digest"));
  json_add_text(approval, "original_request_digest", original);
  json_add_text(approval, "request_digest", digest);
  json_add_take(approval, "edited_arguments", json_object_get(arguments));
}

static gboolean refuse(GError **error, const char *text) {
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, text);
  return FALSE;
}

gboolean approval_check_arguments(JsonObject *arguments, gint64 most, GError **error) {
  if (!json_object_is_type(arguments, json_type_object)) {
    return refuse(error, "arguments must be a JSON object with command and timeout");
  }
  json_object_object_foreach(arguments, key, value) {
    (void)value;
    if (strcmp(key, "command") != 0 && strcmp(key, "timeout") != 0) {
      g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                  "arguments has the unknown key '%s'; execute takes command and timeout", key);
      return FALSE;
    }
  }
  JsonObject *timeout = json_get(arguments, "timeout");
  const char *command = json_get_text(arguments, "command");
  if (!command || command[strspn(command, " \t\r\n")] == '\0') {
    return refuse(error, "arguments.command must be a non-empty string");
  }
  gint64 seconds = json_get_int(arguments, "timeout", 0);
  if (json_object_object_get_ex(arguments, "timeout", NULL) &&
      (!json_object_is_type(timeout, json_type_int) || seconds < 1 || seconds > most)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "arguments.timeout must be between 1 and %" G_GINT64_FORMAT, most);
    return FALSE;
  }
  return TRUE;
}

JsonObject *approval_shown(JsonObject *approval) {
  static const char *const KEYS[] = {"approval_id", "tool_call_id", "tool_name",
                                     "capability",  "target",       "arguments",
                                     "risk_level",  "reason",       "expires_at"};
  JsonObject *shown = json_object_new_object();
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    json_add_take(shown, KEYS[i], json_object_get(json_get(approval, KEYS[i])));
  }
  json_add_text(shown, "delegated_run_id", NULL);
  json_add_text(shown, "delegated_name", NULL);
  if (json_get(approval, "command")) {
    json_add_take(shown, "command", json_object_get(json_get(approval, "command")));
  }
  return shown;
}

JsonObject *approval_told(JsonObject *approval) {
  /* The last three are APPROVAL_SEALED, APPROVAL_SEALED_EDIT and APPROVAL_UNRECORDED of record/approvals.h. */
  static const char *const OURS[] = {"asked",
                                     "command_argv_digest",
                                     "expires",
                                     "created",
                                     "sealed_arguments",
                                     "sealed_edited_arguments",
                                     "unrecorded",
                                     NULL};
  JsonObject *object = json_object_new_object();
  json_object_object_foreach(approval, key, value) {
    if (!g_strv_contains(OURS, key)) {
      json_add_take(object, key, json_object_get(value));
    }
  }
  return object;
}

JsonObject *approvals_told(JsonObject *approvals) {
  JsonObject *array = json_object_new_array();
  for (gsize i = 0; i < json_object_array_length(approvals); i++) {
    json_object_array_add(array, approval_told(json_object_array_get_idx(approvals, i)));
  }
  return array;
}
