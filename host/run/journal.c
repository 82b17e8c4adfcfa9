/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c: pending events, and the one commit that makes them durable. */
#include "run/journal.h"

#include <pthread.h>

#include "base/clock.h"

struct Journal {
  Record *record;
  char *run_id;
  char *owner;          /* NULL: whoever */
  pthread_mutex_t lock; /* guards pending, and keeps commits in the order of the events */
  JsonObject *pending;  /* array of {type, metadata, payload} */
};

Journal *journal_new(Record *record, const char *run_id) {
  Journal *journal = g_new0(Journal, 1);
  journal->record = record;
  journal->run_id = g_strdup(run_id);
  pthread_mutex_init(&journal->lock, NULL);
  journal->pending = json_object_new_array();
  return journal;
}

void journal_free(Journal *journal) {
  if (!journal) {
    return;
  }
  json_object_put(journal->pending);
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

void journal_add(Journal *journal, const char *type, JsonObject *take_metadata,
                 JsonObject *take_payload) {
  JsonObject *event = json_object_new_object();
  json_add_text(event, "type", type);
  json_add_take(event, "metadata", own(take_metadata));
  json_add_take(event, "payload", own(take_payload));
  json_add_int(event, "at", clock_wall());
  pthread_mutex_lock(&journal->lock);
  json_object_array_add(journal->pending, event);
  pthread_mutex_unlock(&journal->lock);
}

void journal_set_owner(Journal *journal, const char *owner) {
  g_free(journal->owner);
  journal->owner = g_strdup(owner);
}

/* Under the lock: nothing is pending any more. */
static void drop_pending(Journal *journal) {
  json_object_put(journal->pending);
  journal->pending = json_object_new_array();
}

gboolean journal_commit(Journal *journal, const GPtrArray *approval_ids, GError **error) {
  gboolean ok = TRUE;
  pthread_mutex_lock(&journal->lock);
  if (json_object_array_length(journal->pending) > 0 || (approval_ids && approval_ids->len > 0)) {
    if (journal->record && journal->owner) {
      ok = record_commit(journal->record, journal->run_id, journal->owner, approval_ids,
                         journal->pending, error);
    } else if (journal->record) {
      ok = record_append_many(journal->record, journal->run_id, journal->pending, error);
    }
    if (ok) {
      drop_pending(journal);
    }
  }
  pthread_mutex_unlock(&journal->lock);
  return ok;
}

gboolean journal_flush(Journal *journal, GError **error) {
  return journal_commit(journal, NULL, error);
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
