/* SPDX-License-Identifier: Apache-2.0 */
/* record-seal.c: measures kept outputs that no event speaks of. */
#include "record/record-seal.h"

#include <nettle/sha2.h>
#include <string.h>

#include "base/digest.h"
#include "record/record-chunks.h"

/* Unpacked bytes of one run that are measured: more than any run keeps, and an end to what a damaged file unpacks to. */
#define MEASURED_MAX ((guint64)4 << 30)

static const char *const KEYS[] = {"stdout_kept", "stderr_kept"};

/* ---- What the events say ------------------------------------------------------------------------------------------ */

typedef struct {
  char *call_id;
  gboolean covered[2];
} Told;

static void told_free(Told *told) {
  g_free(told->call_id);
  g_free(told);
}

static Told *told_of(GHashTable *executions, const char *execution_id) {
  Told *told = g_hash_table_lookup(executions, execution_id);
  if (!told) {
    told = g_new0(Told, 1);
    g_hash_table_insert(executions, g_strdup(execution_id), told);
  }
  return told;
}

/* A command's last event covers both streams: what it does not tell was not kept. */
static void add_told(GHashTable *executions, const char *type, JsonObject *metadata) {
  const char *execution_id = json_get_text(metadata, "execution_id");
  if (!execution_id) {
    return;
  }
  Told *told = told_of(executions, execution_id);
  if (strcmp(type, "sandbox_exec_started") == 0) {
    g_free(told->call_id);
    told->call_id = g_strdup(json_get_text(metadata, "tool_call_id"));
    return;
  }
  gboolean sealed = strcmp(type, "sandbox_output_sealed") == 0;
  for (int i = 0; i < 2; i++) {
    told->covered[i] = told->covered[i] || !sealed || json_get(metadata, KEYS[i]);
  }
}

/* execution_id to Told; owned. NULL: it cannot be read. */
static GHashTable *read_told(Record *record, const char *run_id) {
  int code = SQLITE_OK;
  g_autoptr(GHashTable) executions =
      g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)told_free);
  sqlite3_stmt *statement =
      record_prepare(record,
                     "SELECT type, metadata FROM events"
                     "  WHERE run = (SELECT number FROM runs WHERE run_id = ?1) AND type IN"
                     "    ('sandbox_exec_started', 'sandbox_exec_completed',"
                     "     'sandbox_exec_failed', 'sandbox_output_sealed') ORDER BY seq",
                     &code);
  if (!statement) {
    return NULL;
  }
  record_bind_text(statement, 1, run_id);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    JsonObject *metadata = NULL;
    if (record_read_json(statement, 1, &metadata)) {
      add_told(executions, (const char *)sqlite3_column_text(statement, 0), metadata);
    }
    json_object_put(metadata);
  }
  sqlite3_finalize(statement);
  return code == SQLITE_DONE ? g_steal_pointer(&executions) : NULL;
}

/* ---- What is kept ------------------------------------------------------------------------------------------------- */

typedef struct {
  gint64 number;
  char *execution_id;
  int stream;
} Kept;

static void kept_clear(gpointer user) {
  Kept *kept = user;
  g_free(kept->execution_id);
}

/* Of Kept, those of one command side by side. An empty array where it cannot be read. */
static GArray *read_kept(Record *record, const char *run_id) {
  int code = SQLITE_OK;
  GArray *all = g_array_new(FALSE, FALSE, sizeof(Kept));
  g_array_set_clear_func(all, kept_clear);
  sqlite3_stmt *statement =
      record_prepare(record,
                     "SELECT number, execution_id, stream FROM outputs"
                     "  WHERE run = (SELECT number FROM runs WHERE run_id = ?1)"
                     "    AND stream IN (1, 2) ORDER BY execution_id, stream",
                     &code);
  if (!statement) {
    return all;
  }
  record_bind_text(statement, 1, run_id);
  while (sqlite3_step(statement) == SQLITE_ROW) {
    const Kept kept = {.number = sqlite3_column_int64(statement, 0),
                       .execution_id = record_text_column(statement, 1),
                       .stream = sqlite3_column_int(statement, 2)};
    g_array_append_val(all, kept);
  }
  sqlite3_finalize(statement);
  return all;
}

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

typedef struct {
  guint64 bytes;
  guint64 chunks;
  const char *damaged; /* NULL: it is not */
  struct sha256_ctx digest;
} Measure;

/* Whether chunks come after a gap. */
static gboolean has_more(Record *record, gint64 number, guint64 bytes) {
  int code = SQLITE_OK;
  gboolean more = FALSE;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_OUTPUT_END, &code);
  if (statement) {
    sqlite3_bind_int64(statement, 1, number);
    more = sqlite3_step(statement) == SQLITE_ROW &&
           sqlite3_column_int64(statement, 0) != (gint64)bytes;
    record_done(statement);
  }
  return more;
}

