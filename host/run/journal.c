/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c: pending events, and the one commit that makes them durable. */
#include "run/journal.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/millionths.h"

struct Journal {
  Record *record;
  char *run_id;
  char *owner;          /* NULL: whoever */
  Capture capture;      /* privacy NULL: events are as they are given */
  pthread_mutex_t lock; /* guards pending, and keeps commits in the order of the events */
  JsonObject *pending;  /* array of {type, metadata, payload} */

  const Metering *metering;   /* NULL: nothing is limited */
  gint64 owed[BUDGET_METERS]; /* guarded by lock, as the next */
  GArray *settlements;        /* RecordSettlement */
};

static void settlement_clear(void *value) {
  RecordSettlement *settlement = value;
  g_free(settlement->hold);
}

Journal *journal_new(Record *record, const char *run_id) {
  Journal *journal = g_new0(Journal, 1);
  journal->record = record;
  journal->run_id = g_strdup(run_id);
  pthread_mutex_init(&journal->lock, NULL);
  journal->pending = json_object_new_array();
  journal->settlements = g_array_new(FALSE, FALSE, sizeof(RecordSettlement));
  g_array_set_clear_func(journal->settlements, settlement_clear);
  return journal;
}

void journal_free(Journal *journal) {
  if (!journal) {
    return;
  }
  json_object_put(journal->pending);
  g_array_unref(journal->settlements);
  pthread_mutex_destroy(&journal->lock);
  g_free(journal->owner);
  g_free(journal->run_id);
  g_free(journal);
}

/* A copy that nobody else holds: json-c counts references without atomics, and another thread may be the one that
 * flushes. */
static JsonObject *own(JsonObject *take_value) {
  JsonObject *copy = NULL;
  if (take_value) {
    json_object_deep_copy(take_value, &copy, NULL);
    json_object_put(take_value);
  }
  return copy;
}

JsonObject *journal_event(const Journal *journal, const char *type, JsonObject *take_metadata,
                          JsonObject *take_payload) {
  JsonObject *metadata = take_metadata;
  JsonObject *payload = take_payload;
  if (journal->capture.privacy) {
    capture_event(&journal->capture, type, &metadata, &payload);
  } else {
    metadata = own(metadata);
    payload = own(payload);
  }
  JsonObject *event = json_object_new_object();
  json_add_text(event, "type", type);
  json_add_take(event, "metadata", metadata);
  json_add_take(event, "payload", payload);
  json_add_int(event, "at", clock_wall());
  return event;
}

void journal_add(Journal *journal, const char *type, JsonObject *take_metadata,
                 JsonObject *take_payload) {
  JsonObject *event = journal_event(journal, type, take_metadata, take_payload);
  pthread_mutex_lock(&journal->lock);
  json_object_array_add(journal->pending, event);
  pthread_mutex_unlock(&journal->lock);
}

void journal_set_owner(Journal *journal, const char *owner) {
  g_free(journal->owner);
  journal->owner = g_strdup(owner);
}

void journal_set_capture(Journal *journal, const Capture *capture) {
  journal->capture = *capture;
}

void journal_set_metering(Journal *journal, const Metering *metering) {
  journal->metering = metering;
}

void journal_owe(Journal *journal, BudgetMeter meter, gint64 amount) {
  if (metering_covers(journal->metering, meter)) {
    pthread_mutex_lock(&journal->lock);
    journal->owed[meter] = millionths_add(journal->owed[meter], amount);
    pthread_mutex_unlock(&journal->lock);
  }
}

void journal_settle(Journal *journal, const char *hold, gint64 amount) {
  const RecordSettlement settlement = {.hold = g_strdup(hold), .amount = amount};
  pthread_mutex_lock(&journal->lock);
  g_array_append_val(journal->settlements, settlement);
  pthread_mutex_unlock(&journal->lock);
}

/* ---- Commits: all of these under the lock ------------------------------------------------------------------------ */

/* Nothing is pending any more. */
static void drop_pending(Journal *journal) {
  json_object_put(journal->pending);
  journal->pending = json_object_new_array();
}

static void drop_owed(Journal *journal) {
  memset(journal->owed, 0, sizeof journal->owed);
  g_array_set_size(journal->settlements, 0);
}

