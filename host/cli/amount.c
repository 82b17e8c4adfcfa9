/* SPDX-License-Identifier: Apache-2.0 */
/* amount.c: a number and its unit. */
#include "cli/amount.h"

#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"

typedef struct {
  char letter;
  gint64 factor;
} Unit;

/* FALSE when it is not digits and one of the units, or too much. plain: a number without a unit is one too. */
static gboolean read_amount(const char *text, const Unit *units, gboolean plain,
                            gint64 *ret_amount) {
  gint64 number = 0;
  gint64 amount = 0;
  gint64 factor = plain ? 1 : 0;
  gsize length = strlen(text);
  g_autofree char *digits = g_strdup(text);
  for (; length > 0 && units->letter; units++) {
    if (text[length - 1] == units->letter) {
      factor = units->factor;
      digits[length - 1] = '\0';
      break;
    }
  }
  if (factor == 0 || !g_ascii_isdigit(*digits) ||
      !g_ascii_string_to_signed(digits, 10, 1, G_MAXINT64, &number, NULL) ||
      __builtin_mul_overflow(number, factor, &amount)) {
    return FALSE;
  }
  *ret_amount = amount;
  return TRUE;
}

static gboolean read_span(const char *text, gint64 *ret_span) {
  static const Unit UNITS[] = {{'s', CLOCK_SECOND},          {'m', 60 * CLOCK_SECOND},
                               {'h', 3600 * CLOCK_SECOND},   {'d', 86400 * CLOCK_SECOND},
                               {'w', 604800 * CLOCK_SECOND}, {0}};
  return read_amount(text, UNITS, FALSE, ret_span);
}

gboolean amount_span(const char *option, const char *text, gint64 *ret_span) {
  if (!read_span(text, ret_span)) {
    cli_complain("%s must be a number with s, m, h, d or w behind it, such as 30d, got '%s'",
                 option, text);
    return FALSE;
  }
  return TRUE;
}

gboolean amount_since(const char *option, const char *text, gint64 *ret_wall) {
  gint64 span = 0;
  if (read_span(text, &span)) {
    *ret_wall = MAX(clock_wall() - span, 1);
    return TRUE;
  }
  g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
  g_autofree char *midnight = g_strconcat(text, "T00:00:00", NULL);
  g_autoptr(GDateTime) time =
      g_date_time_new_from_iso8601(strlen(text) == 10 ? midnight : text, utc);
  if (!time) {
    cli_complain("%s must be a span such as 12h or 7d, or a time such as 2026-01-31 or "
                 "2026-01-31T12:00:00Z, "
                 "got '%s'",
                 option, text);
    return FALSE;
  }
  *ret_wall = MAX(g_date_time_to_unix(time) * CLOCK_SECOND, 1);
  return TRUE;
}

gboolean amount_size(const char *option, const char *text, gint64 *ret_bytes) {
  static const Unit UNITS[] = {{'K', 1024}, {'M', 1 << 20}, {'G', 1 << 30}, {0}};
  if (!read_amount(text, UNITS, TRUE, ret_bytes)) {
    cli_complain("%s must be a number of bytes, or one with K, M or G behind it, got '%s'", option,
                 text);
    return FALSE;
  }
  return TRUE;
}
