/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c: SHA-256, on nettle, which uses the processor's own instructions where it has them. */
#include "base/digest.h"

#include <nettle/sha2.h>

void digest_of(const void *data, size_t length, guint8 ret_digest[DIGEST_BYTES]) {
  struct sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, length, data);
  sha256_digest(&context, DIGEST_BYTES, ret_digest);
}

char *digest_to_hex(const guint8 digest[DIGEST_BYTES]) {
  GString *hex = g_string_sized_new(2 * DIGEST_BYTES);
  for (gsize i = 0; i < DIGEST_BYTES; i++) {
    g_string_append_printf(hex, "%02x", digest[i]);
  }
  return g_string_free(hex, FALSE);
}

char *digest_hex(const void *data, size_t length) {
  guint8 digest[DIGEST_BYTES];
  digest_of(data, length, digest);
  return digest_to_hex(digest);
}
