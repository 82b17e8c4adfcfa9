/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: sandhost-conformance FILE.so [--option NAME=VALUE]... [--working-dir DIR] [--only TEXT]... [--patience SECONDS]
 * [--progress]
 *
 * Loads a provider and proves the contract, check by check. Prints a line for each; a failed one says what was found
 * and what provider.h asks for. --only: just the checks that have one of the texts in their name. --patience: how long an
 * operation may take. --progress: each check is named before it is run. Exit 0: all that apply passed; 1: some failed, or
 * one did not come back; 2: it could not be loaded, or ended the process that judged it (apart.h), or a text is in no check's
 * name.
 */
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apart.h"
#include "bound.h"
#include "exercise.h"
#include "guard.h"
#include "network.h"
#include "provider/door.h"
#include "report.h"
#include "suite.h"

typedef struct {
  const char *file;
  const char *working_dir;
  GPtrArray *only; /* of const char *: a check with one of them in its name is run; empty: all */
  const char *guest_dir;
  gint64 patience;     /* seconds that an operation may take; 0: as its call says */
  gboolean progress;   /* each check is named before it is run */
  GHashTable *options; /* name -> value, borrowed from argv */
} Arguments;

/* "program: " and the text. */
static void complain(const char *format, ...) G_GNUC_PRINTF(1, 2);
static void complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  fprintf(apart_err ? apart_err : stderr, "%s: %s\n", g_get_prgname(), text);
}

/* ---- The table ----------------------------------------------------------------------------------------------------- */

static const struct sandhost_provider *refuse(const char *file, const char *reason) {
  complain("provider file %s refused: %s", file, reason);
  return NULL;
}

/* Whether a host that looks for the name finds the file. NULL: it does; else the reason, owned. */
static char *file_name_fault(const char *file, const struct sandhost_provider *table) {
  g_autofree char *base = g_path_get_basename(file);
  if (!g_str_has_prefix(base, "sandhost-") || !g_str_has_suffix(base, ".so")) {
    return g_strdup_printf("the file is not named sandhost-%s.so", table->name);
  }
  g_autofree char *name =
      g_strndup(base + strlen("sandhost-"), strlen(base) - strlen("sandhost-") - strlen(".so"));
  return door_name_fault(table, name);
}

/* In the provider's own file. */
static const void *entry_address;

/* Refuses what a host refuses, in the same words. */
static const struct sandhost_provider *load(const char *file, struct sandhost_provider *ret_table) {
  g_autofree char *path = g_canonicalize_filename(file, NULL);
  void *module = NULL;
  GuardStay stay;
  apart_doing("being loaded");
  guard_enter(&stay, "being loaded");
  g_autofree char *reason = door_map(path, &module);
  guard_leave(&stay);
  ProviderEntry entry = reason ? NULL : door_entry(module, &reason);
  if (entry) {
    guard_enter(&stay, "the entry");
    reason = door_ask(entry, &SUITE_HOST, ret_table);
    guard_leave(&stay);
    reason = reason ? reason : file_name_fault(path, ret_table);
  }
  if (!entry || reason) {
    return refuse(file, reason);
  }
  memcpy(&entry_address, &entry, sizeof entry_address);
  apart_loaded();
  return ret_table; // cppcheck-suppress resourceLeak ; never unloaded
}

static gboolean give_value(const struct sandhost_option *option, const char *text,
                           struct sandhost_value *ret_value, struct sandhost_pair *pair) {
  *ret_value = (struct sandhost_value){.size = sizeof *ret_value, .type = option->type};
  if (!text) {
    return !(option->flags & SANDHOST_OPTION_REQUIRED);
  }
  char *end = NULL;
  ret_value->set = 1;
  switch (option->type) {
  case SANDHOST_OPTION_BOOLEAN:
    ret_value->integer = strcmp(text, "true") == 0;
    return ret_value->integer || strcmp(text, "false") == 0;
  case SANDHOST_OPTION_SIZE:
  case SANDHOST_OPTION_INTEGER:
    ret_value->integer = g_ascii_strtoll(text, &end, 10);
    if (option->type == SANDHOST_OPTION_SIZE && *end && strchr("kmg", g_ascii_tolower(*end))) {
      ret_value->integer <<= *end == 'k' ? 10 : *end == 'm' ? 20 : 30;
      end++;
    }
    return end != text && !*end;
  case SANDHOST_OPTION_LIST:
    *pair = (struct sandhost_pair){.name = as_text(text)};
    ret_value->pairs = pair;
    ret_value->pair_count = 1;
    return TRUE;
  case SANDHOST_OPTION_MAP:
    return FALSE;
  default:
    ret_value->text = as_text(text);
    return TRUE;
  }
}

