/* SPDX-License-Identifier: Apache-2.0 */
/* check-sweep.c: a sweep touches what it was asked for and nothing else, and what it says of a sandbox is true. */
#include <string.h>

#include "lost.h"
#include "sleepers.h"

typedef struct {
  char *ref;
  char *run_id;
  gint64 age;
  gboolean removed;
} Orphan;

static void orphan_free(gpointer data) {
  Orphan *orphan = data;
  g_free(orphan->ref);
  g_free(orphan->run_id);
  g_free(orphan);
}

static int32_t keep_orphan(void *user, const struct sandhost_orphan *orphan) {
  Orphan *ours = g_new(Orphan, 1);
  *ours = (Orphan){.ref = g_strndup(orphan->ref.data, orphan->ref.length),
                   .run_id = g_strndup(orphan->run_id.data, orphan->run_id.length),
                   .age = orphan->age,
                   .removed = orphan->removed != 0};
  g_ptr_array_add(user, ours);
  return SANDHOST_OK;
}

/* Of the suite's own run. Owned. */
static GPtrArray *sweep(Subject *subject, gint64 min_age, gboolean dry_run, Verdict *verdict) {
  GPtrArray *orphans = g_ptr_array_new_with_free_func(orphan_free);
  struct sandhost_call call;
  const struct sandhost_sweep request = {.size = sizeof request,
                                         .run_id = as_text(subject->run_id),
                                         .min_age = min_age,
                                         .dry_run = dry_run};
  const struct sandhost_orphan_sink sink = {
      .size = sizeof sink, .user = orphans, .orphan = keep_orphan};
  call_init(&call, 60);
  gint32 status = subject->table->sweep(&call, subject->instance, &request, &sink);
  if (status != SANDHOST_OK) {
    wrong(verdict, "sweep failed with %s: %s", status_name(status),
          call.message ? call.message : "no message");
  }
  call_clear(&call);
  return orphans;
}

static const Orphan *find(const GPtrArray *orphans, const Box *box) {
  for (guint i = 0; box->ref && i < orphans->len; i++) {
    const Orphan *orphan = g_ptr_array_index(orphans, i);
    if (strcmp(orphan->ref, box->ref) == 0) {
      return orphan;
    }
  }
  return NULL;
}

/* One sandbox, which the body may let be swept. */
static void with_box(Subject *subject, void (*body)(Box *box, Verdict *verdict), Verdict *verdict) {
  Box box;
  if (!subject->table->sweep) {
    skipped(verdict, "no sweep");
  } else if (box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    body(&box, verdict);
    box_close(&box, verdict);
  }
}

/* ---- Of a run -------------------------------------------------------------------------------------------------------- */

static void sweep_beside(Box *box, Box *other, Verdict *verdict) {
  for (gint dry_run = 1; dry_run >= 0; dry_run--) {
    g_autoptr(GPtrArray) orphans = sweep(box->subject, 0, dry_run, verdict);
    const Orphan *ours = find(orphans, box);
    if (find(orphans, other)) {
      wrong(verdict, "the sweep of a run listed a sandbox of another one");
    } else if (!ours) {
      wrong(verdict, "the sweep of a run did not list its sandbox");
    } else if (strcmp(ours->run_id, box->subject->run_id) != 0) {
      wrong(verdict, "the sweep of run '%s' listed its sandbox as one of run '%s'",
            box->subject->run_id, ours->run_id);
    }
  }
  want_run(other, "echo alive", 0, "alive\n", verdict);
}

static void beside_another_run(Box *box, Verdict *verdict) {
  Box other;
  MakeRequest request;
  g_autofree char *run_id = g_strconcat(box->subject->run_id, "0", NULL);
  make_request_init(&request, box->subject, SANDHOST_NETWORK_DENY);
  request.create.run_id = as_text(run_id);
  if (box_open_as(&other, box->subject, &request, verdict)) {
    sweep_beside(box, &other, verdict);
    box_close(&other, verdict);
  }
}

static void check_sweep_of_run(Subject *subject, Verdict *verdict) {
  with_box(subject, beside_another_run, verdict);
}

/* ---- Young ones ------------------------------------------------------------------------------------------------------ */

#define DAY (86400 * SECOND)
#define MILLISECOND (SECOND / 1000)
#define OLD_MICROSECONDS                                                                           \
  1500000 /* after which no age is below a millisecond, unless a clock counts in whole seconds */

static void young_and_old(Box *box, Verdict *verdict) {
  for (gint dry_run = 1; dry_run >= 0; dry_run--) {
    g_autoptr(GPtrArray) young = sweep(box->subject, DAY, dry_run, verdict);
    if (young->len > 0) {
      wrong(verdict, "a sweep of what is older than a day listed a sandbox that was just made");
    }
  }
  g_usleep(OLD_MICROSECONDS);
  want_run(box, "echo alive", 0, "alive\n", verdict);
  g_autoptr(GPtrArray) all = sweep(box->subject, 0, TRUE, verdict);
  const Orphan *orphan = find(all, box);
  if (!orphan) {
    wrong(verdict, "a dry run without an age did not list the sandbox");
  } else if (orphan->age < -1 || orphan->age > DAY ||
             (orphan->age > 0 && orphan->age < MILLISECOND)) {
    wrong(verdict,
          "the age of a sandbox that was made seconds ago is told as %" G_GINT64_FORMAT
          " nanoseconds",
          orphan->age);
  }
}

static void check_sweep_young(Subject *subject, Verdict *verdict) {
  with_box(subject, young_and_old, verdict);
}

/* ---- Removed --------------------------------------------------------------------------------------------------------- */

static guint await_sleepers(const char *mark, gboolean some) {
  guint count = sleepers_count(mark);
  for (int i = 0; i < 100 && (count > 0) != some; i++) {
    g_usleep(20000);
    count = sleepers_count(mark);
  }
  return count;
}

static void removed(Box *box, Verdict *verdict) {
  g_autofree char *mark = g_strdup_printf("1%u", g_random_int_range(100000, 999999));
  g_autofree char *script = g_strdup_printf("sleep %s > /dev/null 2>&1 &", mark);
  want_run(box, script, 0, "", verdict);
  guint seen = await_sleepers(mark, TRUE);
  g_autoptr(GPtrArray) swept = sweep(box->subject, 0, FALSE, verdict);
  const Orphan *orphan = find(swept, box);
  if (!orphan || !orphan->removed) {
    wrong(verdict, "a sweep did not remove the sandbox");
    return;
  }
  want_all_lost(box, verdict);
  g_autoptr(GPtrArray) after = sweep(box->subject, 0, TRUE, verdict);
  if (find(after, box)) {
    wrong(verdict, "what a sweep has removed is listed by the next one");
  } else if (await_sleepers(mark, FALSE) > 0) {
    wrong(verdict, "a process lives on in a sandbox that was swept");
  } else if (seen == 0) {
    untried(verdict, "what runs in the sandbox is not seen from here");
  }
}

static void check_sweep_removed(Subject *subject, Verdict *verdict) {
  with_box(subject, removed, verdict);
}

const Check SWEEP_CHECKS[] = {
    {"sweep: of a run", "with a run_id only its sandboxes are touched, and told as that run's",
     check_sweep_of_run},
    {"sweep: young ones", "what is younger than min_age is left alone; an age is in nanoseconds",
     check_sweep_young},
    {"sweep: removed", "what is told as removed is gone, with all that ran in it",
     check_sweep_removed},
    {0},
};
