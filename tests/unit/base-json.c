/* SPDX-License-Identifier: Apache-2.0 */
/* base-json.c: what is JSON and what is not, and what is written. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"

static void check_refused(const char *text, gssize length, const char *wanted) {
  g_autoptr(GError) error = NULL;
  gsize size = length < 0 ? strlen(text) : (gsize)length;
  g_autoptr(JsonObject) value = json_parse("x", text, size, &error);
  g_assert_null(value);
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_autofree char *whole = g_strconcat("x is not valid JSON: ", wanted, NULL);
  g_assert_cmpstr(error->message, ==, whole);
}

static void check_text_of(const char *text, const char *wanted) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) value = json_parse("x", text, strlen(text), &error);
  g_assert_no_error(error);
  g_autofree char *written = json_text(value);
  g_assert_cmpstr(written, ==, wanted);
}

static void test_good(void) {
  check_text_of("0", "0");
  check_text_of("-0.5e+3", "-0.5e+3");
  check_text_of(" \t\r\n[ ] ", "[]");
  check_text_of("{}", "{}");
  check_text_of("\"a/b\"", "\"a/b\"");
  check_text_of("{\"b\":1,\"a\":[true,false,null,{\"a\":1}]}",
                "{\"b\":1,\"a\":[true,false,null,{\"a\":1}]}");
  check_text_of("\"\\u00e9\\ud83d\\ude00\"", "\"\xc3\xa9\xf0\x9f\x98\x80\"");
  check_text_of("9223372036854775807", "9223372036854775807");
  check_text_of("-9223372036854775808", "-9223372036854775808");
}

static void test_null(void) {
  GError *error = NULL;
  g_assert_null(json_parse("x", "null", 4, &error));
  g_assert_no_error(error);
}

/* The text need not end with a NUL: a number that ends with it is read to its end and no
 * further. */
static void test_length(void) {
  g_autoptr(JsonObject) value = json_parse("x", "1234", 3, NULL);
  g_assert_cmpint(json_object_get_int(value), ==, 123);
}

