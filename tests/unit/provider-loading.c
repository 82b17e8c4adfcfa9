/* SPDX-License-Identifier: Apache-2.0 */
/* provider-loading.c: which plugins are loaded, and what is said of the others. */
#include "provider-testing.h"

#include "provider/call.h"

static char *refusal_of(ProviderRegistry *registry, const char *name) {
  GError *error = NULL;
  g_assert_null(provider_registry_load(registry, name, &error));
  g_assert_nonnull(error);
  char *message = g_strdup(error->message);
  g_error_free(error);
  return message;
}

static void assert_refused(const char *name, const char *reason) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autofree char *message = refusal_of(registry, name);
  g_autofree char *expected =
      g_strdup_printf("provider file " ZOO "/sandhost-%s.so refused: %s", name, reason);
  g_assert_cmpstr(message, ==, expected);
}

static void test_good(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(GError) error = NULL;
  Provider *provider = provider_registry_load(registry, "good", &error);
  g_assert_no_error(error);
  g_assert_cmpstr(provider_table(provider)->name, ==, "good");
  g_assert_cmpstr(provider_file(provider), ==, ZOO "/sandhost-good.so");
}

static void test_loaded_once(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(ProviderRegistry) other = zoo_registry();
  g_assert_true(provider_registry_load(registry, "good", NULL) ==
                provider_registry_load(other, "good", NULL));
}

static void test_no_entry(void) {
  assert_refused("noentry", "it has no entry sandhost_provider_1");
}

static void test_other_major(void) {
  assert_refused("major", "it was built for ABI major 2, this host speaks 1");
}

static void test_short_table(void) {
  g_autofree char *reason = g_strdup_printf("its table is 40 bytes, at least %zu are needed",
                                            sizeof(struct sandhost_provider));
  assert_refused("short", reason);
}

static void test_missing_slot(void) {
  assert_refused("slotless", "it lacks the required operation write_file");
}

static void test_bad_name(void) {
  assert_refused("badname", "its name 'Bad\357\277\275Name' is not valid");
}

static void test_other_name(void) {
  assert_refused("othername", "its name 'another' differs from the file's 'othername'");
}

static void test_unknown_flags(void) {
  assert_refused("flags", "it has unknown flags (0x104)");
}

static void test_unknown_threads(void) {
  assert_refused("threads", "its thread level 35 is not known");
}

static void test_option_twice(void) {
  assert_refused("options", "its option 'size' is there twice");
}

static void test_unwilling(void) {
  g_autofree char *reason =
      g_strdup_printf("it will not work with this host (ABI 1.0, host table of %zu bytes)",
                      sizeof(struct sandhost_host));
  assert_refused("unwilling", reason);
}

static void test_refused_again(void) {
  assert_refused("slotless", "it lacks the required operation write_file");
  assert_refused("slotless", "it lacks the required operation write_file");
}

static void test_newer_minor(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(GError) error = NULL;
  Provider *provider = provider_registry_load(registry, "newer", &error);
  g_assert_no_error(error);
  const struct sandhost_provider *table = provider_table(provider);
  g_assert_cmpuint(table->minor, ==, 99);
  g_assert_cmpuint(table->option_count, ==, 2);
  g_assert_cmpstr(table->options[0].name, ==, "first");
  g_assert_cmpstr(table->options[1].name, ==, "second");
}

/* Crashing in create is no fault that the door could see. */
static void test_crash_is_loaded(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_assert_nonnull(provider_registry_load(registry, "crash", NULL));
}

