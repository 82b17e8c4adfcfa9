/* SPDX-License-Identifier: Apache-2.0 */
/* verify-private.h: what the parts of the verification share. */
#ifndef SANDHOST_RECORD_VERIFY_PRIVATE_H
#define SANDHOST_RECORD_VERIFY_PRIVATE_H

#include "record/record-chain.h"

/* {key: number or null where it is 0, what, detail} */
void verify_add_fault(JsonObject *faults, const char *key, gint64 number, const char *what,
                      const char *detail);
ChainText verify_text(sqlite3_stmt *statement, int column);

/* Whether a kept output {execution_id, stream, bytes, sha256, damaged} is what was written; says what is wrong, owned, or
 * NULL. Ends in "missing" when it is not there. Under the lock. */
char *verify_output(Record *record, gint64 run, JsonObject *sealed);

#endif
