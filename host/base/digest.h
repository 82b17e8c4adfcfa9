/* SPDX-License-Identifier: Apache-2.0 */
/* digest.h: SHA-256, on nettle. */
#ifndef SANDHOST_BASE_DIGEST_H
#define SANDHOST_BASE_DIGEST_H

#include <glib.h>

#define DIGEST_BYTES 32

void digest_of(const void *data, size_t length, guint8 ret_digest[DIGEST_BYTES]);

/* 64 lower-case hex digits. Returns owned. */
char *digest_hex(const void *data, size_t length);
char *digest_to_hex(const guint8 digest[DIGEST_BYTES]);

#endif
