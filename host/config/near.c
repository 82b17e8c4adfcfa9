/* SPDX-License-Identifier: Apache-2.0 */
/* near.c: which known name a misspelt one may mean. The measure is that of the source documents'
 * language: the letters of the longest common piece, and of those left and right of it, twice,
 * over all letters of both. */
#include "config/check.h"

#include <string.h>

#define LONGEST_WORD 64u
#define NEAR 0.6

typedef struct {
  const char *text;
  gsize length;
} Piece;

/* The longest run that both have; of equally long ones the first in a, then in b. Returns its
 * length. */
static gsize longest_common(Piece a, Piece b, gsize *ret_at_a, gsize *ret_at_b) {
  gsize longest = 0;
  for (gsize i = 0; i < a.length; i++) {
    for (gsize j = 0; j < b.length; j++) {
      gsize length = 0;
      while (i + length < a.length && j + length < b.length &&
             a.text[i + length] == b.text[j + length]) {
        length++;
      }
      if (length > longest) {
        longest = length;
        *ret_at_a = i;
        *ret_at_b = j;
      }
    }
  }
  return longest;
}

/* Recurses at most once for each letter of the shorter word, which is bounded. */
static gsize common_letters(Piece a, Piece b) {
  gsize at_a = 0;
  gsize at_b = 0;
  gsize length = longest_common(a, b, &at_a, &at_b);
  if (length == 0) {
    return 0;
  }
  Piece left_a = {.text = a.text, .length = at_a};
  Piece left_b = {.text = b.text, .length = at_b};
  Piece right_a = {.text = a.text + at_a + length, .length = a.length - at_a - length};
  Piece right_b = {.text = b.text + at_b + length, .length = b.length - at_b - length};
  return length + common_letters(left_a, left_b) + common_letters(right_a, right_b);
}

static double likeness(const char *a, const char *b) {
  Piece piece_a = {.text = a, .length = strlen(a)};
  Piece piece_b = {.text = b, .length = strlen(b)};
  gsize letters = piece_a.length + piece_b.length;
  return letters ? 2.0 * (double)common_letters(piece_a, piece_b) / (double)letters : 1;
}

const char *check_near(const char *word, const char *const *names) {
  const char *best = NULL;
  double most = 0;
  if (strlen(word) > LONGEST_WORD) {
    return NULL;
  }
  for (gsize i = 0; names[i]; i++) {
    double near = likeness(names[i], word);
    if (near >= NEAR && near > most) {
      most = near;
      best = names[i];
    }
  }
  return best;
}
