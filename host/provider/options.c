/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: JSON, environment variables and fallbacks become values of one kind, each checked once. */
#include "provider/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "config/manifest.h"
#include "provider/text.h"

/* A list or map has at most so many items; a text at most so many bytes. */
#define MAX_ITEMS 4096u
#define MAX_TEXT (1u << 20)

struct OptionValues {
  struct sandhost_value *values;
  GPtrArray *memory; /* strings and pair arrays that values point to */
};

/* Why a value is refused: words behind "must be ". */
static const char *wanted(const struct sandhost_option *option) {
  switch (option->type) {
  case SANDHOST_OPTION_BOOLEAN:
    return "true or false";
  case SANDHOST_OPTION_INTEGER:
    return "a whole number";
  case SANDHOST_OPTION_SIZE:
    return "a size such as 64m or 1g";
  case SANDHOST_OPTION_LIST:
    return "a list of strings";
  case SANDHOST_OPTION_MAP:
    return "an object of strings";
  default:
    return "text";
  }
}

/* 'a' or 'b'; 'a', 'b' or 'c'. Returns owned. */
static char *wanted_choice(const struct sandhost_option *option) {
  g_auto(GStrv) choices = g_strsplit(option->choices, "|", -1);
  guint count = g_strv_length(choices);
  g_autoptr(GString) words = g_string_new(NULL);
  for (guint i = 0; i < count; i++) {
    const char *joint = i == 0 ? "" : i + 1 == count ? " or " : ", ";
    g_string_append_printf(words, "%s'%s'", joint, choices[i]);
  }
  return g_strdup(words->str);
}

static gboolean is_choice(const struct sandhost_option *option, const char *text) {
  if (!option->choices) {
    return TRUE;
  }
  g_auto(GStrv) choices = g_strsplit(option->choices, "|", -1);
  return g_strv_contains((const char *const *)choices, text);
}

/* ---- One value, from JSON or from text ------------------------------------------------------------------ */

typedef struct {
  const struct sandhost_option *option;
  GPtrArray *memory;
  struct sandhost_value *value; /* filled when TRUE is returned */
  char *must;                   /* owned; set when FALSE is returned: behind "must be " */
} Reading;

static gboolean refuse(Reading *reading, const char *must) {
  reading->must = g_strdup(must);
  return FALSE;
}

static gboolean take_number(Reading *reading, gint64 number) {
  const struct sandhost_option *option = reading->option;
  if ((option->flags & SANDHOST_OPTION_POSITIVE) && number <= 0) {
    return refuse(reading, "positive");
  }
  if (option->type == SANDHOST_OPTION_SIZE && number < 0) {
    return refuse(reading, wanted(option));
  }
  reading->value->integer = number;
  return TRUE;
}

static struct sandhost_text keep_text(Reading *reading, const char *text) {
  char *copy = g_strdup(text);
  g_ptr_array_add(reading->memory, copy);
  return text_of(copy);
}

static gboolean take_text(Reading *reading, const char *text) {
  if (!is_choice(reading->option, text)) {
    reading->must = wanted_choice(reading->option);
    return FALSE;
  }
  reading->value->text = keep_text(reading, text);
  return TRUE;
}

static gboolean take_size_text(Reading *reading, const char *text) {
  guint64 bytes = 0;
  if (strcmp(text, "0") == 0) {
    return take_number(reading, 0);
  }
  if (!manifest_parse_size(text, &bytes) || bytes > G_MAXINT64) {
    return refuse(reading, wanted(reading->option));
  }
  return take_number(reading, (gint64)bytes);
}

static struct sandhost_pair *new_pairs(Reading *reading, gsize count) {
  struct sandhost_pair *pairs = g_new0(struct sandhost_pair, MAX(count, 1));
  g_ptr_array_add(reading->memory, pairs);
  reading->value->pairs = pairs;
  reading->value->pair_count = count;
  return pairs;
}

