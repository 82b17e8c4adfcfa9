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

/* what: "the docker sandbox 3f2a may live on". */
static void warn(const Harness *harness, const SessionEar *ear, const char *what,
                 const GError *failure) {
  const char *way = provider_instance_sweeps(harness->instance)
                        ? "sandhost cleanup, with the same --config or --provider, finds what is "
                          "left"
                        : "sandhost cleanup cannot find what this provider leaves";
  g_autofree char *line = g_strdup_printf("%s: %s; %s", what, failure->message, way);
  GString *clean = privacy_text(harness->privacy, PRIVACY_RESULT, line, strlen(line));
  ear->warn(ear->user, clean ? clean->str : line);
  if (clean) {
    g_string_free(clean, TRUE);
  }
}

void session_tell_uncertain(const Harness *harness, const SessionEar *ear, const GError *failure) {
  if (ear->warn && provider_error_details(failure).may_have_happened) {
    g_autofree char *what = g_strdup_printf("a %s sandbox may have been made",
                                            provider_instance_name(harness->instance));
    warn(harness, ear, what, failure);
  }
}

void session_end_sandbox(const Harness *harness, Sandbox *take_sandbox, const SessionEar *ear,
                         GError **error) {
  GError *failure = NULL;
  Ending ending = {.ear = ear, .named = name_of(harness, take_sandbox)};
  sandbox_end_telling(take_sandbox, ear->slow ? tell_slow : NULL, &ending, &failure);
  if (ear->warn && may_live_on(failure)) {
    g_autofree char *what = g_strdup_printf("%s may live on", ending.named);
    warn(harness, ear, what, failure);
  }
  g_free(ending.named);
  if (failure) {
    g_propagate_error(error, failure);
  }
}
