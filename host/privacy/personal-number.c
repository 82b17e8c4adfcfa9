/* SPDX-License-Identifier: Apache-2.0 */
/* personal-number.c: a number is read as groups of digits with what parts them; then each kind says whether the first
 * few groups are one of its own. What surrounds it must not make it a part of something else. */
#include <string.h>

#include "privacy/personal-private.h"

#define MOST_GROUPS 8u
#define MOST_GROUP 24u /* digits of one that are still read */

typedef struct {
  gsize start;
  gsize end;
  gchar before;   /* ' ', '-' or '.'; 0: only brackets, or it is the first group */
  gboolean opens; /* it stands behind a bracket that opens */
  gboolean closes;
} Group;

typedef struct {
  const guint8 *data;
  gsize length;
  gsize start; /* with a + or a bracket in front */
  gboolean plus;
  gboolean begins; /* nothing before it makes it a part of something */
  Group groups[MOST_GROUPS];
  guint count;
} Number;

static gboolean is_digit(guint8 c) {
  return c >= '0' && c <= '9';
}

static guint8 byte_at(const Number *number, gsize at) {
  return at < number->length ? number->data[at] : 0;
}

static gsize size_of(const Group *group) {
  return group->end - group->start;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static void read_group(Number *number, gsize at, gchar before, gboolean opens) {
  gsize end = at;
  while (end < number->length && end - at <= MOST_GROUP && is_digit(number->data[end])) {
    end++;
  }
  number->groups[number->count++] = (Group){
      .start = at,
      .end = end,
      .before = before,
      .opens = opens,
      .closes = byte_at(number, end) == ')',
  };
}

/* The groups that follow the first one, each parted from the one before by one sign, by brackets, or by both. */
static void read_groups(Number *number) {
  while (number->count < MOST_GROUPS) {
    const Group *last = &number->groups[number->count - 1];
    gsize at = last->end + (last->closes ? 1 : 0);
    guint8 sign = byte_at(number, at);
    gchar before = sign == ' ' || sign == '-' || sign == '.' ? (gchar)sign : 0;
    at += before ? 1 : 0;
    gboolean opens = byte_at(number, at) == '(';
    at += opens ? 1 : 0;
    if (!is_digit(byte_at(number, at)) || (!before && !opens && !last->closes)) {
      return;
    }
    read_group(number, at, before, opens);
  }
}

/* Whether a text that ends before at may be followed by a number of its own. */
static gboolean may_begin(const guint8 *data, gsize at) {
  if (at == 0) {
    return TRUE;
  }
  guint8 c = data[at - 1];
  guint8 before = at > 1 ? data[at - 2] : 0;
  if (g_ascii_isalnum(c)) {
    return before == '\\' && strchr("nrt", c); /* the end of a line, as JSON writes it */
  }
  switch (c) {
  case '_':
  case '/':
  case '\\':
  case '@':
  case '#':
  case '+':
    return FALSE;
  case '-':
  case '.':
    return !g_ascii_isalnum(before);
  case ':':
    return !is_digit(before);
  default:
    return TRUE;
  }
}

/* The bracket is not the number's own: it stands around it, or around more. */
static void forget_bracket(Number *number, gsize at) {
  number->start = at;
  number->plus = FALSE;
  number->begins = TRUE;
  number->groups[0].opens = FALSE;
  number->groups[0].closes = FALSE;
}

static void read_number(Number *number, gsize from, gsize at) {
  number->start = at;
  gboolean opens = at > from && number->data[at - 1] == '(';
  number->start -= opens ? 1 : 0;
  number->plus = number->start > from && number->data[number->start - 1] == '+';
  number->start -= number->plus ? 1 : 0;
  number->begins = may_begin(number->data, number->start);
  read_group(number, at, 0, opens);
  if (opens && !number->groups[0].closes) {
    forget_bracket(number, at);
  }
  if (number->begins) {
    read_groups(number);
  }
  if (number->count == 1 && number->groups[0].opens) {
    forget_bracket(number, at);
  }
}

/* Whether the number may end with its first count groups. */
static gboolean may_end(const Number *number, guint count) {
  const Group *last = &number->groups[count - 1];
  gsize at = last->end + (last->closes && last->opens ? 1 : 0);
  guint8 c = byte_at(number, at);
  guint8 next = byte_at(number, at + 1);
  if (g_ascii_isalnum(c)) {
    return FALSE;
  }
  switch (c) {
  case '_':
  case '@':
    return FALSE;
  case '/': /* a path goes on with a name; behind several groups it parts two things */
    return count > 1 && !is_digit(next);
  case '-':
  case '.':
  case ':':
    return !g_ascii_isalnum(next);
  default:
    return TRUE;
  }
}

static gsize digits_of(const Number *number, guint count) {
  gsize digits = 0;
  for (guint i = 0; i < count; i++) {
    digits += size_of(&number->groups[i]);
  }
  return digits;
}

static gboolean has_brackets(const Number *number, guint count) {
  for (guint i = 0; i < count; i++) {
    if (number->groups[i].opens || (number->groups[i].closes && i + 1 < count)) {
      return TRUE;
    }
  }
  return FALSE;
}

/* Whether all separators within the first count groups are the same; *ret_sign is it. */
static gboolean one_sign(const Number *number, guint first, guint count, gchar *ret_sign) {
  *ret_sign = number->groups[first + 1].before;
  for (guint i = first + 1; i < first + count; i++) {
    if (number->groups[i].before != *ret_sign) {
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean has_sizes(const Number *number, guint first, const gsize *sizes, guint count) {
  if (number->count < first + count) {
    return FALSE;
  }
  for (guint i = 0; i < count; i++) {
    if (size_of(&number->groups[first + i]) != sizes[i]) {
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean take(const Number *number, guint count, const char *marker,
                     PersonalSpan *ret_span) {
  const Group *last = &number->groups[count - 1];
  gsize end = last->end + (last->closes && last->opens ? 1 : 0);
  *ret_span = (PersonalSpan){.start = number->start, .end = end, .marker = marker};
  return TRUE;
}

/* ---- Credit cards ------------------------------------------------------------------------------------------------ */

static gboolean passes_luhn(const Number *number, guint count) {
  guint sum = 0;
  guint seen = 0;
  gboolean varies = FALSE;
  for (guint i = count; i-- > 0;) {
    for (gsize at = number->groups[i].end; at-- > number->groups[i].start;) {
      guint digit = number->data[at] - '0';
      varies = varies || number->data[at] != number->data[number->groups[0].start];
      digit = seen++ % 2 ? digit * 2 : digit;
      sum += digit > 9 ? digit - 9 : digit;
    }
  }
  return varies && sum % 10 == 0;
}

/* Milliseconds, microseconds or nanoseconds since 1970, from 2014 to 2040: then the numbers of cards begin. */
static gboolean is_time(const Number *number, gsize digits) {
  guint four = 0;
  for (gsize i = 0; i < 4; i++) {
    four = four * 10 + number->data[number->groups[0].start + i] - '0';
  }
  return (digits == 13 || digits == 16 || digits == 19) && four >= 1400 && four < 2221;
}

static gboolean is_card(const Number *number, guint count) {
  gsize digits = digits_of(number, count);
  if (digits < 13 || digits > 19 || number->plus || has_brackets(number, count)) {
    return FALSE;
  }
  if (count == 1) {
    return !is_time(number, digits) && passes_luhn(number, count);
  }
  gchar sign = 0;
  if (!one_sign(number, 0, count, &sign) || size_of(&number->groups[0]) != 4) {
    return FALSE;
  }
  for (guint i = 1; i < count; i++) {
    gsize size = size_of(&number->groups[i]);
    if (size > 6 || (size < 4 && i + 1 < count)) {
      return FALSE;
    }
  }
  return passes_luhn(number, count);
}

/* ---- The others -------------------------------------------------------------------------------------------------- */

static guint value_of(const Number *number, const Group *group) {
  guint value = 0;
  for (gsize at = group->start; at < group->end; at++) {
    value = value * 10 + number->data[at] - '0';
  }
  return value;
}

static gboolean is_ssn(const Number *number) {
  static const gsize SIZES[] = {3, 2, 4};
  gchar sign = 0;
  if (!has_sizes(number, 0, SIZES, 3) || has_brackets(number, 3) || number->plus ||
      !one_sign(number, 0, 3, &sign) || sign != '-') {
    return FALSE;
  }
  guint area = value_of(number, &number->groups[0]);
  return area != 0 && area != 666 && area < 900 && value_of(number, &number->groups[1]) != 0 &&
         value_of(number, &number->groups[2]) != 0;
}

/* 3-3-4, from the group first on. Spaces also part columns: then area and exchange must be such. */
static gboolean is_national(const Number *number, guint first) {
  static const gsize SIZES[] = {3, 3, 4};
  gchar sign = 0;
  if (!has_sizes(number, first, SIZES, 3)) {
    return FALSE;
  }
  const Group *area = &number->groups[first];
  if (area->opens && area->closes) {
    return number->groups[first + 1].before != '.' && !number->groups[first + 1].opens;
  }
  if (!one_sign(number, first, 3, &sign) || sign == 0 || has_brackets(number, first + 3)) {
    return FALSE;
  }
  return sign != ' ' ||
         (number->data[area->start] >= '2' && number->data[number->groups[first + 1].start] >= '2');
}

/* (030) 1234 5678 */
static gboolean has_area(const Number *number, guint count) {
  const Group *area = &number->groups[0];
  gsize digits = digits_of(number, count);
  return count >= 2 && count <= 4 && area->opens && area->closes && size_of(area) >= 2 &&
         size_of(area) <= 5 && digits >= 10 && digits <= 12;
}

static gboolean is_international(const Number *number, guint count) {
  gsize digits = digits_of(number, count);
  const Group *country = &number->groups[0];
  return number->plus && digits >= 10 && digits <= 15 && number->data[country->start] != '0' &&
         (count == 1 || size_of(country) <= 3);
}

/* How many groups are a phone number; 0: none. */
static guint phone_groups(const Number *number) {
  for (guint count = number->count; count > 0; count--) {
    if (may_end(number, count) && (is_international(number, count) || has_area(number, count))) {
      return count;
    }
  }
  if (number->plus) {
    return 0;
  }
  if (is_national(number, 0) && may_end(number, 3)) {
    return 3;
  }
  gboolean trunk = size_of(&number->groups[0]) == 1 && number->data[number->groups[0].start] == '1';
  return trunk && is_national(number, 1) && may_end(number, 4) ? 4 : 0;
}

gboolean personal_find_number(guint categories, const guint8 *data, gsize length, gsize from,
                              gsize at, PersonalSpan *ret_span) {
  Number number; /* groups are set as they are read */
  number.data = data;
  number.length = length;
  number.count = 0;
  read_number(&number, from, at);
  if (!number.begins || (number.count == 1 && size_of(&number.groups[0]) < 10)) {
    return FALSE;
  }
  if ((categories & PERSONAL_SSN) && is_ssn(&number) && may_end(&number, 3)) {
    return take(&number, 3, "[REDACTED_SSN]", ret_span);
  }
  for (guint count = number.count; (categories & PERSONAL_CREDIT_CARD) && count > 0; count--) {
    if (is_card(&number, count) && may_end(&number, count)) {
      return take(&number, count, "[REDACTED_CREDIT_CARD]", ret_span);
    }
  }
  guint groups = categories & PERSONAL_PHONE ? phone_groups(&number) : 0;
  return groups > 0 && take(&number, groups, "[REDACTED_PHONE]", ret_span);
}
