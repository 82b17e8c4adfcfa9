/* SPDX-License-Identifier: Apache-2.0 */
/* tar-sums.c: walks the blocks of a tar stream. */
#include "tar-sums.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 512u
#define MAGIC_AT 257u
#define SUM_AT 148u
#define SUM_LENGTH 8u

static void mend_block(uint8_t *block) {
  unsigned sum = 0;
  char text[SUM_LENGTH];
  memset(block + SUM_AT, ' ', SUM_LENGTH);
  for (size_t i = 0; i < BLOCK; i++) {
    sum += block[i];
  }
  snprintf(text, sizeof text, "%06o", sum); /* its NUL, then the space that is there */
  memcpy(block + SUM_AT, text, sizeof text - 1);
}

void tar_sums_mend(uint8_t *data, size_t length) {
  for (size_t at = 0; at + BLOCK <= length; at += BLOCK) {
    if (memcmp(data + at + MAGIC_AT, "ustar", 5) == 0) {
      mend_block(data + at);
    }
  }
}
