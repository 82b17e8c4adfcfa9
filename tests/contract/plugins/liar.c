/* SPDX-License-Identifier: Apache-2.0 */
/* liar.c: says what cannot be; which lie is told by the command. */
#include "good.h"

static int32_t lie(struct sandhost_call *call, const char *name,
                   const struct sandhost_observer *observer, struct sandhost_result *result) {
  result->ended = SANDHOST_ENDED_EXIT;
  if (strcmp(name, "status") == 0) {
    return 77;
  } else if (strcmp(name, "silent") == 0) {
    return SANDHOST_UNAVAILABLE;
  } else if (strcmp(name, "ended") == 0) {
    result->ended = 99;
  } else if (strcmp(name, "code") == 0) {
    result->exit_code = 999;
  } else if (strcmp(name, "signal") == 0) {
    result->ended = SANDHOST_ENDED_SIGNAL;
  } else if (strcmp(name, "killed") == 0) {
    result->ended = SANDHOST_ENDED_SIGNAL;
    result->signal = 9;
    result->duration = -5;
  } else if (strcmp(name, "count") == 0) {
    observer->output(observer->user, SANDHOST_STDOUT, "abc", 3);
  } else if (strcmp(name, "stream") == 0) {
    observer->output(observer->user, 3, "abc", 3);
  } else if (strcmp(name, "okfail") == 0) {
    good_fail(call, SANDHOST_DENIED, "but it went well");
  }
  return SANDHOST_OK;
}

static int32_t liar_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_execute *request,
                            const struct sandhost_observer *observer,
                            struct sandhost_result *ret_result) {
  (void)sandbox;
  return lie(call, request->argv[0].data, observer, ret_result);
}

static int32_t liar_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_changes *request,
                            const struct sandhost_entry_sink *sink) {
  (void)call;
  (void)sandbox;
  (void)request;
  const struct sandhost_entry entry = {
      .size = sizeof entry,
      .path = {.data = "a/../../etc/passwd", .length = 18},
      .kind = SANDHOST_KIND_FILE,
  };
  sink->entry(sink->user, &entry);
  return SANDHOST_OK;
}

static int32_t liar_probe(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                          const struct sandhost_probe *request, uint32_t *ret_verdict) {
  (void)call;
  (void)sandbox;
  (void)request;
  *ret_verdict = 15;
  return SANDHOST_OK;
}

static int32_t liar_snapshot(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  (void)call;
  (void)sandbox;
  return SANDHOST_OK;
}

static int32_t liar_delete(struct sandhost_call *call, struct sandhost_instance *instance,
                           struct sandhost_text id) {
  (void)call;
  (void)instance;
  (void)id;
  return SANDHOST_OK;
}

GOOD_PLUGIN("liar", table.execute = liar_execute; table.changes = liar_changes;
            table.probe = liar_probe; table.snapshot = liar_snapshot;
            table.delete_snapshot = liar_delete)
