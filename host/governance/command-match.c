/* SPDX-License-Identifier: Apache-2.0 */
/* command-match.c: the first words of a command against those that a rule names (behaviour 5.1). */
#include "governance/command-match.h"

#include <string.h>

#include "base/repr.h"
#include "config/check.h"

/* ---- Reading --------------------------------------------------------------------------------- */

static gboolean is_list(JsonObject *value) {
  return json_object_is_type(value, json_type_array) && json_object_array_length(value) > 0;
}

/* A program is compared by its name, so one with a / or a blank would never match. */
static gboolean check_program(const char *where, const char *word, GError **error) {
  if (!strpbrk(word, "/ \t\r\n")) {
    return TRUE;
  }
  g_autofree char *shown = repr_text(word);
  return check_refuse(error, "%s: %s must be the name of a program, without a / or a blank", where,
                      shown);
}

static gboolean check_word(const char *where, gboolean program, JsonObject *value, GError **error) {
  if (!json_object_is_type(value, json_type_string) || json_object_get_string_len(value) == 0) {
    return check_refuse(error, "%s must be a non-empty literal word or a non-empty list of them",
                        where);
  }
  const char *word = json_object_get_string(value);
  if (strpbrk(word, "*?[")) {
    g_autofree char *shown = repr_text(word);
    return check_refuse(error, "%s: %s must be a literal word, not a glob", where, shown);
  }
  return !program || check_program(where, word, error);
}

/* A word, or a list of alternative ones. */
static gboolean read_place(const char *where, gboolean program, JsonObject *value,
                           char ***ret_words, GError **error) {
  if (!is_list(value)) {
    if (!check_word(where, program, value, error)) {
      return FALSE;
    }
    const char *const WORD[] = {json_object_get_string(value), NULL};
    *ret_words = g_strdupv((char **)(gsize)WORD);
    return TRUE;
  }
  for (gsize i = 0; i < json_object_array_length(value); i++) {
    if (!check_word(where, program, json_object_array_get_idx(value, i), error)) {
      return FALSE;
    }
  }
  *ret_words = json_get_strv(value);
  return TRUE;
}

