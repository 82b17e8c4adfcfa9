/* SPDX-License-Identifier: Apache-2.0 */
/* ids.c: random names. */
#include "base/ids.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define ID_BYTES 16
#define ID_DIGITS (2 * (gsize)ID_BYTES)

char *id_new(const char *prefix) {
  static const char DIGITS[] = "0123456789abcdef";
  guint8 bytes[ID_BYTES];
  /* Up to 256 bytes come whole once the kernel's pool is ready; a signal may only come before
   * that. */
  while (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
    g_assert(errno == EINTR);
  }
  char hex[ID_DIGITS + 1];
  for (gsize i = 0; i < sizeof bytes; i++) {
    hex[2 * i] = DIGITS[bytes[i] >> 4];
    hex[2 * i + 1] = DIGITS[bytes[i] & 0x0f];
  }
  hex[ID_DIGITS] = '\0';
  return g_strconcat(prefix, "_", hex, NULL);
}

gboolean id_is(const char *text, const char *prefix) {
  gsize length = strlen(prefix);
  if (strncmp(text, prefix, length) != 0 || text[length] != '_') {
    return FALSE;
  }
  const char *digits = text + length + 1;
  return strlen(digits) == ID_DIGITS && strspn(digits, "0123456789abcdef") == ID_DIGITS;
}
