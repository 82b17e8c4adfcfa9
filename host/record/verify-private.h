/* SPDX-License-Identifier: Apache-2.0 */
/* verify-private.h: what the parts of the verification share. */
#ifndef SANDHOST_RECORD_VERIFY_PRIVATE_H
#define SANDHOST_RECORD_VERIFY_PRIVATE_H

#include "record/record-chain.h"

/* {key: number or null where it is 0, what, detail} */
void verify_add_fault(JsonObject *faults, const char *key, gint64 number, const char *what,
                      const char *detail);
ChainText verify_text(sqlite3_stmt *statement, int column);

/* record-verify-outputs.c. What a run's events say of kept output, gathered event by event, then held against what is
 * there. goes_on: by the last word of the events a process has the run, and its commands may be writing. Under the lock. */
typedef struct VerifyOutputs VerifyOutputs;
VerifyOutputs *verify_outputs_new(void);
void verify_outputs_free(VerifyOutputs *outputs);
gboolean verify_outputs_concern(const char *type);
void verify_outputs_add(VerifyOutputs *outputs, const char *type, JsonObject *metadata);
/* An SQLite code. */
int verify_outputs_check(Record *record, gint64 run, VerifyOutputs *outputs, gboolean goes_on,
                         JsonObject *faults);

#endif