/* What is owed comes before what is asked for: it has been used. Returns owned. */
static GArray *charges_of(const Journal *journal, const GArray *asked) {
  GArray *charges = g_array_new(FALSE, FALSE, sizeof(RecordCharge));
  for (BudgetMeter meter = 0; meter < BUDGET_METERS; meter++) {
    if (journal->owed[meter] > 0) {
      metering_add(journal->metering, RECORD_OWE, meter, journal->owed[meter], NULL, charges);
    }
  }
  if (asked && asked->len > 0) {
    g_array_append_vals(charges, asked->data, asked->len);
  }
  return charges;
}

static gboolean write_step(Journal *journal, const JournalStep *step, RecordShortage *ret_shortage,
                           GError **error) {
  g_autoptr(GArray) charges = charges_of(journal, step->charges);
  const RecordStep whole = {
      .approval_ids = step->approval_ids,
      .again = step->again,
      .charges = charges,
      .settlements = journal->settlements,
      .events = journal->pending,
  };
  gboolean empty = json_object_array_length(journal->pending) == 0 && charges->len == 0 &&
                   journal->settlements->len == 0 &&
                   (!step->approval_ids || step->approval_ids->len == 0);
  if (empty || !journal->record) {
    return TRUE;
  }
  return journal->owner
             ? record_step(journal->record, journal->run_id, journal->owner, &whole, ret_shortage,
                           error)
             : record_append_many(journal->record, journal->run_id, journal->pending, error);
}

gboolean journal_step(Journal *journal, const JournalStep *step, RecordShortage *ret_shortage,
                      GError **error) {
  pthread_mutex_lock(&journal->lock);
  gsize before = json_object_array_length(journal->pending);
  if (step->take_event) {
    json_object_array_add(journal->pending, step->take_event);
  }
  gboolean ok = write_step(journal, step, ret_shortage, error);
  if (ok) {
    drop_pending(journal);
    drop_owed(journal);
  } else if (step->take_event) {
    json_object_array_del_idx(journal->pending, before, 1);
  }
  pthread_mutex_unlock(&journal->lock);
  return ok;
}

gboolean journal_flush(Journal *journal, GError **error) {
  const JournalStep step = {0};
  RecordShortage unused = {0};
  return journal_step(journal, &step, &unused, error);
}

gboolean journal_ask_budget(Journal *journal, const RecordShortage *shortage,
                            const RecordWaiting *waiting, const GPtrArray *answered,
                            JsonObject **ret_request, GError **error) {
  pthread_mutex_lock(&journal->lock);
  g_autoptr(GArray) charges = charges_of(journal, NULL);
  const RecordStep step = {.charges = charges,
                           .settlements = journal->settlements,
                           .events = journal->pending,
                           .answered = answered};
  gboolean ok = record_ask_budget(journal->record, journal->run_id, journal->owner, shortage,
                                  waiting, &step, ret_request, error);
  if (ok) {
    drop_pending(journal);
    drop_owed(journal);
  }
  pthread_mutex_unlock(&journal->lock);
  return ok;
}

gboolean journal_suspend(Journal *journal, const GPtrArray *approvals, const GPtrArray *superseded,
                         GError **error) {
  pthread_mutex_lock(&journal->lock);
  gboolean ok = record_suspend(journal->record, journal->run_id, journal->owner, approvals,
                               superseded, journal->pending, error);
  if (ok) {
    drop_pending(journal);
  }
  pthread_mutex_unlock(&journal->lock);
  return ok;
}

static gboolean owes(Journal *journal) {
  pthread_mutex_lock(&journal->lock);
  g_autoptr(GArray) charges = charges_of(journal, NULL);
  gboolean any = charges->len > 0 || journal->settlements->len > 0;
  pthread_mutex_unlock(&journal->lock);
  return any;
}

gboolean journal_end(Journal *journal, const RecordEnd *end, GError **error) {
  gboolean ok = !owes(journal) || journal_flush(journal, error);
  pthread_mutex_lock(&journal->lock);
  JsonObject *events =
      ok && json_object_array_length(journal->pending) > 0 ? journal->pending : NULL;
  gboolean ended = record_end_life_after(journal->record, journal->run_id, journal->owner, events,
                                         end, ok ? error : NULL);
  if (ended && events) {
    drop_pending(journal);
  } else if (events) {
    record_end_life_after(journal->record, journal->run_id, journal->owner, NULL, end, NULL);
  }
  pthread_mutex_unlock(&journal->lock);
  return ok && ended;
}
