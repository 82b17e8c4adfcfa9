/* SPDX-License-Identifier: Apache-2.0 */
/* personal.c: most text has neither a digit nor an @ for long stretches; only those are looked at. Numbers are in
 * personal-number.c. */
#include "privacy/personal.h"

#include <string.h>

#include "privacy/personal-private.h"

#define MOST_LOCAL 64u
#define MOST_DOMAIN 253u
#define MOST_TOP 24u
#define LEAST_NUMBERED 3u /* digits of a domain's name; a version has fewer */

guint personal_category(const char *name) {
  static const char *const NAMES[] = {"email", "phone", "ssn", "credit_card"};
  for (guint i = 0; i < G_N_ELEMENTS(NAMES); i++) {
    if (strcmp(NAMES[i], name) == 0) {
      return 1u << i;
    }
  }
  return 0;
}

/* ---- Email ------------------------------------------------------------------------------------------------------- */

static gboolean is_local(guint8 c) {
  return g_ascii_isalnum(c) || c == '.' || c == '_' || c == '%' || c == '+' || c == '-';
}

/* Where the name before an @ begins; at itself where there is none. */
static gsize local_start(const guint8 *data, gsize from, gsize at) {
  gsize start = at;
  while (start > from && at - start <= MOST_LOCAL && is_local(data[start - 1])) {
    start--;
  }
  gboolean goes_on = start > 0 && start == from && is_local(data[start - 1]);
  if (at - start > MOST_LOCAL || goes_on) {
    return at;
  }
  while (start < at && !g_ascii_isalnum(data[start]) && data[start] != '_') {
    start++;
  }
  return start;
}

/* The end of the longest domain that begins at at: labels, the last one of letters. at itself: none. */
static gsize domain_end(const guint8 *data, gsize length, gsize at) {
  gsize end = at;
  gsize label = at;
  gsize most = MIN(length, at + MOST_DOMAIN);
  gboolean letters = TRUE;
  for (gsize i = at; i <= most; i++) {
    guint8 c = i < most ? data[i] : 0;
    if (g_ascii_isalnum(c) || (c == '-' && i > label)) {
      letters = letters && g_ascii_isalpha(c);
      continue;
    }
    gboolean top = label > at && letters && i - label >= 2 && i - label <= MOST_TOP;
    end = top ? i : end;
    if (c != '.' || i == label) {
      break;
    }
    label = i + 1;
    letters = TRUE;
  }
  return end;
}

/* icon@2x.png, package@1.0.tgz and package@18.js are names of files; 163.com has the mail of millions. The domain has a
 * dot, and letters behind it. */
static gboolean is_file_like(const guint8 *domain, gsize length) {
  gsize i = 0;
  while (i < length && g_ascii_isdigit(domain[i])) {
    i++;
  }
  if (i == 0 || i == length) {
    return FALSE;
  }
  return domain[i] == '.' ? i < LEAST_NUMBERED || g_ascii_isdigit(domain[i + 1])
                          : domain[i] == 'x' && domain[i + 1] == '.';
}

/* user@host:path, as ssh, scp and git write it. */
static gboolean is_remote(const guint8 *data, gsize length, gsize end) {
  return end + 1 < length && data[end] == ':' &&
         (g_ascii_isalpha(data[end + 1]) || data[end + 1] == '/' || data[end + 1] == '~');
}

static gboolean find_email(const guint8 *data, gsize length, gsize from, gsize at,
                           PersonalSpan *ret_span) {
  gsize start = local_start(data, from, at);
  gsize end = start < at ? domain_end(data, length, at + 1) : at + 1;
  if (end == at + 1 || is_file_like(data + at + 1, end - at - 1) || is_remote(data, length, end) ||
      (end < length && (g_ascii_isalnum(data[end]) || data[end] == '@' || data[end] == '_'))) {
    return FALSE;
  }
  *ret_span = (PersonalSpan){.start = start, .end = end, .marker = "[REDACTED_EMAIL]"};
  return TRUE;
}

/* ---- Everything -------------------------------------------------------------------------------------------------- */

#define EACH(byte) (G_GUINT64_CONSTANT(0x0101010101010101) * (byte))

