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

static gboolean has_one_of(const Words *words, const char *const *list) {
  for (guint i = 0; i < words->count; i++) {
    if (is_one_of(words->words[i], list)) {
      return TRUE;
    }
  }
  return FALSE;
}

/* By its last word, and what is before it. */
static gboolean ends_as_credential(const Words *words) {
  static const char *const OPEN_KEYS[] = {"cache",   "foreign", "host",   "index", "partition",
                                          "primary", "public",  "redact", "sort",  NULL};
  static const char *const WITH_ANOTHER[] = {"pass", "pat", "pwd", NULL};
  /* max_tokens is a number, and no tokens */
  static const char *const COUNTING[] = {"budget", "cached",    "completion", "context", "input",
                                         "left",   "limit",     "max",        "min",     "new",
                                         "num",    "output",    "prompt",     "stop",    "tests",
                                         "text",   "threshold", "total",      "used",    NULL};
  const char *last = words->words[words->count - 1];
  const char *before = words->count > 1 ? words->words[words->count - 2] : "";
  if (strcmp(last, "auth") == 0 || strcmp(last, "dsn") == 0) {
    return TRUE;
  }
  if (strcmp(last, "tokens") == 0) {
    return !has_one_of(words, COUNTING);
  }
  if (strcmp(last, "string") == 0) {
    return strcmp(before, "connection") == 0;
  }
  return words->count > 1 && (is_one_of(last, WITH_ANOTHER) ||
                              (strcmp(last, "key") == 0 && !is_one_of(before, OPEN_KEYS)));
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
  Words words;
  take_apart(name, &words);
  drop_last(&words);
  if (words.count == 0 || is_one_of(words.words[words.count - 1], ABOUT)) {
    return FALSE;
  }
  return ends_as_credential(&words) || has_telling(&words);
}

/* Words that mean something else in a command, and in an environment. */
static gboolean is_key(const char *key) {
  return g_ascii_strcasecmp(key, "pass") == 0 || g_ascii_strcasecmp(key, "pwd") == 0 ||
         credential_is_name(key);
}

/* ---- Within a value ---------------------------------------------------------------------------------------------- */

const char *credential_without_scheme(const char *value) {
  static const char *const SCHEMES[] = {"Bearer ", "Basic ", "Digest ", "Token ", "ApiKey "};
  for (gsize i = 0; i < G_N_ELEMENTS(SCHEMES); i++) {
    if (g_ascii_strncasecmp(value, SCHEMES[i], strlen(SCHEMES[i])) == 0) {
      value += strlen(SCHEMES[i]);
      return value + strspn(value, " \t");
    }
  }
  return value;
}

/* scheme://user:THIS@host, as it is written and as it is meant. */
static void take_from_address(const char *value, GPtrArray *strings) {
  for (const char *at = strstr(value, "://"); at; at = strstr(at, "://")) {
    at += 3;
    gsize length = strcspn(at, " \t\r\n/?#");
    const char *colon = memchr(at, ':', length);
    const char *sign = g_strrstr_len(at, (gssize)length, "@");
    if (!colon || !sign || sign <= colon + 1) {
      continue;
    }
    char *written = g_strndup(colon + 1, (gsize)(sign - colon - 1));
    char *meant = g_uri_unescape_string(written, NULL);
    g_ptr_array_add(strings, written);
    if (meant && strcmp(meant, written) != 0) {
      g_ptr_array_add(strings, g_steal_pointer(&meant));
    }
    g_free(meant);
  }
}

/* host=... password=THIS, or Server=...;Password=THIS. */
static void take_from_pairs(const char *value, GPtrArray *strings) {
  g_auto(GStrv) pairs = g_strsplit_set(value, strchr(value, ';') ? ";" : " \t\r\n", 64);
  for (char **pair = pairs; *pair; pair++) {
    char *equals = strchr(*pair, '=');
    if (!equals) {
      continue;
    }
    g_autofree char *key = g_strndup(*pair, (gsize)(equals - *pair));
    if (is_key(g_strstrip(key))) {
      g_ptr_array_add(strings, g_strdup(equals + 1));
    }
  }
}

void credentials_within(const char *value, gboolean pairs, GPtrArray *strings) {
  take_from_address(value, strings);
  if (pairs && strchr(value, '=')) {
    take_from_pairs(value, strings);
  }
}

/* ---- Within a configuration -------------------------------------------------------------------------------------- */

/* named: a key above says that what is below is a credential. No deeper than JSON is read. */
static void collect(JsonObject *value, gboolean named, GPtrArray *strings) {
  if (json_object_is_type(value, json_type_object)) {
    json_object_object_foreach(value, key, member) {
      collect(member, named || is_key(key), strings);
    }
  } else if (json_object_is_type(value, json_type_array)) {
    for (gsize i = 0; i < json_object_array_length(value); i++) {
      collect(json_object_array_get_idx(value, i), named, strings);
    }
  } else if (json_object_is_type(value, json_type_string)) {
    if (named) {
      g_ptr_array_add(strings, g_strdup(json_object_get_string(value)));
    }
    credentials_within(json_object_get_string(value), named, strings);
  }
}

void credentials_collect(JsonObject *value, GPtrArray *strings) {
  collect(value, FALSE, strings);
}
