/* SPDX-License-Identifier: Apache-2.0 */
/* config-fixture.h: configurations as text, and what becomes of them. Included once by each test
 * program. */
#ifndef SANDHOST_TESTS_CONFIG_FIXTURE_H
#define SANDHOST_TESTS_CONFIG_FIXTURE_H

#include <string.h>

#include "base/error.h"
#include "config/config.h"

static const char *const FIXTURE_PROVIDERS[] = {"bubblewrap", "daytona", "docker",     "e2b",
                                                "http",       "local",   "local_test", "modal",
                                                "none",       "vercel",  NULL};

#define FIXTURE_PROVIDER_LIST                                                                      \
  "bubblewrap, daytona, docker, e2b, http, local, local_test, modal, none, vercel"

/* One bad configuration and the whole text that refuses it. */
typedef struct {
  const char *text;
  const char *wanted;
} ConfigRefusal;

static inline JsonObject *fixture_json(const char *text) {
  g_autoptr(GError) error = NULL;
  JsonObject *object = json_parse("fixture", text, strlen(text), &error);
  g_assert_no_error(error);
  return object;
}

static inline Config *fixture_read(const char *text) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = fixture_json(text);
  Config *config = config_new(object, FIXTURE_PROVIDERS, &error);
  g_assert_no_error(error);
  g_assert_nonnull(config);
  return config;
}

/* before and after are what stands around each text. */
static inline void fixture_refused(const char *before, const char *after,
                                   const ConfigRefusal *cases, gsize count) {
  for (gsize i = 0; i < count; i++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *whole = g_strconcat(before, cases[i].text, after, NULL);
    g_autoptr(JsonObject) object = fixture_json(whole);
    g_autoptr(Config) config = config_new(object, FIXTURE_PROVIDERS, &error);
    g_test_message("%s", whole);
    g_assert_null(config);
    g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
    g_assert_cmpstr(error->message, ==, cases[i].wanted);
  }
}

static inline void fixture_strv(char **strings, const char *wanted) {
  g_autofree char *joined = g_strjoinv("|", strings);
  g_assert_cmpstr(joined, ==, wanted);
}

#endif