/* Whether one of eight bytes is a digit or @. */
static gboolean has_sign(const guint8 *data) {
  guint64 word;
  memcpy(&word, data, sizeof word);
  guint64 digits = word ^ EACH('0'); /* 0 to 9 for a digit */
  guint64 at = word ^ EACH('@');     /* 0 for an @ */
  /* A byte below the number that is taken away borrows from its own highest bit, which was 0. */
  return (((digits - EACH(10)) & ~digits) | ((at - EACH(1)) & ~at)) & EACH(0x80) ? TRUE : FALSE;
}

/* The next digit or @. */
static gsize next_sign(const guint8 *data, gsize length, gsize at) {
  while (at < length && !(data[at] >= '0' && data[at] <= '9') && data[at] != '@') {
    at++;
    while (length - at >= sizeof(guint64) && !has_sign(data + at)) {
      at += sizeof(guint64);
    }
  }
  return at;
}

static gboolean are_digits(const guint8 *data, gsize length, gsize at, gsize count) {
  for (gsize i = at; i < at + count; i++) {
    if (i >= length || data[i] < '0' || data[i] > '9') {
      return FALSE;
    }
  }
  return TRUE;
}

/* Whether a number whose first group of digits is from at to end can be one that is looked for: nearly none can, and
 * the others are not read. */
static gboolean may_be_number(const guint8 *data, gsize length, gsize from, gsize at, gsize end) {
  guint8 before = at > from ? data[at - 1] : 0;
  guint8 sign = end < length ? data[end] : 0;
  gboolean joined = sign == ' ' || sign == '-' || sign == '.';
  if (before == '+' || (before == '(' && sign == ')')) {
    return TRUE;
  }
  switch (end - at) {
  case 1: /* 1-800-... */
    return data[at] == '1' && (joined || sign == '(') && end + 3 < length;
  case 3:
    return joined && are_digits(data, length, end + 1, 2);
  case 4:
    return joined && are_digits(data, length, end + 1, 4);
  default:
    return end - at >= 13;
  }
}

gboolean personal_find(guint categories, const guint8 *data, gsize length, gsize from,
                       PersonalSpan *ret_span) {
  gboolean numbers = (categories & ~(guint)PERSONAL_EMAIL) != 0;
  for (gsize at = next_sign(data, length, from); at < length; at = next_sign(data, length, at)) {
    if (data[at] == '@') {
      if ((categories & PERSONAL_EMAIL) && find_email(data, length, from, at, ret_span)) {
        return TRUE;
      }
      at++;
      continue;
    }
    gsize end = at + 1;
    while (end < length && data[end] >= '0' && data[end] <= '9') {
      end++;
    }
    if (numbers && may_be_number(data, length, from, at, end) &&
        personal_find_number(categories, data, length, from, at, ret_span)) {
      return TRUE;
    }
    at = end;
  }
  return FALSE;
}

/* A space or a bracket only counts among digits. */
static gboolean is_joint(const guint8 *data, gsize length, gsize at) {
  guint8 c = data[at];
  if (c == '(') {
    return at + 1 == length || g_ascii_isdigit(data[at + 1]);
  }
  if ((c != ' ' && c != ')') || at == 0) {
    return FALSE;
  }
  guint8 before = data[at - 1];
  return g_ascii_isdigit(before) || (c == ' ' && before == ')');
}

gsize personal_open(const guint8 *data, gsize length) {
  gsize at = length;
  while (at > 0 && length - at < PERSONAL_MOST_HELD) {
    guint8 c = data[at - 1];
    gboolean token = is_local(c) || c == '@' || c == ':' || c == '/' || c == '\\';
    if (!token && !is_joint(data, length, at - 1)) {
      break;
    }
    at--;
  }
  return length - at;
}

GString *personal_redact(guint categories, const void *data, gsize length) {
  PersonalSpan span;
  if (categories == 0 || !personal_find(categories, data, length, 0, &span)) {
    return NULL;
  }
  GString *out = g_string_sized_new(length);
  gsize at = 0;
  do {
    g_string_append_len(out, (const char *)data + at, (gssize)(span.start - at));
    g_string_append(out, span.marker);
    at = span.end;
  } while (personal_find(categories, data, length, at, &span));
  g_string_append_len(out, (const char *)data + at, (gssize)(length - at));
  return out;
}
