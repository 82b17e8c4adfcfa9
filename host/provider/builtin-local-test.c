/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builtin-local-test.c: the provider local_test: handlers that a program registered run instead of commands, and
 * files are kept in memory (behaviour 3.6). It reaches its registry's handlers through the call, which is the
 * host's own struct.
 */
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "provider/provider-private.h"
#include "provider/text.h"

#define MAX_FILE (64u << 20)

struct sandhost_instance {
  TestCommands *commands; /* owned reference */
};

typedef struct {
  GByteArray *bytes;
  guint32 mode;
  gint64 mtime;
} File;

struct sandhost_sandbox {
  TestCommands *commands; /* owned reference */
  char *working_dir;
  pthread_mutex_t lock;
  gboolean terminated; /* lock */
  GHashTable *files;   /* path below the working directory -> File */
};

static void file_free(gpointer data) {
  File *file = data;
  g_byte_array_unref(file->bytes);
  g_free(file);
}

static int32_t fail(struct sandhost_call *call, int32_t status, const char *what,
                    const char *name) {
  g_autofree char *text = g_strdup_printf("%s%s", what, name);
  return call_host_table.fail(call, status, text_of(text));
}

/* ---- Handlers -------------------------------------------------------------------------------------------------- */

typedef struct {
  LocalTestHandler handler;
  void *user;
} Command;

struct TestCommands {
  gint refs;
  pthread_mutex_t lock;
  GHashTable *by_name; /* owned name -> owned Command */
};

TestCommands *test_commands_new(void) {
  TestCommands *commands = g_new0(TestCommands, 1);
  commands->refs = 1;
  pthread_mutex_init(&commands->lock, NULL);
  commands->by_name = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  return commands;
}

TestCommands *test_commands_ref(TestCommands *commands) {
  g_atomic_int_inc(&commands->refs);
  return commands;
}

void test_commands_unref(TestCommands *commands) {
  if (commands && g_atomic_int_dec_and_test(&commands->refs)) {
    g_hash_table_unref(commands->by_name);
    pthread_mutex_destroy(&commands->lock);
    g_free(commands);
  }
}

void test_commands_add(TestCommands *commands, const char *name, LocalTestHandler handler,
                       void *user) {
  Command *command = g_new0(Command, 1);
  command->handler = handler;
  command->user = user;
  pthread_mutex_lock(&commands->lock);
  g_hash_table_replace(commands->by_name, g_strdup(name), command);
  pthread_mutex_unlock(&commands->lock);
}

gboolean test_commands_run(TestCommands *commands, const char *name, const char *const *argv,
                           int *ret_exit_code, char **ret_stdout, char **ret_stderr) {
  pthread_mutex_lock(&commands->lock);
  const Command *found = g_hash_table_lookup(commands->by_name, name);
  Command command = found ? *found : (Command){0};
  pthread_mutex_unlock(&commands->lock);
  if (!command.handler) {
    return FALSE;
  }
  *ret_exit_code = command.handler(command.user, argv, ret_stdout, ret_stderr);
  return TRUE;
}

/* ---- Life ------------------------------------------------------------------------------------------------------ */

static int32_t test_open(struct sandhost_call *call, const struct sandhost_open *request,
                         struct sandhost_instance **ret_instance) {
  (void)request;
  struct sandhost_instance *instance = g_new0(struct sandhost_instance, 1);
  instance->commands = call->tests ? test_commands_ref(call->tests) : test_commands_new();
  *ret_instance = instance;
  return SANDHOST_OK;
}

static void test_close(struct sandhost_instance *instance) {
  test_commands_unref(instance->commands);
  g_free(instance);
}

static int32_t test_create(struct sandhost_call *call, struct sandhost_instance *instance,
                           const struct sandhost_create *request,
                           struct sandhost_sandbox **ret_sandbox) {
  struct sandhost_sandbox *sandbox = g_new0(struct sandhost_sandbox, 1);
  sandbox->commands = test_commands_ref(instance->commands);
  sandbox->working_dir = g_strndup(request->working_dir.data, request->working_dir.length);
  pthread_mutex_init(&sandbox->lock, NULL);
  sandbox->files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, file_free);
  g_autofree char *ref = g_strndup(request->key.data, request->key.length);
  call_host_table.report(call, SANDHOST_REPORT_REF, text_of(ref));
  *ret_sandbox = sandbox;
  return SANDHOST_OK;
}

static int32_t test_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  (void)call;
  pthread_mutex_lock(&sandbox->lock);
  sandbox->terminated = TRUE;
  g_hash_table_remove_all(sandbox->files);
  pthread_mutex_unlock(&sandbox->lock);
  return SANDHOST_OK;
}