static void test_not_installed(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  GError *error = NULL;
  g_assert_null(provider_registry_load(registry, "vercel", &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND);
  g_assert_true(g_str_has_prefix(error->message, "The vercel sandbox provider is not installed: no "
                                                 "sandhost-vercel.so in " ZOO ", /"));
  g_error_free(error);
}

static void test_name_is_no_path(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autofree char *message = refusal_of(registry, "../good");
  g_assert_cmpstr(message, ==,
                  "'../good' is no name for a provider: lower-case letters, digits, - and _, at "
                  "most 32, beginning with a letter");
}

/* ---- Where a file lies ------------------------------------------------------------------------------ */

typedef struct {
  char *folder; /* mode 0755 */
  char *file;   /* a copy of the good plugin, mode 0755 */
  ProviderRegistry *registry;
} Place;

static Place place_new(void) {
  g_autoptr(GError) error = NULL;
  g_autofree char *bytes = NULL;
  gsize length = 0;
  Place place = {.folder = folder_new()};
  g_chmod(place.folder, 0755);
  place.file = g_build_filename(place.folder, "sandhost-good.so", NULL);
  g_file_get_contents(ZOO "/sandhost-good.so", &bytes, &length, &error);
  g_assert_no_error(error);
  g_file_set_contents(place.file, bytes, (gssize)length, &error);
  g_assert_no_error(error);
  g_chmod(place.file, 0755);
  g_setenv("SANDHOST_PLUGIN_PATH", place.folder, TRUE);
  place.registry = provider_registry_new();
  return place;
}

static void place_clear(Place *place) {
  provider_registry_free(place->registry);
  folder_remove(place->folder);
  g_free(place->file);
}

static void assert_place_refused(const Place *place, const char *reason) {
  g_autofree char *message = refusal_of(place->registry, "good");
  g_autofree char *expected = g_strdup_printf("provider file %s refused: %s", place->file, reason);
  g_assert_cmpstr(message, ==, expected);
}

static void test_copy_in_tmp(void) {
  Place place = place_new();
  g_autoptr(GError) error = NULL;
  g_assert_nonnull(provider_registry_load(place.registry, "good", &error));
  g_assert_no_error(error);
  place_clear(&place);
}

static void test_writable_file(void) {
  Place place = place_new();
  g_chmod(place.file, 0666);
  assert_place_refused(&place, "it is writable by others (mode 0666)");
  place_clear(&place);
}

static void test_writable_folder(void) {
  Place place = place_new();
  g_chmod(place.folder, 0777);
  g_autofree char *reason =
      g_strdup_printf("its folder %s is writable by others (mode 0777)", place.folder);
  assert_place_refused(&place, reason);
  place_clear(&place);
}

static void test_sticky_folder(void) {
  Place place = place_new();
  g_chmod(place.folder, 01777);
  g_autofree char *reason =
      g_strdup_printf("its folder %s is writable by others (mode 1777)", place.folder);
  assert_place_refused(&place, reason);
  place_clear(&place);
}

static void test_group_writable(void) {
  Place place = place_new();
  if (geteuid() != 0) {
    g_test_skip("only root can give a file to another group");
  } else {
    g_assert_cmpint(chown(place.file, 0, 12345), ==, 0);
    g_chmod(place.file, 0775);
    assert_place_refused(&place, "it is writable by others (mode 0775)");
    g_assert_cmpint(chown(place.file, 0, 0), ==, 0);
    g_assert_nonnull(provider_registry_load(place.registry, "good", NULL));
  }
  place_clear(&place);
}

static void test_foreign_owner(void) {
  Place place = place_new();
  if (geteuid() != 0) {
    g_test_skip("only root can give a file away");
  } else {
    g_assert_cmpint(chown(place.file, 12345, 0), ==, 0);
    assert_place_refused(&place, "it is owned by uid 12345");
  }
  place_clear(&place);
}

/* The link is nobody's business; what it leads to is. */
static void test_link_is_followed(void) {
  Place place = place_new();
  g_autofree char *real = g_build_filename(place.folder, "real", NULL);
  g_assert_cmpint(g_rename(place.file, real), ==, 0);
  g_assert_cmpint(symlink("real", place.file), ==, 0);
  g_assert_nonnull(provider_registry_load(place.registry, "good", NULL));
  g_chmod(real, 0777);
  assert_place_refused(&place, "it is writable by others (mode 0777)");
  place_clear(&place);
}

static void test_folder_is_no_file(void) {
  Place place = place_new();
  g_unlink(place.file);
  g_mkdir(place.file, 0755);
  assert_place_refused(&place, "it is not a regular file");
  place_clear(&place);
}

static void test_not_an_object(void) {
  Place place = place_new();
  g_file_set_contents(place.file, "no ELF\n", -1, NULL);
  g_chmod(place.file, 0755);
  g_autofree char *message = refusal_of(place.registry, "good");
  g_autofree char *start = g_strdup_printf("provider file %s refused: ", place.file);
  g_assert_true(g_str_has_prefix(message, start));
  g_assert_nonnull(strstr(message, "too short"));
  place_clear(&place);
}

/* ---- Registering ---------------------------------------------------------------------------------------- */

static void test_registered_file(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(GError) error = NULL;
  g_assert_true(provider_registry_add_file(registry, "newer", ZOO "/sandhost-newer.so", &error));
  g_assert_no_error(error);
  g_assert_nonnull(provider_registry_load(registry, "newer", &error));
}

static void test_registered_under_another_name(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_assert_true(provider_registry_add_file(registry, "mine", ZOO "/sandhost-good.so", NULL));
  g_autofree char *message = refusal_of(registry, "mine");
  g_assert_cmpstr(message, ==,
                  "provider file " ZOO
                  "/sandhost-good.so refused: its name 'good' differs from the file's 'mine'");
}

static void assert_not_added(ProviderRegistry *registry, const char *name, const char *file,
                             const char *text) {
  GError *error = NULL;
  g_assert_false(provider_registry_add_file(registry, name, file, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_assert_cmpstr(error->message, ==, text);
  g_error_free(error);
}

static void test_registering_is_checked(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  assert_not_added(registry, "mine", "sandhost-mine.so",
                   "the file of provider 'mine' must be an absolute path: sandhost-mine.so");
  assert_not_added(registry, "none", "/x/sandhost-none.so",
                   "the provider name 'none' is taken by a provider that is built in");
  g_assert_true(provider_registry_add_file(registry, "mine", "/x/a.so", NULL));
  g_assert_true(provider_registry_add_file(registry, "mine", "/x/a.so", NULL));
  assert_not_added(registry, "mine", "/x/b.so", "the provider name 'mine' is taken by /x/a.so");
}

static const struct sandhost_provider *no_table(const struct sandhost_host *host) {
  (void)host;
  return NULL;
}

static void test_linked_in_is_checked(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  GError *error = NULL;
  g_assert_false(provider_registry_add_entry(registry, "mine", no_table, &error));
  g_assert_true(
      g_str_has_prefix(error->message, "provider mine refused: it will not work with this host"));
  g_error_free(error);
}

/* ---- Lists ------------------------------------------------------------------------------------------------ */

static void test_names(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  provider_registry_add_file(registry, "mine", "/x/a.so", NULL);
  g_auto(GStrv) names = provider_registry_names(registry);
  static const char *const expected[] = {"bubblewrap", "daytona", "docker", "e2b",
                                         "good",       "http",    "local",  "local_test",
                                         "mine",       "modal",   "none",   "vercel"};
  for (gsize i = 0; i < G_N_ELEMENTS(expected); i++) {
    g_assert_true(g_strv_contains((const char *const *)names, expected[i]));
  }
  for (gsize i = 1; names[i]; i++) {
    g_assert_cmpstr(names[i - 1], <, names[i]);
  }
}

static void test_list(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_auto(GStrv) names = NULL;
  g_auto(GStrv) files = NULL;
  provider_registry_list(registry, &names, &files);
  g_assert_cmpuint(g_strv_length(names), ==, g_strv_length(files));
  guint seen = 0;
  for (gsize i = 0; names[i]; i++) {
    if (strcmp(names[i], "none") == 0) {
      g_assert_cmpstr(files[i], ==, "built in");
      seen++;
    } else if (strcmp(names[i], "good") == 0) {
      g_assert_cmpstr(files[i], ==, ZOO "/sandhost-good.so");
      seen++;
    }
  }
  g_assert_cmpuint(seen, ==, 2);
}

static void test_first_folder_wins(void) {
  Place place = place_new();
  g_autofree char *path = g_strdup_printf("relative::%s:" ZOO, place.folder);
  g_setenv("SANDHOST_PLUGIN_PATH", path, TRUE);
  g_autoptr(ProviderRegistry) registry = provider_registry_new();
  g_chmod(place.file, 0666);
  g_autofree char *message = refusal_of(registry, "good");
  g_assert_nonnull(strstr(message, place.file));
  g_assert_nonnull(provider_registry_load(registry, "newer", NULL));
  place_clear(&place);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define TEST(name, function) g_test_add_func("/provider/loading/" name, function)
  TEST("good", test_good);
  TEST("loaded-once", test_loaded_once);
  TEST("no-entry", test_no_entry);
  TEST("other-major", test_other_major);
  TEST("short-table", test_short_table);
  TEST("missing-slot", test_missing_slot);
  TEST("bad-name", test_bad_name);
  TEST("other-name", test_other_name);
  TEST("unknown-flags", test_unknown_flags);
  TEST("unknown-threads", test_unknown_threads);
  TEST("option-twice", test_option_twice);
  TEST("unwilling", test_unwilling);
  TEST("refused-again", test_refused_again);
  TEST("newer-minor", test_newer_minor);
  TEST("crash-is-loaded", test_crash_is_loaded);
  TEST("not-installed", test_not_installed);
  TEST("name-is-no-path", test_name_is_no_path);
  TEST("copy-in-tmp", test_copy_in_tmp);
  TEST("writable-file", test_writable_file);
  TEST("writable-folder", test_writable_folder);
  TEST("sticky-folder", test_sticky_folder);
  TEST("group-writable", test_group_writable);
  TEST("foreign-owner", test_foreign_owner);
  TEST("link-is-followed", test_link_is_followed);
  TEST("folder-is-no-file", test_folder_is_no_file);
  TEST("not-an-object", test_not_an_object);
  TEST("registered-file", test_registered_file);
  TEST("registered-under-another-name", test_registered_under_another_name);
  TEST("registering-is-checked", test_registering_is_checked);
  TEST("linked-in-is-checked", test_linked_in_is_checked);
  TEST("names", test_names);
  TEST("list", test_list);
  TEST("first-folder-wins", test_first_folder_wins);
  return g_test_run();
}
