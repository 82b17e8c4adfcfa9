/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c: sandhost doctor, what works on this machine, and what to do about the rest. */
#include "cli/doctor.h"

#include <stdio.h>
#include <string.h>

#include "base/build.h"
#include "cli/enforcement.h"

#define EXIT_UNWELL 1

typedef struct {
  CliRunOptions run; /* config, provider, record */
  gboolean json;
  gboolean no_try;
} DoctorOptions;

typedef struct {
  const DoctorOptions *options;
  ProviderRegistry *registry;
  Config *config;
  char *config_fault; /* NULL: there is none */
  Machine machine;
  JsonObject *diagnoses; /* array of what diagnose tells */
} Doctor;

static void doctor_clear(Doctor *doctor) {
  machine_clear(&doctor->machine);
  json_object_put(doctor->diagnoses);
  g_free(doctor->config_fault);
  config_free(doctor->config);
  provider_registry_free(doctor->registry);
}

/* ---- Looking ---------------------------------------------------------------------------------------------------- */

/* A configuration that is wrong is told, and the rest is looked at as if there were none. */
static void read_config(Doctor *doctor) {
  g_autoptr(GError) error = NULL;
  doctor->config = cli_config(&doctor->options->run, doctor->registry, &error);
  if (doctor->config) {
    harness_register(doctor->config, doctor->registry, &error);
  } else {
    doctor->config = config_new_default();
  }
  doctor->config_fault = error ? g_strdup(error->message) : NULL;
}

/* What a run would be refused for beyond its provider, such as a policy that cannot be read. */
static void check_config(Doctor *doctor) {
  g_autoptr(GError) error = NULL;
  g_autoptr(ProviderRegistry) registry = NULL;
  g_autoptr(Harness) harness = cli_harness(&doctor->options->run, &registry, &error);
  if (harness) {
    harness_executes(harness, &error);
  }
  if (error && !doctor->config_fault) {
    doctor->config_fault = g_strdup(error->message);
  }
}

static JsonObject *selected(const Doctor *doctor) {
  for (gsize i = 0; i < json_object_array_length(doctor->diagnoses); i++) {
    JsonObject *diagnosis = json_object_array_get_idx(doctor->diagnoses, i);
    if (json_get_bool(diagnosis, "selected", FALSE)) {
      return diagnosis;
    }
  }
  return NULL;
}

static void examine_all(Doctor *doctor, Cancel *cancel) {
  const DoctorSettings settings = {
      .registry = doctor->registry,
      .config = doctor->config,
      .tries = !doctor->options->no_try,
      .cancel = cancel,
  };
  g_auto(GStrv) names = NULL;
  g_auto(GStrv) files = NULL;
  provider_registry_list(doctor->registry, &names, &files);
  for (gsize i = 0; names[i] && !cancel_raised(cancel); i++) {
    gboolean chosen = g_strcmp0(names[i], doctor->config->provider) == 0;
    if (chosen || strcmp(files[i], "built in") != 0) {
      json_object_array_add(doctor->diagnoses, diagnose_apart(&settings, names[i], files[i]));
    }
  }
  if (doctor->config->provider && !selected(doctor)) {
    json_object_array_add(doctor->diagnoses,
                          diagnose_apart(&settings, doctor->config->provider, NULL));
  }
}

static gboolean is_well(const Doctor *doctor) {
  return json_get_bool(selected(doctor), "usable", FALSE) && !doctor->config_fault &&
         !doctor->machine.record_fault;
}

/* ---- Telling ---------------------------------------------------------------------------------------------------- */

static const char *yes_no(gboolean yes) {
  return yes ? "yes" : "no";
}

static void print_machine(const Doctor *doctor) {
  const Machine *machine = &doctor->machine;
  const char *file = doctor->options->run.config;
  const char *provider = doctor->config->provider;
  printf("%-12s %s\n", "sandhost", SANDHOST_VERSION);
  printf("%-12s %s%s%s; provider %s\n", "config", file ? file : "none given",
         doctor->config_fault ? ": " : "", doctor->config_fault ? doctor->config_fault : "",
         provider ? provider : "none");
  printf("%-12s %s: %s\n", "record", machine->record,
         machine->record_fault ? machine->record_fault : "can be written");
  printf("%-12s %s%s\n", "guest", machine->guest, machine->has_guest ? "" : ": missing");
  printf("%-12s %s; user namespaces %s, control groups %s, seccomp %s, openat2 %s\n", "kernel",
         machine->kernel, yes_no(machine->user_namespaces), machine->control_groups,
         yes_no(machine->seccomp), yes_no(machine->openat2));
}

