/* SPDX-License-Identifier: Apache-2.0 */
/* credential-stream.c: positions count from the stream's beginning. Everything before "given" is dealt with. */
#include "privacy/credential-stream.h"

#include <string.h>

/* So few bytes of a credential that was cut tell nothing, and would hide the ends of many other texts. */
#define TELLING_BYTES 4u

/* What is to be replaced; marked: its marker is out, and the rest of it only falls away. */
typedef struct {
  guint64 start;
  guint64 end;
  gboolean marked;
} Span;

struct CredentialStream {
  const Needles *needles;
  TextSink sink;
  NeedlesPlace place;
  guint64 read;     /* bytes added */
  guint64 given;    /* bytes before this are given out or have fallen away */
  GByteArray *held; /* the bytes from given to read */
  GArray *spans;    /* Span, in order, apart from each other, each with its end behind given */
  guint64 count;
};

CredentialStream *credential_stream_new(const Needles *needles, TextSink sink) {
  CredentialStream *stream = g_new0(CredentialStream, 1);
  stream->needles = needles;
  stream->sink = sink;
  stream->held = g_byte_array_new();
  stream->spans = g_array_new(FALSE, FALSE, sizeof(Span));
  return stream;
}

void credential_stream_free(CredentialStream *stream) {
  if (stream) {
    g_byte_array_unref(stream->held);
    g_array_unref(stream->spans);
    g_free(stream);
  }
}

guint64 credential_stream_count(const CredentialStream *stream) {
  return stream->count;
}

static Span *last_span(const CredentialStream *stream) {
  return stream->spans->len ? &g_array_index(stream->spans, Span, stream->spans->len - 1) : NULL;
}

/* Ends come in order; a later one may have begun before earlier ones, and takes them in. */
static void add_span(CredentialStream *stream, guint64 start, guint64 end) {
  Span span = {.start = start, .end = end};
  for (const Span *last = last_span(stream); last && last->end > span.start;
       last = last_span(stream)) {
    span.start = MIN(span.start, last->start);
    span.marked = span.marked || last->marked;
    g_array_set_size(stream->spans, stream->spans->len - 1);
  }
  g_array_append_val(stream->spans, span);
}

/* The bytes up to end, which are in held and behind it in data, the piece that was read last. */
static void give(CredentialStream *stream, const guint8 *data, guint64 data_start, guint64 end) {
  if (stream->given < data_start) {
    gsize length = (gsize)(MIN(end, data_start) - stream->given);
    gsize offset = stream->held->len - (gsize)(data_start - stream->given);
    text_sink_put(&stream->sink, stream->held->data + offset, length);
    stream->given += length;
  }
  if (stream->given < end) {
    text_sink_put(&stream->sink, data + (stream->given - data_start), (gsize)(end - stream->given));
    stream->given = end;
  }
}

/* Gives out everything before border: no needle begins there any more. */
static void give_until(CredentialStream *stream, const guint8 *data, guint64 data_start,
                       guint64 border) {
  guint done = 0;
  for (guint i = 0; i < stream->spans->len; i++) {
    Span *span = &g_array_index(stream->spans, Span, i);
    if (span->start >= border) {
      break;
    }
    if (!span->marked) {
      give(stream, data, data_start, span->start);
      text_sink_put(&stream->sink, CREDENTIAL_MARKER, strlen(CREDENTIAL_MARKER));
      stream->count++;
      span->marked = TRUE;
    }
    stream->given = MAX(stream->given, MIN(span->end, border));
    span->start = MIN(span->end, border);
    done += span->end <= border ? 1 : 0;
  }
  g_array_remove_range(stream->spans, 0, done);
  if (stream->given < border) {
    give(stream, data, data_start, border);
  }
}

/* Keeps what is not dealt with. */
static void hold(CredentialStream *stream, const guint8 *data, gsize length, guint64 data_start) {
  gsize wanted = (gsize)(stream->read - stream->given);
  if (stream->given >= data_start) {
    g_byte_array_set_size(stream->held, 0);
    g_byte_array_append(stream->held, data + (length - wanted), (guint)wanted);
  } else {
    gsize old = (gsize)(data_start - stream->given);
    g_byte_array_remove_range(stream->held, 0, stream->held->len - (guint)old);
    g_byte_array_append(stream->held, data, (guint)length);
  }
}

void credential_stream_add(CredentialStream *stream, const void *data, gsize length) {
  guint64 start = stream->read;
  gsize at = 0;
  for (;;) {
    gsize found = needles_next(stream->needles, &stream->place, data, length, &at);
    if (found == 0) {
      break;
    }
    add_span(stream, start + at - found, start + at);
  }
  stream->read += length;
  give_until(stream, data, start, stream->read - needles_open(stream->needles, stream->place));
  hold(stream, data, length, start);
}

void credential_stream_finish(CredentialStream *stream, gboolean cut) {
  gsize open = needles_open(stream->needles, stream->place);
  if (cut && open >= TELLING_BYTES) {
    add_span(stream, stream->read - open, stream->read);
  }
  give_until(stream, NULL, stream->read, stream->read);
  g_byte_array_set_size(stream->held, 0);
}