/* SQLITE_DONE at the end of what can be read; another code: it may be different the next time. */
static int measure_chunks(Record *record, gint64 number, guint64 most, Measure *measure) {
  int code = SQLITE_OK;
  while (code == SQLITE_OK && measure->bytes < most) {
    GByteArray *part = NULL;
    guint64 start = 0;
    code = record_chunk_read(record, number, measure->bytes, &start, &part);
    if (code != SQLITE_OK) {
      break;
    }
    if (start != measure->bytes) {
      measure->damaged = "its chunks overlap";
      code = SQLITE_DONE;
    } else {
      sha256_update(&measure->digest, part->len, part->data);
      measure->bytes += part->len;
      measure->chunks++;
    }
    g_byte_array_unref(part);
  }
  if ((code & 0xff) == SQLITE_CORRUPT) {
    measure->damaged = "a chunk cannot be unpacked";
  } else if (code == SQLITE_OK) {
    measure->damaged = "it is longer than what is measured";
  } else if (code == SQLITE_DONE && !measure->damaged && has_more(record, number, measure->bytes)) {
    measure->damaged = "chunks are missing";
  }
  return measure->damaged ? SQLITE_DONE : code;
}

/* NULL: not now. */
static JsonObject *measure(Record *record, gint64 number, guint64 *room) {
  guint8 digest[DIGEST_BYTES];
  Measure measured = {0};
  sha256_init(&measured.digest);
  if (measure_chunks(record, number, *room, &measured) != SQLITE_DONE) {
    return NULL;
  }
  *room -= MIN(*room, measured.bytes);
  sha256_digest(&measured.digest, DIGEST_BYTES, digest);
  g_autofree char *hex = digest_to_hex(digest);
  JsonObject *facts = json_object_new_object();
  json_add_int(facts, "bytes", (gint64)measured.bytes);
  json_add_int(facts, "chunks", (gint64)measured.chunks);
  json_add_text(facts, "sha256", hex);
  json_add_bool(facts, "complete", FALSE);
  if (measured.damaged) {
    json_add_text(facts, "damaged", measured.damaged);
  }
  return facts;
}

/* ---- The events --------------------------------------------------------------------------------------------------- */

/* The metadata of the command's event: the last one, or a new one. */
static JsonObject *facts_for(JsonObject *events, const char *execution_id, const char *call_id) {
  gsize count = json_object_array_length(events);
  JsonObject *last =
      count > 0 ? json_get(json_object_array_get_idx(events, count - 1), "metadata") : NULL;
  if (last && g_strcmp0(json_get_text(last, "execution_id"), execution_id) == 0) {
    return last;
  }
  JsonObject *event = json_object_new_object();
  JsonObject *facts = json_object_new_object();
  if (call_id) {
    json_add_text(facts, "tool_call_id", call_id);
  }
  json_add_text(facts, "execution_id", execution_id);
  json_add_text(event, "type", "sandbox_output_sealed");
  json_add_take(event, "metadata", facts);
  json_object_array_add(events, event);
  return facts;
}

JsonObject *record_seals(Record *record, const char *run_id) {
  guint64 room = MEASURED_MAX;
  g_autoptr(GArray) all = read_kept(record, run_id);
  g_autoptr(GHashTable) executions = all->len > 0 ? read_told(record, run_id) : NULL;
  g_autoptr(JsonObject) events = json_object_new_array();
  for (guint i = 0; executions && i < all->len; i++) {
    const Kept *kept = &g_array_index(all, Kept, i);
    const Told *told = g_hash_table_lookup(executions, kept->execution_id);
    if (told && told->covered[kept->stream - 1]) {
      continue;
    }
    JsonObject *facts = measure(record, kept->number, &room);
    if (facts) {
      json_add_take(facts_for(events, kept->execution_id, told ? told->call_id : NULL),
                    KEYS[kept->stream - 1], facts);
    }
  }
  return json_object_array_length(events) > 0 ? g_steal_pointer(&events) : NULL;
}

static gboolean is_covered(GHashTable *executions, JsonObject *facts) {
  const Told *told = g_hash_table_lookup(executions, json_get_text(facts, "execution_id"));
  return told && (told->covered[0] || !json_get(facts, KEYS[0])) &&
         (told->covered[1] || !json_get(facts, KEYS[1]));
}

int record_insert_seals(Record *record, const char *run_id, JsonObject *seals) {
  if (!seals) {
    return SQLITE_OK;
  }
  g_autoptr(GHashTable) executions = read_told(record, run_id);
  g_autoptr(JsonObject) events = json_object_new_array();
  for (gsize i = 0; executions && i < json_object_array_length(seals); i++) {
    JsonObject *event = json_object_array_get_idx(seals, i);
    if (!is_covered(executions, json_get(event, "metadata"))) {
      json_object_array_add(events, json_object_get(event));
    }
  }
  return record_insert_events(record, run_id, events);
}