static void test_bad(void) {
  static const struct {
    const char *text;
    const char *wanted;
  } BAD[] = {
      {"", "the text ends too early (line 1)"},
      {"\n\n", "the text ends too early (line 3)"},
      {"{", "a string was expected (line 1)"},
      {"[1,]", "a value was expected (line 1)"},
      {"[1 2]", "a , or ] was expected (line 1)"},
      {"{\"a\":1,}", "a string was expected (line 1)"},
      {"{\n\"a\" 1}", "a : was expected (line 2)"},
      {"{\"a\":1 \"b\":2}", "a , or } was expected (line 1)"},
      {"{a:1}", "a string was expected (line 1)"},
      {"{'a':1}", "a string was expected (line 1)"},
      {"'a'", "a value was expected (line 1)"},
      {"NaN", "a value was expected (line 1)"},
      {"-Infinity", "a value was expected (line 1)"},
      {"True", "a value was expected (line 1)"},
      {"nul", "a value was expected (line 1)"},
      {"truetrue", "something follows the value (line 1)"},
      {"{}\n{}", "something follows the value (line 2)"},
      {"1 // one", "something follows the value (line 1)"},
      {"/* one */ 1", "a value was expected (line 1)"},
      {"01", "something follows the value (line 1)"},
      {"+1", "a value was expected (line 1)"},
      {".5", "a value was expected (line 1)"},
      {"1.", "a number without digits behind its point (line 1)"},
      {"1e", "a number without an exponent (line 1)"},
      {"0x10", "something follows the value (line 1)"},
      {"9223372036854775808", "an integer of more than 64 bits (line 1)"},
      {"-9223372036854775809", "an integer of more than 64 bits (line 1)"},
      {"1e999", "a number that is too large (line 1)"},
      {"\"a", "a string without an end (line 1)"},
      {"\"a\n\"", "a control character in a string (line 1)"},
      {"\"\\x41\"", "an unknown escape in a string (line 1)"},
      {"\"\\u12g4\"", "a \\u without four hex digits (line 1)"},
      {"\"\\u0000\"", "a NUL character in a string (line 1)"},
      {"\"\\ud800\"", "half a surrogate pair (line 1)"},
      {"\"\\udc00\"", "half a surrogate pair (line 1)"},
      {"\"\\ud800\\u0041\"", "half a surrogate pair (line 1)"},
      {"[\n\"\xff\"]", "it is not UTF-8 (line 2)"},
      {"\"\xed\xa0\x80\"", "it is not UTF-8 (line 1)"},
      {"\xef\xbb\xbf{}", "a value was expected (line 1)"},
      {"{\"a\":1,\n\"a\":2}", "the repeated key 'a' (line 2)"},
      {"{\"a\":1,\"\\u0061\":2}", "the repeated key 'a' (line 1)"},
      {"{\"\":1,\"\":2}", "the repeated key '' (line 1)"},
      {"[{\"b\":{\"it's\":1,\"it's\":1}}]", "the repeated key \"it's\" (line 1)"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(BAD); i++) {
    check_refused(BAD[i].text, -1, BAD[i].wanted);
  }
  check_refused("[1\0]", 4, "a NUL character (line 1)");
  check_refused(NULL, 0, "the text ends too early (line 1)");
}

static char *nested(gsize depth) {
  g_autofree char *open = g_strnfill(depth, '[');
  g_autofree char *close = g_strnfill(depth, ']');
  return g_strconcat(open, close, NULL);
}

static void test_depth(void) {
  g_autofree char *deepest = nested(JSON_MAX_DEPTH);
  g_autofree char *deeper = nested(JSON_MAX_DEPTH + 1);
  g_autofree char *hostile = nested(1000000);
  check_text_of(deepest, deepest);
  check_refused(deeper, -1, "it is nested too deep (line 1)");
  check_refused(hostile, -1, "it is nested too deep (line 1)");
}

static void test_size(void) {
  g_autofree char *text = g_strnfill(JSON_MAX_BYTES + 1, ' ');
  text[0] = '1';
  check_refused(text, -1, "it is longer than 16 MiB");
  g_autoptr(JsonObject) value = json_parse("x", text, JSON_MAX_BYTES, NULL);
  g_assert_cmpint(json_object_get_int(value), ==, 1);
}

static char *write_file(const char *folder, const char *name, const char *text) {
  char *path = g_build_filename(folder, name, NULL);
  g_assert_true(g_file_set_contents(path, text, -1, NULL));
  return path;
}

static void check_unreadable(const char *path, const char *reason) {
  g_autoptr(GError) error = NULL;
  g_assert_null(json_parse_file(path, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_autofree char *wanted = g_strdup_printf("could not read %s: %s", path, reason);
  g_assert_cmpstr(error->message, ==, wanted);
}

static void test_file(void) {
  g_autofree char *folder = g_dir_make_tmp("base-json-XXXXXX", NULL);
  g_autofree char *good = write_file(folder, "good.json", "{\"a\": 1}\n");
  g_autofree char *bad = write_file(folder, "bad.json", "{\n");
  g_autofree char *pipe = g_build_filename(folder, "pipe", NULL);
  g_autofree char *missing = g_build_filename(folder, "missing", NULL);
  g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);

  g_autoptr(JsonObject) value = json_parse_file(good, NULL);
  g_assert_cmpint(json_get_int(value, "a", 0), ==, 1);
  g_autoptr(GError) error = NULL;
  g_assert_null(json_parse_file(bad, &error));
  g_autofree char *wanted =
      g_strdup_printf("%s is not valid JSON: a string was expected (line 2)", bad);
  g_assert_cmpstr(error->message, ==, wanted);
  check_unreadable(missing, "No such file or directory");
  check_unreadable(folder, "it is not a regular file");
  check_unreadable(pipe, "it is not a regular file");

  g_unlink(good);
  g_unlink(bad);
  g_unlink(pipe);
  g_rmdir(folder);
}

static void test_canonical(void) {
  static const char TEXT[] = "{\"b\": [1, 2.50, null, true], \"a\": {\"z\": \"\xc3\xa9\", \"y\": "
                             "\"\xf0\x9f\x98\x80\\n\\\"\\\\/\x7f\"}}";
  g_autoptr(JsonObject) value = json_parse("x", TEXT, strlen(TEXT), NULL);
  g_autofree char *text = json_canonical(value);
  g_assert_cmpstr(text, ==,
                  "{\"a\":{\"y\":\"\\ud83d\\ude00\\u000a\\\"\\\\/\\u007f\",\"z\":\"\\u00e9\"},"
                  "\"b\":[1,2.50,null,true]}");
  g_autofree char *nothing = json_canonical(NULL);
  g_assert_cmpstr(nothing, ==, "null");
}

static void test_adding(void) {
  g_autoptr(JsonObject) object = json_object_new_object();
  json_add_text(object, "text", "t");
  json_add_text(object, "bad", "a\xff");
  json_add_text(object, "none", NULL);
  json_add_int(object, "int", G_MININT64);
  json_add_double(object, "double", 0.5);
  json_add_double(object, "nan", NAN);
  json_add_bool(object, "bool", TRUE);
  json_add_take(object, "list", json_object_new_array());
  json_add_take(object, "null", NULL);
  g_autofree char *text = json_text(object);
  g_assert_cmpstr(text, ==,
                  "{\"text\":\"t\",\"bad\":\"a\xef\xbf\xbd\",\"none\":null,"
                  "\"int\":-9223372036854775808,\"double\":0.500,\"nan\":null,\"bool\":true,"
                  "\"list\":[],\"null\":null}");
}

static void test_bytes(void) {
  static const struct {
    const char *data;
    gsize length;
    const char *wanted;
  } CASES[] = {
      {NULL, 0, "\"\""},
      {"ab", 2, "\"ab\""},
      {"a\0b", 3, "\"a\\u0000b\""},
      {"\xff", 1, "\"\xef\xbf\xbd\""},
      {"a\xc3", 2, "\"a\xef\xbf\xbd\""},
      {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
      {"\xc3\xa9\n", 3, "\"\xc3\xa9\\n\""},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(JsonObject) value = json_from_bytes(CASES[i].data, CASES[i].length);
    g_autofree char *text = json_text(value);
    g_assert_cmpstr(text, ==, CASES[i].wanted);
  }
}

static void test_getting(void) {
  static const char TEXT[] = "{\"t\":\"x\",\"i\":-5,\"b\":true,\"l\":[\"a\",1,\"b\"],\"n\":null}";
  g_autoptr(JsonObject) object = json_parse("x", TEXT, strlen(TEXT), NULL);
  g_assert_cmpstr(json_get_text(object, "t"), ==, "x");
  g_assert_null(json_get_text(object, "i"));
  g_assert_null(json_get_text(object, "missing"));
  g_assert_null(json_get_text(NULL, "t"));
  g_assert_cmpint(json_get_int(object, "i", 1), ==, -5);
  g_assert_cmpint(json_get_int(object, "b", 1), ==, 1);
  g_assert_true(json_get_bool(object, "b", FALSE));
  g_assert_true(json_get_bool(object, "t", TRUE));
  g_assert_null(json_get(object, "n"));
  g_assert_null(json_get(json_get(object, "t"), "x"));
  g_auto(GStrv) list = json_get_strv(json_get(object, "l"));
  g_autofree char *joined = g_strjoinv(",", list);
  g_assert_cmpstr(joined, ==, "a,b");
  g_auto(GStrv) empty = json_get_strv(json_get(object, "t"));
  g_assert_null(empty[0]);
  g_autoptr(JsonObject) array = json_from_strv((const char *const *)list);
  g_autofree char *text = json_text(array);
  g_assert_cmpstr(text, ==, "[\"a\",\"b\"]");
}

/* A cut drops only the character that it went through. */
static void test_cut_bytes(void) {
  static const struct {
    const char *data;
    const char *wanted;
  } CASES[] = {
      {"", ""},
      {"ab", "ab"},
      {"caf\xc3\xa9", "caf\xc3\xa9"},
      {"caf\xc3", "caf"},
      {"\xe2\x82", ""},
      {"1\xf0\x9f\x98", "1"},
      {"1\xf0\x9f\x98\x80", "1\xf0\x9f\x98\x80"},
      {"1\x80", "1\xef\xbf\xbd"},
      {"\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(JsonObject) value = json_from_cut_bytes(CASES[i].data, strlen(CASES[i].data));
    g_assert_cmpstr(json_object_get_string(value), ==, CASES[i].wanted);
  }
}

static gboolean gather(void *user, const void *data, size_t length) {
  g_assert_cmpuint(length, >, 0);
  g_assert_cmpuint(length, <=, 32 << 10);
  g_string_append_len(user, data, (gssize)length);
  return TRUE;
}

static void assert_written(JsonObject *value) {
  g_autofree char *text = json_text(value);
  GString *written = g_string_new(NULL);
  g_assert_true(json_write_line(value, gather, written));
  g_assert_cmpuint(written->len, ==, strlen(text) + 1);
  g_assert_cmpint(memcmp(written->str, text, strlen(text)), ==, 0);
  g_assert_cmpint(written->str[written->len - 1], ==, '\n');
  g_string_free(written, TRUE);
}

/* What is written in pieces is what is made at once. */
static void test_written(void) {
  static const char *const VALUES[] = {
      "null",
      "true",
      "0",
      "-17",
      "1.50",
      "1e300",
      "\"\"",
      "[]",
      "{}",
      "[[],{},null,[1,2]]",
      "{\"a\\\"b\":{\"\":[{}]},\"caf\xc3\xa9/\":\"\\u0000 \\u007f / \xf0\x9f\x98\x80\"}",
  };
  for (gsize i = 0; i < G_N_ELEMENTS(VALUES); i++) {
    g_autoptr(JsonObject) value = json_tokener_parse(VALUES[i]);
    assert_written(value);
  }
  char all[128];
  for (gsize i = 0; i < sizeof all; i++) {
    all[i] = (char)i;
  }
  g_autoptr(JsonObject) object = json_object_new_object();
  json_add_take(object, "all", json_from_bytes(all, sizeof all));
  json_add_double(object, "double", 0.1);
  assert_written(object);
}

static void test_written_large(void) {
  static const gsize LENGTHS[] = {32765, 32766, 32767, 32768, 32769, 65536, 100000};
  for (gsize i = 0; i < G_N_ELEMENTS(LENGTHS); i++) {
    for (int filler = 0; filler < 3; filler++) {
      g_autofree char *bytes = g_malloc(LENGTHS[i]);
      memset(bytes, "x\n\0"[filler], LENGTHS[i]);
      g_autoptr(JsonObject) array = json_object_new_array();
      json_object_array_add(array, json_from_bytes(bytes, LENGTHS[i]));
      json_object_array_add(array, json_object_new_int(7));
      assert_written(array);
    }
  }
}

static gboolean stop_at_once(void *user, const void *data, size_t length) {
  (void)data;
  (void)length;
  ++*(int *)user;
  return FALSE;
}

static void test_written_stopped(void) {
  int calls = 0;
  g_autofree char *bytes = g_malloc0(100000);
  g_autoptr(JsonObject) value = json_from_bytes(bytes, 100000);
  g_assert_false(json_write_line(value, stop_at_once, &calls));
  g_assert_cmpint(calls, ==, 1);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/json/good", test_good);
  g_test_add_func("/json/null", test_null);
  g_test_add_func("/json/length", test_length);
  g_test_add_func("/json/bad", test_bad);
  g_test_add_func("/json/depth", test_depth);
  g_test_add_func("/json/size", test_size);
  g_test_add_func("/json/file", test_file);
  g_test_add_func("/json/canonical", test_canonical);
  g_test_add_func("/json/adding", test_adding);
  g_test_add_func("/json/bytes", test_bytes);
  g_test_add_func("/json/getting", test_getting);
  g_test_add_func("/json/cut-bytes", test_cut_bytes);
  g_test_add_func("/json/written", test_written);
  g_test_add_func("/json/written-large", test_written_large);
  g_test_add_func("/json/written-stopped", test_written_stopped);
  return g_test_run();
}
