/* SPDX-License-Identifier: Apache-2.0 */
/* provider-options.c: options of the configuration against those that a plugin declares. */
#include "provider-testing.h"

static ProviderInstance *open_with(ProviderRegistry *registry, const char *options,
                                   GError **error) {
  Provider *provider = provider_registry_load(registry, "lowered", error);
  g_assert_nonnull(provider);
  g_autoptr(JsonObject) object =
      options ? json_parse("options", options, strlen(options), error) : NULL;
  return provider_instance_open(registry, provider, object, error);
}

static void assert_refused(const char *options, const char *text) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  GError *error = NULL;
  g_assert_null(open_with(registry, options, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_assert_cmpstr(error->message, ==, text);
  g_error_free(error);
}

static void assert_in_force(const char *options, const char *json) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(GError) error = NULL;
  g_autoptr(ProviderInstance) instance = open_with(registry, options, &error);
  g_assert_no_error(error);
  g_autoptr(JsonObject) object = provider_instance_options(instance);
  g_autofree char *text = json_text(object);
  g_assert_cmpstr(text, ==, json);
}

static void test_unknown(void) {
  assert_refused("{\"base_url\":\"x\",\"network\":1}",
                 "Unknown lowered sandbox option(s): network");
}

static void test_unknown_are_sorted(void) {
  assert_refused("{\"zeta\":1,\"alpha\":2}", "Unknown lowered sandbox option(s): alpha, zeta");
}

static void test_required(void) {
  assert_refused(NULL, "The lowered sandbox needs a 'base_url' option");
  assert_refused("{\"base_url\":null}", "The lowered sandbox needs a 'base_url' option");
  assert_refused("{\"base_url\":\"\"}", "The lowered sandbox needs a 'base_url' option");
}

