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

static gboolean is_name_byte(char c) {
  return g_ascii_isalnum(c) || c == '_' || c == '-';
}

static gsize skip_spaces(const char *text, gsize at) {
  return at + strspn(text + at, " \t");
}

static gsize word_end(const char *text, gsize at) {
  return at + strcspn(text + at, " \t\r\n\f\v;|&<>()'\"`\\");
}

/* What stands at at: in quotes up to the same quote, else a word. FALSE: nothing, or it comes from elsewhere. */
static gboolean take_value(const char *text, gsize at, Value *ret_value) {
  char quote =
      text[at] == '\\' && text[at + 1] == '"' ? '\\' : text[at]; /* JSON in double quotes */
  if (quote == '"' || quote == '\'') {
    ret_value->start = at + 1;
    const char *end = strchr(text + at + 1, quote);
    ret_value->end = end ? (gsize)(end - text) : strlen(text);
  } else {
    ret_value->start = quote == '\\' ? at + 2 : at;
    ret_value->end = word_end(text, ret_value->start);
  }
  return ret_value->end > ret_value->start && text[ret_value->start] != '$' &&
         text[ret_value->start] != '`' &&
         !g_str_has_prefix(text + ret_value->start, CREDENTIAL_MARKER);
}

/* "Bearer", "Basic", "token" and such stand before the value of a header. */
static gsize skip_scheme(const char *text, gsize at) {
  static const char *const SCHEMES[] = {"Bearer ", "Basic ", "Digest ", "Token ", "ApiKey "};
  for (gsize i = 0; i < G_N_ELEMENTS(SCHEMES); i++) {
    if (g_ascii_strncasecmp(text + at, SCHEMES[i], strlen(SCHEMES[i])) == 0) {
      return skip_spaces(text, at + strlen(SCHEMES[i]));
    }
  }
  return at;
}

/* The value that follows a name which ends at end and may stand in quotes. */
static gboolean find_named(const char *text, gsize start, gsize end, Value *ret_value) {
  gboolean option = start >= 2 && text[start - 1] == '-' && text[start - 2] == '-';
  gsize at = end;
  if (text[at] == '\\' && text[at + 1] == '"') {
    at += 2;
  } else if (text[at] == '"' || text[at] == '\'') {
    at++;
  }
  if (text[at] == '=') {
    return take_value(text, at + 1, ret_value);
  }
  gsize colon = skip_spaces(text, at);
  if (text[colon] == ':' && text[colon + 1] != ':' && text[colon + 1] != '/') {
    return take_value(text, skip_scheme(text, skip_spaces(text, colon + 1)), ret_value);
  }
  gsize next = skip_spaces(text, at);
  return option && next > at && text[next] != '-' && take_value(text, next, ret_value);
}

static gboolean find_bearer(const char *text, gsize end, Value *ret_value) {
  gsize at = skip_spaces(text, end);
  return at > end && take_value(text, at, ret_value) &&
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
static gboolean find_value(const char *text, gsize start, gsize end, Value *ret_value) {
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
  return credential_is_name(name) && find_named(text, start, end, ret_value);
}

char *command_forms_redact(const char *command) {
  GString *out = NULL;
  gsize given = 0;
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
    if (find_value(command, at, end, &value)) {
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
