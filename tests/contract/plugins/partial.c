/* SPDX-License-Identifier: Apache-2.0 */
/* partial.c: has every optional slot of files and none of them for its sandboxes; one that has touched its stream
 * before it says so where PARTIAL_TOUCHES is set. */
#include "good.h"

static int32_t refuse(struct sandhost_call *call, const char *slot) {
  good_log(slot);
  return good_fail(call, SANDHOST_UNSUPPORTED, "not in this sandbox");
}

static int32_t upload(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                      struct sandhost_path dir, const struct sandhost_source *tar) {
  (void)sandbox;
  (void)dir;
  char byte = 0;
  if (getenv("PARTIAL_TOUCHES")) {
    tar->read(tar->user, &byte, 1);
  }
  return refuse(call, "upload");
}

static int32_t download(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                        struct sandhost_path dir, const struct sandhost_path *names,
                        size_t name_count, const struct sandhost_sink *tar) {
  (void)sandbox;
  (void)dir;
  (void)names;
  (void)name_count;
  if (getenv("PARTIAL_TOUCHES")) {
    tar->write(tar->user, "x", 1);
  }
  return refuse(call, "download");
}

static int32_t changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                       const struct sandhost_changes *request,
                       const struct sandhost_entry_sink *sink) {
  (void)sandbox;
  (void)request;
  const struct sandhost_entry entry = {
      .size = sizeof entry, .path = {.data = "a", .length = 1}, .kind = SANDHOST_KIND_FILE};
  if (getenv("PARTIAL_TOUCHES")) {
    sink->entry(sink->user, &entry);
  }
  return refuse(call, "changes");
}

static int32_t probe(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                     const struct sandhost_probe *request, uint32_t *ret_verdict) {
  (void)sandbox;
  (void)request;
  (void)ret_verdict;
  return refuse(call, "probe");
}

static int32_t send_signal(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                           uint64_t execution, int32_t number) {
  (void)sandbox;
  (void)execution;
  (void)number;
  return refuse(call, "signal");
}

GOOD_PLUGIN("partial", table.upload = upload; table.download = download; table.changes = changes;
            table.probe = probe; table.signal = send_signal)
