/* SPDX-License-Identifier: Apache-2.0 */
/* provider-builtin.c: none and local_test (behaviour 3.6). */
#include "provider-testing.h"

#include "base/digest.h"

static Zoo open_builtin(const char *name) {
  g_autoptr(GError) error = NULL;
  Zoo zoo = {.registry = zoo_registry()};
  Provider *provider = provider_registry_load(zoo.registry, name, &error);
  g_assert_no_error(error);
  g_assert_null(provider_file(provider));
  zoo.instance = provider_instance_open(zoo.registry, provider, NULL, &error);
  g_assert_no_error(error);
  return zoo;
}

static void make_sandbox(Zoo *zoo) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Manifest) manifest = manifest_of("{}");
  const CallScope scope = scope_of(30 * CLOCK_SECOND);
  zoo->sandbox = sandbox_create(zoo->instance, manifest, "key-1", "run-1", &scope, &error);
  g_assert_no_error(error);
}

static void test_none_executes_nothing(void) {
  Zoo zoo = open_builtin("none");
  g_autoptr(Manifest) manifest = manifest_of("{}");
  const CallScope scope = scope_of(CLOCK_SECOND);
  g_assert_false(provider_instance_executes(zoo.instance));
  g_assert_true(provider_instance_check(zoo.instance, manifest, NULL));
  GError *error = NULL;
  g_assert_null(sandbox_create(zoo.instance, manifest, "k", "r", &scope, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED);
  g_assert_cmpstr(error->message, ==, "the provider none runs no commands; choose another one");
  g_error_free(error);
  zoo_close(&zoo);
}

static void test_none_takes_no_options(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(JsonObject) options = json_object_new_object();
  json_add_text(options, "image", "x");
  GError *error = NULL;
  g_assert_null(provider_instance_open(registry, provider_registry_load(registry, "none", NULL),
                                       options, &error));
  g_assert_cmpstr(error->message, ==, "Unknown none sandbox option(s): image");
  g_error_free(error);
}

static void test_local_test_is_a_test(void) {
  Zoo zoo = open_builtin("local_test");
  g_assert_true(provider_instance_is_test(zoo.instance));
  g_assert_true(provider_instance_isolates(zoo.instance));
  g_assert_true(provider_instance_executes(zoo.instance));
  zoo_close(&zoo);
}

static int fake_shell(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  *ret_stdout = g_strdup_printf("pretend output of: %s", argv[2]);
  *ret_stderr = g_strdup(user);
  return 3;
}

static void test_handler(void) {
  Zoo zoo = open_builtin("local_test");
  char user[] = "a warning";
  provider_registry_add_test_command(zoo.registry, "sh", fake_shell, user);
  make_sandbox(&zoo);
  const CallScope scope = scope_of(CLOCK_SECOND);
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, &scope, "sh -c pytest", NULL));
  g_assert_cmpstr(command.out->str, ==, "pretend output of: pytest");
  g_assert_cmpstr(command.err->str, ==, "a warning");
  g_assert_cmpint(command.result.exit_code, ==, 3);
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_unregistered(void) {
  Zoo zoo = open_builtin("local_test");
  make_sandbox(&zoo);
  const CallScope scope = scope_of(CLOCK_SECOND);
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, &scope, "make all", NULL));
  g_assert_cmpstr(command.err->str, ==, "Command is not registered for local sandbox: make");
  g_assert_cmpint(command.result.exit_code, ==, 127);
  command_clear(&command);
  zoo_close(&zoo);
}

/* Two registries are two programs: what one registers the other does not see. */
static void test_handlers_are_the_registrys(void) {
  Zoo zoo = open_builtin("local_test");
  Zoo other = open_builtin("local_test");
  provider_registry_add_test_command(other.registry, "make", fake_shell, NULL);
  make_sandbox(&zoo);
  const CallScope scope = scope_of(CLOCK_SECOND);
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, &scope, "make a b", NULL));
  g_assert_cmpint(command.result.exit_code, ==, 127);
  command_clear(&command);
  zoo_close(&zoo);
  zoo_close(&other);
}

