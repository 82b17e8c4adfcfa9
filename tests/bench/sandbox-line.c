/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox-line.c: one call to a provider, timed. */
#include "sandbox-line.h"

#include <string.h>

#include "base/clock.h"

#define LIMIT (300 * CLOCK_SECOND)

static int32_t ignore_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)user;
  (void)stream;
  (void)data;
  (void)length;
  return SANDHOST_OK;
}

static void ignore_start(void *user, uint64_t execution) {
  (void)user;
  (void)execution;
}

gint64 sandbox_line(Sandbox *sandbox, const char *line) {
  const struct sandhost_text argv[] = {{"sh", 2}, {"-c", 2}, {line, strlen(line)}};
  const struct sandhost_execute request = {
      .size = sizeof request, .argv = argv, .argc = 3, .limit = LIMIT};
  const struct sandhost_observer observer = {
      .size = sizeof observer, .started = ignore_start, .output = ignore_output};
  struct sandhost_result result = {.size = sizeof result};
  const CallScope scope = {.deadline = G_MAXINT64};
  gint64 from = clock_now();
  gboolean ok = sandbox_execute(sandbox, &scope, &request, &observer, &result, NULL);
  return ok && result.exit_code == 0 ? clock_now() - from : -1;
}

static int32_t count_hashed(void *user, const struct sandhost_entry *entry) {
  guint *count = user;
  *count += entry->kind == SANDHOST_KIND_FILE && entry->flags & SANDHOST_ENTRY_SHA256 ? 1 : 0;
  return SANDHOST_OK;
}

gint64 sandbox_listing(Sandbox *sandbox, guint count) {
  const CallScope scope = {.deadline = G_MAXINT64};
  guint seen = 0;
  const struct sandhost_entry_sink sink = {
      .size = sizeof sink, .user = &seen, .entry = count_hashed};
  gint64 from = clock_now();
  gboolean ok = sandbox_changes(sandbox, &scope, NULL, 0, 0, &sink, NULL);
  return ok && seen == count ? clock_now() - from : -1;
}
