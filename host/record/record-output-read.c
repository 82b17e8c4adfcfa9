/* SPDX-License-Identifier: Apache-2.0 */
/* record-output-read.c: what a command printed, from where its last event says that it is: so many bytes in chunks, or the
 * text of the event itself, which then holds all of it. Only of a command that has no such event yet whatever chunks there are
 * count. */
#include <string.h>

#include "base/error.h"
#include "record/record-chain.h"
#include "record/record-chunks.h"
#include "record/record-output.h"

/* Ids shorter than this are too likely to be a slip. */
#define PREFIX_MIN 8

/* One command of the run. */
typedef struct {
  char *execution_id;
  char *call_id;
  gint64 ended; /* number of its last event; 0: there is none */
  guint64 written[2];
  gint64 kept[2]; /* bytes in chunks; -1: no event tells of any */
  /* Nothing is missing of what is there, whatever its size is beside what was printed. */
  gboolean all[2];
} Command;

static void command_free(Command *command) {
  g_free(command->execution_id);
  g_free(command->call_id);
  g_free(command);
}

static Command *find_execution(const GPtrArray *commands, const char *execution_id) {
  for (guint i = 0; i < commands->len; i++) {
    Command *command = g_ptr_array_index(commands, i);
    if (strcmp(command->execution_id, execution_id) == 0) {
      return command;
    }
  }
  return NULL;
}

/* What was taken out of a stream leaves markers that are of another size. */
static gboolean is_all(JsonObject *metadata, const char *kept, const char *truncated) {
  JsonObject *facts = json_get(metadata, kept);
  return facts ? json_get_bool(facts, "all", FALSE) : !json_get_bool(metadata, truncated, TRUE);
}

static void add_kept(Command *command, JsonObject *metadata) {
  static const char *const KEYS[] = {"stdout_kept", "stderr_kept"};
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    JsonObject *kept = json_get(metadata, KEYS[i]);
    command->kept[i] = kept ? MAX(json_get_int(kept, "bytes", 0), 0) : command->kept[i];
  }
}

static void add_event(GPtrArray *commands, gint64 seq, const char *type, JsonObject *metadata) {
  const char *execution_id = json_get_text(metadata, "execution_id");
  const char *purpose = json_get_text(metadata, "purpose");
  if (!execution_id || g_strcmp0(purpose, "workspace_sync") == 0) {
    return;
  }
  Command *command = find_execution(commands, execution_id);
  gboolean sealed = g_strcmp0(type, "sandbox_output_sealed") == 0;
  if (!command && sealed) {
    return;
  }
  if (!command) {
    command = g_new0(Command, 1);
    command->kept[0] = command->kept[1] = -1;
    command->execution_id = g_strdup(execution_id);
    command->call_id = g_strdup(json_get_text(metadata, "tool_call_id"));
    g_ptr_array_add(commands, command);
  }
  add_kept(command, metadata);
  if (!sealed && g_strcmp0(type, "sandbox_exec_started") != 0) {
    command->ended = seq;
    command->written[0] = (guint64)json_get_int(metadata, "stdout_bytes", 0);
    command->written[1] = (guint64)json_get_int(metadata, "stderr_bytes", 0);
    command->all[0] = is_all(metadata, "stdout_kept", "stdout_truncated");
    command->all[1] = is_all(metadata, "stderr_kept", "stderr_truncated");
  }
}

