/* SPDX-License-Identifier: Apache-2.0 */
/* governance-pattern.c: a prepared glob says what the glob says. */
#include <glib.h>
#include <string.h>

#include "base/glob.h"
#include "governance/pattern.h"

static gboolean matches(const char *glob, const char *text) {
  Pattern pattern;
  pattern_set(&pattern, g_strdup(glob));
  gboolean matched = pattern_matches(&pattern, text);
  pattern_clear(&pattern);
  return matched;
}

/* The text of number in the digits of an alphabet, shortest first. */
static void spell(guint number, const char *const *alphabet, guint letters, GString *out) {
  g_string_truncate(out, 0);
  for (; number > 0; number = (number - 1) / letters) {
    g_string_append(out, alphabet[(number - 1) % letters]);
  }
}

static void test_agrees_with_the_glob(void) {
  static const char *const PATTERN[] = {"a", "*", "?", "[", "]", "!"};
  static const char *const TEXT[] = {"a", "[", "*", "\xc3\xa9"};
  g_autoptr(GString) glob = g_string_new(NULL);
  g_autoptr(GString) text = g_string_new(NULL);
  guint matched = 0;
  for (guint i = 0; i < 6 + 36 + 216 + 1296 + 1; i++) { /* every pattern of up to four */
    Pattern pattern;
    spell(i, PATTERN, G_N_ELEMENTS(PATTERN), glob);
    pattern_set(&pattern, g_strdup(glob->str));
    for (guint at = 0; at < 4 + 16 + 64 + 256 + 1; at++) {
      spell(at, TEXT, G_N_ELEMENTS(TEXT), text);
      gboolean wanted = glob_match(glob->str, text->str);
      if (pattern_matches(&pattern, text->str) != wanted) {
        g_test_message("%s on %s", glob->str, text->str);
        g_test_fail();
      }
      matched += wanted ? 1 : 0;
    }
    pattern_clear(&pattern);
  }
  g_assert_cmpuint(matched, >, 1000);
}

static void test_none_matches_anything(void) {
  Pattern pattern = {.glob = NULL};
  g_assert_true(pattern_matches(&pattern, "x"));
  g_assert_true(pattern_matches(&pattern, NULL));
  pattern_set(&pattern, NULL);
  g_assert_true(pattern_matches(&pattern, ""));
  pattern_clear(&pattern);
}

static void test_null_is_the_empty_string(void) {
  g_assert_true(matches("*", NULL));
  g_assert_false(matches("a*", NULL));
  g_assert_false(matches("*a", NULL));
  g_assert_false(matches("?", NULL));
  g_assert_false(matches("a", NULL));
}

/* The two ends may not share what is between them. */
static void test_ends_do_not_overlap(void) {
  g_assert_false(matches("aba*aba", "aba"));
  g_assert_false(matches("aba*aba", "ababa"));
  g_assert_true(matches("aba*aba", "abaaba"));
  g_assert_false(matches("aba*?*aba", "abaaba"));
  g_assert_true(matches("aba*?*aba", "abaxaba"));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/governance/pattern/glob", test_agrees_with_the_glob);
  g_test_add_func("/governance/pattern/none", test_none_matches_anything);
  g_test_add_func("/governance/pattern/null", test_null_is_the_empty_string);
  g_test_add_func("/governance/pattern/ends", test_ends_do_not_overlap);
  return g_test_run();
}
