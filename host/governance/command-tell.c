/* SPDX-License-Identifier: Apache-2.0 */
/* command-tell.c: what is written down of a command, and what somebody is shown of it (behaviour 5.2). */
#include "governance/command-tell.h"

#include <string.h>

#include "base/digest.h"
#include "base/shown.h"

static JsonObject *list_programs(const CommandLine *line) {
  JsonObject *programs = json_object_new_array();
  g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
  for (guint i = 0; i < line->count; i++) {
    const char *program = line->commands[i].words[0];
    if (g_hash_table_add(seen, (gpointer)(gsize)program)) {
      json_object_array_add(programs, json_from_bytes(program, strlen(program)));
    }
  }
  return programs;
}

JsonObject *command_metadata(const char *const *argv, const CommandLine *line) {
  gint64 argc = 0;
  while (argv[argc]) {
    argc++;
  }
  g_autoptr(JsonObject) words = json_from_strv(argv);
  g_autofree char *text = json_canonical(words);
  g_autofree char *digest = digest_hex(text, strlen(text));
  JsonObject *command = json_object_new_object();
  json_add_text(command, "name", argv[0]);
  json_add_int(command, "argc", argc);
  json_add_text(command, "digest", digest);
  json_add_take(command, "programs", list_programs(line));
  json_add_bool(command, "opaque", line->reason != NULL);
  return command;
}

static void show_word(GString *out, const char *word) {
  if (*word && !strpbrk(word, " \t\r\n'\"\\")) {
    shown_append(out, word);
    return;
  }
  g_string_append_c(out, '\'');
  for (const char *quote = strchr(word, '\''); quote; quote = strchr(word, '\'')) {
    g_autofree char *before = g_strndup(word, (gsize)(quote - word));
    shown_append(out, before);
    g_string_append(out, "'\"'\"'");
    word = quote + 1;
  }
  shown_append(out, word);
  g_string_append_c(out, '\'');
}

static void show_command(GString *out, const SimpleCommand *command) {
  for (guint word = 0; word < command->count; word++) {
    g_string_append(out, word ? " " : "");
    show_word(out, command->words[word]);
  }
}

/* As a shell would have to be given it, so that no word of it can be taken for an operator. */
char *command_line_of(const SimpleCommand *command) {
  static const char PLAIN[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  GString *out = g_string_new(NULL);
  for (guint word = 0; word < command->count; word++) {
    const char *text = command->words[word];
    gboolean plain = *text && text[strspn(text, PLAIN)] == '\0';
    g_autofree char *quoted = plain ? g_strdup(text) : g_shell_quote(text);
    g_string_append(out, word ? " " : "");
    shown_append(out, quoted);
  }
  return g_string_free(out, FALSE);
}

char *command_summary(const CommandLine *line) {
  GString *out = g_string_new(NULL);
  for (guint i = 0; i < line->count; i++) {
    g_string_append(out, i ? "\n" : "");
    show_command(out, &line->commands[i]);
  }
  if (line->reason) {
    shown_append(out, line->text);
  }
  return g_string_free(out, FALSE);
}

JsonObject *command_opaque_reasons(const CommandLine *line) {
  JsonObject *reasons = json_object_new_array();
  if (line->reason) {
    json_object_array_add(reasons, json_object_new_string(line->reason));
  }
  return reasons;
}

const char *command_join_name(CommandJoin join) {
  static const char *const NAMES[] = {
      [JOIN_NEXT] = ";", [JOIN_AND] = "&&", [JOIN_OR] = "||", [JOIN_PIPE] = "|"};
  return NAMES[join];
}

static JsonObject *reading_of(const SimpleCommand *command) {
  JsonObject *object = json_object_new_object();
  JsonObject *words = json_object_new_array();
  for (guint i = 0; i < command->count; i++) {
    json_object_array_add(words, json_from_bytes(command->words[i], strlen(command->words[i])));
  }
  json_add_text(object, "join", command_join_name(command->join));
  json_add_take(object, "program", json_object_get(json_object_array_get_idx(words, 0)));
  json_add_take(object, "words", words);
  return object;
}

JsonObject *command_reading(const CommandLine *line) {
  JsonObject *commands = json_object_new_array();
  for (guint i = 0; i < line->count; i++) {
    json_object_array_add(commands, reading_of(&line->commands[i]));
  }
  JsonObject *reading = json_object_new_object();
  json_add_bool(reading, "readable", line->reason == NULL);
  json_add_take(reading, "opaque_reasons", command_opaque_reasons(line));
  json_add_take(reading, "commands", commands);
  return reading;
}