static void test_types(void) {
  static const struct {
    const char *options;
    const char *must;
  } rows[] = {
      {"{\"quick\":1}", "'quick' must be true or false"},
      {"{\"quick\":\"true\"}", "'quick' must be true or false"},
      {"{\"count\":\"1\"}", "'count' must be a whole number"},
      {"{\"count\":1.5}", "'count' must be a whole number"},
      {"{\"count\":true}", "'count' must be a whole number"},
      {"{\"count\":9223372036854775807}", "'count' must be a whole number"},
      {"{\"room\":\"much\"}", "'room' must be a size such as 64m or 1g"},
      {"{\"room\":[]}", "'room' must be a size such as 64m or 1g"},
      {"{\"room\":0}", "'room' must be positive"},
      {"{\"max_output_bytes\":0}", "'max_output_bytes' must be positive"},
      {"{\"max_output_bytes\":-1}", "'max_output_bytes' must be positive"},
      {"{\"base_url\":7}", "'base_url' must be text"},
      {"{\"names\":\"a\"}", "'names' must be a list of strings"},
      {"{\"names\":[\"a\",1]}", "'names' must be a list of strings"},
      {"{\"headers\":[]}", "'headers' must be an object of strings"},
      {"{\"headers\":{\"a\":1}}", "'headers' must be an object of strings"},
      {"{\"pull\":\"always\"}", "'pull' must be 'if_missing' or 'never'"},
      {"{\"pull\":3}", "'pull' must be 'if_missing' or 'never'"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
    /* base_url goes before the rest, so that it is not what is refused */
    g_autofree char *options = strstr(rows[i].options, "base_url")
                                   ? g_strdup(rows[i].options)
                                   : g_strdup_printf("{\"base_url\":\"x\",%s", rows[i].options + 1);
    g_autofree char *text = g_strdup_printf("lowered sandbox option %s", rows[i].must);
    assert_refused(options, text);
  }
}

static void test_secret_is_never_told(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  GError *error = NULL;
  g_assert_null(open_with(registry, "{\"base_url\":\"x\",\"token\":[\"s3cret\"]}", &error));
  g_assert_cmpstr(error->message, ==, "lowered sandbox option 'token' must be text");
  g_error_free(error);
}

static void test_defaults(void) {
  assert_in_force("{\"base_url\":\"x\"}",
                  "{\"count\":600,\"base_url\":\"x\",\"pull\":\"if_missing\",\"room\":1073741824,"
                  "\"max_output_bytes\":1000000}");
}

static void test_given(void) {
  assert_in_force("{\"base_url\":\"x\",\"count\":-3,\"token\":\"s3cret\",\"pull\":\"never\","
                  "\"room\":\"64m\",\"quick\":false,\"names\":[\"a\",\"b\"],"
                  "\"headers\":{\"k\":\"v\"},\"max_output_bytes\":5}",
                  "{\"count\":-3,\"base_url\":\"x\",\"token\":\"[REDACTED]\",\"pull\":\"never\","
                  "\"room\":67108864,\"quick\":false,\"names\":[\"a\",\"b\"],"
                  "\"headers\":\"[REDACTED]\",\"max_output_bytes\":5}");
}

static void test_variable(void) {
  g_setenv("LOWERED_COUNT", "41", TRUE);
  assert_in_force("{\"base_url\":\"x\",\"pull\":\"never\"}",
                  "{\"count\":41,\"base_url\":\"x\",\"pull\":\"never\",\"room\":1073741824,"
                  "\"max_output_bytes\":1000000}");
  g_setenv("LOWERED_COUNT", "4x", TRUE);
  assert_refused("{\"base_url\":\"x\"}", "lowered sandbox option 'count' must be a whole number "
                                         "(from the environment variable LOWERED_COUNT)");
  assert_in_force("{\"base_url\":\"x\",\"count\":1}",
                  "{\"count\":1,\"base_url\":\"x\",\"pull\":\"if_missing\",\"room\":1073741824,"
                  "\"max_output_bytes\":1000000}");
  g_unsetenv("LOWERED_COUNT");
}

static void test_max_output(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(ProviderInstance) instance =
      open_with(registry, "{\"base_url\":\"x\",\"max_output_bytes\":77}", NULL);
  g_assert_cmpuint(provider_instance_max_output(instance), ==, 77);
  g_autoptr(ProviderInstance) other =
      provider_instance_open(registry, provider_registry_load(registry, "good", NULL), NULL, NULL);
  g_assert_cmpuint(provider_instance_max_output(other), ==, 1000000);
}

static void test_secrets(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(ProviderInstance) instance = open_with(
      registry, "{\"base_url\":\"x\",\"token\":\"s3cret\",\"headers\":{\"k\":\"v1\",\"l\":\"v2\"}}",
      NULL);
  g_autoptr(GPtrArray) secrets = g_ptr_array_new_with_free_func(g_free);
  provider_instance_secrets(instance, secrets);
  g_ptr_array_add(secrets, NULL);
  g_autofree char *all = g_strjoinv("|", (char **)secrets->pdata);
  g_assert_cmpstr(all, ==, "s3cret|v1|v2");

  /* Also a variable of the environment that is not used, since an option is given. */
  g_setenv("GUARDED_API_KEY", "of-the-environment", TRUE);
  g_autoptr(JsonObject) options = json_object_new_object();
  json_add_text(options, "api_key", "given");
  g_autoptr(ProviderInstance) guarded = provider_instance_open(
      registry, provider_registry_load(registry, "guarded", NULL), options, NULL);
  g_assert_nonnull(guarded);
  g_autoptr(GPtrArray) others = g_ptr_array_new_with_free_func(g_free);
  provider_instance_secrets(guarded, others);
  g_unsetenv("GUARDED_API_KEY");
  g_ptr_array_add(others, NULL);
  g_autofree char *both = g_strjoinv("|", (char **)others->pdata);
  g_assert_cmpstr(both, ==, "given|of-the-environment");
}

static void test_no_object(void) {
  assert_refused("[1]", "lowered sandbox options must be an object");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_unsetenv("LOWERED_COUNT");
#define TEST(name, function) g_test_add_func("/provider/options/" name, function)
  TEST("unknown", test_unknown);
  TEST("unknown-are-sorted", test_unknown_are_sorted);
  TEST("required", test_required);
  TEST("types", test_types);
  TEST("secret-is-never-told", test_secret_is_never_told);
  TEST("defaults", test_defaults);
  TEST("given", test_given);
  TEST("variable", test_variable);
  TEST("max-output", test_max_output);
  TEST("secrets", test_secrets);
  TEST("no-object", test_no_object);
  return g_test_run();
}
