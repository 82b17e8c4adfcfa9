/* SPDX-License-Identifier: Apache-2.0 */
/* personal-stream.h: personal data in text that comes in pieces becomes markers. Held back is what is not whole yet, at
 * most PERSONAL_MOST_HELD bytes. */
#ifndef SANDHOST_PRIVACY_PERSONAL_STREAM_H
#define SANDHOST_PRIVACY_PERSONAL_STREAM_H

#include "privacy/personal.h"
#include "privacy/sink.h"

typedef struct PersonalStream PersonalStream;

/* sink is copied. Returns owned. */
PersonalStream *personal_stream_new(guint categories, TextSink sink);
void personal_stream_free(PersonalStream *stream);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PersonalStream, personal_stream_free)

void personal_stream_add(PersonalStream *stream, const void *data, gsize length);
/* Gives out what was held back; nothing may be added then. */
void personal_stream_finish(PersonalStream *stream);
/* How many markers were given out. */
guint64 personal_stream_count(const PersonalStream *stream);

#endif
