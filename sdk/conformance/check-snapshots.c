/* SPDX-License-Identifier: Apache-2.0 */
/* check-snapshots.c: each snapshot keeps everything, under an id of its own, until it is deleted, and no other is. */
#include "snapshots.h"

#include <string.h>

static gboolean has_snapshots(const Subject *subject, Verdict *verdict) {
  gboolean has = subject->table->snapshot && subject->table->delete_snapshot;
  if (!has) {
    skipped(verdict, "no snapshots");
  }
  return has;
}

/* What a sandbox that is made from it prints. */
static void want_restored(Subject *subject, const char *id, const char *script, const char *out,
                          Verdict *verdict) {
  Box box;
  if (box_open_from(&box, subject, SANDHOST_NETWORK_DENY, id, verdict)) {
    want_run(&box, script, 0, out, verdict);
    box_close(&box, verdict);
  }
}

/* ---- Everything ---------------------------------------------------------------------------------------------------- */

static void check_everything(Subject *subject, Verdict *verdict) {
  Box box;
  if (!has_snapshots(subject, verdict) ||
      !box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(
      &box,
      "mkdir -p empty .hidden/folder nested/empty; echo dot > .dot; echo in > .hidden/in; "
      "echo odd > \"$(printf 'odd\\nname')\"; echo fixed > fixed; chmod 444 fixed; : > nothing",
      0, "", verdict);
  g_autofree char *id = snapshot_take(&box, verdict);
  box_close(&box, verdict);
  if (id) {
    want_restored(subject, id,
                  "for f in empty .hidden/folder nested/empty; do test -d $f || echo no $f; done; "
                  "cat .dot .hidden/in fixed \"$(printf 'odd\\nname')\" nothing; "
                  "ls -l fixed | cut -c 1-10",
                  "dot\nin\nfixed\nodd\n-r--r--r--\n", verdict);
    snapshot_delete(subject, id, verdict);
  }
}

/* ---- Each its own --------------------------------------------------------------------------------------------------- */

/* Two of one sandbox: "one" when the first is taken, "two" when the second is. FALSE: wrong() was called. */
static gboolean take_two(Subject *subject, char *ret_ids[2], Verdict *verdict) {
  Box box;
  ret_ids[0] = ret_ids[1] = NULL;
  if (!has_snapshots(subject, verdict) ||
      !box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return FALSE;
  }
  want_run(&box, "echo one > file", 0, "", verdict);
  ret_ids[0] = snapshot_take(&box, verdict);
  want_run(&box, "echo two > file", 0, "", verdict);
  ret_ids[1] = snapshot_take(&box, verdict);
  box_close(&box, verdict);
  return ret_ids[0] && ret_ids[1];
}

static void delete_two(Subject *subject, char *take_ids[2], Verdict *verdict) {
  for (int i = 0; i < 2; i++) {
    if (take_ids[i]) {
      snapshot_delete(subject, take_ids[i], verdict);
    }
    g_free(take_ids[i]);
  }
}

static void check_own_ids(Subject *subject, Verdict *verdict) {
  char *ids[2];
  if (take_two(subject, ids, verdict)) {
    if (strcmp(ids[0], ids[1]) == 0) {
      wrong(verdict, "two snapshots have one id, '%s'", ids[0]);
    }
    want_restored(subject, ids[0], "cat file", "one\n", verdict);
    want_restored(subject, ids[1], "cat file", "two\n", verdict);
  }
  delete_two(subject, ids, verdict);
}

/* ---- Deleted --------------------------------------------------------------------------------------------------------- */

static void want_gone(Subject *subject, const char *id, Verdict *verdict) {
  MakeRequest request;
  struct sandhost_call call;
  Box box = {.subject = subject};
  make_request_init(&request, subject, SANDHOST_NETWORK_DENY);
  request.create.snapshot = as_text(id);
  call_init(&call, 300);
  gint32 status = subject->table->create(&call, subject->instance, &request.create, &box.handle);
  if (status != SANDHOST_NOT_FOUND && status != SANDHOST_INVALID) {
    wrong(verdict, "create from a snapshot that was deleted returned %s instead of NOT_FOUND",
          status_name(status));
  }
  call_clear(&call);
  if (status == SANDHOST_OK) {
    box_close(&box, verdict);
  }
}

static void check_deleted(Subject *subject, Verdict *verdict) {
  char *ids[2];
  if (take_two(subject, ids, verdict)) {
    snapshot_delete(subject, ids[0], verdict);
    want_gone(subject, ids[0], verdict);
    want_restored(subject, ids[1], "cat file", "two\n", verdict);
  }
  delete_two(subject, ids, verdict);
}

const Check SNAPSHOT_CHECKS[] = {
    {"snapshot: everything", "a snapshot keeps every file and folder, hidden and empty ones too",
     check_everything},
    {"snapshot: its own id", "a snapshot has an id of its own, and leaves the others as they are",
     check_own_ids},
    {"snapshot: deleted", "delete_snapshot removes the one that it is told, and no other",
     check_deleted},
    {0},
};