static int read_commands(Record *record, gint64 run, GPtrArray *commands) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_EXECUTIONS, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, run);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    JsonObject *metadata = NULL;
    if (record_read_json(statement, 2, &metadata)) {
      add_event(commands, sqlite3_column_int64(statement, 0),
                (const char *)sqlite3_column_text(statement, 1), metadata);
    }
    json_object_put(metadata);
  }
  record_done(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

static gboolean matches(const char *id, const char *wanted) {
  return id && (strcmp(id, wanted) == 0 ||
                (strlen(wanted) >= PREFIX_MIN && g_str_has_prefix(id, wanted)));
}

static Command *choose(const GPtrArray *commands, const char *run_id, const char *wanted,
                       GError **error) {
  guint64 number = 0;
  Command *found = NULL;
  if (g_ascii_string_to_unsigned(wanted, 10, 1, commands->len, &number, NULL)) {
    return g_ptr_array_index(commands, number - 1);
  }
  for (guint i = 0; i < commands->len; i++) {
    Command *command = g_ptr_array_index(commands, i);
    if (!matches(command->execution_id, wanted) && !matches(command->call_id, wanted)) {
      continue;
    }
    if (found) {
      g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                  "%s is the beginning of several calls: %s, %s", wanted, found->call_id,
                  command->call_id);
      return NULL;
    }
    found = command;
  }
  if (!found) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND,
                "run %s has no command %s; it has %u", run_id, wanted, commands->len);
  }
  return found;
}

/* ---- From chunks --------------------------------------------------------------------------------- */

typedef struct {
  Record *record;
  guint64 offset;
  guint64 limit;
  gboolean (*put)(void *user, const void *data, gsize length);
  void *user;
  gboolean stopped; /* put wants no more */
} Page;

