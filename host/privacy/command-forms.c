/* SPDX-License-Identifier: Apache-2.0 */
/* command-forms.c: names are looked for from left to right; what follows one says whether it has a value. */
#include "privacy/command-forms.h"

#include <string.h>

#include "config/credentials.h"
#include "privacy/credential-stream.h"

#define MOST_NAME 64u
#define LEAST_BEARER 12u /* "Bearer tokens" is a word more than a token */

/* A value within the command. */
typedef struct {
  gsize start;
  gsize end;
} Value;

/* Where the reading of a command is: what surrounds a place, as a shell sees it. */
typedef struct {
  gsize at;
  char quote; /* 0: none */
} Place;

static gboolean is_name_byte(char c) {
  return g_ascii_isalnum(c) || c == '_' || c == '-';
}

static gsize skip_spaces(const char *text, gsize at) {
  return at + strspn(text + at, " \t");
}

/* A word ends at what a shell parts words with, unless a backslash stands before it; "\\n" is an end of a line. */
static gsize word_end(const char *text, gsize at) {
  for (;;) {
    at += strcspn(text + at, " \t\r\n\f\v;|&<>()'\"`\\");
    if (text[at] != '\\' || !text[at + 1] || strchr("nrt\"", text[at + 1])) {
      return at;
    }
    at += 2;
  }
}

/* Reads on to the place to. An apostrophe in a comment opens nothing. */
static void read_on(const char *text, Place *place, gsize to) {
  for (; place->at < to; place->at++) {
    char c = text[place->at];
    gboolean first = place->at == 0 || strchr(" \t\n;|&(", text[place->at - 1]);
    if (c == '\\' && place->quote != '\'' && place->at + 1 < to) {
      place->at++;
    } else if (c == '#' && !place->quote && first) {
      place->at += strcspn(text + place->at, "\n");
      place->at -= text[place->at] ? 0 : 1;
    } else if (c == place->quote) {
      place->quote = 0;
    } else if (!place->quote && (c == '"' || c == '\'')) {
      place->quote = c;
    }
  }
}

/* The rest of a word behind a part of it, as a shell joins it: VALUE"ABC"DEF, VALUE\ ABC. Whoever reads the command must
 * still find everything in it that does something, so no part of it that could is hidden as a value. */
static gsize joined_end(const char *text, gsize at) {
  for (;;) {
    char c = text[at];
    if (c == '\\' && text[at + 1] && text[at + 1] != '\n') {
      at += 2;
    } else if (c == '"' || c == '\'') {
      gsize end = at + 1 + strcspn(text + at + 1, c == '"' ? "\"\\\n;|&<>()`$" : "'\n;|&<>()`$");
      if (text[end] != c) {
        return at;
      }
      at = end + 1;
    } else if (word_end(text, at) > at && c != '$') {
      at = word_end(text, at);
    } else {
      return at;
    }
  }
}

/* The end of a text in quotes: the next such quote, without a backslash before it where that counts. */
static gsize quoted_end(const char *text, gsize at, char quote, gboolean escapes) {
  while (text[at] && text[at] != quote) {
    at += escapes && text[at] == '\\' && text[at + 1] ? 2 : 1;
  }
  return at;
}

/* JSON in double quotes: \"VALUE\" */
static gsize json_end(const char *text, gsize at) {
  const char *end = strstr(text + at, "\\\"");
  return end ? (gsize)(end - text) : strlen(text);
}

/* What stands at at: in quotes, else a word. alone: a shell reads it there, outside of quotes. FALSE: nothing, or it comes
 * from elsewhere, which it cannot between single quotes. */
static gboolean take_value(const char *text, gsize at, gboolean alone, Value *ret_value) {
  gsize first = at;
  gboolean escapes = text[at] == '"' || (text[at] == '$' && text[at + 1] == '\'');
  at += text[at] == '$' && escapes ? 1 : 0;
  char quote = text[at];
  gboolean json = quote == '\\' && text[at + 1] == '"';
  gboolean quoted = quote == '"' || quote == '\'';
  gsize start = at + (json ? 2 : quoted ? 1 : 0);
  gsize end = json     ? json_end(text, start)
              : quoted ? quoted_end(text, start, quote, escapes)
                       : word_end(text, start);
  gboolean elsewhere = quote != '\'' && (text[start] == '$' || text[start] == '`');
  *ret_value = (Value){.start = start, .end = end};
  if (end <= start || elsewhere || g_str_has_prefix(text + start, CREDENTIAL_MARKER)) {
    return FALSE;
  }
  gsize part = end + (quoted && text[end] ? 1 : 0);
  if (alone && !json && joined_end(text, part) > part) { /* with its quotes */
    *ret_value = (Value){.start = first, .end = joined_end(text, part)};
  }
  return TRUE;
}