static void test_release(struct sandhost_sandbox *sandbox) {
  g_hash_table_unref(sandbox->files);
  test_commands_unref(sandbox->commands);
  pthread_mutex_destroy(&sandbox->lock);
  g_free(sandbox->working_dir);
  g_free(sandbox);
}

/* ---- Commands ---------------------------------------------------------------------------------------------------- */

typedef struct {
  const struct sandhost_observer *observer;
  guint64 max; /* bytes of a stream that the observer gets; 0: all */
  gboolean stopped;
} Speech;

/* Returns how much there was to say. */
static guint64 say(Speech *speech, uint32_t stream, const char *text) {
  gsize length = text ? strlen(text) : 0;
  gsize give = speech->max > 0 ? (gsize)MIN(speech->max, length) : length;
  if (give > 0 && !speech->stopped) {
    speech->stopped =
        speech->observer->output(speech->observer->user, stream, text, give) != SANDHOST_OK;
  }
  return length;
}

/* Owned; NULL: the request makes no sense. */
static GPtrArray *words_of(const struct sandhost_execute *request) {
  if (request->argc == 0 || request->argv[0].length == 0 ||
      (request->flags & ~SANDHOST_EXECUTE_STDIN) != 0) {
    return NULL;
  }
  g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
  for (gsize i = 0; i < request->argc; i++) {
    if (memchr(request->argv[i].data, 0, request->argv[i].length)) {
      return NULL;
    }
    g_ptr_array_add(argv, g_strndup(request->argv[i].data, request->argv[i].length));
  }
  g_ptr_array_add(argv, NULL);
  return g_steal_pointer(&argv);
}

static gboolean is_terminated(struct sandhost_sandbox *sandbox) {
  pthread_mutex_lock(&sandbox->lock);
  gboolean terminated = sandbox->terminated;
  pthread_mutex_unlock(&sandbox->lock);
  return terminated;
}

/* A handler is not interrupted; what comes back too late ended at its limit all the same. */
static gboolean is_late(const struct sandhost_execute *request, gint64 started) {
  return request->limit > 0 && clock_now() - started >= request->limit;
}

static int32_t fail_code(struct sandhost_call *call, const char *name, int exit_code) {
  g_autofree char *text =
      g_strdup_printf("the handler of %s gave the exit code %d, which is none: it must be 0 to 255",
                      name, exit_code);
  return fail(call, SANDHOST_INVALID, text, "");
}

static int32_t test_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_execute *request,
                            const struct sandhost_observer *observer,
                            struct sandhost_result *ret_result) {
  g_autoptr(GPtrArray) argv = words_of(request);
  if (!argv) {
    return fail(call, SANDHOST_INVALID, "no program, a NUL in a word, or an unknown flag", "");
  }
  if (is_terminated(sandbox)) {
    return fail(call, SANDHOST_LOST, "the sandbox was terminated", "");
  }
  const char *name = g_ptr_array_index(argv, 0);
  g_autofree char *out = NULL;
  g_autofree char *err = NULL;
  int exit_code = 127;
  gint64 started = clock_now();
  if (!test_commands_run(sandbox->commands, name, (const char *const *)argv->pdata, &exit_code,
                         &out, &err)) {
    err = g_strdup_printf("Command is not registered for local sandbox: %s", name);
  }
  gboolean late = is_late(request, started);
  if (!late && (exit_code < 0 || exit_code > 255)) {
    return fail_code(call, name, exit_code);
  }
  if (observer->started) {
    observer->started(observer->user, 1);
  }
  Speech speech = {.observer = observer, .max = request->max_output_bytes};
  ret_result->stdout_bytes = say(&speech, SANDHOST_STDOUT, out);
  ret_result->stderr_bytes = say(&speech, SANDHOST_STDERR, err);
  ret_result->ended = late ? SANDHOST_ENDED_LIMIT : SANDHOST_ENDED_EXIT;
  ret_result->exit_code = late ? 137 : exit_code;
  return speech.stopped ? fail(call, SANDHOST_CANCELLED, "stopped while giving output", "")
                        : SANDHOST_OK;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* The path below the working directory; NULL for any other. Owned. */
static char *inside(const struct sandhost_sandbox *sandbox, struct sandhost_path path) {
  g_autofree char *whole = g_strndup(path.data, path.length);
  g_autofree char *plain = g_canonicalize_filename(whole, "/");
  const char *dir = sandbox->working_dir;
  gsize length = strcmp(dir, "/") == 0 ? 0 : strlen(dir);
  if (strncmp(plain, dir, length) != 0 || plain[length] != '/' || plain[length + 1] == '\0') {
    return NULL;
  }
  return g_strdup(plain + length + 1);
}

static int32_t fail_outside(struct sandhost_call *call, struct sandhost_path path) {
  g_autofree char *text = g_strdup_printf("Path %.*s is outside the sandbox working directory",
                                          (int)MIN(path.length, 1024), path.data);
  return fail(call, SANDHOST_INVALID, text, "");
}

static int32_t test_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              struct sandhost_path path, const struct sandhost_sink *sink) {
  g_autofree char *name = inside(sandbox, path);
  if (!name) {
    return fail_outside(call, path);
  }
  pthread_mutex_lock(&sandbox->lock);
  const File *file = g_hash_table_lookup(sandbox->files, name);
  g_autoptr(GByteArray) bytes = file ? g_byte_array_ref(file->bytes) : NULL;
  pthread_mutex_unlock(&sandbox->lock);
  if (!bytes) {
    return fail(call, SANDHOST_NOT_FOUND, "no such file: ", name);
  }
  if (bytes->len > 0 && sink->write(sink->user, bytes->data, bytes->len) != SANDHOST_OK) {
    return fail(call, SANDHOST_CANCELLED, "stopped while reading ", name);
  }
  return SANDHOST_OK;
}

