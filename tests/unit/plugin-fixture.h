/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin-fixture.h: a provider that was built, loaded as the host loads it, and sandboxes of it.
 *
 * A test may be run as an ordinary user in a child that is forked for it, which needs root.
 */
#ifndef SANDHOST_TESTS_PLUGIN_FIXTURE_H
#define SANDHOST_TESTS_PLUGIN_FIXTURE_H

#include "fake-guest.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLUGIN_USER 12345u
#define PLUGIN_SECOND ((int64_t)1000000000)
/* More than any command here needs on a busy machine. */
#define PLUGIN_PATIENCE (60 * PLUGIN_SECOND)
/* How a child says that its test does not apply. */
#define PLUGIN_SKIPPED 77

/* ---- The plugin ------------------------------------------------------------------------------ */

static const struct sandhost_provider *plugin; /* set once by plugin_load */
static char *plugin_guest_dir;                 /* a copy that everybody can reach; owned */
static char *plugin_folder;                    /* holds that; owned */

FAKE_UNUSED static void plugin_copy(const char *from, const char *to, mode_t mode) {
  char *content = NULL;
  gsize length = 0;
  g_assert_true(g_file_get_contents(from, &content, &length, NULL));
  g_assert_true(g_file_set_contents(to, content, (gssize)length, NULL));
  g_assert_cmpint(g_chmod(to, mode), ==, 0);
  g_free(content);
}

FAKE_UNUSED static void plugin_copy_guests(const char *from_folder, const char *folder) {
  g_autoptr(GDir) dir = g_dir_open(from_folder, 0, NULL);
  g_assert_nonnull(dir);
  for (const char *name; (name = g_dir_read_name(dir)) != NULL;) {
    g_autofree char *from = g_build_filename(from_folder, name, NULL);
    g_autofree char *to = g_build_filename(folder, name, NULL);
    plugin_copy(from, to, 0755);
  }
}

/* Copies the guest to folder/sandhost-guest-MACHINE. */
FAKE_UNUSED static void plugin_copy_guest(const char *folder) {
  plugin_copy_guests(TEST_GUEST_DIR, folder);
}

FAKE_UNUSED static void plugin_remove(const char *folder) {
  const char *const argv[] = {"/bin/rm", "-rf", folder, NULL};
  g_assert_true(g_spawn_sync(NULL, (char **)(gsize)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL,
                             NULL, NULL, NULL));
}

FAKE_UNUSED static void plugin_load(const char *name) {
  g_autofree char *file = g_strdup_printf("%s/sandhost-%s.so", TEST_PROVIDERS_DIR, name);
  void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  g_assert_nonnull(handle);
  const struct sandhost_provider *(*entry)(const struct sandhost_host *) = NULL;
  *(void **)&entry = dlsym(handle, SANDHOST_ENTRY_NAME);
  g_assert_nonnull(entry);
  plugin = entry(&fake_host);
  g_assert_nonnull(plugin);
  g_assert_cmpstr(plugin->name, ==, name);
  plugin_folder = g_dir_make_tmp("sandhost-plugin-XXXXXX", NULL);
  g_assert_nonnull(plugin_folder);
  g_assert_cmpint(g_chmod(plugin_folder, 0755), ==, 0);
  plugin_guest_dir = g_build_filename(plugin_folder, "guest", NULL);
  g_assert_cmpint(g_mkdir(plugin_guest_dir, 0755), ==, 0);
  plugin_copy_guest(plugin_guest_dir);
}

FAKE_UNUSED static void plugin_unload(void) {
  plugin_remove(plugin_folder);
  g_free(plugin_guest_dir);
  g_free(plugin_folder);
}

FAKE_UNUSED static void plugin_start(void) {
  struct sandhost_call call;
  fake_call_init(&call);
  if (plugin->start) {
    g_assert_cmpint(plugin->start(&call, &fake_host), ==, SANDHOST_OK);
  }
  fake_call_clear(&call);
}

FAKE_UNUSED static void plugin_stop(void) {
  if (plugin->stop) {
    plugin->stop();
  }
}

/* ---- Instances -------------------------------------------------------------------------------- */

/* Opens with the values, one per option, made from their fallbacks by who calls. */
FAKE_UNUSED static struct sandhost_instance *plugin_open(const struct sandhost_value *values,
                                                         const char *guest_dir) {
  struct sandhost_call call;
  struct sandhost_instance *instance = NULL;
  struct sandhost_open request = {.size = sizeof request,
                                  .values = values,
                                  .value_count = plugin->option_count,
                                  .guest_dir = fake_to_path(guest_dir)};
  fake_call_init(&call);
  int32_t status = plugin->open(&call, &request, &instance);
  g_assert_cmpstr(call.message, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_OK);
  fake_call_clear(&call);
  return instance;
}

