/* SPDX-License-Identifier: Apache-2.0 */
/* check-optional.c: operations that a provider may leave out, and has to keep when it has them. */
#include <string.h>

#include "lost.h"
#include "network.h"
#include "snapshots.h"

/* ---- sweep ------------------------------------------------------------------------------------------------------ */

typedef struct {
  GPtrArray *refs; /* of char * */
  guint removed;
} Swept;

static int32_t note_orphan(void *user, const struct sandhost_orphan *orphan) {
  Swept *swept = user;
  g_ptr_array_add(swept->refs, g_strndup(orphan->ref.data, orphan->ref.length));
  swept->removed += orphan->removed != 0;
  return SANDHOST_OK;
}

/* Sweeps this suite's own sandboxes but one. */
static gboolean sweep(Subject *subject, const char *keep, gint32 dry_run, Swept *swept,
                      Verdict *verdict) {
  struct sandhost_call call;
  const struct sandhost_text kept[] = {as_text(keep)};
  const struct sandhost_sweep request = {.size = sizeof request,
                                         .run_id = as_text(subject->run_id),
                                         .keep = kept,
                                         .keep_count = 1,
                                         .dry_run = dry_run};
  const struct sandhost_orphan_sink sink = {
      .size = sizeof sink, .user = swept, .orphan = note_orphan};
  *swept = (Swept){.refs = g_ptr_array_new_with_free_func(g_free)};
  call_init(&call, 60);
  gint32 status = subject->table->sweep(&call, subject->instance, &request, &sink);
  if (status != SANDHOST_OK) {
    wrong(verdict, "sweep failed with %s: %s", status_name(status), call.message);
  }
  call_clear(&call);
  return status == SANDHOST_OK;
}

static gboolean has_ref(const Swept *swept, const char *ref) {
  return g_ptr_array_find_with_equal_func(swept->refs, ref, g_str_equal, NULL);
}

static void check_sweep_of(Box *kept, Box *left, Verdict *verdict) {
  Swept swept;
  const char *keep = kept->ref ? kept->ref : "";
  if (sweep(kept->subject, keep, 1, &swept, verdict)) {
    if (!has_ref(&swept, left->ref ? left->ref : "") || has_ref(&swept, keep)) {
      wrong(verdict, "a dry run listed %u sandboxes, not just the one that is not kept",
            swept.refs->len);
    } else if (swept.removed > 0) {
      wrong(verdict, "a dry run removed something");
    }
  }
  g_ptr_array_unref(swept.refs);
  want_run(left, "true", 0, "", verdict);
  if (sweep(kept->subject, keep, 0, &swept, verdict) && swept.removed != 1) {
    wrong(verdict, "%u sandboxes were removed instead of 1", swept.removed);
  }
  g_ptr_array_unref(swept.refs);
  want_run(kept, "true", 0, "", verdict);
  want_all_lost(left, verdict);
}

static void check_sweep(Subject *subject, Verdict *verdict) {
  Box kept;
  Box left;
  if (!subject->table->sweep) {
    skipped(verdict, "no sweep");
    return;
  }
  if (!box_open(&kept, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  if (box_open(&left, subject, SANDHOST_NETWORK_DENY, verdict)) {
    check_sweep_of(&kept, &left, verdict);
    box_close(&left, verdict);
  }
  box_close(&kept, verdict);
}

/* ---- snapshot --------------------------------------------------------------------------------------------------- */

static void check_snapshot(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->snapshot || !subject->table->delete_snapshot) {
    skipped(verdict, "no snapshots");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(&box,
           "mkdir -p a/b && echo kept > a/b/file && chmod 700 a/b/file && ln -s b/file a/link", 0,
           "", verdict);
  g_autofree char *id = snapshot_take(&box, verdict);
  want_run(&box, "echo changed > a/b/file", 0, "", verdict);
  box_close(&box, verdict);
  if (!id) {
    return;
  }
  if (box_open_from(&box, subject, SANDHOST_NETWORK_DENY, id, verdict)) {
    want_run(&box, "cat a/link; test -x a/b/file && echo more >> a/b/file && tail -n 1 a/b/file", 0,
             "kept\nmore\n", verdict);
    box_close(&box, verdict);
  }
  snapshot_delete(subject, id, verdict);
  snapshot_delete(subject, id, verdict); /* one that is gone is no error */
}

/* ---- set_network_policy ----------------------------------------------------------------------------------------- */

static void switch_network(Box *box, guint32 mode, Verdict *verdict) {
  struct sandhost_call call;
  const struct sandhost_network network = {.size = sizeof network, .mode = mode};
  call_init(&call, 60);
  gint32 status = box->subject->table->set_network_policy(&call, box->handle, &network);
  if (status != SANDHOST_OK) {
    wrong(verdict, "set_network_policy(%s) failed with %s: %s",
          mode == SANDHOST_NETWORK_DENY ? "deny" : "allow", status_name(status), call.message);
  }
  call_clear(&call);
}

static void check_network_switch(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->set_network_policy || !subject->keeps_network_off) {
    skipped(verdict, "no set_network_policy");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_ALLOW, verdict)) {
    return;
  }
  switch_network(&box, SANDHOST_NETWORK_DENY, verdict);
  want_network_off(&box, verdict);
  switch_network(&box, SANDHOST_NETWORK_ALLOW, verdict);
  switch_network(&box, SANDHOST_NETWORK_ALLOW, verdict);
  want_network_on(&box, verdict);
  box_close(&box, verdict);
}

const Check OPTIONAL_CHECKS[] = {
    {"sweep: keeps", "sweep takes what is not kept, a dry run nothing, and neither what is kept",
     check_sweep},
    {"snapshot: files", "a sandbox made from a snapshot finds the files as they were",
     check_snapshot},
    {"network: switched", "set_network_policy changes the network of a running sandbox",
     check_network_switch},
    {0},
};
