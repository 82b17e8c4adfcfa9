/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-command.c: any bytes as a script, and as an argv of words that end with newlines. A line is read the
 * same way each time; one that is readable is words of its own text, and the words written with quotes
 * around them are read as the same line again. */
#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "governance/command-tell.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const CommandLine *a, const CommandLine *b) {
  g_assert_cmpstr(a->reason, ==, b->reason);
  g_assert_cmpuint(a->count, ==, b->count);
  for (guint i = 0; i < a->count; i++) {
    g_assert_cmpint(a->commands[i].join, ==, b->commands[i].join);
    g_assert_cmpuint(a->commands[i].count, ==, b->commands[i].count);
    for (guint word = 0; word < a->commands[i].count; word++) {
      g_assert_cmpstr(a->commands[i].words[word], ==, b->commands[i].words[word]);
    }
  }
}

/* Returns at, moved behind the bytes of the word, which stand in the text in this order. */
static const char *check_word(const char *at, const char *word) {
  g_assert_true(g_utf8_validate(word, -1, NULL));
  g_assert_null(strstr(word, "$("));
  g_assert_null(strchr(word, '`'));
  g_assert_null(strstr(word, "\\\n"));
  for (const char *c = word; *c; c++) {
    g_assert_true((guchar)*c >= 0x20 || strchr("\t\n\r", *c));
    g_assert_true(*c != 0x7f);
    at = strchr(at, *c);
    g_assert_nonnull(at);
    at++;
  }
  return at;
}

static void check_line(const CommandLine *line) {
  g_assert_true((line->reason == NULL) == (line->count > 0));
  const char *at = line->text;
  for (guint i = 0; i < line->count; i++) {
    const SimpleCommand *command = &line->commands[i];
    g_assert_true(i > 0 || command->join == JOIN_NEXT);
    g_assert_cmpuint(command->count, >, 0);
    g_assert_cmpuint(strlen(command->words[0]), >, 0);
    g_assert_null(command->words[command->count]);
    for (guint word = 0; word < command->count; word++) {
      at = check_word(at, command->words[word]);
    }
  }
}

/* Every word in single quotes, those in it in double quotes. */
static char *write_line(const CommandLine *line) {
  static const char *const JOINS[] = {
      [JOIN_NEXT] = ";", [JOIN_AND] = "&&", [JOIN_OR] = "||", [JOIN_PIPE] = "|"};
  GString *out = g_string_new(NULL);
  for (guint i = 0; i < line->count; i++) {
    g_string_append(out, i ? JOINS[line->commands[i].join] : "");
    for (guint word = 0; word < line->commands[i].count; word++) {
      g_string_append(out, word ? " '" : "'");
      for (const char *c = line->commands[i].words[word]; *c; c++) {
        if (*c == '\'') {
          g_string_append(out, "'\"'\"'");
        } else {
          g_string_append_c(out, *c);
        }
      }
      g_string_append_c(out, '\'');
    }
  }
  return g_string_free(out, FALSE);
}

static void check_written(const CommandLine *line) {
  g_autofree char *text = write_line(line);
  g_autoptr(CommandLine) again = command_read_script(text);
  if (g_strcmp0(again->reason, "longer than 10000 characters") != 0) {
    check_same(again, line);
  }
}

static void check_told(const char *const *argv, const CommandLine *line) {
  g_autofree char *summary = command_summary(line);
  g_assert_true(g_utf8_validate(summary, -1, NULL));
  for (const char *c = summary; *c; c++) {
    g_assert_true((guchar)*c >= 0x20 || *c == '\n');
  }
  g_autoptr(JsonObject) metadata = command_metadata(argv, line);
  g_assert_true(json_get_bool(metadata, "opaque", FALSE) == (line->reason != NULL));
  g_autoptr(JsonObject) reasons = command_opaque_reasons(line);
  g_assert_cmpuint(json_object_array_length(reasons), ==, line->reason ? 1 : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  g_autofree char *text = g_strndup((const char *)data, size);
  g_autoptr(CommandLine) line = command_read_script(text);
  g_autoptr(CommandLine) same = command_read_script(text);
  check_same(line, same);
  check_line(line);
  if (!line->reason) {
    check_written(line);
  }
  const char *const script[] = {"sh", "-c", text, NULL};
  g_autoptr(CommandLine) started = command_read_argv(script);
  if (*text != '-' && *text != '+') {
    check_same(started, line);
  }
  check_told(script, started);

  g_auto(GStrv) words = g_strsplit(text, "\n", -1);
  const char *const *argv = (const char *const *)words;
  if (argv[0]) {
    g_autoptr(CommandLine) direct = command_read_argv(argv);
    g_assert_true((direct->reason == NULL) == (direct->count > 0));
    check_told(argv, direct);
  }
  return 0;
}
