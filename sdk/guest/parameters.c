/* SPDX-License-Identifier: Apache-2.0 */
/* parameters.c: what is asked of a command is checked before anybody is to begin it. */
#include "parameters.h"

#include <string.h>

static int read_word(struct guest_reader *reader, int is_variable) {
  size_t length = 0;
  const char *word = guest_read_bytes(reader, &length);
  const char *equals = is_variable ? memchr(word, '=', length) : NULL;
  return !reader->bad && !memchr(word, '\0', length) &&
         (!is_variable || (equals && equals != word));
}

int parameters_make_sense(struct guest_reader reader) {
  size_t length = 0;
  const char *cwd = guest_read_bytes(&reader, &length);
  int good = !memchr(cwd, '\0', length) && (length == 0 || *cwd == '/');
  uint32_t words = guest_read_u32(&reader);
  const unsigned char *first = reader.data;
  good = good && words > 0 && reader.left >= 4 && guest_get_u32(first) > 0;
  for (uint32_t i = 0; good && i < words; i++) {
    good = read_word(&reader, 0);
  }
  uint32_t variables = good ? guest_read_u32(&reader) : 0;
  for (uint32_t i = 0; good && i < variables; i++) {
    good = read_word(&reader, 1);
  }
  return good && !reader.bad && reader.left == 0;
}
