/* SPDX-License-Identifier: Apache-2.0 */
/* record-restore.c: texts that were left to the kept outputs, back in their events. Only what has the digest that the
 * event holds, and so the chain covers, is believed. */
#include <string.h>

#include "base/digest.h"
#include "record/record-chain.h"
#include "record/record-chunks.h"
#include "record/record-output.h"

/* The names of one stream: in a payload, of the marker in its place, and in the metadata. */
typedef struct {
  const char *text;
  const char *marker;
  const char *truncated;
  int number;
} Stream;

static const Stream STREAMS[] = {
    {"stdout", "stdout_capture", "stdout_truncated", 1},
    {"stderr", "stderr_capture", "stderr_truncated", 2},
};

JsonObject *record_offloaded(JsonObject *payload, int stream) {
  JsonObject *marker = json_get(payload, STREAMS[stream - 1].marker);
  return g_strcmp0(json_get_text(marker, "capture"), "offloaded") == 0 ? marker : NULL;
}

/* Up to bytes from the beginning on. SQLITE_DONE: it ends before. Under the lock. */
static int read_head(Record *record, gint64 number, gsize bytes, GByteArray *head) {
  int code = SQLITE_OK;
  while (code == SQLITE_OK && head->len < bytes) {
    GByteArray *part = NULL;
    guint64 start = 0;
    code = record_chunk_read(record, number, head->len, &start, &part);
    if (code != SQLITE_OK) {
      break;
    }
    gsize skip = (gsize)(head->len - start);
    g_byte_array_append(head, part->data + skip, (guint)MIN(part->len - skip, bytes - head->len));
    g_byte_array_unref(part);
  }
  return code;
}

/* NULL: it is missing. Under the lock. Owned. */
static GByteArray *find_head(Record *record, gint64 run, const char *execution_id, int stream,
                             JsonObject *marker, int *ret_code) {
  gint64 number = 0;
  gint64 bytes = json_get_int(marker, "bytes", -1);
  if (!execution_id || bytes < 0 || bytes > JSON_MAX_BYTES) {
    return NULL;
  }
  g_autoptr(GByteArray) head = g_byte_array_new();
  int code = record_output_find(record, run, execution_id, stream, &number);
  if (code == SQLITE_OK && number != 0) {
    code = read_head(record, number, (gsize)bytes, head);
  }
  if (code != SQLITE_OK && code != SQLITE_DONE && (code & 0xff) != SQLITE_CORRUPT) {
    *ret_code = code;
  }
  g_autofree char *digest = digest_hex(head->data, head->len);
  gboolean whole =
      head->len == (guint64)bytes && g_strcmp0(digest, json_get_text(marker, "sha256")) == 0;
  return whole ? g_steal_pointer(&head) : NULL;
}

static JsonObject *text_of(const GByteArray *head, gboolean cut) {
  const char *bytes = (const char *)head->data;
  return cut ? json_from_cut_bytes(bytes, head->len) : json_from_bytes(bytes, head->len);
}

/* What it is missing of says so from here on. */
static void restore_stream(JsonObject *payload, const Stream *stream, JsonObject *marker,
                           const GByteArray *head, gboolean cut) {
  if (!head) {
    json_add_text(marker, "capture", "missing");
    json_add_text(payload, "capture", "missing");
    return;
  }
  json_add_take(payload, stream->text, text_of(head, cut));
  json_object_object_del(payload, stream->marker);
}

/* An SQLite code. */
static int restore_event(Record *record, gint64 run, JsonObject *event) {
  int code = SQLITE_OK;
  JsonObject *facts = json_get(event, "metadata");
  JsonObject *payload = json_get(event, "payload");
  for (gsize i = 0; code == SQLITE_OK && i < G_N_ELEMENTS(STREAMS); i++) {
    const Stream *stream = &STREAMS[i];
    JsonObject *marker = record_offloaded(payload, stream->number);
    if (!marker) {
      continue;
    }
    pthread_mutex_lock(&record->lock);
    g_autoptr(GByteArray) head =
        find_head(record, run, json_get_text(facts, "execution_id"), stream->number, marker, &code);
    pthread_mutex_unlock(&record->lock);
    if (code == SQLITE_OK) {
      restore_stream(payload, stream, marker, head, json_get_bool(facts, stream->truncated, FALSE));
    }
  }
  if (g_strcmp0(json_get_text(payload, "capture"), "offloaded") == 0) {
    json_object_object_del(payload, "capture"); /* it is all there */
  }
  return code;
}

static gboolean has_offloaded(JsonObject *event) {
  JsonObject *payload = json_get(event, "payload");
  return record_offloaded(payload, 1) || record_offloaded(payload, 2);
}

static int read_number(Record *record, const char *run_id, gint64 *ret_number) {
  RecordChain chain;
  pthread_mutex_lock(&record->lock);
  int code = record_chain_read(record, run_id, &chain);
  pthread_mutex_unlock(&record->lock);
  *ret_number = code == SQLITE_OK ? chain.run : 0; /* a run that went meanwhile has no outputs */
  return code == SQLITE_NOTFOUND ? SQLITE_OK : code;
}

gboolean record_restore_outputs(Record *record, JsonObject *run, GError **error) {
  JsonObject *events = json_get(run, "events");
  gsize count = json_object_is_type(events, json_type_array) ? json_object_array_length(events) : 0;
  const char *run_id = json_get_text(run, "run_id");
  gint64 number = -1;
  int code = SQLITE_OK;
  for (gsize i = 0; code == SQLITE_OK && i < count; i++) {
    JsonObject *event = json_object_array_get_idx(events, i);
    if (!has_offloaded(event)) {
      continue;
    }
    if (number < 0) {
      code = read_number(record, run_id ? run_id : "", &number);
    }
    code = code == SQLITE_OK ? restore_event(record, number, event) : code;
  }
  if (code == SQLITE_OK) {
    return TRUE;
  }
  pthread_mutex_lock(&record->lock);
  record_fail(record, "read", code, error);
  pthread_mutex_unlock(&record->lock);
  return FALSE;
}