/* What an option takes. */
static const char *wanted_of(const struct sandhost_option *option) {
  switch (option->type) {
  case SANDHOST_OPTION_BOOLEAN:
    return "must be true or false";
  case SANDHOST_OPTION_SIZE:
    return "must be a number of bytes, or one with k, m or g behind it";
  case SANDHOST_OPTION_INTEGER:
    return "must be a whole number";
  default:
    return "is a map, which cannot be given here";
  }
}

static void refuse_value(const struct sandhost_option *option, const char *text) {
  if (!text) {
    complain("give --option %s=... (%s)", option->name, option->help);
  } else if (option->flags & SANDHOST_OPTION_SECRET) {
    complain("--option %s %s (%s)", option->name, wanted_of(option), option->help);
  } else {
    complain("--option %s %s, got '%s' (%s)", option->name, wanted_of(option), text, option->help);
  }
}

static gboolean open_instance(Subject *subject, const Arguments *arguments) {
  const struct sandhost_provider *table = subject->table;
  static struct sandhost_open request; /* it and its values stay, for more instances */
  gsize count = table->option_count + 1;
  struct sandhost_value *values =
      g_malloc0(count * (sizeof *values + sizeof(struct sandhost_pair)));
  struct sandhost_pair *pairs = (void *)(values + count); /* behind them: only lists have one */
  for (gsize i = 0; i < table->option_count; i++) {
    const struct sandhost_option *option =
        (const void *)((const char *)table->options + i * table->option_size);
    const char *given = g_hash_table_lookup(arguments->options, option->name);
    const char *text = given ? given : option->environment ? g_getenv(option->environment) : NULL;
    text = text ? text : option->fallback;
    if (!give_value(option, text, &values[i], &pairs[i])) {
      refuse_value(option, text);
      g_free(values);
      return FALSE;
    }
  }
  request = (struct sandhost_open){.size = sizeof request,
                                   .values = values,
                                   .value_count = table->option_count,
                                   .guest_dir = as_path(arguments->guest_dir)};
  subject->request = &request;
  struct sandhost_call call;
  call_init(&call, 60);
  apart_doing("being opened");
  gint32 status = table->start ? table->start(&call, &SUITE_HOST) : SANDHOST_OK;
  if (status == SANDHOST_OK) {
    status = table->open(&call, &request, &subject->instance);
  }
  if (status != SANDHOST_OK) {
    complain("open failed with %s: %s", status_name(status),
             call.message ? call.message : "no message");
  }
  call_clear(&call);
  return status == SANDHOST_OK;
}

/* ---- The checks ------------------------------------------------------------------------------------------------------ */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where) {
  (void)status;
  (void)kind;
  (void)where;
  remove(path); /* what cannot be removed stays */
  return 0;
}

/* Where the working directory is a real folder of this machine, each check gets a fresh one below it. */
static void run_check(const Subject *subject, const Check *check, Verdict *verdict) {
  Subject own = *subject;
  g_autofree char *folder = g_build_filename(subject->working_dir, "check-XXXXXX", NULL);
  if (subject->host_surface) {
    own.working_dir = g_mkdtemp(folder);
    if (!own.working_dir) {
      wrong(verdict, "no folder can be made below %s; give --working-dir", subject->working_dir);
      return;
    }
  }
  apart_doing(check->name);
  check->run(&own, verdict);
  if (subject->host_surface) {
    nftw(own.working_dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  }
}

/* A text that is in none would pass without anything being tried. */
static gboolean names_exist(const GPtrArray *only) {
  for (guint i = 0; i < only->len; i++) {
    const char *text = g_ptr_array_index(only, i);
    if (!report_knows(text)) {
      complain("no check's name has '%s' in it", text);
      return FALSE;
    }
  }
  return TRUE;
}

/* ---- The words of the command line -------------------------------------------------------------------------------------- */

#define MOST_PATIENCE 86400 /* seconds */

static gboolean parse(int argc, char **argv, Arguments *arguments) {
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (argv[i][0] != '-' && !arguments->file) {
      arguments->file = argv[i];
      continue;
    }
    if (strcmp(argv[i], "--progress") == 0) {
      arguments->progress = TRUE;
      continue;
    }
    if (!value) {
      return FALSE;
    }
    i++;
    if (strcmp(argv[i - 1], "--option") == 0 && strchr(value, '=')) {
      gsize length = (gsize)(strchr(value, '=') - value);
      g_hash_table_insert(arguments->options, g_strndup(value, length),
                          g_strdup(value + length + 1));
    } else if (strcmp(argv[i - 1], "--working-dir") == 0) {
      arguments->working_dir = value;
    } else if (strcmp(argv[i - 1], "--only") == 0) {
      g_ptr_array_add(arguments->only, argv[i]);
    } else if (strcmp(argv[i - 1], "--guest-dir") == 0) {
      arguments->guest_dir = value;
    } else if (strcmp(argv[i - 1], "--patience") == 0) {
      if (!g_ascii_string_to_signed(value, 10, 1, MOST_PATIENCE, &arguments->patience, NULL)) {
        return FALSE;
      }
    } else {
      return FALSE;
    }
  }
  return arguments->file != NULL;
}

