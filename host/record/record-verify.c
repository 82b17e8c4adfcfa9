/* SPDX-License-Identifier: Apache-2.0 */
/* record-verify.c: walks one run's chain and says what is wrong with which event. The runs' own chain is in
 * record-verify-runs.c. */
#include "record/record-verify.h"

#include <string.h>

#include "record/asks.h"
#include "record/record-chain.h"
#include "record/verify-private.h"

/* An event as it stands in the file: enough to follow the chain without its text. */
typedef struct {
  gint64 seq;
  gboolean placed; /* the walk has met it */
  guint8 content[DIGEST_BYTES];
  guint8 hash[DIGEST_BYTES];
} Link;

typedef struct {
  Record *record;
  gint64 number;
  char *status;
  gboolean chained;  /* has a row in chains */
  gboolean expected; /* must have one */
  gboolean has_before;
  guint8 before[DIGEST_BYTES]; /* the link of the run before it */
  guint8 content[DIGEST_BYTES];
  guint8 link[DIGEST_BYTES];
  guint8 head[DIGEST_BYTES];
  gint64 count;
  GArray *links; /* of Link */
  gint64 ended_at;
  gint64 attempt; /* 0: it has no life */
  gint64 told_attempts;
  char *told_status; /* by the events; NULL: they say nothing */
  gint64 told_end;
  VerifyOutputs *outputs;
  JsonObject *faults; /* borrowed */
} Walk;

void verify_add_fault(JsonObject *faults, const char *key, gint64 number, const char *what,
                      const char *detail) {
  JsonObject *fault = json_object_new_object();
  json_add_take(fault, key, number > 0 ? json_object_new_int64(number) : NULL);
  json_add_text(fault, "what", what);
  json_add_text(fault, "detail", detail);
  json_object_array_add(faults, fault);
}

static void fault(Walk *walk, gint64 event, const char *what, const char *detail) {
  verify_add_fault(walk->faults, "event", event, what, detail);
}

ChainText verify_text(sqlite3_stmt *statement, int column) {
  const char *text = (const char *)sqlite3_column_text(statement, column);
  return (ChainText){text, text ? sqlite3_column_bytes(statement, column) : 0};
}

/* ---- What is in the file ------------------------------------------------------------------------------------- */

static int read_run(Walk *walk, const char *run_id) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(walk->record, STATEMENT_VERIFY_RUN, &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    walk->number = sqlite3_column_int64(statement, 0);
    walk->status = g_strdup((const char *)sqlite3_column_text(statement, 1));
    chain_run_content(sqlite3_column_int64(statement, 2), verify_text(statement, 3),
                      verify_text(statement, 4), verify_text(statement, 5), walk->content);
    walk->chained = chain_column(statement, 6, walk->link);
    walk->count = sqlite3_column_int64(statement, 7);
    chain_column(statement, 8, walk->head);
    walk->expected = sqlite3_column_int(statement, 9) != 0;
    walk->has_before = chain_column(statement, 10, walk->before);
    walk->ended_at = sqlite3_column_int64(statement, 11);
    walk->attempt = sqlite3_column_int64(statement, 12);
  }
  record_done(statement);
  return code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_NOTFOUND : code;
}

static void set_told(Walk *walk, const char *status) {
  g_free(walk->told_status);
  walk->told_status = g_strdup(status);
}

/* What an event says of the run's row and of what is kept beside it. */
static void read_facts(Walk *walk, sqlite3_stmt *statement, const char *type) {
  JsonObject *metadata = NULL;
  gboolean ends = g_strcmp0(type, "run_ended") == 0;
  if (ends || g_strcmp0(type, "run_interrupted") == 0) {
    set_told(walk, "interrupted"); /* or what its facts say */
    walk->told_end = sqlite3_column_int64(statement, 1);
  } else if (g_strcmp0(type, "run_started") == 0 || g_strcmp0(type, "run_resumed") == 0) {
    set_told(walk, "running");
    walk->told_attempts++;
  }
  if ((ends || verify_outputs_concern(type)) && record_read_json(statement, 3, &metadata)) {
    verify_outputs_add(walk->outputs, type, metadata);
    if (ends) {
      set_told(walk, json_get_text(metadata, "status"));
    }
  }
  json_object_put(metadata);
}

