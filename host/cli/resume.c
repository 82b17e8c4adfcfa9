/* SPDX-License-Identifier: Apache-2.0 */
/* resume.c: sandhost resume, the next segment of a waiting or stopped run. */
#include "run/resume.h"
#include "base/error.h"
#include "cli/cli.h"

typedef struct {
  char *record;
  gboolean json;
  gboolean quiet;
} ResumeOptions;

/* The whole id, and the request of a run that can go on; NULL: *error. Owned. */
static JsonObject *find_request(const char *path, const char *wanted, char **ret_id,
                                GError **error) {
  if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND, "No run %s", wanted);
    return NULL;
  }
  g_autoptr(Record) record = record_open(path, error);
  g_autofree char *id = record ? record_resolve(record, wanted, error) : NULL;
  if (!id || !record_can_resume(record, id, error)) {
    return NULL;
  }
  g_autoptr(JsonObject) life = record_life(record, id, error);
  if (!life) {
    return NULL;
  }
  if (g_strcmp0(json_get_text(json_get(life, "request"), "surface"), "api") == 0) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFLICT,
                "Run %s was begun by a program with libsandhost, which alone can go on with it",
                id);
    return NULL;
  }
  *ret_id = g_steal_pointer(&id);
  return json_object_get(json_get(life, "request"));
}

static int go_on(const ResumeOptions *options, const char *path, const char *wanted) {
  g_autoptr(GError) error = NULL;
  g_autofree char *id = NULL;
  CliRunOptions run = {0};
  g_autoptr(JsonObject) request = find_request(path, wanted, &id, &error);
  if (!request) {
    return cli_fail_resume(error);
  }
  int code = EXIT_USAGE;
  run.record = g_canonicalize_filename(path, NULL);
  if (!cli_request_open(request, &run, &error)) {
    code = cli_fail(error);
  } else if (g_strcmp0(json_get_text(request, "surface"), "session") == 0) {
    code = cli_session_resume(&run, id, json_get_bool(request, "stream", FALSE));
  } else {
    code = cli_exec_resume(&run, id, request, options->json, options->quiet);
  }
  cli_run_options_clear(&run);
  return code;
}

int cli_resume(int argc, char **argv) {
  ResumeOptions options = {0};
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &options.record, "File that keeps the record", "F"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json,
       "Print the whole result as one JSON object", NULL},
      {"quiet", 'q', 0, G_OPTION_ARG_NONE, &options.quiet, "No summary on stderr", NULL},
      {0},
  };
  int code = EXIT_USAGE;
  if (cli_parse_mixed(&argc, &argv, "RUN",
                      "Goes on with a run that waited for a decision, or whose process died: in a "
                      "fresh sandbox, with the configuration it was begun with. What was allowed "
                      "is used once; what may have run already is not run again. A session goes "
                      "on to read JSON lines.",
                      entries)) {
    if (argc != 2) {
      cli_complain("resume takes one run; sandhost approvals lists what waits");
    } else {
      g_autofree char *path = options.record ? g_strdup(options.record) : record_default_path();
      code = go_on(&options, path, argv[1]);
    }
  }
  g_free(options.record);
  return code;
}
