/* SPDX-License-Identifier: Apache-2.0 */
/* retention-layout.h: what record-retention.c and record-remove.c keep, as one layout of the file (record-schema.c). */
#ifndef SANDHOST_RECORD_RETENTION_LAYOUT_H
#define SANDHOST_RECORD_RETENTION_LAYOUT_H

/* discarded: removed runs whose events and outputs are still there. keep_days: for how long its configuration keeps a run
 * that has ended; null: for ever, as runs of before. */
#define RETENTION_LAYOUT                                                                           \
  "ALTER TABLE runs ADD COLUMN keep_days INTEGER;"                                                 \
  "CREATE INDEX runs_expiring ON runs (ended_at)"                                                  \
  "  WHERE keep_days IS NOT NULL AND ended_at IS NOT NULL;"                                        \
  "CREATE TABLE retention ("                                                                       \
  "  id INTEGER PRIMARY KEY CHECK (id = 1),"                                                       \
  "  looked_at INTEGER NOT NULL,"                                                                  \
  "  removed INTEGER NOT NULL,"                                                                    \
  "  removed_at INTEGER"                                                                           \
  ") STRICT;"                                                                                      \
  "CREATE TABLE discarded (run INTEGER PRIMARY KEY) STRICT;"                                       \
  "INSERT INTO retention (id, looked_at, removed) VALUES (1, 0, 0);"

#endif
