/* SPDX-License-Identifier: Apache-2.0 */
/* tar-source.h: a tar stream that is made while it is read; one file is in memory at a time. */
#ifndef SANDHOST_WORKSPACE_TAR_SOURCE_H
#define SANDHOST_WORKSPACE_TAR_SOURCE_H

#include <glib.h>
#include <sandhost/provider.h>

typedef struct {
  const char *path; /* relative */
  const guint8 *data;
  gsize length;
  gint64 mtime; /* nanoseconds since 1970 */
} TarSourceFile;

/* Gives the next file, borrowed until it is called again. FALSE: there are no more. */
typedef gboolean (*TarSourceNext)(void *user, TarSourceFile *ret_file);

typedef struct TarSource TarSource;

/* Returns owned. */
TarSource *tar_source_new(TarSourceNext next, void *user);
void tar_source_free(TarSource *source);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TarSource, tar_source_free)

/* Whether there is no file at all; asks for the first one. */
gboolean tar_source_is_empty(TarSource *source);

/* The stream, valid as long as source. Read by one thread at a time. */
struct sandhost_source tar_source_stream(TarSource *source);

/* Whether everything was read, except perhaps a part of the end mark. */
gboolean tar_source_is_ended(const TarSource *source);

/* Why the stream stopped, or NULL. Borrowed. */
const GError *tar_source_error(const TarSource *source);

#endif
