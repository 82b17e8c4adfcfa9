/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json-parse.c: strict parsing. json-c is lenient in places even when told to be strict, and keeps
 * the last of two equal keys; so the text is walked first by a scanner that knows RFC 8259 and
 * nothing else, and json-c then only builds the value of a text that is known to be good.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/repr.h"

typedef struct {
  const char *at;
  const char *end;
  guint line;
  int depth;
  const char *fault; /* constant; NULL while all is well */
  char *repeated;    /* the key that stands twice; owned */
} Scanner;

static gboolean scan_value(Scanner *scanner);

static gboolean fault(Scanner *scanner, const char *what) {
  if (!scanner->fault) {
    scanner->fault = what;
  }
  return FALSE;
}

static char peek(const Scanner *scanner) {
  return scanner->at < scanner->end ? *scanner->at : '\0';
}

static void skip_space(Scanner *scanner) {
  while (scanner->at < scanner->end && strchr(" \t\r\n", *scanner->at) && *scanner->at) {
    scanner->line += *scanner->at == '\n';
    scanner->at++;
  }
}

static gboolean accept(Scanner *scanner, char wanted) {
  if (peek(scanner) != wanted) {
    return FALSE;
  }
  scanner->at++;
  return TRUE;
}

/* Four hex digits behind \u; their value, or -1. */
static int scan_hex(Scanner *scanner) {
  int value = 0;
  for (int i = 0; i < 4; i++) {
    int digit = g_ascii_xdigit_value(peek(scanner));
    if (digit < 0) {
      return -1;
    }
    value = value * 16 + digit;
    scanner->at++;
  }
  return value;
}

static gboolean scan_unicode(Scanner *scanner) {
  int unit = scan_hex(scanner);
  if (unit < 0) {
    return fault(scanner, "a \\u without four hex digits");
  }
  if (unit == 0) {
    return fault(scanner, "a NUL character in a string");
  }
  if (unit >= 0xdc00 && unit <= 0xdfff) {
    return fault(scanner, "half a surrogate pair");
  }
  if (unit >= 0xd800 && unit <= 0xdbff) {
    if (!accept(scanner, '\\') || !accept(scanner, 'u')) {
      return fault(scanner, "half a surrogate pair");
    }
    int low = scan_hex(scanner);
    if (low < 0xdc00 || low > 0xdfff) {
      return fault(scanner, "half a surrogate pair");
    }
  }
  return TRUE;
}

static gboolean scan_string(Scanner *scanner) {
  if (!accept(scanner, '"')) {
    return fault(scanner, "a string was expected");
  }
  while (scanner->at < scanner->end) {
    char c = *scanner->at++;
    if (c == '"') {
      return TRUE;
    }
    if ((guchar)c < 0x20) {
      return fault(scanner, "a control character in a string");
    }
    if (c != '\\') {
      continue;
    }
    char escape = peek(scanner);
    if (!escape || !strchr("\"\\/bfnrtu", escape)) {
      return fault(scanner, "an unknown escape in a string");
    }
    scanner->at++;
    if (escape == 'u' && !scan_unicode(scanner)) {
      return FALSE;
    }
  }
  return fault(scanner, "a string without an end");
}

static gsize scan_digits(Scanner *scanner) {
  const char *from = scanner->at;
  while (g_ascii_isdigit(peek(scanner))) {
    scanner->at++;
  }
  return (gsize)(scanner->at - from);
}

/* Numbers are kept as 64-bit integers and doubles; one that is neither would silently become
 * another. */
static gboolean check_range(Scanner *scanner, const char *from, gboolean integer) {
  g_autofree char *digits = g_strndup(from, (gsize)(scanner->at - from));
  if (integer) {
    errno = 0;
    g_ascii_strtoll(digits, NULL, 10);
    return errno != ERANGE || fault(scanner, "an integer of more than 64 bits");
  }
  return isfinite(g_ascii_strtod(digits, NULL)) || fault(scanner, "a number that is too large");
}

