/* SPDX-License-Identifier: Apache-2.0 */
/* base-amounts.c: exact amounts, and where days and months begin. */
#include "base/calendar.h"
#include "base/clock.h"
#include "base/millionths.h"

static void check_number(const char *json, gboolean ok, gint64 amount, const char *text) {
  gint64 got = -7;
  g_autoptr(JsonObject) number = json_tokener_parse(json);
  g_assert_cmpint(millionths_read(number, &got), ==, ok);
  if (ok) {
    g_assert_cmpint(got, ==, amount);
    g_autofree char *shown = millionths_text(got);
    g_assert_cmpstr(shown, ==, text);
    g_autoptr(JsonObject) back = millionths_json(got);
    g_assert_cmpstr(json_object_to_json_string(back), ==, text);
  }
}

static void test_numbers(void) {
  check_number("5", TRUE, 5000000, "5");
  check_number("0.1", TRUE, 100000, "0.1");
  check_number("0.000001", TRUE, 1, "0.000001");
  check_number("0.0000001", TRUE, 0, "0");
  check_number("12.25", TRUE, 12250000, "12.25");
  check_number("-0.5", TRUE, -500000, "-0.5");
  check_number("9000000000000", TRUE, 9000000000000000000, "9000000000000");
  check_number("9000000000001", FALSE, 0, NULL);
  check_number("1e300", FALSE, 0, NULL);
  check_number("\"5\"", FALSE, 0, NULL);
  check_number("true", FALSE, 0, NULL);
  g_assert_false(millionths_read(NULL, &(gint64){0}));
}

static void check_text(const char *text, gboolean ok, gint64 amount) {
  gint64 got = 0;
  g_assert_cmpint(millionths_parse(text, &got), ==, ok);
  g_assert_cmpint(got, ==, ok ? amount : 0);
}

static void test_texts(void) {
  check_text("5", TRUE, 5000000);
  check_text("0.25", TRUE, 250000);
  check_text("0.000001", TRUE, 1);
  check_text("999999999999.999999", TRUE, 999999999999999999);
  check_text("", FALSE, 0);
  check_text(".5", FALSE, 0);
  check_text("5.", FALSE, 0);
  check_text("0.0000001", FALSE, 0);
  check_text("-1", FALSE, 0);
  check_text("+1", FALSE, 0);
  check_text(" 1", FALSE, 0);
  check_text("1e3", FALSE, 0);
  check_text("1.2.3", FALSE, 0);
  check_text("1000000000000", TRUE, 1000000000000000000);
  check_text("9000000000000", TRUE, 9000000000000000000);
  check_text("9000000000000.000001", FALSE, 0);
  check_text("9999999999999", FALSE, 0);
  check_text("10000000000000", FALSE, 0);
}

static void check_exact(const char *json, gboolean exact) {
  g_autoptr(JsonObject) number = json_tokener_parse(json);
  g_test_message("%s", json);
  g_assert_cmpint(millionths_is_exact(number), ==, exact);
}

static void test_exact(void) {
  check_exact("5", TRUE);
  check_exact("0.1", TRUE);
  check_exact("0.000001", TRUE);
  check_exact("123456.654321", TRUE);
  check_exact("8999999999999.999999", TRUE);
  check_exact("0.0000015", FALSE);
  check_exact("0.0000001", FALSE);
  check_exact("1000.0000005", FALSE);
}

static void test_sums(void) {
  g_assert_cmpint(millionths_add(1, 2), ==, 3);
  g_assert_cmpint(millionths_add(G_MAXINT64, 1), ==, G_MAXINT64);
  g_assert_cmpint(millionths_add(G_MININT64, -1), ==, G_MININT64);
}

static gint64 wall_of(const char *text) {
  g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(text, NULL);
  g_assert_nonnull(time);
  return g_date_time_to_unix(time) * CLOCK_SECOND;
}

static void check_start(gint64 start, const char *wanted) {
  g_autofree char *text = clock_format(start);
  g_assert_cmpstr(text, ==, wanted);
}

static void test_calendar(void) {
  check_start(calendar_day(wall_of("2026-03-31T23:59:59Z")), "2026-03-31T00:00:00.000000Z");
  check_start(calendar_day(wall_of("2026-04-01T00:00:00Z")), "2026-04-01T00:00:00.000000Z");
  check_start(calendar_month(wall_of("2026-03-31T23:59:59Z")), "2026-03-01T00:00:00.000000Z");
  check_start(calendar_month(wall_of("2026-04-01T00:00:00Z")), "2026-04-01T00:00:00.000000Z");
  check_start(calendar_month(wall_of("2024-02-29T12:00:00Z")), "2024-02-01T00:00:00.000000Z");
  check_start(calendar_day(wall_of("1969-12-31T12:00:00Z")), "1969-12-31T00:00:00.000000Z");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/base/amounts/numbers", test_numbers);
  g_test_add_func("/base/amounts/texts", test_texts);
  g_test_add_func("/base/amounts/exact", test_exact);
  g_test_add_func("/base/amounts/sums", test_sums);
  g_test_add_func("/base/amounts/calendar", test_calendar);
  return g_test_run();
}
