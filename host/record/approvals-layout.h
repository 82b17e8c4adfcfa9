/* SPDX-License-Identifier: Apache-2.0 */
/* approvals-layout.h: the tables of lives.c and approvals.c, as one layout of the file (record-schema.c). */
#ifndef SANDHOST_RECORD_APPROVALS_LAYOUT_H
#define SANDHOST_RECORD_APPROVALS_LAYOUT_H

/* content is the whole approval as JSON; status and expires_at stand beside it to be looked for. */
#define APPROVALS_LAYOUT                                                                           \
  "CREATE TABLE lives ("                                                                           \
  "  run INTEGER PRIMARY KEY REFERENCES runs (number) ON DELETE CASCADE,"                          \
  "  owner TEXT NOT NULL,"                                                                         \
  "  attempt INTEGER NOT NULL,"                                                                    \
  "  lease INTEGER NOT NULL,"                                                                      \
  "  heartbeat_at INTEGER NOT NULL,"                                                               \
  "  request TEXT,"                                                                                \
  "  error TEXT"                                                                                   \
  ") STRICT;"                                                                                      \
  "CREATE TABLE approvals ("                                                                       \
  "  number INTEGER PRIMARY KEY,"                                                                  \
  "  run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,"                             \
  "  approval_id TEXT NOT NULL UNIQUE,"                                                            \
  "  status TEXT NOT NULL,"                                                                        \
  "  expires_at INTEGER NOT NULL,"                                                                 \
  "  content TEXT NOT NULL"                                                                        \
  ") STRICT;"                                                                                      \
  "CREATE INDEX approvals_of_run ON approvals (run);"                                              \
  "CREATE INDEX approvals_pending ON approvals (number) WHERE status = 'pending';"

#endif