/* "keeps network off, a CPU limit (forward)". Owned. */
static char *kept_words(JsonObject *diagnosis) {
  JsonObject *enforces = json_get(diagnosis, "enforces");
  if (json_get_bool(diagnosis, "trusted", FALSE)) {
    return g_strdup("declares nothing and is trusted with every manifest");
  }
  g_autoptr(GString) words = g_string_new("keeps");
  gsize count = 0;
  for (gsize i = 0; i < ENFORCEMENT_COUNT; i++) {
    const char *word = json_get_text(enforces, ENFORCEMENT[i].name);
    if (!word || strcmp(word, "-") == 0) {
      continue;
    }
    g_string_append_printf(words, "%s %s", count++ > 0 ? "," : "", ENFORCEMENT[i].words);
    if (strcmp(word, "yes") != 0) {
      g_string_append_printf(words, " (%s)", word);
    }
  }
  return g_strdup(count > 0 ? words->str : "keeps nothing");
}

static void print_diagnosis(JsonObject *diagnosis) {
  const char *name = json_get_text(diagnosis, "name");
  const char *remark = json_get_text(diagnosis, "remark");
  const char *mark = json_get_bool(diagnosis, "selected", FALSE) ? "*" : " ";
  if (!json_get_bool(diagnosis, "usable", FALSE)) {
    printf("%s %-10s not usable: %s\n", mark, name, remark);
    return;
  }
  g_autofree char *kept = kept_words(diagnosis);
  printf("%s %-10s usable%s; %s%s%s%s\n", mark, name,
         json_get_bool(diagnosis, "tried", FALSE) ? "" : " (not tried)",
         json_get_bool(diagnosis, "isolated", TRUE) ? "" : "runs commands on this machine itself; ",
         kept, remark ? "; " : "", remark ? remark : "");
  for (gsize i = 0; i < ENFORCEMENT_COUNT; i++) {
    const char *why = json_get_text(json_get(diagnosis, "lowered"), ENFORCEMENT[i].name);
    if (why) {
      printf("  %-10s not here: %s: %s\n", "", ENFORCEMENT[i].words, why);
    }
  }
}

static void print_text(const Doctor *doctor) {
  print_machine(doctor);
  printf("\nproviders (* is the one in use):\n");
  gsize count = json_object_array_length(doctor->diagnoses);
  for (gsize i = 0; i < count; i++) {
    print_diagnosis(json_object_array_get_idx(doctor->diagnoses, i));
  }
  if (count == 0) {
    printf("  none is installed; SANDHOST_PLUGIN_PATH names folders with sandhost-NAME.so\n");
  }
  if (!doctor->config->provider) {
    printf("no sandbox is configured: name a provider in "
           "governance_config.sandbox_config.provider\n");
  }
}

static void print_json(const Doctor *doctor) {
  g_autoptr(JsonObject) object = json_object_new_object();
  json_add_bool(object, "ok", is_well(doctor));
  json_add_text(object, "version", SANDHOST_VERSION);
  json_add_text(object, "config", doctor->options->run.config);
  json_add_text(object, "config_error", doctor->config_fault);
  json_add_text(object, "provider", doctor->config->provider);
  json_add_take(object, "machine", machine_json(&doctor->machine));
  json_add_take(object, "providers", json_object_get(doctor->diagnoses));
  g_autofree char *text = json_text(object);
  printf("%s\n", text);
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

static int doctor_run(const DoctorOptions *options) {
  g_autoptr(Cancel) cancel = cancel_new();
  Doctor doctor = {
      .options = options,
      .registry = cli_registry(),
      .diagnoses = json_object_new_array(),
  };
  read_config(&doctor);
  doctor.machine = machine_look(provider_registry_guest_dir(doctor.registry),
                                cli_record_path(&options->run, doctor.config));
  cli_install_signals(cancel);
  examine_all(&doctor, cancel);
  if (json_get_bool(selected(&doctor), "usable",
                    FALSE)) { /* else what is wrong with it stands there already */
    check_config(&doctor);
  }
  int code = is_well(&doctor) ? 0 : EXIT_UNWELL;
  if (cancel_raised(cancel)) {
    code = 128 + cli_caught_signal();
  } else if (options->json) {
    print_json(&doctor);
  } else {
    print_text(&doctor);
  }
  cli_install_signals(NULL);
  doctor_clear(&doctor);
  return code;
}

int cli_doctor(int argc, char **argv) {
  DoctorOptions options = {0};
  const GOptionEntry entries[] = {
      {"config", 'c', 0, G_OPTION_ARG_FILENAME, &options.run.config,
       "Configuration file (sandhost.json(5))", "F"},
      {"provider", 'p', 0, G_OPTION_ARG_STRING, &options.run.provider,
       "The provider to be used (default bubblewrap)", "NAME"},
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &options.run.record, "File that keeps the record",
       "F"},
      {"no-try", 0, 0, G_OPTION_ARG_NONE, &options.no_try,
       "Make no sandbox to see whether it works", NULL},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "Print one JSON object", NULL},
      {0},
  };
  int code = EXIT_USAGE;
  if (cli_parse(&argc, &argv, NULL,
                "Tells for each provider whether it is usable on this machine, what it would keep, "
                "and what to install or set. Makes and ends one empty sandbox each to find out.",
                entries)) {
    if (argc > 1) {
      cli_complain("doctor takes no argument '%s'", argv[1]);
    } else {
      code = doctor_run(&options);
    }
  }
  cli_run_options_clear(&options.run);
  return code;
}