static gboolean scan_number(Scanner *scanner) {
  const char *from = scanner->at;
  gboolean integer = TRUE;
  accept(scanner, '-');
  if (!accept(scanner, '0') && scan_digits(scanner) == 0) {
    return fault(scanner, "a value was expected");
  }
  if (accept(scanner, '.')) {
    integer = FALSE;
    if (scan_digits(scanner) == 0) {
      return fault(scanner, "a number without digits behind its point");
    }
  }
  if (accept(scanner, 'e') || accept(scanner, 'E')) {
    integer = FALSE;
    if (!accept(scanner, '+')) {
      accept(scanner, '-');
    }
    if (scan_digits(scanner) == 0) {
      return fault(scanner, "a number without an exponent");
    }
  }
  return check_range(scanner, from, integer);
}

static gboolean scan_word(Scanner *scanner) {
  static const char *const WORDS[] = {"true", "false", "null"};
  for (gsize i = 0; i < G_N_ELEMENTS(WORDS); i++) {
    gsize length = strlen(WORDS[i]);
    if ((gsize)(scanner->end - scanner->at) >= length &&
        memcmp(scanner->at, WORDS[i], length) == 0) {
      scanner->at += length;
      return TRUE;
    }
  }
  return scan_number(scanner);
}

/* The key as it is meant, so that "a" and "\u0061" are the same. The text between is a good
 * string. */
static char *decode_key(const char *from, const char *to) {
  g_autofree char *literal = g_strndup(from, (gsize)(to - from));
  if (!strchr(literal, '\\')) {
    return g_strndup(literal + 1, strlen(literal) - 2);
  }
  JsonObject *value = json_tokener_parse(literal);
  char *key = g_strdup(value ? json_object_get_string(value) : literal);
  json_object_put(value);
  return key;
}

/* keys is an object of json-c because its table is seeded: keys chosen to collide do not slow it
 * down. */
static gboolean scan_member(Scanner *scanner, JsonObject *keys) {
  skip_space(scanner);
  const char *from = scanner->at;
  if (!scan_string(scanner)) {
    return FALSE;
  }
  g_autofree char *key = decode_key(from, scanner->at);
  if (json_object_object_get_ex(keys, key, NULL)) {
    scanner->repeated = g_steal_pointer(&key);
    return fault(scanner, "the repeated key");
  }
  json_object_object_add(keys, key, NULL);
  skip_space(scanner);
  return accept(scanner, ':') ? scan_value(scanner) : fault(scanner, "a : was expected");
}

static gboolean scan_object(Scanner *scanner) {
  g_autoptr(JsonObject) keys = json_object_new_object();
  skip_space(scanner);
  if (accept(scanner, '}')) {
    return TRUE;
  }
  do {
    if (!scan_member(scanner, keys)) {
      return FALSE;
    }
    skip_space(scanner);
  } while (accept(scanner, ','));
  return accept(scanner, '}') || fault(scanner, "a , or } was expected");
}

static gboolean scan_array(Scanner *scanner) {
  skip_space(scanner);
  if (accept(scanner, ']')) {
    return TRUE;
  }
  do {
    if (!scan_value(scanner)) {
      return FALSE;
    }
    skip_space(scanner);
  } while (accept(scanner, ','));
  return accept(scanner, ']') || fault(scanner, "a , or ] was expected");
}

static gboolean scan_value(Scanner *scanner) {
  gboolean ok = FALSE;
  skip_space(scanner);
  if (scanner->at >= scanner->end) {
    return fault(scanner, "the text ends too early");
  }
  if (++scanner->depth > JSON_MAX_DEPTH) {
    return fault(scanner, "it is nested too deep");
  }
  if (accept(scanner, '{')) {
    ok = scan_object(scanner);
  } else if (accept(scanner, '[')) {
    ok = scan_array(scanner);
  } else {
    ok = peek(scanner) == '"' ? scan_string(scanner) : scan_word(scanner);
  }
  scanner->depth--;
  return ok;
}

