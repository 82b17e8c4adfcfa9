/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-chain.c: what makes it visible that somebody changed the record.
 *
 * An event's hash is taken over the hash before it, its number and its content. A run's chain
 * begins at the run's link, and its row in chains says how many events there are and the last
 * one's hash, so that the end cannot go missing either. A run's link is taken over the link of the
 * run before it and what the run began with; record_chain says which is the last. Nothing here is
 * secret: who rewrites everything from the change on is found only by who noted the head.
 */
#include "record/record-chain.h"

#include <nettle/sha2.h>
#include <string.h>

static void add_number(struct sha256_ctx *context, gint64 number) {
  const guint64 order = GUINT64_TO_BE((guint64)number);
  sha256_update(context, sizeof order, (const guint8 *)&order);
}

/* With its length, so that two texts never look like two others; no text is not an empty one. */
static void add_text(struct sha256_ctx *context, const char *text, gssize length) {
  if (!text) {
    add_number(context, -1);
    return;
  }
  gsize count = length < 0 ? strlen(text) : (gsize)length;
  add_number(context, (gint64)count);
  sha256_update(context, count, (const guint8 *)text);
}

void chain_content(gint64 at, ChainText type, ChainText metadata, ChainText payload,
                   guint8 ret_digest[DIGEST_BYTES]) {
  struct sha256_ctx context;
  sha256_init(&context);
  add_number(&context, at);
  add_text(&context, type.text, type.length);
  add_text(&context, metadata.text, metadata.length);
  add_text(&context, payload.text, payload.length);
  sha256_digest(&context, DIGEST_BYTES, ret_digest);
}

void chain_next(const guint8 before[DIGEST_BYTES], gint64 number,
                const guint8 content[DIGEST_BYTES], guint8 ret_digest[DIGEST_BYTES]) {
  struct sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, DIGEST_BYTES, before);
  add_number(&context, number);
  sha256_update(&context, DIGEST_BYTES, content);
  sha256_digest(&context, DIGEST_BYTES, ret_digest);
}

void chain_run_content(gint64 at, ChainText run_id, ChainText trace_id, ChainText header,
                       guint8 ret_digest[DIGEST_BYTES]) {
  chain_content(at, run_id, trace_id, header, ret_digest);
}

gboolean chain_column(sqlite3_stmt *statement, int column, guint8 ret_digest[DIGEST_BYTES]) {
  const void *data = sqlite3_column_blob(statement, column);
  if (!data || sqlite3_column_bytes(statement, column) != DIGEST_BYTES) {
    memset(ret_digest, 0, DIGEST_BYTES);
    return FALSE;
  }
  memcpy(ret_digest, data, DIGEST_BYTES);
  return TRUE;
}

/* ---- Writing ----------------------------------------------------------------------------------- */

int record_chain_last(Record *record, gint64 *ret_number, guint8 ret_link[DIGEST_BYTES]) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_LAST_LINK, &code);
  if (!statement) {
    return code;
  }
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    *ret_number = sqlite3_column_int64(statement, 0);
    chain_column(statement, 1, ret_link);
    code = SQLITE_OK;
  } else if (code == SQLITE_DONE) {
    code = SQLITE_CORRUPT;
  }
  record_done(statement);
  return code;
}

static void bind_digest(sqlite3_stmt *statement, int index, const guint8 digest[DIGEST_BYTES]) {
  sqlite3_bind_blob(statement, index, digest, DIGEST_BYTES, SQLITE_STATIC);
}

int record_chain_begin(Record *record, gint64 number, const guint8 link[DIGEST_BYTES],
                       RecordChain *ret_chain) {
  int code = SQLITE_OK;
  RecordChain chain = {.run = number, .chained = TRUE};
  memcpy(chain.head, link, DIGEST_BYTES);
  sqlite3_stmt *statement = record_statement(record, STATEMENT_INSERT_CHAIN, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  bind_digest(statement, 2, link);
  code = record_finish(statement);
  if (code == SQLITE_OK && (statement = record_statement(record, STATEMENT_MOVE_LINK, &code))) {
    sqlite3_bind_int64(statement, 1, number);
    bind_digest(statement, 2, link);
    code = record_finish(statement);
  }
  if (code == SQLITE_OK) {
    *ret_chain = chain;
  }
  return code;
}

int record_chain_read(Record *record, const char *run_id, RecordChain *ret_chain) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_CHAIN, &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    *ret_chain = (RecordChain){
        .run = sqlite3_column_int64(statement, 0),
        .count = sqlite3_column_int64(statement, 1),
        .chained = sqlite3_column_int(statement, 3) != 0,
    };
    chain_column(statement, 2, ret_chain->head);
  }
  record_done(statement);
  return code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_NOTFOUND : code;
}

int record_chain_append(Record *record, RecordChain *chain, gint64 at, const char *type,
                        const char *metadata, const char *payload) {
  int code = SQLITE_OK;
  guint8 hash[DIGEST_BYTES];
  sqlite3_stmt *statement = record_statement(record, STATEMENT_INSERT_EVENT, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, chain->run);
  sqlite3_bind_int64(statement, 2, chain->count + 1);
  sqlite3_bind_int64(statement, 3, at);
  record_bind_text(statement, 4, type);
  record_bind_text(statement, 5, metadata);
  record_bind_text(statement, 6, payload);
  if (chain->chained) {
    chain_content(at, (ChainText){type, -1}, (ChainText){metadata, -1}, (ChainText){payload, -1},
                  hash);
    chain_next(chain->head, chain->count + 1, hash, hash);
    bind_digest(statement, 7, hash);
  }
  code = record_finish(statement);
  if (code == SQLITE_OK) {
    chain->count++;
    if (chain->chained) {
      memcpy(chain->head, hash, DIGEST_BYTES);
    }
  }
  return code;
}

int record_chain_write(Record *record, const RecordChain *chain) {
  int code = SQLITE_OK;
  if (!chain->chained) {
    return SQLITE_OK;
  }
  sqlite3_stmt *statement = record_statement(record, STATEMENT_MOVE_HEAD, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, chain->run);
  sqlite3_bind_int64(statement, 2, chain->count);
  bind_digest(statement, 3, chain->head);
  return record_finish(statement);
}