static int compare_keys(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Keys of an older matcher are refused by name: half of what they said would be something else. */
static gboolean check_keys_of(const char *rule_id, JsonObject *object, GError **error) {
  static const char *const REMOVED[] = {"args_any", "redirect", "env", NULL};
  g_autoptr(GPtrArray) unknown = g_ptr_array_new();
  json_object_object_foreach(object, key, value) {
    (void)value;
    if (g_strv_contains(REMOVED, key)) {
      return check_refuse(error,
                          "rule %s: command.%s was removed: a command is matched by its first "
                          "words, with a prefix, or a program",
                          rule_id, key);
    }
    if (strcmp(key, "prefix") != 0 && strcmp(key, "program") != 0) {
      g_ptr_array_add(unknown, key);
    }
  }
  if (unknown->len == 0) {
    return TRUE;
  }
  g_ptr_array_sort(unknown, compare_keys);
  g_ptr_array_add(unknown, NULL);
  g_autofree char *keys = g_strjoinv(", ", (char **)unknown->pdata);
  return check_refuse(error, "rule %s: command has unknown key(s) %s", rule_id, keys);
}

static gboolean read_prefix(CommandMatcher *matcher, const char *rule_id, JsonObject *prefix,
                            GError **error) {
  if (!is_list(prefix)) {
    return check_refuse(error, "rule %s: command.prefix must be a non-empty list of literal words",
                        rule_id);
  }
  gsize count = json_object_array_length(prefix);
  if (count > COMMAND_MAX_CHARACTERS) {
    return check_refuse(error, "rule %s: command.prefix has more words than a command may have",
                        rule_id);
  }
  matcher->words = g_new0(char **, count);
  for (gsize i = 0; i < count; i++) {
    g_autofree char *where = g_strdup_printf("rule %s: command.prefix[%zu]", rule_id, i);
    if (!read_place(where, i == 0, json_object_array_get_idx(prefix, i), &matcher->words[i],
                    error)) {
      return FALSE;
    }
    matcher->count++;
  }
  return TRUE;
}

static gboolean read_program(CommandMatcher *matcher, const char *rule_id, JsonObject *program,
                             GError **error) {
  g_autofree char *where = g_strdup_printf("rule %s: command.program", rule_id);
  matcher->words = g_new0(char **, 1);
  if (!read_place(where, TRUE, program, &matcher->words[0], error)) {
    return FALSE;
  }
  matcher->count = 1;
  return TRUE;
}

CommandMatcher *command_matcher_new(const char *rule_id, JsonObject *object, GError **error) {
  if (!json_object_is_type(object, json_type_object)) {
    check_refuse(error, "rule %s: command must be an object", rule_id);
    return NULL;
  }
  if (!check_keys_of(rule_id, object, error)) {
    return NULL;
  }
  JsonObject *prefix = json_get(object, "prefix");
  JsonObject *program = json_get(object, "program");
  if (!prefix == !program) {
    check_refuse(error, "rule %s: command takes a prefix, or a program%s", rule_id,
                 prefix ? ", not both" : "");
    return NULL;
  }
  g_autoptr(CommandMatcher) matcher = g_new0(CommandMatcher, 1);
  if (prefix ? !read_prefix(matcher, rule_id, prefix, error)
             : !read_program(matcher, rule_id, program, error)) {
    return NULL;
  }
  return g_steal_pointer(&matcher);
}

void command_matcher_free(CommandMatcher *matcher) {
  if (!matcher) {
    return;
  }
  for (guint i = 0; i < matcher->count; i++) {
    g_strfreev(matcher->words[i]);
  }
  g_free(matcher->words);
  g_free(matcher);
}

/* ---- Matching -------------------------------------------------------------------------------- */

/* Most places have one word. */
static gboolean is_among(char **words, const char *word) {
  for (; *words; words++) {
    if (strcmp(*words, word) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

gboolean command_matcher_matches(const CommandMatcher *matcher, const SimpleCommand *command,
                                 gboolean allows) {
  const char *program = command->words[0];
  const char *name = command_base_name(program);
  if (matcher->count > command->count || (allows && name != program) ||
      !is_among(matcher->words[0], name)) {
    return FALSE;
  }
  for (guint i = 1; i < matcher->count; i++) {
    if (!is_among(matcher->words[i], command->words[i])) {
      return FALSE;
    }
  }
  return TRUE;
}

/* ---- Examples -------------------------------------------------------------------------------- */

/* An unreadable line has no commands. */
static gboolean matches_line(const CommandMatcher *matcher, const char *script, gboolean allows) {
  g_autoptr(CommandLine) line = command_read_script(script);
  guint matched = 0;
  for (guint i = 0; i < line->count; i++) {
    matched += command_matcher_matches(matcher, &line->commands[i], allows) ? 1 : 0;
  }
  return allows ? matched > 0 && matched == line->count : matched > 0;
}

static gboolean is_text_list(JsonObject *value) {
  gboolean ok = !value || json_object_is_type(value, json_type_array);
  for (gsize i = 0; value && ok && i < json_object_array_length(value); i++) {
    ok = json_object_is_type(json_object_array_get_idx(value, i), json_type_string);
  }
  return ok;
}

static gboolean check_examples(const char *rule_id, JsonObject *examples, GError **error) {
  gboolean ok = json_object_is_type(examples, json_type_object);
  if (ok) {
    json_object_object_foreach(examples, key, value) {
      ok =
          ok && (strcmp(key, "match") == 0 || strcmp(key, "not_match") == 0) && is_text_list(value);
    }
  }
  return ok || check_refuse(error, "rule %s: examples takes match and not_match lists", rule_id);
}

void command_example_free(CommandExample *example) {
  g_free(example->rule_id);
  g_free(example->text);
  g_free(example);
}

char *command_example_fault(const CommandExample *example) {
  g_autofree char *shown = repr_text(example->text);
  return example->wanted
             ? g_strdup_printf("rule %s does not match its example %s", example->rule_id, shown)
             : g_strdup_printf("rule %s matches %s, listed as not_match", example->rule_id, shown);
}

/* What every example of a rule has in common. */
typedef struct {
  const CommandMatcher *matcher;
  const char *rule_id;
  gboolean allows;
  GPtrArray *tried; /* NULL: the first that fails is the error */
} Trial;

static gboolean try_one(const Trial *trial, const char *script, gboolean wanted, GError **error) {
  CommandExample *example = g_new0(CommandExample, 1);
  example->rule_id = g_strdup(trial->rule_id);
  example->text = g_strdup(script);
  example->wanted = wanted;
  example->passed = matches_line(trial->matcher, script, trial->allows) == wanted;
  if (trial->tried) {
    g_ptr_array_add(trial->tried, example);
    return TRUE;
  }
  gboolean passed = example->passed;
  g_autofree char *fault = passed ? NULL : command_example_fault(example);
  command_example_free(example);
  return passed || check_refuse(error, "%s", fault);
}

static gboolean try_list(const Trial *trial, JsonObject *list, gboolean wanted, GError **error) {
  for (gsize i = 0; list && i < json_object_array_length(list); i++) {
    const char *script = json_object_get_string(json_object_array_get_idx(list, i));
    if (!try_one(trial, script, wanted, error)) {
      return FALSE;
    }
  }
  return TRUE;
}

gboolean command_matcher_try(const CommandMatcher *matcher, const char *rule_id, gboolean allows,
                             JsonObject *examples, GPtrArray *tried, GError **error) {
  const Trial trial = {.matcher = matcher, .rule_id = rule_id, .allows = allows, .tried = tried};
  if (!matcher) {
    return check_refuse(error, "rule %s: examples need a command matcher", rule_id);
  }
  return check_examples(rule_id, examples, error) &&
         try_list(&trial, json_get(examples, "match"), TRUE, error) &&
         try_list(&trial, json_get(examples, "not_match"), FALSE, error);
}
