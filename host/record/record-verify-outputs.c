/* SPDX-License-Identifier: Apache-2.0 */
/* record-verify-outputs.c: that what is kept of a run's output is what its events say, all of it and nothing else. */
#include <nettle/sha2.h>
#include <string.h>

#include "record/record-chunks.h"
#include "record/verify-private.h"

#define DAMAGED "was damaged when its run was found interrupted"

/* What an event says is kept of one stream. */
typedef struct {
  char *execution_id;
  int stream;
  gint64 bytes; /* -1: not said */
  char *sha256;
  gboolean damaged;
  gint64 chunks;  /* that hold it, as found */
  gboolean wrong; /* told already */
} Sealed;

struct VerifyOutputs {
  GArray *sealed;    /* of Sealed, in the order of the events */
  GHashTable *begun; /* ids of executions of which no event tells the end */
};

static void sealed_clear(gpointer user) {
  Sealed *sealed = user;
  g_free(sealed->execution_id);
  g_free(sealed->sha256);
}

VerifyOutputs *verify_outputs_new(void) {
  VerifyOutputs *outputs = g_new0(VerifyOutputs, 1);
  outputs->sealed = g_array_new(FALSE, FALSE, sizeof(Sealed));
  g_array_set_clear_func(outputs->sealed, sealed_clear);
  outputs->begun = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  return outputs;
}

void verify_outputs_free(VerifyOutputs *outputs) {
  g_array_unref(outputs->sealed);
  g_hash_table_unref(outputs->begun);
  g_free(outputs);
}

/* ---- What the events say ------------------------------------------------------------------------------------------ */

static void add_sealed(VerifyOutputs *outputs, const char *execution_id, JsonObject *kept,
                       int stream) {
  if (!kept) {
    return;
  }
  const Sealed sealed = {.execution_id = g_strdup(execution_id),
                         .stream = stream,
                         .bytes = json_get_int(kept, "bytes", -1),
                         .sha256 = g_strdup(json_get_text(kept, "sha256")),
                         .damaged = json_get_text(kept, "damaged") != NULL};
  g_array_append_val(outputs->sealed, sealed);
}

gboolean verify_outputs_concern(const char *type) {
  static const char *const TYPES[] = {"sandbox_exec_started", "sandbox_exec_completed",
                                      "sandbox_exec_failed", "sandbox_output_sealed", NULL};
  return type && g_strv_contains(TYPES, type);
}

void verify_outputs_add(VerifyOutputs *outputs, const char *type, JsonObject *metadata) {
  const char *execution_id = json_get_text(metadata, "execution_id");
  if (!execution_id) {
    return;
  }
  if (strcmp(type, "sandbox_exec_started") == 0) {
    g_hash_table_add(outputs->begun, g_strdup(execution_id));
    return;
  }
  if (strcmp(type, "sandbox_output_sealed") != 0) {
    g_hash_table_remove(outputs->begun, execution_id);
  }
  add_sealed(outputs, execution_id, json_get(metadata, "stdout_kept"), 1);
  add_sealed(outputs, execution_id, json_get(metadata, "stderr_kept"), 2);
}

/* ---- What is kept ------------------------------------------------------------------------------------------------- */

static void tell(JsonObject *faults, const char *what, const char *execution_id, int stream,
                 const char *wrong) {
  g_autofree char *detail = g_strdup_printf("the kept %s of %s %s",
                                            stream == 2 ? "stderr" : "stdout", execution_id, wrong);
  verify_add_fault(faults, "event", 0, what, detail);
}

/* The digest of so many bytes and the chunks that hold them, or what is wrong. */
static const char *digest_output(Record *record, gint64 number, Sealed *sealed,
                                 guint8 ret_digest[DIGEST_BYTES]) {
  struct sha256_ctx context;
  sha256_init(&context);
  for (guint64 at = 0; at < (guint64)sealed->bytes; sealed->chunks++) {
    GByteArray *part = NULL;
    guint64 start = 0;
    int code = record_chunk_read(record, number, at, &start, &part);
    if (code != SQLITE_OK) {
      return code == SQLITE_DONE ? "is in part missing" : "is altered";
    }
    gboolean next = start == at;
    sha256_update(&context, part->len, part->data);
    at += part->len;
    g_byte_array_unref(part);
    if (!next) {
      return "is altered";
    }
  }
  sha256_digest(&context, DIGEST_BYTES, ret_digest);
  return NULL;
}

static const char *fault_of(Record *record, gint64 run, Sealed *sealed) {
  guint8 digest[DIGEST_BYTES];
  gint64 number = 0;
  const char *wrong = NULL;
  if (sealed->bytes > 0) {
    int code = record_output_find(record, run, sealed->execution_id, sealed->stream, &number);
    wrong = code == SQLITE_OK && number != 0 ? digest_output(record, number, sealed, digest)
                                             : "is missing";
  }
  if (!wrong && sealed->bytes > 0) {
    g_autofree char *hex = digest_to_hex(digest);
    wrong = g_strcmp0(hex, sealed->sha256) == 0 ? NULL : "is altered";
  }
  return !wrong && sealed->damaged ? DAMAGED : wrong;
}

static void check_sealed(Record *record, gint64 run, VerifyOutputs *outputs, JsonObject *faults) {
  for (guint i = 0; i < outputs->sealed->len; i++) {
    Sealed *sealed = &g_array_index(outputs->sealed, Sealed, i);
    const char *wrong = sealed->bytes < 0 ? NULL : fault_of(record, run, sealed);
    if (wrong) {
      sealed->wrong = TRUE;
      tell(faults, g_str_has_suffix(wrong, "missing") ? "missing" : "altered", sealed->execution_id,
           sealed->stream, wrong);
    }
  }
}

/* The last word counts: a host that was taken for dead may have gone on. */
static const Sealed *last_sealed(const VerifyOutputs *outputs, const char *execution_id,
                                 int stream) {
  for (guint i = outputs->sealed->len; i-- > 0;) {
    const Sealed *sealed = &g_array_index(outputs->sealed, Sealed, i);
    if (sealed->stream == stream && strcmp(sealed->execution_id, execution_id) == 0) {
      return sealed;
    }
  }
  return NULL;
}

/* What is there beside what the events say. */
static void check_row(const VerifyOutputs *outputs, const char *execution_id, gint64 stream,
                      gint64 chunks, gboolean goes_on, JsonObject *faults) {
  if (stream != 1 && stream != 2) {
    g_autofree char *detail = g_strdup_printf("an output of %s that is no stream", execution_id);
    verify_add_fault(faults, "event", 0, "added", detail);
    return;
  }
  const Sealed *sealed = last_sealed(outputs, execution_id, (int)stream);
  if (sealed && !sealed->wrong && sealed->bytes >= 0 && chunks != sealed->chunks) {
    tell(faults, "added", execution_id, (int)stream, "has more pieces than its event covers");
  } else if (!sealed && !(goes_on && g_hash_table_contains(outputs->begun, execution_id))) {
    tell(faults, "added", execution_id, (int)stream, "is told of by no event");
  }
}

int verify_outputs_check(Record *record, gint64 run, VerifyOutputs *outputs, gboolean goes_on,
                         JsonObject *faults) {
  int code = SQLITE_OK;
  check_sealed(record, run, outputs, faults);
  sqlite3_stmt *statement = record_statement(record, STATEMENT_VERIFY_OUTPUTS, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, run);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    g_autofree char *execution_id = record_text_column(statement, 0);
    check_row(outputs, execution_id, sqlite3_column_int64(statement, 1),
              sqlite3_column_int64(statement, 2), goes_on, faults);
  }
  record_done(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}
