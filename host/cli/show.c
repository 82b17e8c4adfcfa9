/* SPDX-License-Identifier: Apache-2.0 */
/* show.c: sandhost show, the record of a run: its trajectory, its events, or what a command printed. */
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/glob.h"
#include "base/repr.h"
#include "cli/cli.h"
#include "cli/recorded.h"
#include "record/record-output.h"
#include "record/trajectory-segments.h"
#include "run/story.h"

typedef struct {
  char *record;
  gboolean json;
  gboolean whole;
  char *segment;
  gboolean events;
  char **types; /* globs; NULL: all */
  char *call;
  char *output; /* a call */
  char *stream;
  char *offset;
  char *limit;
} ShowOptions;

/* ---- The trajectory -------------------------------------------------------------------------------------- */

/* As text the whole run, as JSON its last segment, where nothing else is said. */
static gboolean show_trajectory(Record *record, const char *id, const ShowOptions *options,
                                GError **error) {
  gboolean whole = options->whole || (!options->json && !options->segment);
  g_autoptr(JsonObject) told = whole ? story_of_run(record, id, error)
                                     : story_of_segment(record, id, options->segment, error);
  if (!told) {
    return FALSE;
  }
  if (options->json) {
    recorded_print_json(told);
    return TRUE;
  }
  g_autofree char *text = whole ? trajectory_run_text(told) : trajectory_text(told);
  cli_write(STDOUT_FILENO, text, strlen(text));
  return TRUE;
}

/* ---- Events ------------------------------------------------------------------------------------------------ */

static gboolean matches_type(const ShowOptions *options, const char *type) {
  for (gsize i = 0; options->types && options->types[i]; i++) {
    if (glob_match(options->types[i], type)) {
      return TRUE;
    }
  }
  return !options->types;
}

static gboolean matches_call(const ShowOptions *options, JsonObject *metadata) {
  const char *call = json_get_text(metadata, "tool_call_id");
  return !options->call || (call && g_str_has_prefix(call, options->call));
}

/* Without control characters: a type comes out of a file. */
static gboolean print_event(JsonObject *event) {
  g_autofree char *metadata = json_text(json_get(event, "metadata"));
  const char *type = json_get_text(event, "type");
  g_autofree char *line =
      g_strdup_printf("%6" G_GINT64_FORMAT " %s %s %s", json_get_int(event, "seq", 0),
                      json_get_text(event, "at"), type ? type : "", metadata);
  g_autofree char *shown = cli_one_line(line);
  return recorded_print(shown);
}

/* FALSE: the wanted call has no event at all. */
static gboolean show_events(JsonObject *run, const ShowOptions *options) {
  JsonObject *events = json_get(run, "events");
  gboolean goes_on = TRUE;
  gboolean known = !options->call;
  for (gsize i = 0; goes_on && i < json_object_array_length(events); i++) {
    JsonObject *event = json_object_array_get_idx(events, i);
    const char *type = json_get_text(event, "type");
    gboolean of_call = matches_call(options, json_get(event, "metadata"));
    known = known || of_call;
    if (of_call && matches_type(options, type ? type : "")) {
      goes_on = options->json ? recorded_print_json(event) : print_event(event);
    }
  }
  return known;
}

/* ---- Output ------------------------------------------------------------------------------------------------- */

static gboolean show_output(Record *record, const char *id, const ShowOptions *options,
                            gint64 offset, gint64 limit, GError **error) {
  RecordOutputFacts facts;
  int stream = g_strcmp0(options->stream, "stderr") == 0 ? 2 : 1;
  if (!record_output_read(record, id, options->output, stream, (guint64)offset, (guint64)limit,
                          cli_put_stdout, NULL, &facts, error)) {
    return FALSE;
  }
  if ((guint64)offset + facts.given < facts.kept) {
    cli_complain("bytes %" G_GINT64_FORMAT " to %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                 "; --offset %" G_GUINT64_FORMAT " gives the next",
                 offset, (guint64)offset + facts.given, facts.kept, (guint64)offset + facts.given);
  } else if (facts.kept < facts.written) {
    cli_complain("%" G_GUINT64_FORMAT " more bytes of it were counted and not kept "
                 "(%s)",
                 facts.written - facts.kept,
                 facts.kept > 0 ? "telemetry_config.keep_output_bytes"
                                : "telemetry_config: record_outputs, record_tool_results, "
                                  "keep_output_bytes");
  }
  if (!facts.ended) {
    cli_complain("incomplete: the end of the command is not on record; %" G_GUINT64_FORMAT
                 " bytes of what it printed are",
                 facts.kept);
  }
  return TRUE;
}

/* ---- The command -------------------------------------------------------------------------------------------- */

