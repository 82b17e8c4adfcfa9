/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: text that a plugin made, before anybody sees it. */
#ifndef SANDHOST_PROVIDER_TEXT_H
#define SANDHOST_PROVIDER_TEXT_H

#include <glib.h>
#include <sandhost/provider.h>

/* The longest text of an error, a report or a line of progress, in bytes. */
#define TEXT_MAX_BYTES 4096u

/* At most TEXT_MAX_BYTES of text as valid UTF-8 on one line: what is no UTF-8 and every control character is
 * replaced (a line break or tab by a space, any other by U+FFFD), so is what turns the writing direction. Reads
 * no more of text than that. Returns owned. */
char *text_clean(struct sandhost_text text);

/* The same for a C string, of which at most max bytes are read. */
char *text_clean_string(const char *string, gsize max);

/* A copy of a C string of at most max bytes that is one line of valid UTF-8 without control characters; NULL
 * when it is NULL, longer, or anything else. Returns owned. */
char *text_checked_line(const char *string, gsize max);

/* Whether string is 1 to max of a-z, 0-9, _ and the characters of also, beginning with a letter. Reads no more than
 * max + 1 bytes. */
gboolean text_is_name(const char *string, gsize max, const char *also);

static inline struct sandhost_text text_of(const char *string) {
  gsize length = 0;
  while (string && string[length] != '\0') {
    length++;
  }
  return (struct sandhost_text){.data = string ? string : "", .length = length};
}

static inline struct sandhost_path path_of(const char *string) {
  struct sandhost_text text = text_of(string);
  return (struct sandhost_path){.data = text.data, .length = text.length};
}

#endif
