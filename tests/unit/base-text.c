/* SPDX-License-Identifier: Apache-2.0 */
/* base-text.c: globs, printed values, ids, digests, times and error codes. */
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/ids.h"
#include "base/repr.h"

static void test_glob_matches(void) {
  static const struct {
    const char *pattern;
    const char *text;
  } CASES[] = {
      {"", ""},
      {"*", ""},
      {"*", "a/b\nc"},
      {"**", "a/b"},
      {"a*c", "a/b/c"},
      {"a?c", "a/c"},
      {"sandbox.*", "sandbox.execute"},
      {"*.csv", ".csv"},
      {"*", ".hidden"},
      {"[abc]", "b"},
      {"[a-z]x", "qx"},
      {"[!abc]", "d"},
      {"[]a]", "]"},
      {"[!]a]", "b"},
      {"[^a]", "^"},
      {"[^a]", "a"},
      {"[a-]", "-"},
      {"[-a]", "-"},
      {"[*]", "*"},
      {"[?]", "?"},
      {"[[]", "["},
      {"[", "["},
      {"a[", "a["},
      {"[a", "[a"},
      {"[]", "[]"},
      {"[!]", "[!]"},
      {"\\a", "\\a"},
      {"\\*", "\\xyz"},
      {"?", "\xc3\xa9"},
      {"[\xc3\xa0-\xc3\xbf]", "\xc3\xa9"},
      {"*\xc3\xa9", "caf\xc3\xa9"},
      {"?", "\xff"},
      {"[!a]", "\xff"},
      {"*a*b*c*", "xxaxxbxxcxx"},
      {"a*a*b", "aaab"},
      {"*??", "\xc3\xa9x"},
      {"???", "\xff\xfe\xfd"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    if (!glob_match(CASES[i].pattern, CASES[i].text)) {
      g_error("%s must match %s", CASES[i].pattern, CASES[i].text);
    }
  }
}

static void test_glob_differs(void) {
  static const struct {
    const char *pattern;
    const char *text;
  } CASES[] = {
      {"", "a"},
      {"a", ""},
      {"?", ""},
      {"[a]", ""},
      {"a", "A"},
      {"A", "a"},
      {"a*c", "abcd"},
      {"[!abc]", "a"},
      {"[a-c]", "d"},
      {"[c-a]", "b"},
      {"[*]", "a"},
      {"a?c", "ac"},
      {"\\*", "*"},
      {"??", "a"},
      {"*b", "bc"},
      {"??", "\xc3\xa9"},
      {"*??", "\xe2\x82\xac"},
      {"[!\xc3\xa9]", "\xc3\xa9"},
      {"[]", "]"},
      {"[^a]", "b"},
      {"*a*b*c", "xxaxxcxxbxx"},
      {"[\xff]", "\xfe"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    if (glob_match(CASES[i].pattern, CASES[i].text)) {
      g_error("%s must not match %s", CASES[i].pattern, CASES[i].text);
    }
  }
}

/* Patterns that cost a matcher that tries all ways 2^n steps, or n^3: these end at once. */
static void test_glob_hostile(void) {
  GString *stars = g_string_new(NULL);
  for (int i = 0; i < 200; i++) {
    g_string_append(stars, "*a");
  }
  g_string_append(stars, "b");
  g_autofree char *text = g_strnfill(4000, 'a');
  g_assert_false(glob_match(stars->str, text));
  g_string_free(stars, TRUE);
  g_autofree char *open = g_strnfill(4000, '[');
  g_autofree char *brackets = g_strconcat("*", open, "x", NULL);
  g_assert_false(glob_match(brackets, open));
}

static void test_glob_any(void) {
  static const char *const PATTERNS[] = {"a*", "b*", NULL};
  static const char *const NONE[] = {NULL};
  g_assert_true(glob_match_any(PATTERNS, "bc"));
  g_assert_false(glob_match_any(PATTERNS, "cb"));
  g_assert_false(glob_match_any(NONE, "a"));
  g_assert_false(glob_match_any(NULL, "a"));
}

static void test_repr_text(void) {
  static const struct {
    const char *text;
    const char *wanted;
  } CASES[] = {
      {"", "''"},
      {"a b", "'a b'"},
      {"it's", "\"it's\""},
      {"a\"b", "'a\"b'"},
      {"it's \"x\"", "'it\\'s \"x\"'"},
      {"a\\b", "'a\\\\b'"},
      {"\n\t\r", "'\\n\\t\\r'"},
      {"\x01\x1b\x7f", "'\\x01\\x1b\\x7f'"},
      {"caf\xc3\xa9", "'caf\xc3\xa9'"},
      {"\xc2\xa0", "'\\xa0'"},       /* no-break space */
      {"\xc2\xad", "'\\xad'"},       /* soft hyphen */
      {"\xe2\x80\xae", "'\\u202e'"}, /* turns the direction */
      {"\xe2\x80\xa8", "'\\u2028'"}, /* ends a line */
      {"\xee\x80\x80", "'\\ue000'"}, /* private */
      {"\xf0\x9f\x98\x80", "'\xf0\x9f\x98\x80'"},
      {"\xf3\xa0\x81\x81", "'\\U000e0041'"}, /* a tag, not to be seen */
      {"\xff", "'\\xff'"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autofree char *shown = repr_text(CASES[i].text);
    g_assert_cmpstr(shown, ==, CASES[i].wanted);
  }
}

/* As many bytes as before; what cannot be read stays, which no terminal takes for a control. */
static void test_repr_line(void) {
  static const struct {
    const char *text;
    const char *wanted;
  } CASES[] = {
      {"", ""},
      {"two words, \303\244\342\202\254", "two words, \303\244\342\202\254"},
      {"a\nb\tc\033[2Jd\177", "a b c [2Jd "},
      {"a\302\2332Jb\302\205c", "a  2Jb  c"},
      {"rm \342\200\256fr\342\200\254", "rm    fr   "},
      {"a\342\200\213b\357\273\277\342\200\250", "a   b      "},
      {"\233x\342\200", "\233x\342\200"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autofree char *text = g_strdup(CASES[i].text);
    repr_line(text);
    g_assert_cmpstr(text, ==, CASES[i].wanted);
  }
  repr_line(NULL);
}

static void test_repr_json(void) {
  static const char TEXT[] = "{\"a\":[1,2.5,true,false,null,\"x\"],\"it's\":{},\"c\":[]}";
  g_autoptr(JsonObject) value = json_parse("x", TEXT, strlen(TEXT), NULL);
  g_autofree char *shown = repr_json(value);
  g_assert_cmpstr(shown, ==, "{'a': [1, 2.5, True, False, None, 'x'], \"it's\": {}, 'c': []}");
  g_autofree char *none = repr_json(NULL);
  g_assert_cmpstr(none, ==, "None");
}

static void test_ids(void) {
  g_autofree char *one = id_new("run");
  g_autofree char *two = id_new("run");
  g_assert_true(id_is(one, "run"));
  g_assert_cmpstr(one, !=, two);
  g_assert_cmpuint(strlen(one), ==, 36);
  g_assert_false(id_is(one, "ru"));
  g_assert_false(id_is("run_0123456789abcdef0123456789abcde", "run"));
  g_assert_false(id_is("run_0123456789abcdef0123456789abcdef0", "run"));
  g_assert_false(id_is("run_0123456789ABCDEF0123456789ABCDEF", "run"));
  g_assert_false(id_is("run-0123456789abcdef0123456789abcdef", "run"));
  g_assert_true(id_is("run_0123456789abcdef0123456789abcdef", "run"));
  g_assert_false(id_is("", "run"));
}

static void test_digest(void) {
  g_autofree char *empty = digest_hex("", 0);
  g_assert_cmpstr(empty, ==, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  g_autofree char *abc = digest_hex("abc", 3);
  g_assert_cmpstr(abc, ==, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  guint8 digest[DIGEST_BYTES];
  digest_of("abc", 3, digest);
  g_autofree char *hex = digest_to_hex(digest);
  g_assert_cmpstr(hex, ==, abc);
}

static void test_clock_format(void) {
  static const struct {
    gint64 wall;
    const char *wanted;
  } CASES[] = {
      {0, "1970-01-01T00:00:00.000000Z"},
      {1769860800 * CLOCK_SECOND + 123456789, "2026-01-31T12:00:00.123456Z"},
      {-1, "1969-12-31T23:59:59.999999Z"},
      {-CLOCK_SECOND, "1969-12-31T23:59:59.000000Z"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autofree char *text = clock_format(CASES[i].wall);
    g_assert_cmpstr(text, ==, CASES[i].wanted);
  }
  g_assert_cmpint(clock_wall(), >, 1700000000 * CLOCK_SECOND);
}

static void test_clock_count(void) {
  g_assert_cmpint(clock_count(1, 5), ==, CLOCK_SECOND + 5);
  g_assert_cmpint(clock_count(10800000000, 0), ==, G_MAXINT64); /* the year 2312 */
  g_assert_cmpint(clock_count(9223372036, 999999999), ==, G_MAXINT64);
  g_assert_cmpint(clock_count(-10800000000, 0), ==, G_MININT64);
}

static void test_clock_deadline(void) {
  gint64 before = clock_now();
  gint64 deadline = clock_deadline(CLOCK_SECOND);
  g_assert_cmpint(deadline, >=, before + CLOCK_SECOND);
  g_assert_cmpint(deadline, <=, clock_now() + CLOCK_SECOND);
  g_assert_cmpint(clock_deadline(G_MAXINT64), ==, G_MAXINT64);
  g_assert_cmpint(clock_deadline(-1), ==, G_MAXINT64);
}

static void test_error_codes(void) {
  static const struct {
    SandhostError code;
    const char *wanted;
  } CASES[] = {
      {SANDHOST_ERROR_POLICY_DENIED, "policy_denied"},
      {SANDHOST_ERROR_UNKNOWN_CAPABILITY, "unknown_capability"},
      {SANDHOST_ERROR_APPROVAL_REQUIRED, "approval_required"},
      {SANDHOST_ERROR_SANDBOX_REQUIRED, "sandbox_required"},
      {SANDHOST_ERROR_POLICY_EVALUATION, "policy_evaluation_error"},
      {SANDHOST_ERROR_CONFIG, NULL},
      {SANDHOST_ERROR_WORKSPACE, NULL},
      {SANDHOST_ERROR_FAILED, NULL},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(GError) error = g_error_new_literal(SANDHOST_ERROR, (gint)CASES[i].code, "x");
    g_assert_cmpstr(sandhost_error_governance_code(error), ==, CASES[i].wanted);
  }
  g_autoptr(GError) other =
      g_error_new_literal(g_quark_from_static_string("other"), SANDHOST_ERROR_POLICY_DENIED, "x");
  g_assert_null(sandhost_error_governance_code(other));
  g_assert_null(sandhost_error_governance_code(NULL));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/glob/matches", test_glob_matches);
  g_test_add_func("/glob/differs", test_glob_differs);
  g_test_add_func("/glob/hostile", test_glob_hostile);
  g_test_add_func("/glob/any", test_glob_any);
  g_test_add_func("/repr/text", test_repr_text);
  g_test_add_func("/repr/line", test_repr_line);
  g_test_add_func("/repr/json", test_repr_json);
  g_test_add_func("/ids", test_ids);
  g_test_add_func("/digest", test_digest);
  g_test_add_func("/clock/format", test_clock_format);
  g_test_add_func("/clock/deadline", test_clock_deadline);
  g_test_add_func("/clock/count", test_clock_count);
  g_test_add_func("/error/codes", test_error_codes);
  return g_test_run();
}
