/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c: what begins a run again in another process. The configuration is stored by its path and digest, never by its
 * content, which may hold keys: what it says about the policy and the sandbox is bound to each approval anyway.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/shown.h"
#include "cli/cli.h"
#include "record/approvals.h"
#include "run/typed.h"

/* NULL where it cannot be read. Owned. */
static char *digest_of_file(const char *path) {
  g_autofree char *content = NULL;
  gsize length = 0;
  return path && g_file_get_contents(path, &content, &length, NULL) ? digest_hex(content, length)
                                                                    : NULL;
}

static void add_path(JsonObject *request, const char *key, const char *path) {
  g_autofree char *absolute = path ? g_canonicalize_filename(path, NULL) : NULL;
  json_add_text(request, key, absolute);
}

JsonObject *cli_request_new(const CliRunOptions *options, const char *surface) {
  JsonObject *request = json_object_new_object();
  g_autofree char *folder = g_get_current_dir();
  g_autofree char *digest = digest_of_file(options->config);
  json_add_text(request, "surface", surface);
  json_add_text(request, "cwd", folder);
  add_path(request, "config", options->config);
  json_add_text(request, "config_digest", digest);
  add_path(request, "workspace", options->workspace);
  json_add_text(request, "provider", options->provider);
  json_add_text(request, "session", options->session);
  json_add_text(request, "agent", options->agent);
  return request;
}

gboolean cli_request_open(JsonObject *request, CliRunOptions *ret_options, GError **error) {
  const char *folder = json_get_text(request, "cwd");
  const char *config = json_get_text(request, "config");
  if (json_get_bool(request, "withheld", FALSE)) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                        "a path or a name that the run was begun with holds a credential, which is "
                        "not kept, so it cannot go on; run it anew");
    return FALSE;
  }
  if (folder && chdir(folder) < 0) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "the run was begun in %s, which cannot be entered: %s", folder, g_strerror(errno));
    return FALSE;
  }
  g_autofree char *digest = digest_of_file(config);
  if (config && digest && g_strcmp0(digest, json_get_text(request, "config_digest")) != 0) {
    cli_complain(
        "the configuration %s is not what it was when the run began; approvals given under "
        "another policy or for another sandbox do not count",
        config);
  }
  ret_options->config = g_strdup(config);
  ret_options->workspace = g_strdup(json_get_text(request, "workspace"));
  ret_options->provider = g_strdup(json_get_text(request, "provider"));
  ret_options->session = g_strdup(json_get_text(request, "session"));
  ret_options->agent = g_strdup(json_get_text(request, "agent"));
  return TRUE;
}

Privacy *cli_request_privacy(Record *record, const char *run_id) {
  g_autoptr(JsonObject) life = record_life(record, run_id, NULL);
  const char *path = json_get_text(json_get(life, "request"), "config");
  g_autofree char *content = NULL;
  gsize length = 0;
  if (!path || !g_file_get_contents(path, &content, &length, NULL)) {
    return NULL;
  }
  g_autoptr(JsonObject) object = json_parse(path, content, length, NULL);
  return typed_known(object);
}

static const char *target_of(JsonObject *approval) {
  static const char *const KEYS[] = {"host", "path", "resource", "tool_name"};
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    const char *text = json_get_text(json_get(approval, "target"), KEYS[i]);
    if (text) {
      return text;
    }
  }
  return "";
}

void cli_tell_waiting(const char *run_id, JsonObject *approvals) {
  for (gsize i = 0; i < json_object_array_length(approvals); i++) {
    JsonObject *approval = json_object_array_get_idx(approvals, i);
    g_auto(GStrv) lines = shown_lines(json_get_text(json_get(approval, "arguments"), "command"));
    cli_complain("waiting on: %s %s | %s", json_get_text(approval, "capability"),
                 target_of(approval), json_get_text(approval, "reason"));
    for (char **line = lines; *line; line++) {
      cli_complain("  command: %s", *line);
    }
    cli_complain("  sandhost approve %s %s --approver NAME", run_id,
                 json_get_text(approval, "approval_id"));
  }
  cli_complain("then: sandhost resume %s", run_id);
}

void cli_tell_budget(const char *run_id, JsonObject *request) {
  cli_complain("waiting on: the %s budget for %s, request %s", json_get_text(request, "scope"),
               json_get_text(request, "meter"), json_get_text(request, "request_id"));
  cli_complain("  sandhost grant %s --approver NAME", run_id);
  cli_complain("  sandhost deny %s --approver NAME", run_id);
  cli_complain("then: sandhost resume %s", run_id);
}