static gboolean build(const char *text, size_t length, JsonObject **ret_value) {
  json_tokener *tokener = json_tokener_new_ex(JSON_MAX_DEPTH + 2);
  JsonObject *value = json_tokener_parse_ex(tokener, text, (int)length);
  if (json_tokener_get_error(tokener) == json_tokener_continue) {
    /* A bare number at the very end: only the end of text tells that it is whole. */
    value = json_tokener_parse_ex(tokener, "", -1);
  }
  gboolean ok = json_tokener_get_error(tokener) == json_tokener_success;
  json_tokener_free(tokener);
  if (ok) {
    *ret_value = value;
  } else {
    json_object_put(value);
  }
  return ok;
}

/* The encoding comes first, so that all that follows walks whole characters. */
static gboolean scan_text(Scanner *scanner) {
  const char *from = scanner->at;
  const char *bad = NULL;
  if (!g_utf8_validate_len(from, (gsize)(scanner->end - from), &bad)) {
    for (const char *at = from; at < bad; at++) {
      scanner->line += *at == '\n';
    }
    return fault(scanner, *bad ? "it is not UTF-8" : "a NUL character");
  }
  if (!scan_value(scanner)) {
    return FALSE;
  }
  skip_space(scanner);
  return scanner->at == scanner->end || fault(scanner, "something follows the value");
}

JsonObject *json_parse(const char *name, const char *text, size_t length, GError **error) {
  const char *from = text ? text : ""; /* nothing may be given as NULL */
  Scanner scanner = {.at = from, .end = from + length, .line = 1};
  JsonObject *value = NULL;
  if (length > JSON_MAX_BYTES) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "%s is not valid JSON: it is longer than %u MiB", name, JSON_MAX_BYTES >> 20);
    return NULL;
  }
  if (scan_text(&scanner) && !build(from, length, &value)) {
    fault(&scanner, "it cannot be read");
  }
  if (scanner.fault) {
    g_autofree char *key = scanner.repeated ? repr_text(scanner.repeated) : g_strdup("");
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "%s is not valid JSON: %s%s%s (line %u)", name, scanner.fault,
                scanner.repeated ? " " : "", key, scanner.line);
    g_free(scanner.repeated);
    return NULL;
  }
  return value;
}

static char *read_file(const char *path, gsize *ret_length, GError **error) {
  struct stat facts;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const char *why = NULL;
  if (fd < 0 || fstat(fd, &facts) < 0) {
    why = g_strerror(errno);
  } else if (!S_ISREG(facts.st_mode)) {
    why = "it is not a regular file";
  } else if (facts.st_size > JSON_MAX_BYTES) {
    why = "it is too large";
  }
  GByteArray *content = g_byte_array_new();
  guint8 chunk[16384];
  while (!why) {
    ssize_t count = read(fd, chunk, sizeof chunk);
    if (count < 0 && errno != EINTR) {
      why = g_strerror(errno);
    } else if (count == 0) {
      break;
    } else if (count > 0) {
      g_byte_array_append(content, chunk, (guint)count);
      why = content->len > JSON_MAX_BYTES ? "it is too large" : NULL;
    }
  }
  if (fd >= 0) {
    close(fd);
  }
  if (why) {
    g_byte_array_unref(content);
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "could not read %s: %s", path, why);
    return NULL;
  }
  *ret_length = content->len;
  g_byte_array_append(content, (const guint8 *)"", 1);
  return (char *)g_byte_array_free(content, FALSE);
}

JsonObject *json_parse_file(const char *path, GError **error) {
  gsize length = 0;
  g_autofree char *text = read_file(path, &length, error);
  return text ? json_parse(path, text, length, error) : NULL;
}