static int64_t read_abc(void *user, void *buffer, size_t length) {
  const char **left = user;
  gsize count = MIN(strlen(*left), length);
  memcpy(buffer, *left, count);
  *left += count;
  return (int64_t)count;
}

static int32_t append(void *user, const void *data, size_t length) {
  g_string_append_len(user, data, (gssize)length);
  return SANDHOST_OK;
}

static gboolean write_text(Sandbox *sandbox, const char *path, const char *text, GError **error) {
  const CallScope scope = scope_of(CLOCK_SECOND);
  const struct sandhost_source source = {.size = sizeof source, .user = &text, .read = read_abc};
  return sandbox_write_file(sandbox, &scope, path, 0644, &source, error);
}

static void test_files(void) {
  Zoo zoo = open_builtin("local_test");
  make_sandbox(&zoo);
  g_autoptr(GError) error = NULL;
  g_assert_true(write_text(zoo.sandbox, "/workspace/a/b", "content", &error));
  g_autoptr(GString) back = g_string_new(NULL);
  const CallScope scope = scope_of(CLOCK_SECOND);
  const struct sandhost_sink sink = {.size = sizeof sink, .user = back, .write = append};
  g_assert_true(sandbox_read_file(zoo.sandbox, &scope, "/workspace/a/b", &sink, &error));
  g_assert_cmpstr(back->str, ==, "content");
  g_assert_false(sandbox_read_file(zoo.sandbox, &scope, "/workspace/c", &sink, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_NOT_FOUND);
  zoo_close(&zoo);
}

static void test_paths_stay_inside(void) {
  Zoo zoo = open_builtin("local_test");
  make_sandbox(&zoo);
  GError *error = NULL;
  g_assert_false(write_text(zoo.sandbox, "/workspace/../etc/x", "content", &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_INVALID);
  g_assert_cmpstr(error->message, ==,
                  "Path /workspace/../etc/x is outside the sandbox working directory");
  g_error_free(error);
  zoo_close(&zoo);
}

static int32_t note_path(void *user, const struct sandhost_entry *entry) {
  g_string_append_len(user, entry->path.data, (gssize)entry->path.length);
  g_string_append_c(user, ';');
  return SANDHOST_OK;
}

static void test_changes(void) {
  Zoo zoo = open_builtin("local_test");
  make_sandbox(&zoo);
  g_assert_true(write_text(zoo.sandbox, "/workspace/known", "1", NULL));
  g_assert_true(write_text(zoo.sandbox, "/workspace/new", "2", NULL));
  g_assert_true(write_text(zoo.sandbox, "/workspace/.hidden/x", "3", NULL));
  struct sandhost_known known = {.path = {.data = "known", .length = 5}};
  digest_of("1", 1, known.sha256);
  g_autoptr(GString) paths = g_string_new(NULL);
  const CallScope scope = scope_of(CLOCK_SECOND);
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .user = paths, .entry = note_path};
  g_autoptr(GError) error = NULL;
  g_assert_true(sandbox_changes(zoo.sandbox, &scope, &known, 1, 0, &sink, &error));
  g_assert_cmpstr(paths->str, ==, "new;");
  zoo_close(&zoo);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define TEST(name, function) g_test_add_func("/provider/builtin/" name, function)
  TEST("none-executes-nothing", test_none_executes_nothing);
  TEST("none-takes-no-options", test_none_takes_no_options);
  TEST("local-test-is-a-test", test_local_test_is_a_test);
  TEST("handler", test_handler);
  TEST("unregistered", test_unregistered);
  TEST("handlers-are-the-registrys", test_handlers_are_the_registrys);
  TEST("files", test_files);
  TEST("paths-stay-inside", test_paths_stay_inside);
  TEST("changes", test_changes);
  return g_test_run();
}