/* ---- Sandboxes -------------------------------------------------------------------------------- */

struct wish { /* zero: a sandbox without the network in /workspace */
  const char *working_dir;
  const char *key;
  gboolean network;
  uint64_t memory_bytes;
  uint64_t cpu_millis;
  const struct sandhost_pair *environment;
  size_t environment_count;
};

static const char plugin_default_dir[] = "/workspace";

/* Returns the status; *ret_message (owned) is the error, *ret_ref (owned) the ref; both may be NULL. */
FAKE_UNUSED static int32_t plugin_try_create(struct sandhost_instance *instance,
                                             const struct wish *wish,
                                             struct sandhost_sandbox **ret_sandbox,
                                             char **ret_message, char **ret_ref) {
  static gint keys = 0;
  struct sandhost_call call;
  g_autofree char *key =
      wish->key ? g_strdup(wish->key)
                : g_strdup_printf("test-%d-%d", (int)getpid(), g_atomic_int_add(&keys, 1));
  struct sandhost_network network = {.size = sizeof network,
                                     .mode = wish->network ? SANDHOST_NETWORK_ALLOW
                                                           : SANDHOST_NETWORK_DENY};
  struct sandhost_create request = {
      .size = sizeof request,
      .key = fake_to_text(key),
      .run_id = fake_to_text("run_test"),
      .working_dir = fake_to_path(wish->working_dir ? wish->working_dir : plugin_default_dir),
      .network = &network,
      .environment = wish->environment,
      .environment_count = wish->environment_count,
      .memory_bytes = wish->memory_bytes,
      .cpu_millis = wish->cpu_millis};
  fake_call_init(&call);
  call.deadline = fake_now() + PLUGIN_PATIENCE;
  int32_t status = plugin->create(&call, instance, &request, ret_sandbox);
  if (status != SANDHOST_OK) {
    g_assert_cmpint(call.status, ==, status);
  }
  if (ret_message) {
    *ret_message = g_strdup(call.message);
  } else if (status != SANDHOST_OK) {
    g_test_message("create: %s", call.message);
  }
  if (ret_ref) {
    *ret_ref = g_strdup(call.reports[SANDHOST_REPORT_REF]);
  }
  fake_call_clear(&call);
  return status;
}

FAKE_UNUSED static struct sandhost_sandbox *plugin_create(struct sandhost_instance *instance,
                                                          const struct wish *wish) {
  struct sandhost_sandbox *sandbox = NULL;
  g_autofree char *message = NULL;
  int32_t status = plugin_try_create(instance, wish, &sandbox, &message, NULL);
  g_assert_cmpstr(message, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_OK);
  g_assert_nonnull(sandbox);
  return sandbox;
}

FAKE_UNUSED static void plugin_end(struct sandhost_sandbox *take_sandbox) {
  struct sandhost_call call;
  fake_call_init(&call);
  call.deadline = fake_now() + PLUGIN_PATIENCE;
  int32_t status = plugin->terminate(&call, take_sandbox);
  g_assert_cmpstr(call.message, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_OK);
  plugin->release(take_sandbox);
  fake_call_clear(&call);
}

/* ---- Commands --------------------------------------------------------------------------------- */

typedef struct ran {
  int32_t status;
  char *message; /* of the error; owned */
  char *lost;    /* reported reason; owned */
  char *out;     /* owned */
  char *err;     /* owned */
  struct sandhost_result result;
} Ran;

FAKE_UNUSED static void ran_clear(Ran *ran) {
  g_free(ran->message);
  g_free(ran->lost);
  g_free(ran->out);
  g_free(ran->err);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Ran, ran_clear)

FAKE_UNUSED static Ran plugin_run_argv(struct sandhost_sandbox *sandbox, const char *const *argv,
                                       int64_t limit) {
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_text texts[16];
  size_t argc = 0;
  for (; argv[argc]; argc++) {
    texts[argc] = fake_to_text(argv[argc]);
  }
  struct sandhost_execute request = {
      .size = sizeof request, .argv = texts, .argc = argc, .limit = limit};
  Ran ran = {.result = {.size = sizeof ran.result}};
  fake_observed_init(&seen);
  struct sandhost_observer observer = fake_observer(&seen);
  fake_call_init(&call);
  call.deadline = fake_now() + PLUGIN_PATIENCE;
  ran.status = plugin->execute(&call, sandbox, &request, &observer, &ran.result);
  ran.message = g_strdup(call.message);
  ran.lost = g_strdup(call.reports[SANDHOST_REPORT_LOST]);
  ran.out = g_strdup(seen.out->str);
  ran.err = g_strdup(seen.err->str);
  fake_observed_clear(&seen);
  fake_call_clear(&call);
  return ran;
}