/* A list as "a,b", a map as "a=1,b=2": how a variable of the environment or a fallback writes them. */
static gboolean take_pairs_text(Reading *reading, const char *text) {
  g_auto(GStrv) items = g_strsplit(text, ",", -1);
  gsize count = g_strv_length(items);
  if (count > MAX_ITEMS) {
    return refuse(reading, wanted(reading->option));
  }
  struct sandhost_pair *pairs = new_pairs(reading, count);
  for (gsize i = 0; i < count; i++) {
    char *equals = strchr(items[i], '=');
    if (reading->option->type == SANDHOST_OPTION_MAP) {
      if (!equals) {
        return refuse(reading, wanted(reading->option));
      }
      *equals = '\0';
      pairs[i].value = keep_text(reading, equals + 1);
    }
    pairs[i].name = keep_text(reading, items[i]);
    if (pairs[i].name.length == 0) {
      return refuse(reading, wanted(reading->option));
    }
  }
  return TRUE;
}

static gboolean read_text(Reading *reading, const char *text) {
  const struct sandhost_option *option = reading->option;
  gint64 number = 0;
  switch (option->type) {
  case SANDHOST_OPTION_BOOLEAN:
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
      return refuse(reading, wanted(option));
    }
    reading->value->integer = text[0] == 't';
    return TRUE;
  case SANDHOST_OPTION_INTEGER:
    if (!g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, &number, NULL)) {
      return refuse(reading, wanted(option));
    }
    return take_number(reading, number);
  case SANDHOST_OPTION_SIZE:
    return take_size_text(reading, text);
  case SANDHOST_OPTION_LIST:
  case SANDHOST_OPTION_MAP:
    return take_pairs_text(reading, text);
  default:
    return take_text(reading, text);
  }
}

/* The text of a JSON string of reasonable length without NUL; else NULL. Borrowed. */
static const char *plain_string(JsonObject *value) {
  if (!json_object_is_type(value, json_type_string)) {
    return NULL;
  }
  const char *text = json_object_get_string(value);
  gsize length = (gsize)json_object_get_string_len(value);
  return length <= MAX_TEXT && strlen(text) == length ? text : NULL;
}

static gboolean read_list(Reading *reading, JsonObject *array) {
  gsize count = json_object_array_length(array);
  if (count > MAX_ITEMS) {
    return refuse(reading, wanted(reading->option));
  }
  struct sandhost_pair *pairs = new_pairs(reading, count);
  for (gsize i = 0; i < count; i++) {
    const char *text = plain_string(json_object_array_get_idx(array, i));
    if (!text) {
      return refuse(reading, wanted(reading->option));
    }
    pairs[i].name = keep_text(reading, text);
  }
  return TRUE;
}

static gboolean read_map(Reading *reading, JsonObject *object) {
  gsize count = (gsize)json_object_object_length(object);
  if (count > MAX_ITEMS) {
    return refuse(reading, wanted(reading->option));
  }
  struct sandhost_pair *pairs = new_pairs(reading, count);
  gsize i = 0;
  json_object_object_foreach(object, key, item) {
    const char *text = plain_string(item);
    if (!text) {
      return refuse(reading, wanted(reading->option));
    }
    pairs[i].name = keep_text(reading, key);
    pairs[i].value = keep_text(reading, text);
    i++;
  }
  return TRUE;
}

static gboolean read_json_number(Reading *reading, JsonObject *value) {
  gint64 number = json_object_get_int64(value);
  /* json-c stops at the ends of the type. */
  if (number == G_MAXINT64 || number == G_MININT64) {
    return refuse(reading, wanted(reading->option));
  }
  return take_number(reading, number);
}

static gboolean read_json(Reading *reading, JsonObject *value) {
  enum json_type type = json_object_get_type(value);
  const char *text = plain_string(value);
  switch (reading->option->type) {
  case SANDHOST_OPTION_BOOLEAN:
    if (type == json_type_boolean) {
      reading->value->integer = json_object_get_boolean(value) ? 1 : 0;
      return TRUE;
    }
    break;
  case SANDHOST_OPTION_INTEGER:
    if (type == json_type_int) {
      return read_json_number(reading, value);
    }
    break;
  case SANDHOST_OPTION_SIZE:
    if (type == json_type_int) {
      return read_json_number(reading, value);
    }
    if (text) {
      return take_size_text(reading, text);
    }
    break;
  case SANDHOST_OPTION_LIST:
    if (type == json_type_array) {
      return read_list(reading, value);
    }
    break;
  case SANDHOST_OPTION_MAP:
    if (type == json_type_object) {
      return read_map(reading, value);
    }
    break;
  default:
    if (text) {
      return take_text(reading, text);
    }
    break;
  }
  if (reading->option->choices) {
    reading->must = wanted_choice(reading->option);
    return FALSE;
  }
  return refuse(reading, wanted(reading->option));
}

