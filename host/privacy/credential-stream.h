/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credential-stream.h: credentials in text that comes in pieces become a marker. What overlaps becomes one marker. Held
 * back is only what may be the beginning of a credential, so at most as much as the longest one has bytes.
 */
#ifndef SANDHOST_PRIVACY_CREDENTIAL_STREAM_H
#define SANDHOST_PRIVACY_CREDENTIAL_STREAM_H

#include "privacy/needles.h"
#include "privacy/sink.h"

#define CREDENTIAL_MARKER "[REDACTED:credential]"

typedef struct CredentialStream CredentialStream;

/* Borrows needles; sink is copied. Returns owned. */
CredentialStream *credential_stream_new(const Needles *needles, TextSink sink);
void credential_stream_free(CredentialStream *stream);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CredentialStream, credential_stream_free)

void credential_stream_add(CredentialStream *stream, const void *data, gsize length);

/* Gives out what was held back; nothing may be added then. cut: the text went on, and nobody knows how: then its end is a
 * credential when it may be the beginning of one. */
void credential_stream_finish(CredentialStream *stream, gboolean cut);

/* How many markers were given out. */
guint64 credential_stream_count(const CredentialStream *stream);

#endif