FAKE_UNUSED static Ran plugin_run_limited(struct sandhost_sandbox *sandbox, const char *script,
                                          int64_t limit) {
  const char *const argv[] = {"sh", "-c", script, NULL};
  return plugin_run_argv(sandbox, argv, limit);
}

FAKE_UNUSED static Ran plugin_run(struct sandhost_sandbox *sandbox, const char *script) {
  return plugin_run_limited(sandbox, script, 0);
}

/* Runs a script that must print exactly this and end with 0. */
FAKE_UNUSED static void plugin_expect(struct sandhost_sandbox *sandbox, const char *script,
                                      const char *output) {
  g_auto(Ran) ran = plugin_run(sandbox, script);
  g_assert_cmpstr(ran.message, ==, NULL);
  g_assert_cmpstr(ran.err, ==, "");
  g_assert_cmpstr(ran.out, ==, output);
  g_assert_cmpuint(ran.result.ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_cmpint(ran.result.exit_code, ==, 0);
}

/* ---- Files ------------------------------------------------------------------------------------ */

FAKE_UNUSED static int32_t plugin_append(void *user, const void *data, size_t length) {
  g_string_append_len(user, data, (gssize)length);
  return SANDHOST_OK;
}

/* Returns the status; *ret_text is the content or the error, owned. */
FAKE_UNUSED static int32_t plugin_read(struct sandhost_sandbox *sandbox, const char *path,
                                       char **ret_text) {
  struct sandhost_call call;
  GString *content = g_string_new(NULL);
  struct sandhost_sink sink = {.size = sizeof sink, .user = content, .write = plugin_append};
  fake_call_init(&call);
  call.deadline = fake_now() + PLUGIN_PATIENCE;
  int32_t status = plugin->read_file(&call, sandbox, fake_to_path(path), &sink);
  *ret_text = status == SANDHOST_OK ? g_strdup(content->str) : g_strdup(call.message);
  g_string_free(content, TRUE);
  fake_call_clear(&call);
  return status;
}

FAKE_UNUSED static int64_t plugin_give(void *user, void *buffer, size_t length) {
  const char **text = user;
  size_t count = MIN(length, strlen(*text));
  memcpy(buffer, *text, count);
  *text += count;
  return (int64_t)count;
}

/* Returns the status; *ret_message is the error or NULL, owned. */
FAKE_UNUSED static int32_t plugin_write(struct sandhost_sandbox *sandbox, const char *path,
                                        const char *content, char **ret_message) {
  struct sandhost_call call;
  struct sandhost_source source = {.size = sizeof source, .user = &content, .read = plugin_give};
  fake_call_init(&call);
  call.deadline = fake_now() + PLUGIN_PATIENCE;
  int32_t status = plugin->write_file(&call, sandbox, fake_to_path(path), 0644, &source);
  *ret_message = g_strdup(call.message);
  fake_call_clear(&call);
  return status;
}

/* ---- Running a test as somebody else ----------------------------------------------------------- */

/* A test function skips by calling this and returning. */
FAKE_UNUSED static gboolean plugin_in_child = FALSE;

FAKE_UNUSED static void plugin_skip(const char *reason) {
  if (plugin_in_child) {
    _exit(PLUGIN_SKIPPED);
  }
  g_test_skip(reason);
}

FAKE_UNUSED static void plugin_run_as_user(gconstpointer data) {
  void (*const *test)(void) = data;
  pid_t pid = fork();
  g_assert_cmpint(pid, >=, 0);
  if (pid == 0) {
    plugin_in_child = TRUE;
    if (setgroups(0, NULL) < 0 || setresgid(PLUGIN_USER, PLUGIN_USER, PLUGIN_USER) < 0 ||
        setresuid(PLUGIN_USER, PLUGIN_USER, PLUGIN_USER) < 0 || chdir("/") < 0) {
      _exit(1);
    }
    (*test)();
    _exit(0);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == PLUGIN_SKIPPED) {
    g_test_skip("does not apply to an ordinary user here");
    return;
  }
  g_assert_true(WIFEXITED(status));
  g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

/* Adds a test as who runs this, and where that is root, also as an ordinary user. test must stay. */
FAKE_UNUSED static void plugin_add_test(const char *name, void (*const *test)(void)) {
  g_autofree char *path = g_strdup_printf("/%s/%s", plugin->name, name);
  g_test_add_func(path, *test);
  if (geteuid() == 0) {
    g_autofree char *user_path = g_strdup_printf("/%s/as-user/%s", plugin->name, name);
    g_test_add_data_func(user_path, test, plugin_run_as_user);
  }
}

#endif
