/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.c: taking and deleting a snapshot. */
#include "snapshots.h"

char *snapshot_take(Box *box, Verdict *verdict) {
  struct sandhost_call call;
  call_init(&call, 120);
  gint32 status = box->subject->table->snapshot(&call, box->handle);
  char *id = status == SANDHOST_OK ? g_strdup(call.snapshot) : NULL;
  if (status != SANDHOST_OK) {
    wrong(verdict, "snapshot failed with %s: %s", status_name(status), call.message);
  } else if (!id || !*id) {
    wrong(verdict, "snapshot reported no SANDHOST_REPORT_SNAPSHOT");
  }
  call_clear(&call);
  return id;
}

void snapshot_delete(Subject *subject, const char *id, Verdict *verdict) {
  struct sandhost_call call;
  call_init(&call, 60);
  gint32 status = subject->table->delete_snapshot(&call, subject->instance, as_text(id));
  if (status != SANDHOST_OK) {
    wrong(verdict, "delete_snapshot failed with %s: %s", status_name(status), call.message);
  }
  call_clear(&call);
}
