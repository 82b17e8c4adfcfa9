/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c: a provider's table is copied once, then only the copy is looked at. What the copy of an accepted table
 * points to lives as long as the process.
 */
#include "provider/table.h"

#include <string.h>

#include "provider/options.h"
#include "provider/text.h"

/* Sizes of the first release; a smaller struct is none. */
#define TABLE_SIZE_1_0 (offsetof(struct sandhost_provider, probe) + sizeof(void (*)(void)))
#define OPTION_SIZE_1_0 (offsetof(struct sandhost_option, help) + sizeof(char *))

#define MAX_OPTIONS 256u
#define MAX_ENFORCES 256u
#define MAX_OPTION_NAME 64u
#define MAX_LINE 1024u

#define KNOWN_PROVIDER_FLAGS (SANDHOST_PROVIDER_HOST_SURFACE | SANDHOST_PROVIDER_TEST)
#define KNOWN_OPTION_FLAGS                                                                         \
  (SANDHOST_OPTION_REQUIRED | SANDHOST_OPTION_SECRET | SANDHOST_OPTION_POSITIVE)

gboolean table_name_is_valid(const char *name) {
  return text_is_name(name, TABLE_MAX_NAME, "-");
}

/* ---- Head ------------------------------------------------------------------------------------------------ */

static gboolean level_is_known(uint32_t threads) {
  return threads == SANDHOST_THREADS_PLUGIN || threads == SANDHOST_THREADS_INSTANCE ||
         threads == SANDHOST_THREADS_SANDBOX || threads == SANDHOST_THREADS_PARALLEL;
}

static void *keep(GPtrArray *memory, void *take_block) {
  if (take_block) {
    g_ptr_array_add(memory, take_block);
  }
  return take_block;
}

static char *check_head(struct sandhost_provider *table, GPtrArray *memory) {
  if (table->reserved != 0) {
    return g_strdup("its reserved field is not 0");
  }
  if (table->flags & ~KNOWN_PROVIDER_FLAGS) {
    return g_strdup_printf("it has unknown flags (0x%x)", table->flags & ~KNOWN_PROVIDER_FLAGS);
  }
  if (!level_is_known(table->threads)) {
    return g_strdup_printf("its thread level %u is not known", table->threads);
  }
  if (!table_name_is_valid(table->name)) {
    g_autofree char *shown = text_clean_string(table->name, TABLE_MAX_NAME + 1);
    return g_strdup_printf("its name '%s' is not valid", shown);
  }
  table->name = keep(memory, text_checked_line(table->name, TABLE_MAX_NAME));
  table->version = keep(memory, text_checked_line(table->version, MAX_LINE));
  table->summary = keep(memory, text_checked_line(table->summary, MAX_LINE));
  if (!table->version || !table->summary) {
    return g_strdup_printf("its %s is not a line of text", table->version ? "summary" : "version");
  }
  return NULL;
}

static char *check_operations(const struct sandhost_provider *table) {
  const struct {
    const char *name;
    gboolean there;
  } required[] = {
      {"open", table->open != NULL},           {"close", table->close != NULL},
      {"create", table->create != NULL},       {"execute", table->execute != NULL},
      {"read_file", table->read_file != NULL}, {"write_file", table->write_file != NULL},
      {"terminate", table->terminate != NULL}, {"release", table->release != NULL},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(required); i++) {
    if (!required[i].there) {
      return g_strdup_printf("it lacks the required operation %s", required[i].name);
    }
  }
  if ((table->snapshot == NULL) != (table->delete_snapshot == NULL)) {
    return g_strdup("it has one of snapshot and delete_snapshot without the other");
  }
  return NULL;
}

/* ---- Options --------------------------------------------------------------------------------------------- */

static gboolean type_is_known(uint32_t type) {
  return type == SANDHOST_OPTION_TEXT || type == SANDHOST_OPTION_BOOLEAN ||
         type == SANDHOST_OPTION_INTEGER || type == SANDHOST_OPTION_SIZE ||
         type == SANDHOST_OPTION_LIST || type == SANDHOST_OPTION_MAP;
}

static gboolean variable_is_name(const char *name) {
  for (const char *at = name; *at; at++) {
    if (!g_ascii_isalpha(*at) && *at != '_' && !(g_ascii_isdigit(*at) && at > name)) {
      return FALSE;
    }
  }
  return *name != '\0';
}

/* Copies a string that may be missing; FALSE when it is there and no line of text. */
static gboolean take_line(const char **line, GPtrArray *memory) {
  if (!*line) {
    return TRUE;
  }
  *line = keep(memory, text_checked_line(*line, MAX_LINE));
  return *line != NULL;
}

