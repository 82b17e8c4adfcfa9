/* SPDX-License-Identifier: Apache-2.0 */
/* record-verify-runs.c: that no run is missing between the first and the last; and kept outputs. */
#include <nettle/sha2.h>
#include <string.h>

#include "record/record-chunks.h"
#include "record/record-verify.h"
#include "record/verify-private.h"

/* ---- Outputs -------------------------------------------------------------------------------------- */

/* The digest of `bytes` bytes, or what is wrong. */
static const char *digest_output(Record *record, gint64 number, guint64 bytes,
                                 guint8 ret_digest[DIGEST_BYTES]) {
  struct sha256_ctx context;
  sha256_init(&context);
  for (guint64 at = 0; at < bytes;) {
    GByteArray *part = NULL;
    guint64 start = 0;
    int code = record_chunk_read(record, number, at, &start, &part);
    if (code != SQLITE_OK) {
      return code == SQLITE_DONE ? "is in part missing" : "is altered";
    }
    gboolean next = start == at;
    sha256_update(&context, part->len, part->data);
    at += part->len;
    g_byte_array_unref(part);
    if (!next) {
      return "is altered";
    }
  }
  sha256_digest(&context, DIGEST_BYTES, ret_digest);
  return NULL;
}

char *verify_output(Record *record, gint64 run, JsonObject *sealed) {
  guint8 digest[DIGEST_BYTES];
  gint64 number = 0;
  const char *execution_id = json_get_text(sealed, "execution_id");
  int stream = (int)json_get_int(sealed, "stream", 0);
  gint64 bytes = json_get_int(sealed, "bytes", -1);
  const char *wrong = NULL;
  if (!execution_id || bytes < 0) {
    return NULL; /* its event is altered, which is told of that */
  }
  if (bytes > 0) {
    int code = record_output_find(record, run, execution_id, stream, &number);
    wrong = code == SQLITE_OK && number != 0 ? digest_output(record, number, (guint64)bytes, digest)
                                             : "is missing";
  }
  if (!wrong && bytes > 0) {
    g_autofree char *hex = digest_to_hex(digest);
    wrong = g_strcmp0(hex, json_get_text(sealed, "sha256")) == 0 ? NULL : "is altered";
  }
  if (!wrong && json_get_text(sealed, "damaged")) {
    wrong = "was damaged when its run was found interrupted";
  }
  return wrong ? g_strdup_printf("the kept %s of %s %s", stream == 2 ? "stderr" : "stdout",
                                 execution_id, wrong)
               : NULL;
}

/* ---- Runs ------------------------------------------------------------------------------------------- */

typedef struct {
  gint64 first; /* number that is chained */
  gint64 last;
  gint64 pruned;
  gint64 next; /* number that comes next */
  guint8 link[DIGEST_BYTES];
  guint8 last_link[DIGEST_BYTES]; /* that of the last run that is there */
  JsonObject *runs;
  JsonObject *faults;
} RunsWalk;

static int read_anchor(Record *record, RunsWalk *walk) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_ANCHOR, &code);
  if (!statement) {
    return code;
  }
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    walk->first = sqlite3_column_int64(statement, 0);
    walk->last = sqlite3_column_int64(statement, 1);
    chain_column(statement, 2, walk->link);
  } else if (code == SQLITE_DONE) {
    verify_add_fault(walk->faults, "run", 0, "missing", "the row of the runs' chain");
    walk->first = 1;
  }
  record_done(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static void tell_missing(RunsWalk *walk, gint64 from, gint64 to) {
  if (from < to) {
    g_autofree char *detail =
        g_strdup_printf("runs %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT " are missing", from, to);
    verify_add_fault(walk->faults, "run", from, "missing", detail);
  } else {
    verify_add_fault(walk->faults, "run", from, "missing", NULL);
  }
}

static void walk_run(RunsWalk *walk, sqlite3_stmt *statement) {
  gint64 number = sqlite3_column_int64(statement, 0);
  const char *run_id = (const char *)sqlite3_column_text(statement, 1);
  if (sqlite3_column_int(statement, 2)) {
    walk->pruned++;
  } else {
    g_autofree char *valid = g_utf8_make_valid(run_id ? run_id : "", -1);
    json_object_array_add(walk->runs, json_object_new_string(valid));
  }
  if (number < walk->first) {
    return;
  }
  if (number > walk->next) {
    tell_missing(walk, walk->next, number - 1);
  }
  if (number > walk->last && walk->last >= 0) {
    verify_add_fault(walk->faults, "run", number, "added", "it is not in the runs' chain");
  }
  chain_column(statement, 3, walk->last_link);
  walk->next = number + 1;
}

static int walk_runs(Record *record, RunsWalk *walk) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_NUMBERS, &code);
  if (!statement) {
    return code;
  }
  walk->next = walk->first;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    walk_run(walk, statement);
  }
  record_done(statement);
  if (walk->next <= walk->last) {
    tell_missing(walk, walk->next, walk->last);
  } else if (json_object_array_length(walk->faults) == 0 &&
             memcmp(walk->link, walk->last_link, DIGEST_BYTES) != 0) {
    verify_add_fault(walk->faults, "run", 0, "altered", "the head of the runs' chain");
  }
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int find_orphans(Record *record, RunsWalk *walk) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_ORPHANS, &code);
  if (!statement) {
    return code;
  }
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    verify_add_fault(walk->faults, "run", sqlite3_column_int64(statement, 0), "missing",
                     "its events are there and its row is not");
  }
  record_done(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

JsonObject *record_verify_runs(Record *record, GError **error) {
  RunsWalk walk = {.runs = json_object_new_array(), .faults = json_object_new_array()};
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = read_anchor(record, &walk);
    code = code == SQLITE_OK ? walk_runs(record, &walk) : code;
    code = code == SQLITE_OK ? find_orphans(record, &walk) : code;
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  if (code != SQLITE_OK) {
    record_fail(record, "read", code, error);
  }
  pthread_mutex_unlock(&record->lock);
  g_autofree char *head = digest_to_hex(walk.link);
  JsonObject *result = json_object_new_object();
  json_add_text(result, "head", head);
  json_add_int(result, "pruned", walk.pruned);
  json_add_take(result, "runs", walk.runs);
  json_add_take(result, "faults", walk.faults);
  if (code != SQLITE_OK) {
    json_object_put(result);
    return NULL;
  }
  return result;
}