static gboolean shows_events(const ShowOptions *options) {
  return options->events || options->types || options->call;
}

static gboolean show(const ShowOptions *options, const char *wanted, gint64 offset, gint64 limit,
                     GError **error) {
  g_autoptr(Record) record = recorded_open(options->record, error);
  g_autofree char *id = record ? recorded_run(record, wanted, error) : NULL;
  if (!id) {
    return FALSE;
  }
  if (options->output) {
    return show_output(record, id, options, offset, limit, error);
  }
  if (!shows_events(options)) {
    return show_trajectory(record, id, options, error);
  }
  g_autoptr(JsonObject) run = record_run(record, id, error);
  if (run && !show_events(run, options)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND, "run %s has no call %s", id,
                options->call);
    return FALSE;
  }
  return run != NULL;
}

static gboolean check_options(const ShowOptions *options, gint64 *ret_offset, gint64 *ret_limit) {
  if ((options->whole || options->segment) && (shows_events(options) || options->output)) {
    cli_complain("--whole and --segment choose a trajectory, and do not go with events and output");
    return FALSE;
  }
  if (options->whole && options->segment) {
    cli_complain("--whole and --segment cannot both be given");
    return FALSE;
  }
  if (options->stream && strcmp(options->stream, "stdout") != 0 &&
      strcmp(options->stream, "stderr") != 0) {
    cli_complain("--stream must be stdout or stderr, got '%s'", options->stream);
    return FALSE;
  }
  if (!options->output && (options->stream || options->offset || options->limit)) {
    cli_complain("--stream, --offset and --limit go with --output CALL");
    return FALSE;
  }
  if (options->output && (options->json || options->events || options->types || options->call)) {
    cli_complain("--output prints the bytes as they are, and goes with --stream, --offset and "
                 "--limit alone");
    return FALSE;
  }
  return (!options->offset || cli_number("--offset", options->offset, 0, G_MAXINT64, ret_offset)) &&
         (!options->limit || cli_number("--limit", options->limit, 0, G_MAXINT64, ret_limit));
}

static int run_show(int argc, char **argv, ShowOptions *options) {
  gint64 offset = 0;
  gint64 limit = G_MAXINT64;
  g_autoptr(GError) error = NULL;
  if (argc > 2) {
    cli_complain("show takes one run, got '%s' too", argv[2]);
    return EXIT_USAGE;
  }
  if (!check_options(options, &offset, &limit)) {
    return EXIT_USAGE;
  }
  const char *wanted = argc > 1 ? argv[1] : NULL;
  if (wanted && story_names_trace(wanted) && !options->segment && !options->whole) {
    options->segment = g_strdup(wanted);
  }
  return show(options, wanted, offset, limit, &error) ? 0 : cli_fail(error);
}

int cli_show(int argc, char **argv) {
  ShowOptions options = {0};
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &options.record, "File that keeps the record", "F"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json,
       "Print the last segment's trajectory, or each event, as JSON", NULL},
      {"segment", 's', 0, G_OPTION_ARG_STRING, &options.segment,
       "Only this segment: a number from 1, a trace's id, first or last", "N"},
      {"whole", 'w', 0, G_OPTION_ARG_NONE, &options.whole,
       "With --json: the whole run with all its segments", NULL},
      {"events", 'e', 0, G_OPTION_ARG_NONE, &options.events, "Print the events, a line each", NULL},
      {"type", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.types,
       "Only events of this type (a glob; may be repeated)", "TYPE"},
      {"call", 0, 0, G_OPTION_ARG_STRING, &options.call, "Only events of this tool call", "CALL"},
      {"output", 'o', 0, G_OPTION_ARG_STRING, &options.output,
       "Print what a command printed: its call's id, or its number in the run", "CALL"},
      {"stream", 0, 0, G_OPTION_ARG_STRING, &options.stream, "stdout (default) or stderr", "S"},
      {"offset", 0, 0, G_OPTION_ARG_STRING, &options.offset, "First byte of the output", "N"},
      {"limit", 0, 0, G_OPTION_ARG_STRING, &options.limit, "Most bytes of the output", "N"},
      {0},
  };
  int code = EXIT_USAGE;
  if (cli_parse_mixed(&argc, &argv, "[RUN]",
                      "Prints what a run did. RUN is its id or the beginning of it, or the id of a "
                      "trace; without "
                      "one, the newest.",
                      entries)) {
    code = run_show(argc, argv, &options);
  }
  g_free(options.record);
  g_free(options.segment);
  g_strfreev(options.types);
  g_free(options.call);
  g_free(options.output);
  g_free(options.stream);
  g_free(options.offset);
  g_free(options.limit);
  return code;
}
