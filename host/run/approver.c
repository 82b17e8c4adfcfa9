/* SPDX-License-Identifier: Apache-2.0 */
/* approver.c: who is asked about an approver, and where the program that is asked may lie. */
#include "run/approver.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/repr.h"
#include "governance/trusted-place.h"
#include "provider/file-check.h"

#define MOST_REFUSAL 1000 /* bytes of a reason that are told */

/* ---- The name ---------------------------------------------------------------------------------------------------- */

gboolean approver_check_text(const char *what, const char *text, gsize most, GError **error) {
  gsize length = text ? strnlen(text, most + 1) : 0;
  if (length > most || (text && !g_utf8_validate(text, (gssize)length, NULL))) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "%s must be valid UTF-8 of at most %" G_GSIZE_FORMAT " bytes", what, most);
    return FALSE;
  }
  return TRUE;
}

static gboolean is_one_line(const char *name) {
  for (const char *at = name; *at; at += g_utf8_skip[(guchar)*at]) {
    GUnicodeType type = g_unichar_type(g_utf8_get_char(at));
    if (type == G_UNICODE_CONTROL || type == G_UNICODE_LINE_SEPARATOR ||
        type == G_UNICODE_PARAGRAPH_SEPARATOR) {
      return FALSE;
    }
  }
  return TRUE;
}

gboolean approver_check_name(const char *name, GError **error) {
  if (!name || name[strspn(name, " \t\r\n")] == '\0') {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "approver is required");
    return FALSE;
  }
  if (!approver_check_text("approver", name, APPROVER_MOST_NAME, error)) {
    return FALSE;
  }
  if (!is_one_line(name)) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                        "approver must be one line without control characters");
    return FALSE;
  }
  return TRUE;
}

/* ---- What is stored ---------------------------------------------------------------------------------------------- */

JsonObject *approver_stored(const Config *config) {
  const char *const agent_dirs[] = {config->workspace_dir, config->files_dir, NULL};
  if (!config->approver_check) {
    return NULL;
  }
  JsonObject *stored = json_object_new_object();
  JsonObject *folders = json_object_new_array();
  for (gsize i = 0; agent_dirs[i]; i++) {
    g_autofree char *folder = g_canonicalize_filename(agent_dirs[i], NULL);
    json_object_array_add(folders, json_object_new_string(folder));
  }
  json_add_take(stored, "argv", json_from_strv((const char *const *)config->approver_check));
  json_add_text(stored, "project_root", config->project_root);
  json_add_take(stored, "agent_dirs", folders);
  return stored;
}

/* ---- The place --------------------------------------------------------------------------------------------------- */

static gboolean refuse_place(GError **error, const char *path, const char *why) {
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
              "governance_config.approver_check: %s: %s", path, why);
  return FALSE;
}

static gboolean check_file(JsonObject *stored, const char *path, GError **error) {
  g_auto(GStrv) agent_dirs = json_get_strv(json_get(stored, "agent_dirs"));
  const char *root = json_get_text(stored, "project_root");
  g_autofree char *reason = NULL;
  g_autofree char *real = file_check(path, &reason);
  if (!real) {
    return refuse_place(error, path, reason);
  }
  /* What is outside the project is judged by every folder on its way. */
  g_autofree char *resolved_root = place_resolve(root ? root : "/");
  const char *from = place_is_below(real, resolved_root) ? resolved_root : "/";
  return !place_is_agents(real, path, from, (const char *const *)agent_dirs) ||
         refuse_place(error, path, "it is inside an agent-writable directory");
}

gboolean approver_check_place(JsonObject *stored, GError **error) {
  g_auto(GStrv) argv = json_get_strv(json_get(stored, "argv"));
  if (!argv || !argv[0]) {
    return refuse_place(error, "(none)", "there is no program");
  }
  for (gsize i = 0; argv[i]; i++) {
    gboolean names_file = g_path_is_absolute(argv[i]) && g_file_test(argv[i], G_FILE_TEST_EXISTS);
    if ((i == 0 || names_file) && !check_file(stored, argv[i], error)) {
      return FALSE;
    }
  }
  return access(argv[0], X_OK) == 0 || refuse_place(error, argv[0], "it cannot be executed");
}

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

static gboolean refuse(GError **error, JsonObject *question, const char *why) {
  const char *approver = json_get_text(question, "approver");
  g_autofree char *cut = why ? g_strndup(why, MOST_REFUSAL) : NULL;
  g_autofree char *text = cut ? g_utf8_make_valid(cut, -1) : NULL;
  repr_line(text);
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_DENIED, "Approver %s is refused: %s",
              approver ? approver : "", text && *text ? text : "no reason is given");
  return FALSE;
}

static gboolean ask_program(JsonObject *stored, JsonObject *question, Cancel *cancel,
                            GError **error) {
  g_autoptr(GError) refusal = NULL;
  g_auto(GStrv) argv = json_get_strv(json_get(stored, "argv"));
  if (!approver_check_place(stored, error)) {
    return FALSE;
  }
  if (approver_ask_program((const char *const *)argv, question, APPROVER_SECONDS, cancel,
                           &refusal)) {
    return TRUE;
  }
  if (!g_error_matches(refusal, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_DENIED)) {
    g_propagate_error(error, g_steal_pointer(&refusal));
    return FALSE;
  }
  return refuse(error, question, refusal->message);
}

gboolean approver_allows(JsonObject *request, const ApproverHook *hook, JsonObject *question,
                         GError **error) {
  JsonObject *stored = json_get(request, "approver_check");
  if (stored && !ask_program(stored, question, hook ? hook->cancel : NULL, error)) {
    return FALSE;
  }
  g_autofree char *refusal = NULL;
  return !hook || !hook->ask || hook->ask(hook->user, question, &refusal) ||
         refuse(error, question, refusal);
}
