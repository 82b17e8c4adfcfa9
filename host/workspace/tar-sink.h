/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar-sink.h: takes the tar stream of a download apart while it arrives; one file is in memory at a
 * time.
 *
 * The stream is hostile. Only regular files that were asked for, in the order asked, within the
 * limits, get through; anything else ends the stream with an error.
 */
#ifndef SANDHOST_WORKSPACE_TAR_SINK_H
#define SANDHOST_WORKSPACE_TAR_SINK_H

#include <glib.h>
#include <sandhost/provider.h>

typedef struct {
  const struct sandhost_path *names; /* what was asked for; no name twice */
  gsize count;
  guint64 max_file_bytes; /* a larger member is passed over, as if it had been left out */
  guint64 max_bytes;      /* of the whole stream; more is an error */
} TarSinkRequest;

/* One whole file, names[index]; data is borrowed until it returns. Called from the sink's own
 * thread, in order. FALSE with *error: the stream ends. */
typedef gboolean (*TarSinkFile)(void *user, gsize index, const guint8 *data, gsize length,
                                GError **error);

typedef struct TarSink TarSink;

/* Starts the thread. request and its names are borrowed until tar_sink_finish. NULL on failure. */
TarSink *tar_sink_start(const TarSinkRequest *request, TarSinkFile file, void *user,
                        GError **error);

/* Where the stream goes. Written by one thread at a time; a write blocks while the ring is full. */
struct sandhost_sink tar_sink_stream(TarSink *sink);

/* Ends the stream, waits until every file is dealt with, and frees sink. complete FALSE: the stream
 * broke off, which is no error of its own. FALSE with *error when the stream or a file was refused.
 */
gboolean tar_sink_finish(TarSink *take_sink, gboolean complete, GError **error);

#endif
