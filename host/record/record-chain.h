/* SPDX-License-Identifier: Apache-2.0 */
/* record-chain.h: the hashes that bind a run's events, and the runs, to each other. */
#ifndef SANDHOST_RECORD_RECORD_CHAIN_H
#define SANDHOST_RECORD_RECORD_CHAIN_H

#include "base/digest.h"
#include "record/record-private.h"

/* NULL: no text. length -1: up to the NUL. */
typedef struct {
  const char *text;
  gssize length;
} ChainText;

void chain_content(gint64 at, ChainText type, ChainText metadata, ChainText payload,
                   guint8 ret_digest[DIGEST_BYTES]);
/* Of an event or a run: what is before it, its number, its content. ret_digest may be content. */
void chain_next(const guint8 before[DIGEST_BYTES], gint64 number,
                const guint8 content[DIGEST_BYTES], guint8 ret_digest[DIGEST_BYTES]);
void chain_run_content(gint64 at, ChainText run_id, ChainText trace_id, ChainText header,
                       guint8 ret_digest[DIGEST_BYTES]);
/* FALSE, and zeros, when the column holds no digest. */
gboolean chain_column(sqlite3_stmt *statement, int column, guint8 ret_digest[DIGEST_BYTES]);

/* The end of one run's chain. */
typedef struct {
  gint64 run;   /* its number */
  gint64 count; /* of events */
  gboolean chained;
  guint8 head[DIGEST_BYTES];
} RecordChain;

/* All under the lock and within a transaction. */

/* The last number that was given to a run, and its link. */
int record_chain_last(Record *record, gint64 *ret_number, guint8 ret_link[DIGEST_BYTES]);
int record_chain_begin(Record *record, gint64 number, const guint8 link[DIGEST_BYTES],
                       RecordChain *ret_chain);
/* SQLITE_NOTFOUND: no such run. */
int record_chain_read(Record *record, const char *run_id, RecordChain *ret_chain);
/* Inserts an event and moves chain on, which record_chain_write keeps before the commit. */
int record_chain_append(Record *record, RecordChain *chain, gint64 at, const char *type,
                        const char *metadata, const char *payload);
int record_chain_write(Record *record, const RecordChain *chain);

#endif