/* How many bytes are kept in chunks. */
static int chunks_end(Record *record, gint64 number, guint64 *ret_end) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_OUTPUT_END, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  code = sqlite3_step(statement);
  *ret_end = code == SQLITE_ROW ? (guint64)sqlite3_column_int64(statement, 0) : 0;
  record_done(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static guint64 put_part(Page *page, guint64 start, const guint8 *bytes, gsize length,
                        gboolean *ret_goes_on) {
  guint64 skip = page->offset - start;
  if (skip >= length || page->limit == 0) {
    *ret_goes_on = FALSE;
    return 0;
  }
  guint64 part = MIN(length - skip, page->limit);
  page->stopped = !page->put(page->user, bytes + skip, part);
  *ret_goes_on = !page->stopped && part < page->limit;
  page->offset += part;
  page->limit -= part;
  return part;
}

/* The lock is held for one chunk at a time: who reads the page may be slow. */
static int give_chunks(Page *page, gint64 number, guint64 *ret_given) {
  int code = SQLITE_OK;
  gboolean goes_on = page->limit > 0;
  while (goes_on) {
    GByteArray *bytes = NULL;
    guint64 start = 0;
    pthread_mutex_lock(&page->record->lock);
    code = record_chunk_read(page->record, number, page->offset, &start, &bytes);
    pthread_mutex_unlock(&page->record->lock);
    if (code != SQLITE_OK) {
      break;
    }
    *ret_given += put_part(page, start, bytes->data, bytes->len, &goes_on);
    g_byte_array_unref(bytes);
  }
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* ---- From the event -------------------------------------------------------------------------------- */

/* The text in the payload; NULL where there is none. Owned. */
static int read_payload(Record *record, gint64 run, gint64 seq, JsonObject **ret_payload) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_PAYLOAD, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, run);
  sqlite3_bind_int64(statement, 2, seq);
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    code = record_read_json(statement, 0, ret_payload) ? SQLITE_OK : SQLITE_CORRUPT;
  }
  record_done(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

static void give_text(Page *page, JsonObject *payload, int stream, RecordOutputFacts *facts) {
  JsonObject *text = json_get(payload, stream == 2 ? "stderr" : "stdout");
  if (!json_object_is_type(text, json_type_string)) {
    return;
  }
  gsize length = (gsize)json_object_get_string_len(text);
  const char *bytes = json_object_get_string(text);
  gboolean goes_on = FALSE;
  facts->kept = length;
  facts->given = put_part(page, 0, (const guint8 *)bytes, length, &goes_on);
}

/* ---- Both --------------------------------------------------------------------------------------------- */

typedef struct {
  gint64 number; /* of the output in chunks; 0: there is none */
  JsonObject *payload;
  gint64 told; /* bytes in chunks by the events; -1: nothing */
  gboolean all;
  RecordOutputFacts facts;
} Source;

static int find_in_run(Record *record, gint64 run, const Command *command, int stream,
                       Source *source) {
  int code = SQLITE_OK;
  source->facts.written = command->written[stream - 1];
  source->facts.ended = command->ended != 0;
  source->all = command->all[stream - 1];
  source->told = command->kept[stream - 1];
  if (source->told > 0 || !source->facts.ended) {
    code = record_output_find(record, run, command->execution_id, stream, &source->number);
  }
  if (code == SQLITE_OK && source->number != 0) {
    code = chunks_end(record, source->number, &source->facts.kept);
    source->facts.kept =
        source->told >= 0 ? MIN(source->facts.kept, (guint64)source->told) : source->facts.kept;
    return code;
  }
  return code == SQLITE_OK && command->ended != 0
             ? read_payload(record, run, command->ended, &source->payload)
             : code;
}

/* FALSE with *error unset: *ret_code tells. Under the lock. */
static gboolean find_source(Record *record, const char *run_id, const char *call, int stream,
                            Source *source, int *ret_code, GError **error) {
  RecordChain chain;
  g_autoptr(GPtrArray) commands = g_ptr_array_new_with_free_func((GDestroyNotify)command_free);
  int code = record_chain_read(record, run_id, &chain);
  if (code == SQLITE_NOTFOUND) {
    return record_no_run(run_id, error);
  }
  if (code == SQLITE_OK) {
    code = read_commands(record, chain.run, commands);
  }
  if (code == SQLITE_OK) {
    const Command *command = choose(commands, run_id, call, error);
    if (!command) {
      return FALSE;
    }
    code = find_in_run(record, chain.run, command, stream, source);
  }
  *ret_code = code;
  return code == SQLITE_OK;
}

/* No more than the events tell of; SQLITE_NOTFOUND where less of it is there. */
static int give_told(Page *page, Source *source) {
  guint64 told = source->told >= 0 ? (guint64)source->told : G_MAXUINT64;
  guint64 room = told - MIN(page->offset, told);
  page->limit = MIN(page->limit, room);
  guint64 wanted = page->limit;
  int code = give_chunks(page, source->number, &source->facts.given);
  gboolean less = source->told >= 0 && !page->stopped && source->facts.given < wanted;
  return code == SQLITE_OK && less ? SQLITE_NOTFOUND : code;
}

gboolean record_output_read(Record *record, const char *run_id, const char *call, int stream,
                            guint64 offset, guint64 limit,
                            gboolean (*put)(void *user, const void *data, gsize length), void *user,
                            RecordOutputFacts *ret_facts, GError **error) {
  Source source = {0};
  int code = SQLITE_OK;
  g_autoptr(GError) failure = NULL;
  pthread_mutex_lock(&record->lock);
  gboolean ok = find_source(record, run_id, call, stream, &source, &code, &failure);
  if (!ok && !failure) {
    record_fail(record, "read", code, &failure);
  }
  pthread_mutex_unlock(&record->lock);
  if (failure) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
  }
  Page page = {.record = record, .offset = offset, .limit = limit, .put = put, .user = user};
  if (source.number != 0) {
    code = give_told(&page, &source);
  } else {
    give_text(&page, source.payload, stream, &source.facts);
  }
  const char *missing = record_offloaded(source.payload, stream) ? "is missing"
                        : code == SQLITE_NOTFOUND                ? "is in part missing"
                                                                 : NULL;
  json_object_put(source.payload);
  if (missing) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD,
                "the kept %s of command %s %s from the record; sandhost record verify tells more",
                stream == 2 ? "stderr" : "stdout", call, missing);
    return FALSE;
  }
  if (code != SQLITE_OK) {
    pthread_mutex_lock(&record->lock);
    record_fail(record, "read", code, error);
    pthread_mutex_unlock(&record->lock);
    return FALSE;
  }
  if (source.all && source.facts.kept > 0) { /* nothing at all may also be what was not recorded */
    source.facts.written = source.facts.kept;
  }
  *ret_facts = source.facts;
  return TRUE;
}