/* "Bearer", "Basic", "token" and such stand before the value of a header. */
static gsize skip_scheme(const char *text, gsize at) {
  return (gsize)(credential_without_scheme(text + at) - text);
}

/* The value that follows a name which ends at end and may stand in quotes. */
static gboolean find_named(const char *text, gsize start, gsize end, gboolean alone,
                           Value *ret_value) {
  gboolean option = start >= 2 && text[start - 1] == '-' && text[start - 2] == '-';
  gsize at = end;
  if (text[at] == '\\' && text[at + 1] == '"') {
    at += 2;
  } else if (text[at] == '"' || text[at] == '\'') {
    at++;
  }
  if (text[at] == '=') {
    return take_value(text, at + 1, alone, ret_value);
  }
  gsize colon = skip_spaces(text, at);
  if (text[colon] == ':' && text[colon + 1] != ':' && text[colon + 1] != '/') {
    gsize value = skip_scheme(text, skip_spaces(text, colon + 1));
    return take_value(text, value, FALSE, ret_value);
  }
  gsize next = skip_spaces(text, at);
  return option && next > at && text[next] != '-' && take_value(text, next, alone, ret_value);
}

static gboolean find_bearer(const char *text, gsize end, Value *ret_value) {
  gsize at = skip_spaces(text, end);
  return at > end && take_value(text, at, FALSE, ret_value) &&
         ret_value->end - ret_value->start >= LEAST_BEARER;
}

/* scheme://user:VALUE@host; at is behind the scheme's name. */
static gboolean find_in_address(const char *text, gsize at, Value *ret_value) {
  gsize from = at + 3;
  gsize end = from + strcspn(text + from, " \t\r\n\f\v;|&<>()'\"`/?#");
  const char *colon = memchr(text + from, ':', end - from);
  const char *sign = NULL;
  for (gsize i = from; i < end; i++) {
    sign = text[i] == '@' ? text + i : sign;
  }
  if (!colon || !sign || sign <= colon + 1 || colon[1] == '$') {
    return FALSE;
  }
  *ret_value = (Value){.start = (gsize)(colon + 1 - text), .end = (gsize)(sign - text)};
  return TRUE;
}

/* Whether the name from start to end has a value. */
static gboolean find_value(const char *text, gsize start, gsize end, gboolean alone,
                           Value *ret_value) {
  char name[MOST_NAME + 1];
  if (strncmp(text + end, "://", 3) == 0) {
    return find_in_address(text, end, ret_value);
  }
  if (end - start > MOST_NAME) {
    return FALSE;
  }
  memcpy(name, text + start, end - start);
  name[end - start] = '\0';
  if (g_ascii_strcasecmp(name, "Bearer") == 0) {
    return find_bearer(text, end, ret_value);
  }
  return credential_is_name(name) && find_named(text, start, end, alone, ret_value);
}

char *command_forms_redact(const char *command) {
  GString *out = NULL;
  gsize given = 0;
  Place place = {0};
  for (gsize at = 0; command[at];) {
    if (!is_name_byte(command[at]) || command[at] == '-') {
      at++;
      continue;
    }
    gsize end = at;
    while (is_name_byte(command[end])) {
      end++;
    }
    Value value;
    read_on(command, &place, at);
    if (find_value(command, at, end, !place.quote, &value)) {
      out = out ? out : g_string_new(NULL);
      g_string_append_len(out, command + given, (gssize)(value.start - given));
      g_string_append(out, CREDENTIAL_MARKER);
      given = value.end;
      end = value.end;
    }
    at = end;
  }
  if (!out) {
    return NULL;
  }
  g_string_append(out, command + given);
  return g_string_free(out, FALSE);
}
