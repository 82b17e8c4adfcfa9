/* SPDX-License-Identifier: Apache-2.0 */
/* plain-words.c: takes our script's own words out of a command's output. */
#include "plain.h"

#include <string.h>

#define WORD_MARK '\036'

/* ---- Words ------------------------------------------------------------------------------------ */

/* What the held bytes are. */
enum match { NO_WORD, MAYBE_WORD, WORD };

static enum match match_held(const struct plain_words *words) {
  const size_t head = 1 + PLAIN_NONCE_LENGTH;
  size_t compared = MIN(words->held_length, head);
  if (memcmp(words->held + 1, words->nonce, compared - 1) != 0) {
    return NO_WORD;
  }
  if (words->held_length <= head) {
    return MAYBE_WORD;
  }
  if (words->held[words->held_length - 1] == WORD_MARK) {
    return WORD;
  }
  return words->held_length < sizeof words->held ? MAYBE_WORD : NO_WORD;
}

static int32_t tell_word(struct plain_words *words, const struct plain_word_events *events,
                         void *user) {
  char text[PLAIN_MOST_WORD + 1];
  size_t length = words->held_length - PLAIN_NONCE_LENGTH - 2;
  memcpy(text, words->held + 1 + PLAIN_NONCE_LENGTH, length);
  text[length] = '\0';
  words->held_length = 0;
  words->ended = text[0] == 'E';
  return events->word(user, text);
}

/* What was held is no word. Its first byte is output; the rest may still begin one. */
static int32_t let_go(struct plain_words *words, const struct plain_word_events *events,
                      void *user) {
  const unsigned char *next = memchr(words->held + 1, WORD_MARK, words->held_length - 1);
  size_t part = next ? (size_t)(next - words->held) : words->held_length;
  unsigned char out[sizeof words->held];
  memcpy(out, words->held, part);
  words->held_length -= part;
  memmove(words->held, words->held + part, words->held_length);
  return events->output(user, out, part);
}

int32_t plain_words_feed(struct plain_words *words, const struct plain_word_events *events,
                         void *user, const void *data, size_t length) {
  const unsigned char *at = data;
  int32_t status = SANDHOST_OK;
  while (length > 0 && status == SANDHOST_OK && !words->ended) {
    if (words->held_length == 0) {
      const unsigned char *mark = memchr(at, WORD_MARK, length);
      size_t part = mark ? (size_t)(mark - at) : length;
      status = part > 0 ? events->output(user, at, part) : SANDHOST_OK;
      at += part;
      length -= part;
      if (!mark) {
        return status;
      }
    }
    if (status != SANDHOST_OK) {
      return status;
    }
    words->held[words->held_length++] = *at++;
    length--;
    enum match match = match_held(words);
    while (match == NO_WORD && words->held_length > 0 && status == SANDHOST_OK) {
      status = let_go(words, events, user);
      match = words->held_length > 0 ? match_held(words) : NO_WORD;
    }
    if (match == WORD && status == SANDHOST_OK) {
      status = tell_word(words, events, user);
    }
  }
  return status;
}

int32_t plain_words_finish(struct plain_words *words, const struct plain_word_events *events,
                           void *user) {
  size_t length = words->held_length;
  words->held_length = 0;
  return length > 0 && !words->ended ? events->output(user, words->held, length) : SANDHOST_OK;
}
