/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.c: a name is taken apart into words, and the words decide. */
#include "config/credentials.h"

#include <string.h>

#define MOST_NAME 256u /* bytes of a name that are looked at */
#define MOST_WORDS 16u

typedef struct {
  char letters[MOST_NAME]; /* lower case, each word ended by NUL */
  const char *words[MOST_WORDS];
  guint count;
} Words;

/* One of several is one of them: TOKEN2, API_KEY_1. A word of digits alone becomes an empty one. */
static gsize without_number(const Words *words, gsize used) {
  const char *word = words->words[words->count - 1];
  while (words->letters + used > word && g_ascii_isdigit(words->letters[used - 1])) {
    used--;
  }
  return used;
}

/* Whatever is no letter and no digit parts words, and so does a capital behind a small letter. */
static void take_apart(const char *name, Words *ret_words) {
  gsize used = 0;
  gboolean inside = FALSE;
  ret_words->count = 0;
  for (gsize i = 0; name[i] && used + 2 < MOST_NAME; i++) {
    gboolean joins = g_ascii_isalnum(name[i]);
    gboolean begins =
        joins && (!inside || (g_ascii_isupper(name[i]) && g_ascii_islower(name[i - 1])));
    if (inside && (begins || !joins)) {
      used = without_number(ret_words, used);
      ret_words->letters[used++] = '\0';
    }
    if (begins) {
      if (ret_words->count == MOST_WORDS) {
        break;
      }
      ret_words->words[ret_words->count++] = ret_words->letters + used;
    }
    if (joins) {
      ret_words->letters[used++] = g_ascii_tolower(name[i]);
    }
    inside = joins;
  }
  used = inside ? without_number(ret_words, used) : used;
  ret_words->letters[used] = '\0';
}

static gboolean is_one_of(const char *word, const char *const *list) {
  return g_strv_contains(list, word);
}

/* A capital says nothing where all are: PGPASSWORD, NPM_AUTHTOKEN. */
static gboolean ends_telling(const char *word) {
  static const char *const ENDS[] = {"apikey", "passphrase", "passwd", "password",
                                     "secret", "sshpass",    "token",  NULL};
  for (gsize i = 0; ENDS[i]; i++) {
    if (g_str_has_suffix(word, ENDS[i])) {
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean has_telling(const Words *words) {
  static const char *const TELLING[] = {"accesskey", "authorization", "bearer",      "cookie",
                                        "cookies",   "credential",    "credentials", "jwt",
                                        "passwords", "privatekey",    "secretkey",   "secrets",
                                        NULL};
  for (guint i = 0; i < words->count; i++) {
    if (is_one_of(words->words[i], TELLING) || ends_telling(words->words[i])) {
      return TRUE;
    }
  }
  return FALSE;
}

/* The id of a token is half of it, and a number tells one from the next. */
static void drop_last(Words *words) {
  while (words->count > 1 &&
         (!*words->words[words->count - 1] || strcmp(words->words[words->count - 1], "id") == 0)) {
    words->count--;
  }
}

gboolean credential_is_name(const char *name) {
  /* What ends so leads to a credential, or tells about one. */
  static const char *const ABOUT[] = {
      "count", "dir",   "endpoint", "expires", "expiry", "file", "files", "keys", "length", "limit",
      "name",  "names", "path",     "ref",     "refs",   "ttl",  "type",  "uri",  "url",    NULL};
  static const char *const OPEN_KEYS[] = {"cache",   "foreign", "host",   "index", "partition",
                                          "primary", "public",  "redact", "sort",  NULL};
  static const char *const LAST[] = {"pass", "pat", "pwd", NULL};
  Words words;
  take_apart(name, &words);
  drop_last(&words);
  if (words.count == 0 || is_one_of(words.words[words.count - 1], ABOUT)) {
    return FALSE;
  }
  const char *last = words.words[words.count - 1];
  if (strcmp(last, "auth") == 0 || (words.count > 1 && is_one_of(last, LAST))) {
    return TRUE;
  }
  if (words.count > 1 && strcmp(last, "key") == 0) {
    return !is_one_of(words.words[words.count - 2], OPEN_KEYS);
  }
  return has_telling(&words);
}

/* named: a key above says that what is below is a credential. No deeper than JSON is read. */
static void collect(JsonObject *value, gboolean named, GPtrArray *strings) {
  if (json_object_is_type(value, json_type_object)) {
    json_object_object_foreach(value, key, member) {
      collect(member, named || credential_is_name(key), strings);
    }
  } else if (json_object_is_type(value, json_type_array)) {
    for (gsize i = 0; i < json_object_array_length(value); i++) {
      collect(json_object_array_get_idx(value, i), named, strings);
    }
  } else if (named && json_object_is_type(value, json_type_string)) {
    g_ptr_array_add(strings, g_strdup(json_object_get_string(value)));
  }
}

void credentials_collect(JsonObject *value, GPtrArray *strings) {
  collect(value, FALSE, strings);
}
