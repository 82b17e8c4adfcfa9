/* SPDX-License-Identifier: Apache-2.0 */
/* ends.c: the vices of operations whose call is over or whose sandbox is gone, before they begin or on their way. */
#include "vice.h"

int32_t vice_enter(struct vice_passage *passage, struct sandhost_call *call,
                   struct sandhost_sandbox *sandbox, const char *operation) {
  *passage = (struct vice_passage){.call = call,
                                   .sandbox = sandbox,
                                   .reads = strcmp(operation, "read_file") == 0,
                                   .writes = strcmp(operation, "write_file") == 0,
                                   .over = vice_host->cancelled(call) != 0,
                                   .ended = sandbox->ended};
  vice_ears = (struct vice_ears){
      .no_cancel = has_vice("resolute") && passage->writes && !passage->over,
      .no_error = has_vice("mute") && passage->reads && passage->over,
      .no_lost_reason = has_vice("reasonless") && passage->reads && !passage->ended};
  if (has_vice("absent") && passage->reads && passage->ended) {
    return vice_fail(call, SANDHOST_NOT_FOUND, "no such sandbox");
  }
  if (has_vice("wordless") && passage->reads && passage->ended) {
    return SANDHOST_LOST;
  }
  return vice_look(call, sandbox);
}

/* Its call was over when it came. */
static int32_t leave_late(const struct vice_passage *passage, int32_t status) {
  if (has_vice("indifferent") && passage->reads && status == SANDHOST_CANCELLED) {
    return SANDHOST_OK;
  }
  if (has_vice("unpunctual") && passage->reads && status == SANDHOST_TIMEOUT) {
    return SANDHOST_CANCELLED;
  }
  if (has_vice("belated") && passage->writes) {
    vice_run_anyway(passage->call, passage->sandbox->base, "printf late > to/kept");
  }
  return status;
}

/* Its call ended it on its way. */
static int32_t leave_cut(const struct vice_passage *passage, int32_t status) {
  bool by_caller = vice_host->cancelled(passage->call) != 0;
  if (has_vice("hurried") && passage->reads && status == SANDHOST_TIMEOUT) {
    return SANDHOST_CANCELLED;
  }
  if (has_vice("echoing") && passage->reads && status == SANDHOST_CANCELLED && !by_caller) {
    return SANDHOST_LIMIT;
  }
  if (has_vice("littering") && passage->writes && status == SANDHOST_CANCELLED && by_caller) {
    vice_run_anyway(passage->call, passage->sandbox->base, ": > to/part");
  }
  return status;
}

int32_t vice_leave(const struct vice_passage *passage, int32_t status) {
  vice_ears = (struct vice_ears){0};
  if (passage->ended) {
    return status;
  }
  if (has_vice("unavailable") && passage->reads && status == SANDHOST_LOST) {
    return SANDHOST_UNAVAILABLE;
  }
  return passage->over ? leave_late(passage, status) : leave_cut(passage, status);
}
