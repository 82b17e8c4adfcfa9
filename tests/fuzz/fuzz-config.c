/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-config.c: any bytes as a configuration. It is refused with a reason, or what comes out keeps
 * what its header promises. */
#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const GError *error) {
  g_assert_nonnull(error);
  g_assert_true(error->domain == SANDHOST_ERROR);
  g_assert_cmpint(error->code, ==, SANDHOST_ERROR_CONFIG);
  g_assert_true(g_utf8_validate(error->message, -1, NULL));
}

static void check_config(const Config *config) {
  g_assert_cmpint(config->tool_call_timeout, >=, 2);
  g_assert_cmpint(config->tool_call_timeout, <=, 1000);
  g_assert_true(g_path_is_absolute(config->files_dir));
  g_assert_true(g_path_is_absolute(config->project_root));
  g_assert_true(config->governed || !config->profile);
  g_assert_nonnull(config->include);
  g_assert_nonnull(config->exclude);
  const Manifest *manifest = config->manifest;
  g_assert_nonnull(manifest);
  g_assert_true(g_path_is_absolute(manifest->working_dir));
  g_assert_true(!manifest->memory || manifest->memory_bytes > 0);
  g_assert_true(!manifest->cpu || manifest->cpu_millis > 0);
  g_assert_cmpuint(g_strv_length(manifest->environment_names), ==,
                   g_strv_length(manifest->environment_values));
}

/* A value that is written and read again is the same value. */
static void check_round_trip(JsonObject *object) {
  g_autofree char *text = json_text(object);
  g_autofree char *canonical = json_canonical(object);
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) again = json_parse("fuzz", text, strlen(text), &error);
  g_assert_no_error(error);
  g_autofree char *second = json_canonical(again);
  g_assert_cmpstr(canonical, ==, second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const PROVIDERS[] = {"docker", "local", "none", NULL};
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = json_parse("fuzz", (const char *)data, size, &error);
  if (error) {
    g_assert_null(object);
    check_error(error);
    return 0;
  }
  check_round_trip(object);
  g_autoptr(Config) config = config_new(object, PROVIDERS, &error);
  if (config) {
    g_assert_no_error(error);
    check_config(config);
  } else {
    check_error(error);
  }
  return 0;
}
