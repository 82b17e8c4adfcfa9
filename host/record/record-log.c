/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-log.c: when the write-ahead log moves into the file.
 *
 * A short run would pay for a checkpoint and for removing the log each time it ends; both wait for a full log, which is
 * small, since the next process reads it whole. A checkpoint waits for the disk three times, so a run of many commands
 * has it between them, at its heartbeat, or when the log is long. It must be followed by a commit of the same process:
 * another would not know that the log may begin anew.
 */
#include "base/clock.h"
#include "record/record-private.h"

/* Pages. */
#define LOG_FULL 128
#define LOG_LONG 1024
/* So many commits make a short run. */
#define SHORT_RUN 8

/* With the lock. What cannot be moved now, because somebody reads, is tried again. */
static void tidy(Record *record, int most) {
  if (record->log_pages >= most) {
    record->log_pages = 0;
    sqlite3_wal_checkpoint_v2(record->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
  }
}

static int note_log(void *user, sqlite3 *db, const char *name, int pages) {
  Record *record = user;
  (void)db;
  (void)name;
  record->log_pages = pages;
  record->commits++;
  tidy(record, record->commits <= SHORT_RUN ? LOG_FULL : LOG_LONG);
  return SQLITE_OK;
}

void record_tidy(Record *record) {
  tidy(record, LOG_FULL);
}

void record_log_watch(Record *record) {
  sqlite3_wal_hook(record->db, note_log, record);
}

/* How long readers are waited for. */
#define WIPE_WAIT (CLOCK_SECOND / 5)

void record_overwrite(Record *record, gboolean yes) {
  sqlite3_exec(record->db, yes ? "PRAGMA secure_delete = ON" : "PRAGMA secure_delete = FAST", NULL,
               NULL, NULL);
}

void record_wipe_log(Record *record) {
  if (record->wipes) {
    record->wipes = FALSE;
    record->patience = clock_deadline(WIPE_WAIT);
    sqlite3_wal_checkpoint_v2(record->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
  }
}
