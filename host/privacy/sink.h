/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h: where text goes once it may be seen. */
#ifndef SANDHOST_PRIVACY_SINK_H
#define SANDHOST_PRIVACY_SINK_H

#include <glib.h>

typedef struct {
  void (*put)(void *user, const void *data,
              gsize length); /* borrowed until it returns; never empty */
  void *user;
} TextSink;

static inline void text_sink_put(const TextSink *sink, const void *data, gsize length) {
  if (length > 0) {
    sink->put(sink->user, data, length);
  }
}

/* A sink that appends to a GString. */
static inline void text_sink_append(void *user, const void *data, gsize length) {
  g_string_append_len(user, data, (gssize)length);
}

#endif
