/* SPDX-License-Identifier: Apache-2.0 */
/* provider-testing.h: opening plugins of the zoo, and listening to what they do. */
#ifndef TEST_PROVIDER_TESTING_H
#define TEST_PROVIDER_TESTING_H

#include <glib.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "provider/sandbox.h"

#define ZOO TEST_BUILD_DIR "/tests/plugins"

static inline ProviderRegistry *zoo_registry(void) {
  g_setenv("SANDHOST_PLUGIN_PATH", ZOO, TRUE);
  return provider_registry_new();
}

static inline CallScope scope_of(gint64 duration) {
  return (CallScope){.deadline = clock_deadline(duration)};
}

/* A manifest of JSON; NULL: one that only allows the network. */
static inline Manifest *manifest_of(const char *json) {
  g_autoptr(GError) error = NULL;
  const char *text = json ? json : "{\"network_policy\":{\"default\":\"allow\"}}";
  g_autoptr(JsonObject) object = json_parse("manifest", text, strlen(text), &error);
  g_assert_no_error(error);
  Manifest *manifest = manifest_new(object, &error);
  g_assert_no_error(error);
  return manifest;
}

/* An opened plugin with a sandbox, and everything that goes with it. */
typedef struct {
  ProviderRegistry *registry;
  ProviderInstance *instance;
  Sandbox *sandbox;
  char *folder; /* the example's working directory; NULL elsewhere */
} Zoo;

static inline Zoo zoo_open(const char *name) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Manifest) manifest = manifest_of(NULL);
  const CallScope scope = scope_of(30 * CLOCK_SECOND);
  Zoo zoo = {.registry = zoo_registry()};
  Provider *provider = provider_registry_load(zoo.registry, name, &error);
  g_assert_no_error(error);
  zoo.instance = provider_instance_open(zoo.registry, provider, NULL, &error);
  g_assert_no_error(error);
  zoo.sandbox = sandbox_create(zoo.instance, manifest, "key-1", "run-1", &scope, &error);
  g_assert_no_error(error);
  return zoo;
}

static inline void zoo_close(Zoo *zoo) {
  g_autoptr(GError) error = NULL;
  sandbox_end(zoo->sandbox, &error);
  g_assert_no_error(error);
  provider_instance_close(zoo->instance);
  provider_registry_free(zoo->registry);
}

/* What a command gave. */
typedef struct {
  GString *out;
  GString *err;
  guint64 execution;
  const char *input; /* NULL: none */
  gint32 answer;     /* of the observer to output */
  struct sandhost_result result;
  GError *error;
} Command;

static inline int32_t command_output(void *user, uint32_t stream, const void *data, size_t length) {
  Command *command = user;
  g_string_append_len(stream == SANDHOST_STDOUT ? command->out : command->err, data,
                      (gssize)length);
  return command->answer;
}

static inline void command_started(void *user, uint64_t execution) {
  ((Command *)user)->execution = execution;
}

static inline int64_t command_input(void *user, void *buffer, size_t length) {
  Command *command = user;
  gsize count = MIN(strlen(command->input), length);
  memcpy(buffer, command->input, count);
  command->input += count;
  return (int64_t)count;
}

static inline int32_t command_input_fd(void *user) {
  (void)user;
  return -1;
}

static inline Command command_new(void) {
  return (Command){.out = g_string_new(NULL), .err = g_string_new(NULL)};
}

static inline void command_clear(Command *command) {
  g_string_free(command->out, TRUE);
  g_string_free(command->err, TRUE);
  g_clear_error(&command->error);
}

/* words: the argv, separated by one space each. */
static inline gboolean command_run(Command *command, Sandbox *sandbox, const CallScope *scope,
                                   const char *words, const struct sandhost_execute *settings) {
  g_auto(GStrv) parts = g_strsplit(words, " ", -1);
  struct sandhost_text argv[16];
  gsize argc = 0;
  for (; parts[argc]; argc++) {
    argv[argc] = (struct sandhost_text){.data = parts[argc], .length = strlen(parts[argc])};
  }
  struct sandhost_execute request = settings ? *settings : (struct sandhost_execute){0};
  request.size = sizeof request;
  request.argv = argv;
  request.argc = argc;
  request.flags = command->input ? SANDHOST_EXECUTE_STDIN : 0;
  const struct sandhost_observer observer = {
      .size = sizeof observer,
      .user = command,
      .started = command_started,
      .output = command_output,
      .input = command->input ? command_input : NULL,
      .input_fd = command->input ? command_input_fd : NULL,
  };
  return sandbox_execute(sandbox, scope, &request, &observer, &command->result, &command->error);
}

/* Runs words and returns the message of the error that must come. Owned. */
static inline char *command_refusal(Sandbox *sandbox, const char *words, gint32 status) {
  const CallScope scope = scope_of(30 * CLOCK_SECOND);
  Command command = command_new();
  g_assert_false(command_run(&command, sandbox, &scope, words, NULL));
  g_assert_error(command.error, PROVIDER_ERROR, status);
  char *message = g_strdup(command.error->message);
  command_clear(&command);
  return message;
}

/* A fresh folder, and its removal with all that is in it. */
static inline char *folder_new(void) {
  g_autoptr(GError) error = NULL;
  char *folder = g_dir_make_tmp("sandhost-test-XXXXXX", &error);
  g_assert_no_error(error);
  return folder;
}

static inline void folder_remove(char *take_folder) {
  const char *const argv[] = {"rm", "-rf", "--", take_folder, NULL};
  g_assert_true(g_spawn_sync(NULL, (char **)(gsize)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                             NULL, NULL, NULL, NULL));
  g_free(take_folder);
}

/* The lines of GOOD_LOG since log_new; the variable is unset by log_end. */
static inline char *log_new(void) {
  char *folder = folder_new();
  char *file = g_build_filename(folder, "log", NULL);
  g_setenv("GOOD_LOG", file, TRUE);
  g_free(folder);
  return file;
}

static inline void assert_log(const char *file, const char *text) {
  g_autofree char *lines = NULL;
  g_file_get_contents(file, &lines, NULL, NULL);
  g_assert_cmpstr(lines, ==, text);
}

/* Waits for what an abandoned call will write. */
static inline void await_log(const char *file, const char *text) {
  for (int i = 0; i < 1000; i++) {
    g_autofree char *lines = NULL;
    if (g_file_get_contents(file, &lines, NULL, NULL) && strcmp(lines, text) == 0) {
      return;
    }
    g_usleep(20000);
  }
  assert_log(file, text);
}

static inline void log_end(char *take_file) {
  g_unsetenv("GOOD_LOG");
  folder_remove(g_path_get_dirname(take_file));
  g_free(take_file);
}

static inline void *raise_soon(void *argument) {
  g_usleep(50000);
  cancel_raise(argument);
  return NULL;
}

/* GLib's slices pass memory between threads by locks that the thread sanitizer does not know. */
static inline void use_plain_memory(char **argv) {
#ifdef __SANITIZE_THREAD__
  if (!g_getenv("G_SLICE")) {
    g_setenv("G_SLICE", "always-malloc", TRUE);
    execv("/proc/self/exe", argv);
  }
#else
  (void)argv;
#endif
}

#endif
