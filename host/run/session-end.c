/* SPDX-License-Identifier: Apache-2.0 */
/* session-end.c: the end of a sandbox, as it is told: one that does not end may cost money, or hold what it was given. */
#include <string.h>

#include "base/clock.h"
#include "run/session.h"

typedef struct {
  const SessionEar *ear;
  char *named;
} Ending;

/* "the docker sandbox 3f2a". Owned. */
static char *name_of(const Harness *harness, const Sandbox *sandbox) {
  const char *ref = sandbox_ref(sandbox);
  return g_strdup_printf("the %s sandbox%s%s", provider_instance_name(harness->instance),
                         ref ? " " : "", ref ? ref : "");
}

static void tell_slow(void *user) {
  const Ending *ending = user;
  g_autofree char *line = g_strdup_printf("waiting for %s to end", ending->named);
  ending->ear->slow(ending->ear->user, line);
}

/* A provider that does not know the sandbox any more has none that could be left. */
static gboolean may_live_on(const GError *failure) {
  return failure && !provider_error_is(failure, SANDHOST_NOT_FOUND) &&
         !provider_error_is(failure, SANDHOST_LOST);
}

static void warn(const Harness *harness, const Ending *ending, const GError *failure) {
  const char *way = provider_instance_sweeps(harness->instance)
                        ? "sandhost cleanup, with the same --config or --provider, finds what is "
                          "left"
                        : "sandhost cleanup cannot find what this provider leaves";
  g_autofree char *line =
      g_strdup_printf("%s may live on: %s; %s", ending->named, failure->message, way);
  GString *clean = privacy_text(harness->privacy, PRIVACY_RESULT, line, strlen(line));
  ending->ear->warn(ending->ear->user, clean ? clean->str : line);
  if (clean) {
    g_string_free(clean, TRUE);
  }
}

void session_end_sandbox(const Harness *harness, Sandbox *take_sandbox, const SessionEar *ear,
                         GError **error) {
  GError *failure = NULL;
  Ending ending = {.ear = ear, .named = name_of(harness, take_sandbox)};
  sandbox_end_telling(take_sandbox, ear->slow ? tell_slow : NULL, &ending, &failure);
  if (ear->warn && may_live_on(failure)) {
    warn(harness, &ending, failure);
  }
  g_free(ending.named);
  if (failure) {
    g_propagate_error(error, failure);
  }
}
