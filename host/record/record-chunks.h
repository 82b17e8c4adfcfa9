/* SPDX-License-Identifier: Apache-2.0 */
/* record-chunks.h: the pieces of a kept output, as they stand in the file. */
#ifndef SANDHOST_RECORD_RECORD_CHUNKS_H
#define SANDHOST_RECORD_RECORD_CHUNKS_H

#include "record/record-private.h"

/* Bytes in one chunk, unpacked: what a reader holds at once. */
#define RECORD_CHUNK_MAX (1u << 20)

typedef struct {
  guint64 start; /* of the stream */
  gsize length;  /* unpacked */
  guint8 *data;  /* packed by zlib */
  gsize size;
} RecordChunk;

/* One durable commit; makes the row of the output, too, when *number is 0. Takes the lock. */
gboolean record_chunk_write(Record *record, const char *run_id, const char *execution_id,
                            int stream, const RecordChunk *chunk, gint64 *number, GError **error);

/* The number of the output; 0: nothing is kept of it. Under the lock. */
int record_output_find(Record *record, gint64 run, const char *execution_id, int stream,
                       gint64 *ret_number);
/* The chunk that holds the byte at offset, unpacked; SQLITE_DONE when there is none, SQLITE_CORRUPT
 * when it is not what was written. *ret_start is the stream's offset of its first byte. Under the
 * lock. */
int record_chunk_read(Record *record, gint64 number, guint64 offset, guint64 *ret_start,
                      GByteArray **ret_bytes);

#endif
