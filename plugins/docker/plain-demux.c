/* SPDX-License-Identifier: Apache-2.0 */
/* plain-demux.c: takes the engine's stream of both outputs apart, and our script's own words out of each. */
#include "plain.h"

#include <string.h>

#define WORD_MARK '\036'

int32_t plain_demux_feed(struct plain_demux *demux, const struct plain_demux_events *events,
                         void *user, const void *data, size_t length) {
  const unsigned char *at = data;
  int32_t status = demux->bad ? SANDHOST_PROTOCOL : SANDHOST_OK;
  while (length > 0 && status == SANDHOST_OK) {
    if (demux->left > 0) {
      size_t part = MIN(length, (size_t)demux->left);
      demux->left -= (uint32_t)part;
      status = events->output(user, demux->stream, at, part);
      at += part;
      length -= part;
      continue;
    }
    demux->header[demux->header_length++] = *at++;
    length--;
    if (demux->header_length < sizeof demux->header) {
      continue;
    }
    demux->header_length = 0;
    demux->stream = demux->header[0];
    demux->left = (uint32_t)demux->header[4] << 24 | (uint32_t)demux->header[5] << 16 |
                  (uint32_t)demux->header[6] << 8 | demux->header[7];
    if ((demux->stream != SANDHOST_STDOUT && demux->stream != SANDHOST_STDERR) ||
        demux->header[1] || demux->header[2] || demux->header[3] ||
        demux->left > PLAIN_MOST_FRAME) {
      demux->bad = TRUE;
      status = SANDHOST_PROTOCOL;
    }
  }
  return status;
}

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