static int32_t test_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               struct sandhost_path path, uint32_t mode,
                               const struct sandhost_source *source) {
  g_autofree char *name = inside(sandbox, path);
  if (!name) {
    return fail_outside(call, path);
  }
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  guint8 piece[16384];
  gint64 count = 0;
  while ((count = source->read(source->user, piece, sizeof piece)) > 0) {
    if (bytes->len + (guint)count > MAX_FILE) {
      return fail(call, SANDHOST_LIMIT, "too large: ", name);
    }
    g_byte_array_append(bytes, piece, (guint)count);
  }
  if (count < 0) {
    return fail(call, SANDHOST_CANCELLED, "stopped while writing ", name);
  }
  File *file = g_new0(File, 1);
  file->bytes = g_steal_pointer(&bytes);
  file->mode = mode;
  file->mtime = clock_wall();
  pthread_mutex_lock(&sandbox->lock);
  g_hash_table_replace(sandbox->files, g_steal_pointer(&name), file);
  pthread_mutex_unlock(&sandbox->lock);
  return SANDHOST_OK;
}

static gboolean is_known(const struct sandhost_changes *request,
                         const struct sandhost_entry *entry) {
  for (gsize i = 0; i < request->known_count; i++) {
    const struct sandhost_known *known = &request->known[i];
    if (known->path.length == entry->path.length &&
        memcmp(known->path.data, entry->path.data, entry->path.length) == 0) {
      return memcmp(known->sha256, entry->sha256, sizeof entry->sha256) == 0;
    }
  }
  return FALSE;
}

static int32_t list_one(const struct sandhost_changes *request, const char *name, const File *file,
                        const struct sandhost_entry_sink *sink) {
  struct sandhost_entry entry = {
      .size = sizeof entry,
      .path = path_of(name),
      .kind = SANDHOST_KIND_FILE,
      .bytes = file->bytes->len,
      .mtime = file->mtime,
      .mode = file->mode,
  };
  if (name[0] == '.' || strstr(name, "/.")) {
    return SANDHOST_OK; /* hidden */
  }
  if (request->max_hash_bytes == 0 || entry.bytes <= request->max_hash_bytes) {
    digest_of(file->bytes->data, file->bytes->len, entry.sha256);
    entry.flags = SANDHOST_ENTRY_SHA256;
    if (is_known(request, &entry)) {
      return SANDHOST_OK;
    }
  }
  return sink->entry(sink->user, &entry);
}

static int32_t test_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_changes *request,
                            const struct sandhost_entry_sink *sink) {
  GHashTableIter iter;
  gpointer name = NULL;
  gpointer file = NULL;
  int32_t status = SANDHOST_OK;
  pthread_mutex_lock(&sandbox->lock);
  g_hash_table_iter_init(&iter, sandbox->files);
  while (status == SANDHOST_OK && g_hash_table_iter_next(&iter, &name, &file)) {
    status = list_one(request, name, file, sink);
  }
  pthread_mutex_unlock(&sandbox->lock);
  return status == SANDHOST_OK ? status : fail(call, SANDHOST_CANCELLED, "listing stopped", "");
}

const struct sandhost_provider *builtin_local_test_entry(const struct sandhost_host *host) {
  static const struct sandhost_provider table = {
      .size = sizeof table,
      .minor = SANDHOST_ABI_MINOR,
      .threads = SANDHOST_THREADS_PARALLEL,
      .flags = SANDHOST_PROVIDER_TEST,
      .name = "local_test",
      .version = "built in",
      .summary = "handlers that a program registers run instead of commands, for tests",
      .open = test_open,
      .close = test_close,
      .create = test_create,
      .execute = test_execute,
      .read_file = test_read_file,
      .write_file = test_write_file,
      .terminate = test_terminate,
      .release = test_release,
      .changes = test_changes,
  };
  (void)host;
  return &table;
}
