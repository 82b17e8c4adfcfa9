/* SPDX-License-Identifier: Apache-2.0 */
/* millionths.c: exact amounts from text and back. */
#include "base/millionths.h"

#include <math.h>
#include <string.h>

#define MOST ((double)MILLIONTHS_MOST / (double)MILLIONTHS) /* units */
#define DIGITS 6
#define WHOLE 13 /* digits of the most */
#define LARGE 1e12

gboolean millionths_read(JsonObject *number, gint64 *ret_amount) {
  if (!json_object_is_type(number, json_type_int) &&
      !json_object_is_type(number, json_type_double)) {
    return FALSE;
  }
  double value = json_object_get_double(number);
  if (!isfinite(value) || fabs(value) > MOST) {
    return FALSE;
  }
  *ret_amount = json_object_is_type(number, json_type_int)
                    ? json_object_get_int64(number) * MILLIONTHS
                    : (gint64)(value * (double)MILLIONTHS + (value < 0 ? -0.5 : 0.5));
  return TRUE;
}

gboolean millionths_is_exact(JsonObject *number) {
  double value = json_object_get_double(number) * (double)MILLIONTHS;
  /* Larger ones have no digits left there that a double could tell apart. */
  if (json_object_is_type(number, json_type_int) || fabs(value) > LARGE) {
    return TRUE;
  }
  return fabs(value - (double)(gint64)(value + (value < 0 ? -0.5 : 0.5))) < 0.001;
}

gboolean millionths_parse(const char *text, gint64 *ret_amount) {
  const char *point = strchr(text, '.');
  gsize whole = point ? (gsize)(point - text) : strlen(text);
  gsize behind = point ? strlen(point + 1) : 0;
  if (whole == 0 || whole > WHOLE || behind > DIGITS || (point && behind == 0)) {
    return FALSE;
  }
  g_autofree char *digits = g_strdup_printf("%.*s%s%.*s", (int)whole, text, point ? point + 1 : "",
                                            (int)(DIGITS - behind), "000000");
  return digits[strspn(digits, "0123456789")] == '\0' &&
         g_ascii_string_to_signed(digits, 10, 0, MILLIONTHS_MOST, ret_amount, NULL);
}

char *millionths_text(gint64 amount) {
  guint64 size = amount < 0 ? -(guint64)amount : (guint64)amount;
  char *text = g_strdup_printf("%s%" G_GUINT64_FORMAT ".%06" G_GUINT64_FORMAT,
                               amount < 0 ? "-" : "", size / MILLIONTHS, size % MILLIONTHS);
  gsize length = strlen(text);
  while (text[length - 1] == '0') {
    length--;
  }
  text[text[length - 1] == '.' ? length - 1 : length] = '\0';
  return text;
}

JsonObject *millionths_json(gint64 amount) {
  if (amount % MILLIONTHS == 0) {
    return json_object_new_int64(amount / MILLIONTHS);
  }
  g_autofree char *text = millionths_text(amount);
  return json_object_new_double_s((double)amount / (double)MILLIONTHS, text);
}

gint64 millionths_add(gint64 a, gint64 b) {
  gint64 sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    return b > 0 ? G_MAXINT64 : G_MININT64;
  }
  return sum;
}
