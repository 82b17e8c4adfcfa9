/* SPDX-License-Identifier: Apache-2.0 */
/* record-trace.c: which run a trace is a segment of. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "record/record-private.h"

#define MOST_ID 128 /* bytes */

/* Ids are letters, digits and _, so that one can be looked for in the text of an event. */
static gboolean is_id(const char *text) {
  gsize length = strnlen(text, MOST_ID + 1);
  for (gsize i = 0; i < MIN(length, MOST_ID + 1); i++) {
    if (!g_ascii_isalnum(text[i]) && text[i] != '_') {
      return FALSE;
    }
  }
  return length > 0 && length <= MOST_ID;
}

static int find(Record *record, const char *trace_id, char **ret_run_id) {
  int code = SQLITE_OK;
  g_autofree char *member = g_strdup_printf("\"trace_id\":\"%s\"", trace_id);
  sqlite3_stmt *statement =
      record_prepare(record,
                     "SELECT run_id FROM runs WHERE trace_id = ?1 UNION ALL"
                     "  SELECT run_id FROM events JOIN runs ON runs.number = events.run"
                     "  WHERE type = 'run_resumed' AND instr(metadata, ?2) > 0 LIMIT 1",
                     &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, trace_id);
  record_bind_text(statement, 2, member);
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    *ret_run_id = record_text_column(statement, 0);
  }
  sqlite3_finalize(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

char *record_run_of_trace(Record *record, const char *trace_id, GError **error) {
  char *run_id = NULL;
  int code = SQLITE_OK;
  if (is_id(trace_id)) {
    pthread_mutex_lock(&record->lock);
    record->patience = clock_deadline(30 * CLOCK_SECOND);
    code = find(record, trace_id, &run_id);
    if (code != SQLITE_OK) {
      record_fail(record, "read", code, error);
    }
    pthread_mutex_unlock(&record->lock);
  }
  if (!run_id && code == SQLITE_OK) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND, "No trace %s", trace_id);
  }
  return run_id;
}
