/* SPDX-License-Identifier: Apache-2.0 */
/* record-output.c: a stream on its way in, chunk by chunk. Reading is in record-output-read.c. */
#include "record/record-output.h"

#include <nettle/sha2.h>
#include <string.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/digest.h"
#include "record/record-chunks.h"

/* A chunk ends with whichever comes first; the clock looks at it only when something is added. */
#define CHUNK_PACKED (96u << 10)
#define CHUNK_AGE (2 * CLOCK_SECOND)
/* How much is packed before the limits are looked at. */
#define PIECE (16u << 10)
/* The compressor takes 128 KiB like this, and packs a tenth worse than with all it could take. */
#define PACK_LEVEL 1
#define PACK_WINDOW 14
#define PACK_MEMORY 7

struct RecordOutput {
  Record *record;
  char *run_id;
  char *execution_id;
  int stream;
  guint64 most;

  guint64 head;
  struct sha256_ctx head_digest; /* of the first head bytes, once so many were added */

  gint64 number;    /* of its row; 0: there is none yet */
  guint64 stored;   /* bytes in the record */
  gint64 stored_at; /* clock_now of the last chunk, or of the first byte */
  gboolean open;    /* the compressor is set up */
  GError *error;    /* after which nothing more is kept */
  z_stream packer;
  GByteArray *packed;              /* the chunk that is being filled */
  gsize raw;                       /* bytes in it, unpacked */
  struct sha256_ctx digest;        /* of everything added */
  struct sha256_ctx stored_digest; /* of what is stored */
};

RecordOutput *record_output_new(Record *record, const char *run_id, const char *execution_id,
                                int stream, guint64 most) {
  RecordOutput *output = g_new0(RecordOutput, 1);
  output->record = record;
  output->run_id = g_strdup(run_id);
  output->execution_id = g_strdup(execution_id);
  output->stream = stream;
  output->most = most;
  sha256_init(&output->digest);
  output->stored_digest = output->digest;
  return output;
}

void record_output_free(RecordOutput *output) {
  if (!output) {
    return;
  }
  if (output->open) {
    deflateEnd(&output->packer);
  }
  if (output->packed) {
    g_byte_array_unref(output->packed);
  }
  g_clear_error(&output->error);
  g_free(output->run_id);
  g_free(output->execution_id);
  g_free(output);
}

void record_output_set_head(RecordOutput *output, guint64 bytes) {
  output->head = bytes;
}

gboolean record_output_is_stored(const RecordOutput *output) {
  return output->number != 0;
}

gboolean record_output_is_full(const RecordOutput *output) {
  return output->error || output->stored + output->raw >= output->most;
}

static void open_packer(RecordOutput *output) {
  if (output->open) {
    return;
  }
  /* Fails only for want of memory, as g_malloc does, which ends the program. */
  if (deflateInit2(&output->packer, PACK_LEVEL, Z_DEFLATED, PACK_WINDOW, PACK_MEMORY,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    g_error("out of memory");
  }
  output->packed = g_byte_array_new();
  output->open = TRUE;
  output->stored_at = clock_now();
}

/* Packs data, or with Z_FINISH ends the chunk. */
static void pack(RecordOutput *output, const void *data, gsize length, int flush) {
  guint8 out[8192];
  z_stream *packer = &output->packer;
  g_autofree guint8 *copy = g_memdup2(data, length); /* zlib's pointer is not const */
  packer->next_in = copy;
  packer->avail_in = (uInt)length;
  do {
    packer->next_out = out;
    packer->avail_out = sizeof out;
    deflate(packer, flush);
    g_byte_array_append(output->packed, out, (guint)(sizeof out - packer->avail_out));
  } while (packer->avail_out == 0);
}

/* Ends the chunk and writes it. */
static void store(RecordOutput *output) {
  pack(output, NULL, 0, Z_FINISH);
  const RecordChunk chunk = {
      .start = output->stored,
      .length = output->raw,
      .data = output->packed->data,
      .size = output->packed->len,
  };
  if (record_chunk_write(output->record, output->run_id, output->execution_id, output->stream,
                         &chunk, &output->number, &output->error)) {
    output->stored += output->raw;
    output->stored_digest = output->digest;
  }
  g_byte_array_set_size(output->packed, 0);
  output->raw = 0;
  output->stored_at = clock_now();
  deflateReset(&output->packer);
}

static gboolean chunk_is_full(const RecordOutput *output) {
  return output->raw >= RECORD_CHUNK_MAX || output->packed->len >= CHUNK_PACKED ||
         clock_now() - output->stored_at >= CHUNK_AGE;
}

/* What goes in at once: no piece stands across the end of the head or of a chunk. */
static gsize piece_of(const RecordOutput *output, gsize left) {
  guint64 at = output->stored + output->raw;
  gsize piece = MIN(MIN(left, PIECE), RECORD_CHUNK_MAX - output->raw);
  return at < output->head ? (gsize)MIN(piece, output->head - at) : piece;
}

void record_output_add(RecordOutput *output, const void *data, gsize length) {
  const guint8 *at = data;
  guint64 room = output->most - output->stored - output->raw;
  gsize left = length < room ? length : (gsize)room;
  while (left > 0 && !output->error) {
    open_packer(output);
    gsize piece = piece_of(output, left);
    pack(output, at, piece, Z_NO_FLUSH);
    sha256_update(&output->digest, piece, at);
    output->raw += piece;
    if (output->stored + output->raw == output->head) {
      output->head_digest = output->digest;
    }
    at += piece;
    left -= piece;
    if (chunk_is_full(output)) {
      store(output);
    }
  }
}

void record_output_flush(RecordOutput *output) {
  if (output->open && output->raw > 0 && !output->error) {
    store(output);
  }
}

/* The context is as good afterwards. */
static char *hex_of(const struct sha256_ctx *context) {
  guint8 digest[DIGEST_BYTES];
  struct sha256_ctx copy = *context;
  sha256_digest(&copy, DIGEST_BYTES, digest);
  return digest_to_hex(digest);
}

JsonObject *record_output_finish(RecordOutput *output) {
  record_output_flush(output);
  g_autofree char *hex = hex_of(&output->stored_digest);
  JsonObject *facts = json_object_new_object();
  json_add_int(facts, "bytes", (gint64)output->stored);
  json_add_text(facts, "sha256", hex);
  if (output->error) {
    json_add_text(facts, "error", output->error->message);
  }
  return facts;
}

JsonObject *record_output_head(const RecordOutput *output, gboolean cut) {
  gboolean head = cut && output->head > 0 && output->stored >= output->head;
  if (output->error || (!head && record_output_is_full(output))) {
    return NULL;
  }
  g_autofree char *hex = hex_of(head ? &output->head_digest : &output->stored_digest);
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "capture", "offloaded");
  json_add_int(facts, "bytes", (gint64)(head ? output->head : output->stored));
  json_add_text(facts, "sha256", hex);
  return facts;
}
