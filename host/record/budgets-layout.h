/* SPDX-License-Identifier: Apache-2.0 */
/* budgets-layout.h: the tables of budgets.c, as one layout of the file (record-schema.c). */
#ifndef SANDHOST_RECORD_BUDGETS_LAYOUT_H
#define SANDHOST_RECORD_BUDGETS_LAYOUT_H

/* Amounts are millionths. budget is the limit as it was last seen, without what was granted. run: the counter is of that
 * run alone and goes with it. A hold is one row for each counter that it is held on;
 * there are no more than commands in flight, so they need no index. content of a request is the whole
 * of it as JSON; what is added up stands beside it. */
#define BUDGETS_LAYOUT                                                                             \
  "CREATE TABLE budget_counters ("                                                                 \
  "  number INTEGER PRIMARY KEY,"                                                                  \
  "  scope TEXT NOT NULL,"                                                                         \
  "  key TEXT NOT NULL,"                                                                           \
  "  meter TEXT NOT NULL,"                                                                         \
  "  window TEXT NOT NULL,"                                                                        \
  "  starts INTEGER NOT NULL,"                                                                     \
  "  budget INTEGER NOT NULL,"                                                                     \
  "  granted INTEGER NOT NULL DEFAULT 0,"                                                          \
  "  spent INTEGER NOT NULL DEFAULT 0,"                                                            \
  "  warned INTEGER NOT NULL DEFAULT 0,"                                                           \
  "  run INTEGER REFERENCES runs (number) ON DELETE CASCADE,"                                      \
  "  UNIQUE (scope, key, meter, window, starts)"                                                   \
  ") STRICT;"                                                                                      \
  "CREATE INDEX budget_counters_of_run ON budget_counters (run);"                                  \
  "CREATE TABLE budget_holds ("                                                                    \
  "  number INTEGER PRIMARY KEY,"                                                                  \
  "  hold TEXT NOT NULL,"                                                                          \
  "  run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,"                             \
  "  counter INTEGER NOT NULL REFERENCES budget_counters (number) ON DELETE CASCADE,"              \
  "  amount INTEGER NOT NULL"                                                                      \
  ") STRICT;"                                                                                      \
  "CREATE TABLE budget_requests ("                                                                 \
  "  number INTEGER PRIMARY KEY,"                                                                  \
  "  request_id TEXT NOT NULL UNIQUE,"                                                             \
  "  run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,"                             \
  "  counter INTEGER NOT NULL REFERENCES budget_counters (number) ON DELETE CASCADE,"              \
  "  status TEXT NOT NULL,"                                                                        \
  "  needed INTEGER NOT NULL,"                                                                     \
  "  shortfall INTEGER NOT NULL,"                                                                  \
  "  content TEXT NOT NULL"                                                                        \
  ") STRICT;"                                                                                      \
  "CREATE INDEX budget_requests_of_run ON budget_requests (run);"                                  \
  "CREATE INDEX budget_requests_of_counter ON budget_requests (counter);"

#endif