/* ---- All of them ---------------------------------------------------------------------------------------- */

static gboolean is_declared(const struct sandhost_provider *table, const char *name) {
  for (gsize i = 0; i < table->option_count; i++) {
    if (strcmp(table->options[i].name, name) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

static int by_text(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static gboolean refuse_unknown(const struct sandhost_provider *table, JsonObject *options,
                               GError **error) {
  g_autoptr(GPtrArray) unknown = g_ptr_array_new_with_free_func(g_free);
  json_object_object_foreach(options, key, value) {
    (void)value;
    if (!is_declared(table, key)) {
      g_ptr_array_add(unknown, text_clean_string(key, 256));
    }
  }
  if (unknown->len == 0) {
    return TRUE;
  }
  g_ptr_array_sort(unknown, by_text);
  g_ptr_array_add(unknown, NULL);
  g_autofree char *names = g_strjoinv(", ", (char **)unknown->pdata);
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "Unknown %s sandbox option(s): %s",
              table->name, names);
  return FALSE;
}

static gboolean fail_value(const struct sandhost_provider *table, Reading *reading,
                           const char *variable, GError **error) {
  g_autofree char *must = reading->must;
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
              "%s sandbox option '%s' must be %s%s%s%s", table->name, reading->option->name, must,
              variable ? " (from the environment variable " : "", variable ? variable : "",
              variable ? ")" : "");
  return FALSE;
}

static gboolean read_option(OptionValues *values, const struct sandhost_provider *table, gsize i,
                            JsonObject *given, GError **error) {
  const struct sandhost_option *option = &table->options[i];
  const char *variable = option->environment ? getenv(option->environment) : NULL;
  Reading reading = {.option = option, .memory = values->memory, .value = &values->values[i]};
  reading.value->size = sizeof *reading.value;
  reading.value->type = option->type;

  gboolean from_variable = FALSE;
  gboolean ok = TRUE;
  if (given) {
    ok = read_json(&reading, given);
  } else if (variable && *variable != '\0') {
    from_variable = TRUE;
    ok = g_utf8_validate(variable, -1, NULL) && strlen(variable) <= MAX_TEXT
             ? read_text(&reading, variable)
             : refuse(&reading, wanted(option));
  } else if (option->fallback) {
    ok = read_text(&reading, option->fallback);
  } else {
    ok = !(option->flags & SANDHOST_OPTION_REQUIRED);
    if (!ok) {
      g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                  "The %s sandbox needs a '%s' option", table->name, option->name);
    }
    return ok;
  }
  if (!ok) {
    return fail_value(table, &reading, from_variable ? option->environment : NULL, error);
  }
  gboolean empty = option->type == SANDHOST_OPTION_TEXT && reading.value->text.length == 0;
  if (empty && (option->flags & SANDHOST_OPTION_REQUIRED)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "The %s sandbox needs a '%s' option",
                table->name, option->name);
    return FALSE;
  }
  reading.value->set = 1;
  return TRUE;
}

OptionValues *option_values_new(const struct sandhost_provider *table, JsonObject *options,
                                GError **error) {
  if (options && !json_object_is_type(options, json_type_object)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "%s sandbox options must be an object", table->name);
    return NULL;
  }
  if (options && !refuse_unknown(table, options, error)) {
    return NULL;
  }
  g_autoptr(OptionValues) values = g_new0(OptionValues, 1);
  values->values = g_new0(struct sandhost_value, MAX(table->option_count, 1));
  values->memory = g_ptr_array_new_with_free_func(g_free);
  for (gsize i = 0; i < table->option_count; i++) {
    JsonObject *given = NULL; /* null in the configuration is "not given" */
    if (options) {
      json_object_object_get_ex(options, table->options[i].name, &given);
    }
    if (!read_option(values, table, i, given, error)) {
      return NULL;
    }
  }
  return g_steal_pointer(&values);
}