static int read_links(Walk *walk) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(walk->record, STATEMENT_VERIFY_EVENTS, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, walk->number);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    Link link = {.seq = sqlite3_column_int64(statement, 0)};
    chain_content(sqlite3_column_int64(statement, 1), verify_text(statement, 2),
                  verify_text(statement, 3), verify_text(statement, 4), link.content);
    chain_column(statement, 5, link.hash);
    g_array_append_val(walk->links, link);
    read_facts(walk, statement, (const char *)sqlite3_column_text(statement, 2));
  }
  record_done(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* ---- The walk ------------------------------------------------------------------------------------------------ */

/* Where the walk stands: the hash before the next event. There are two candidates after an event that was altered:
 * the hash that is written with it, and the one that its content has; none after a missing one. */
typedef struct {
  guint candidates;
  guint8 hash[2][DIGEST_BYTES];
} Position;

static void stand_at(Position *position, const guint8 hash[DIGEST_BYTES]) {
  position->candidates = 1;
  memcpy(position->hash[0], hash, DIGEST_BYTES);
}

static gboolean follows(const Position *position, gint64 number, const Link *link) {
  guint8 hash[DIGEST_BYTES];
  for (guint i = 0; i < position->candidates; i++) {
    chain_next(position->hash[i], number, link->content, hash);
    if (memcmp(hash, link->hash, DIGEST_BYTES) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

/* They are sorted by number. */
static Link *link_numbered(const Walk *walk, gint64 seq) {
  guint low = 0;
  guint high = walk->links->len;
  while (low < high) {
    guint middle = low + (high - low) / 2;
    Link *link = &g_array_index(walk->links, Link, middle);
    if (link->seq == seq) {
      return link;
    }
    if (link->seq < seq) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return NULL;
}

/* The event that was number `number` and stands elsewhere. */
static Link *link_displaced(const Walk *walk, const Position *position, gint64 number) {
  for (guint i = 0; i < walk->links->len; i++) {
    Link *link = &g_array_index(walk->links, Link, i);
    if (!link->placed && link->seq != number && follows(position, number, link)) {
      return link;
    }
  }
  return NULL;
}

static void walk_one(Walk *walk, Position *position, gint64 number) {
  Link *link = link_numbered(walk, number);
  if (link && (position->candidates == 0 || follows(position, number, link))) {
    link->placed = TRUE;
    stand_at(position, link->hash);
    return;
  }
  Link *displaced = link_displaced(walk, position, number);
  if (displaced) {
    g_autofree char *detail =
        g_strdup_printf("event %" G_GINT64_FORMAT " stands where event %" G_GINT64_FORMAT " was",
                        number, displaced->seq);
    fault(walk, displaced->seq, "out_of_order", detail);
    displaced->placed = TRUE;
    stand_at(position, displaced->hash);
    return;
  }
  if (!link) {
    fault(walk, number, "missing", NULL);
    position->candidates = 0;
    return;
  }
  link->placed = TRUE;
  fault(walk, number, "altered", NULL);
  guint8 hash[DIGEST_BYTES];
  chain_next(position->hash[0], number, link->content, hash);
  stand_at(position, link->hash);
  position->candidates = 2;
  memcpy(position->hash[1], hash, DIGEST_BYTES);
}

static gboolean stands_at(const Position *position, const guint8 hash[DIGEST_BYTES]) {
  for (guint i = 0; i < position->candidates; i++) {
    if (memcmp(position->hash[i], hash, DIGEST_BYTES) == 0) {
      return TRUE;
    }
  }
  return position->candidates == 0;
}

static void walk_events(Walk *walk) {
  Position position;
  stand_at(&position, walk->link);
  gint64 most = (gint64)walk->links->len;
  if (most > 0) {
    most = MAX(most, g_array_index(walk->links, Link, most - 1).seq);
  }
  gint64 end = CLAMP(walk->count, 0, most);
  for (gint64 number = 1; number <= end; number++) {
    walk_one(walk, &position, number);
  }
  if (walk->count > end) {
    g_autofree char *detail = g_strdup_printf(
        "events %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT " are missing", end + 1, walk->count);
    fault(walk, end + 1, "missing", walk->count > end + 1 ? detail : NULL);
  }
  for (guint i = 0; i < walk->links->len; i++) {
    const Link *link = &g_array_index(walk->links, Link, i);
    if (!link->placed) {
      fault(walk, link->seq, "added", NULL);
    }
  }
  if (!stands_at(&position, walk->head) && json_object_array_length(walk->faults) == 0) {
    fault(walk, 0, "altered", "the head of the run's chain is not its last event's hash");
  }
}

static void check_row(Walk *walk) {
  guint8 link[DIGEST_BYTES];
  if (walk->has_before) {
    chain_next(walk->before, walk->number, walk->content, link);
    if (memcmp(link, walk->link, DIGEST_BYTES) != 0) {
      fault(walk, 0, "altered",
            "the run's id, trace, beginning or header, or its link to the run before it");
    }
  }
}

/* What stands in the run's row of its end; only of events that are whole, since others tell of it too often. */
static void check_end(Walk *walk) {
  gboolean running = g_strcmp0(walk->told_status, "running") == 0;
  if (walk->told_status && g_strcmp0(walk->status, walk->told_status) != 0) {
    g_autofree char *detail = g_strdup_printf("the run's status is %s, and its events say %s",
                                              walk->status, walk->told_status);
    fault(walk, 0, "altered", detail);
  } else if (walk->told_status && walk->ended_at != (running ? 0 : walk->told_end)) {
    fault(walk, 0, "altered", "the time of the run's end is not that of its event");
  }
  if (walk->told_status && walk->attempt != 0 && walk->attempt != walk->told_attempts) {
    fault(walk, 0, "altered", "the run was taken more or less often than its row says");
  }
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

static const char *state_of(const Walk *walk) {
  return json_object_array_length(walk->faults) > 0 ? "damaged"
         : walk->chained                            ? "whole"
                                                    : "not_chained";
}

static int check(Walk *walk) {
  if (walk->chained) {
    check_row(walk);
    walk_events(walk);
    if (json_object_array_length(walk->faults) == 0) {
      check_end(walk);
    }
  } else if (walk->expected) {
    fault(walk, 0, "missing", "the run's row in the chain");
  }
  gboolean goes_on = g_strcmp0(walk->told_status, "running") == 0;
  int code = verify_outputs_check(walk->record, walk->number, walk->outputs, goes_on, walk->faults);
  return code == SQLITE_OK ? asks_verify(walk->record, walk->number, walk->status, walk->faults)
                           : code;
}

JsonObject *record_verify_run(Record *record, const char *run_id, GError **error) {
  JsonObject *result = json_object_new_object();
  Walk walk = {.record = record,
               .links = g_array_new(FALSE, FALSE, sizeof(Link)),
               .outputs = verify_outputs_new(),
               .faults = json_object_new_array()};
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = read_run(&walk, run_id);
    code = code == SQLITE_OK ? read_links(&walk) : code;
    code = code == SQLITE_OK ? check(&walk) : code;
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  if (code == SQLITE_NOTFOUND) {
    record_no_run(run_id, error);
  } else if (code != SQLITE_OK) {
    record_fail(record, "read", code, error);
  }
  pthread_mutex_unlock(&record->lock);
  g_autofree char *head = walk.chained ? digest_to_hex(walk.head) : NULL;
  json_add_text(result, "run_id", run_id);
  json_add_text(result, "state", state_of(&walk));
  json_add_int(result, "events", walk.links->len);
  json_add_text(result, "head", head);
  json_add_take(result, "faults", walk.faults);
  verify_outputs_free(walk.outputs);
  g_array_free(walk.links, TRUE);
  g_free(walk.status);
  g_free(walk.told_status);
  if (code != SQLITE_OK) {
    json_object_put(result);
    return NULL;
  }
  return result;
}
