/* SPDX-License-Identifier: Apache-2.0 */
/* personal-stream.c: a buffer with what was held back, and before it the last bytes given out, since what stands before a
 * number says whether it is one of its own. */
#include "privacy/personal-stream.h"

#include <string.h>

#define CONTEXT_BYTES 2u
#define PIECE_BYTES ((gsize)64 << 10)

struct PersonalStream {
  guint categories;
  TextSink sink;
  GByteArray *buffer;
  gsize given; /* bytes at its beginning that are out */
  guint64 count;
};

PersonalStream *personal_stream_new(guint categories, TextSink sink) {
  PersonalStream *stream = g_new0(PersonalStream, 1);
  stream->categories = categories;
  stream->sink = sink;
  stream->buffer = g_byte_array_new();
  return stream;
}

void personal_stream_free(PersonalStream *stream) {
  if (stream) {
    g_byte_array_unref(stream->buffer);
    g_free(stream);
  }
}

guint64 personal_stream_count(const PersonalStream *stream) {
  return stream->count;
}

/* Everything that begins before border is whole. */
static void give_until(PersonalStream *stream, gsize border) {
  const guint8 *data = stream->buffer->data;
  gsize at = stream->given;
  PersonalSpan span;
  while (at < border && personal_find(stream->categories, data, stream->buffer->len, at, &span) &&
         span.start < border) {
    text_sink_put(&stream->sink, data + at, span.start - at);
    text_sink_put(&stream->sink, span.marker, strlen(span.marker));
    stream->count++;
    at = span.end;
  }
  if (at < border) {
    text_sink_put(&stream->sink, data + at, border - at);
    at = border;
  }
  gsize context = MIN(at, CONTEXT_BYTES);
  g_byte_array_remove_range(stream->buffer, 0, (guint)(at - context));
  stream->given = context;
}

void personal_stream_add(PersonalStream *stream, const void *data, gsize length) {
  const guint8 *at = data;
  while (length > 0) {
    gsize piece = MIN(length, PIECE_BYTES);
    g_byte_array_append(stream->buffer, at, (guint)piece);
    gsize open = personal_open(stream->buffer->data, stream->buffer->len);
    gsize border = stream->buffer->len - open;
    if (border > stream->given) {
      give_until(stream, border);
    }
    at += piece;
    length -= piece;
  }
}

void personal_stream_finish(PersonalStream *stream) {
  if (stream->buffer->len > stream->given) {
    give_until(stream, stream->buffer->len);
  }
}