void option_values_free(OptionValues *values) {
  if (!values) {
    return;
  }
  g_ptr_array_unref(values->memory);
  g_free(values->values);
  g_free(values);
}

const struct sandhost_value *option_values_get(const OptionValues *values) {
  return values->values;
}

static JsonObject *pairs_to_json(const struct sandhost_value *value) {
  gboolean map = value->type == SANDHOST_OPTION_MAP;
  JsonObject *json = map ? json_object_new_object() : json_object_new_array();
  for (gsize i = 0; i < value->pair_count; i++) {
    if (map) {
      json_add_text(json, value->pairs[i].name.data, value->pairs[i].value.data);
    } else {
      json_object_array_add(json, json_object_new_string(value->pairs[i].name.data));
    }
  }
  return json;
}

JsonObject *option_values_to_json(const OptionValues *values,
                                  const struct sandhost_provider *table) {
  JsonObject *json = json_object_new_object();
  for (gsize i = 0; i < table->option_count; i++) {
    const struct sandhost_value *value = &values->values[i];
    const char *name = table->options[i].name;
    if (!value->set) {
      continue;
    }
    if (table->options[i].flags & SANDHOST_OPTION_SECRET) {
      json_add_text(json, name, "[REDACTED]");
    } else if (value->type == SANDHOST_OPTION_BOOLEAN) {
      json_add_bool(json, name, value->integer != 0);
    } else if (value->type == SANDHOST_OPTION_TEXT) {
      json_add_text(json, name, value->text.data);
    } else if (value->type == SANDHOST_OPTION_LIST || value->type == SANDHOST_OPTION_MAP) {
      json_add_take(json, name, pairs_to_json(value));
    } else {
      json_add_int(json, name, value->integer);
    }
  }
  return json;
}

static void add_secret(GPtrArray *strings, const char *text) {
  if (text && *text) {
    g_ptr_array_add(strings, g_strdup(text));
  }
}

static void add_secrets_of(GPtrArray *strings, const struct sandhost_value *value) {
  if (value->set && value->type == SANDHOST_OPTION_TEXT) {
    add_secret(strings, value->text.data);
  }
  for (gsize i = 0; value->set && i < value->pair_count; i++) {
    gboolean map = value->type == SANDHOST_OPTION_MAP;
    add_secret(strings, map ? value->pairs[i].value.data : value->pairs[i].name.data);
  }
}

void option_values_secrets(const OptionValues *values, const struct sandhost_provider *table,
                           GPtrArray *strings) {
  for (gsize i = 0; i < table->option_count; i++) {
    const struct sandhost_option *option = &table->options[i];
    if (option->flags & SANDHOST_OPTION_SECRET) {
      add_secrets_of(strings, &values->values[i]);
      add_secret(strings, option->environment ? getenv(option->environment) : NULL);
    }
  }
}

const char *option_fault(const struct sandhost_option *option) {
  if (option->choices) {
    g_auto(GStrv) choices = g_strsplit(option->choices, "|", -1);
    if (option->type != SANDHOST_OPTION_TEXT) {
      return "has choices and is no text";
    }
    for (guint i = 0; choices[i]; i++) {
      if (*choices[i] == '\0') {
        return "has an empty choice";
      }
    }
  }
  if ((option->flags & SANDHOST_OPTION_POSITIVE) && option->type != SANDHOST_OPTION_INTEGER &&
      option->type != SANDHOST_OPTION_SIZE) {
    return "is positive and is no number";
  }
  if (option->fallback) {
    struct sandhost_value value = {0};
    g_autoptr(GPtrArray) memory = g_ptr_array_new_with_free_func(g_free);
    Reading reading = {.option = option, .memory = memory, .value = &value};
    gboolean ok = read_text(&reading, option->fallback);
    g_free(reading.must);
    if (!ok) {
      return "has a default that is not of its type";
    }
  }
  return NULL;
}