static gboolean options_exist(const struct sandhost_provider *table, const Arguments *arguments) {
  GHashTableIter iter;
  gpointer name = NULL;
  g_hash_table_iter_init(&iter, arguments->options);
  while (g_hash_table_iter_next(&iter, &name, NULL)) {
    gboolean known = FALSE;
    for (gsize i = 0; i < table->option_count; i++) {
      const struct sandhost_option *option =
          (const void *)((const char *)table->options + i * table->option_size);
      known = known || strcmp(option->name, name) == 0;
    }
    if (!known) {
      complain("%s has no option '%s'", table->name, (const char *)name);
      return FALSE;
    }
  }
  return TRUE;
}

/* Before and after the checks nothing can be said of one. */
static gboolean are_being_run;
static const char *judged_file;

static void exercise(Subject *subject, Verdict *verdict) {
  (void)verdict;
  exercise_everything(subject);
}

static void end_stuck(const char *operation, gint64 seconds) {
  if (are_being_run) {
    complain("%s does not come back from: %s; what it has made may still be there", judged_file,
             operation);
    report_stuck(operation, seconds);
  }
  complain("%s does not come back from: being opened", judged_file);
  apart_end(2, NULL);
  _exit(2);
}

/* Nobody is in the provider any more. */
static void run_watched(const Subject *subject, const Check *check, Verdict *verdict) {
  Subject own = *subject;
  check->run(&own, verdict);
}

static void check_everything(const Arguments *arguments, Subject *subject) {
  static const Check EXERCISE = {.name = "each operation", .run = exercise};
  const struct sandhost_provider *table = subject->table;
  are_being_run = TRUE;
  report_all(subject, arguments->only, arguments->progress, run_check);
  if (report_watches()) {
    Verdict scrap = {0};
    run_check(subject, &EXERCISE, &scrap);
    g_free(scrap.wrong);
  }
  apart_doing("being closed");
  table->close(subject->instance);
  guard_judge_threads(FALSE);
  if (table->stop) {
    table->stop();
  }
  guard_judge_threads(TRUE);
  guard_judge_handlers(entry_address);
  report_watched(subject, run_watched);
}

/* In the process that may end with the provider. sum: owned; NULL where nothing was judged. */
static int judge(const Arguments *arguments, char **ret_sum) {
  static struct sandhost_provider loaded; /* what table_check copies is never freed */
  static struct sandhost_provider table;
  Subject subject = {.working_dir = arguments->working_dir, .table = &table};
  guard_begin();
  if (!load(arguments->file, &loaded) || !options_exist(&loaded, arguments)) {
    return 2;
  }
  bound_table(&loaded, arguments->patience, end_stuck, &table);
  if (!open_instance(&subject, arguments)) {
    return 2;
  }
  subject.keeps_network_off = declares_setting(&table, SANDHOST_SETTING_NETWORK_OFF);
  g_snprintf(subject.run_id, sizeof subject.run_id, "run_conformance_%d_%u", (int)getpid(),
             g_random_int());
  g_autofree char *absolute = g_canonicalize_filename(arguments->working_dir, NULL);
  subject.working_dir = absolute;
  subject.host_surface = (table.flags & SANDHOST_PROVIDER_HOST_SURFACE) != 0;
  check_everything(arguments, &subject);
  int code = 2;
  *ret_sum = report_sum(&code);
  return code;
}

static int judge_apart(void *user) {
  g_autofree char *sum = NULL;
  int code = judge(user, &sum);
  apart_end(code, sum);
  return code;
}

int main(int argc, char **argv) {
  g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
  g_autofree char *beside = g_path_get_dirname(program ? program : ".");
  g_autofree char *name = g_path_get_basename(argv[0]); /* sandhost gives its own */
  g_set_prgname(name);
  Arguments arguments = {.working_dir = "/workspace", .guest_dir = beside};
  arguments.options = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  arguments.only = g_ptr_array_new();
  int code = 2;
  if (parse(argc, argv, &arguments)) {
    judged_file = arguments.file;
    code = names_exist(arguments.only) ? apart_run(arguments.file, judge_apart, &arguments) : 2;
  } else {
    fprintf(stderr, "usage: sandhost-conformance FILE.so [--option NAME=VALUE]... [--working-dir "
                    "DIR] [--only TEXT]... [--patience SECONDS] [--progress]\n");
  }
  g_hash_table_unref(arguments.options);
  g_ptr_array_unref(arguments.only);
  return code;
}