/* option holds the plugin's pointers and gets copies. NULL: sound; else words behind "its option 'NAME' ". */
static const char *take_option(struct sandhost_option *option, GPtrArray *memory) {
  if (!type_is_known(option->type)) {
    return "has a type that is not known";
  }
  if (option->flags & ~KNOWN_OPTION_FLAGS) {
    return "has unknown flags";
  }
  if (!option->help || !take_line(&option->help, memory)) {
    return "has no help";
  }
  if (!take_line(&option->fallback, memory)) {
    return "has a default that is not a line of text";
  }
  if (!take_line(&option->choices, memory)) {
    return "has choices that are not a line of text";
  }
  if (!take_line(&option->environment, memory) ||
      (option->environment && !variable_is_name(option->environment))) {
    return "has an environment variable of no valid name";
  }
  return option_fault(option);
}

static char *take_options(struct sandhost_provider *table, GPtrArray *memory) {
  gsize count = table->option_count;
  const char *theirs = (const char *)table->options;
  if (count == 0) {
    table->options = NULL;
    return NULL;
  }
  if (count > MAX_OPTIONS || !theirs || table->option_size < OPTION_SIZE_1_0 ||
      table->option_size % _Alignof(struct sandhost_option) != 0) {
    return g_strdup("its table of options makes no sense");
  }
  struct sandhost_option *options = keep(memory, g_new0(struct sandhost_option, count));
  for (gsize i = 0; i < count; i++) {
    gsize size = 0;
    memcpy(&size, theirs + i * table->option_size, sizeof size);
    if (size < OPTION_SIZE_1_0 || size > table->option_size) {
      return g_strdup_printf("its option %zu has a size that makes no sense", i + 1);
    }
    memcpy(&options[i], theirs + i * table->option_size, MIN(size, sizeof options[i]));
    options[i].size = sizeof options[i];
    if (!text_is_name(options[i].name, MAX_OPTION_NAME, "")) {
      g_autofree char *shown = text_clean_string(options[i].name, MAX_OPTION_NAME + 1);
      return g_strdup_printf("its option name '%s' is not valid", shown);
    }
    options[i].name = keep(memory, g_strdup(options[i].name));
    for (gsize earlier = 0; earlier < i; earlier++) {
      if (strcmp(options[earlier].name, options[i].name) == 0) {
        return g_strdup_printf("its option '%s' is there twice", options[i].name);
      }
    }
    const char *fault = take_option(&options[i], memory);
    if (fault) {
      return g_strdup_printf("its option '%s' %s", options[i].name, fault);
    }
  }
  table->options = options;
  table->option_size = sizeof options[0];
  return NULL;
}

/* ---- Enforcement ------------------------------------------------------------------------------------------- */

static char *take_enforces(struct sandhost_provider *table, GPtrArray *memory) {
  gsize count = table->enforces_count;
  if (count == 0) {
    table->enforces = NULL;
    return NULL;
  }
  if (count > MAX_ENFORCES || !table->enforces) {
    return g_strdup("its table of what it enforces makes no sense");
  }
  struct sandhost_enforces *enforces =
      keep(memory, g_memdup2(table->enforces, count * sizeof *enforces));
  for (gsize i = 0; i < count; i++) {
    uint32_t level = enforces[i].level;
    if (level != SANDHOST_LEVEL_NONE && level != SANDHOST_LEVEL_FORWARDED &&
        level != SANDHOST_LEVEL_CHECKED && level != SANDHOST_LEVEL_ENFORCED) {
      return g_strdup_printf("it enforces setting %u at level %u, which is not known",
                             enforces[i].setting, level);
    }
    for (gsize earlier = 0; earlier < i; earlier++) {
      if (enforces[earlier].setting == enforces[i].setting) {
        return g_strdup_printf("it declares setting %u twice", enforces[i].setting);
      }
    }
  }
  table->enforces = enforces;
  return NULL;
}

char *table_check(const struct sandhost_provider *theirs, struct sandhost_provider *ret_table) {
  gsize size = theirs->size;
  if (size < TABLE_SIZE_1_0) {
    return g_strdup_printf("its table is %zu bytes, at least %zu are needed", size, TABLE_SIZE_1_0);
  }
  struct sandhost_provider table = {0};
  memcpy(&table, theirs, MIN(size, sizeof table));
  g_autoptr(GPtrArray) memory = g_ptr_array_new();
  char *reason = check_head(&table, memory);
  if (!reason) {
    reason = check_operations(&table);
  }
  if (!reason) {
    reason = take_options(&table, memory);
  }
  if (!reason) {
    reason = take_enforces(&table, memory);
  }
  if (reason) {
    g_ptr_array_set_free_func(memory, g_free);
  } else {
    *ret_table = table;
  }
  return reason;
}
