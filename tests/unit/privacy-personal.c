/* SPDX-License-Identifier: Apache-2.0 */
/* privacy-personal.c: what counts as personal data, and above all what does not. */
#include <string.h>

#include "privacy/personal-stream.h"
#include "privacy/personal.h"

#define EMAIL "[REDACTED_EMAIL]"
#define PHONE "[REDACTED_PHONE]"
#define SSN "[REDACTED_SSN]"
#define CARD "[REDACTED_CREDIT_CARD]"

static char *whole(guint categories, const char *text) {
  GString *out = personal_redact(categories, text, strlen(text));
  return out ? g_string_free(out, FALSE) : g_strdup(text);
}

static char *in_steps(guint categories, const char *text, gsize length, gsize step) {
  GString *out = g_string_new(NULL);
  const TextSink sink = {.put = text_sink_append, .user = out};
  g_autoptr(PersonalStream) stream = personal_stream_new(categories, sink);
  for (gsize at = 0; at < length; at += step) {
    personal_stream_add(stream, text + at, MIN(step, length - at));
  }
  personal_stream_finish(stream);
  return g_string_free(out, FALSE);
}

static void check(const char *text, const char *wanted) {
  g_autofree char *got = whole(PERSONAL_ALL, text);
  g_assert_cmpstr(got, ==, wanted);
  for (gsize step = 1; step <= strlen(text) + 1; step++) {
    g_autofree char *stepped = in_steps(PERSONAL_ALL, text, strlen(text), step);
    g_assert_cmpstr(stepped, ==, wanted);
  }
}

static void check_kept(const char *const *texts, gsize count) {
  for (gsize i = 0; i < count; i++) {
    check(texts[i], texts[i]);
  }
}

static void test_email(void) {
  check("a@b.de", EMAIL);
  check("Write to jane.doe+x@mail.example.com.", "Write to " EMAIL ".");
  check("<jane@example.org>, \"joe_1@example.co.uk\"", "<" EMAIL ">, \"" EMAIL "\"");
  check("mailto:jane@example.com?subject=x", "mailto:" EMAIL "?subject=x");
  check("\\njane@example.com\\n",
        "\\" EMAIL "\\n"); /* the letter belongs to the name, for all that can be seen */
  check("user=jane@example.com,joe@example.com", "user=" EMAIL "," EMAIL);
  check("x jane@example.com: hello", "x " EMAIL ": hello");
  check("j%x@sub-domain.example.museum", EMAIL);
  check("jane@163.com, joe@126.com", EMAIL ", " EMAIL); /* large providers of mail */
  check("jane@vip.163.com", EMAIL);
  static const char *const KEPT[] = {
      "@app.route('/x')",
      "@babel/core@7.1.0",
      "left-pad@1.3.0.tgz",
      "left-pad@163.2.tgz",
      "react@18.js",
      "icon@2x.png",
      "git@github.com:owner/repo.git",
      "root@host.example.com:/srv",
      "user@localhost",
      "a@b",
      "a@b.c",
      "foo@bar..com",
      "@@ -1,4 +1,4 @@",
      "x@.com",
      "name @ example.com",
      "me@10.0.0.1",
  };
  check_kept(KEPT, G_N_ELEMENTS(KEPT));
  g_autofree char *local = g_strnfill(300, 'a');
  g_autofree char *text = g_strconcat(local, "@example.com", NULL);
  check(text, text);
}

static void test_phone(void) {
  check("555-123-4567", PHONE);
  check("call (555) 123-4567 now", "call " PHONE " now");
  check("(555)123-4567", PHONE);
  check("1-800-555-1234.", PHONE ".");
  check("1 (555) 123-4567", PHONE);
  check("+1 (555) 123-4567", PHONE);
  check("+15551234567", PHONE);
  check("tel:+15551234567", "tel:" PHONE);
  check("+44 20 7946 0958", PHONE);
  check("+49 (0)30 12345678", PHONE);
  check("+33 1 23 45 67 89", PHONE);
  check("(030) 1234 5678", PHONE);
  check("555.123.4567", PHONE);
  check("212 555 1234", PHONE);
  check("415-555-2671/x", PHONE "/x");
  check("415-555-2671/14", "415-555-2671/14");
  check("[555-123-4567]", "[" PHONE "]");
  check("(555-123-4567)", "(" PHONE ")");
  check("12,555-123-4567,x", "12," PHONE ",x");
  check("\"a\\n555-123-4567\\n\"", "\"a\\n" PHONE "\\n\"");
  check("line\n555-123-4567\nline", "line\n" PHONE "\nline");
  static const char *const KEPT[] = {
      "5551234567",
      "1700000000",
      "2024-01-02 10:20:30",
      "2024-01-02 2024-01-03",
      "+2024-01-02 10:20:30",
      "20241129-220015-123456",
      "192.168.100.200",
      "10.20.30.40 10.20.30.41",
      "1.2.3.4567",
      "100 200 3000",
      "  1234  5678 90123 file",
      "0000020 1234 5678 9012",
      "550e8400-e29b-41d4-a716-446655440000",
      "12345678-1234-1234-1234-123456789012",
      "555-123-45678",
      "0x5551234567",
      "id_555-123-4567",
      "v555-123-4567",
      "a-555-123-4567",
      "/srv/555-123-4567/x",
      "555-123-4567.txt",
      "12:555-123-4567",
      "555-123-4567-1",
      "a+15551234567",
      "+0123456789",
      "12 345 678 901",
      "1 2 3 4 5 6 7 8 9 10 11 12",
      "2026-11-29T22:00:15.123456Z",
      "f(123)",
      "(1234) (5678)",
  };
  check_kept(KEPT, G_N_ELEMENTS(KEPT));
}

static void test_ssn(void) {
  check("123-45-6789", SSN);
  check("SSN: 123-45-6789.", "SSN: " SSN ".");
  check("(123-45-6789)", "(" SSN ")");
  check("123-45-6789 123-45-6780", SSN " " SSN);
  static const char *const KEPT[] = {
      "000-45-6789", "666-45-6789",   "900-45-6789",   "123-00-6789",
      "123-45-0000", "123-45-67890",  "1123-45-6789",  "123 45 6789",
      "123.45.6789", "a-123-45-6789", "123-45-6789-1", "123456789",
  };
  check_kept(KEPT, G_N_ELEMENTS(KEPT));
}

static void test_card(void) {
  check("4111111111111111", CARD);
  check("4111 1111 1111 1111", CARD);
  check("4111-1111-1111-1111", CARD);
  check("4111.1111.1111.1111", CARD);
  check("3782 822463 10005", CARD);
  check("378282246310005", CARD);
  check("4222222222222", CARD);
  check("6011000990139424,x", CARD ",x");
  check("card=5500000000000004;", "card=" CARD ";");
  check("4111 1111 1111 1111 12/26", CARD " 12/26");
  check("(4111111111111111)", "(" CARD ")");
  check("{\"n\": \"4111111111111111\"}", "{\"n\": \"" CARD "\"}");
  check("1234567812345670", CARD);
  check("2223003122003222", CARD); /* digits that a time may have, but not before 2040 */
  check("2720992718300000", CARD);
  static const char *const KEPT[] = {
      "4111111111111112",    "4111 1111 1111 1112", "0000000000000000",     "1700000000000",
      "1700000000006",       "1732917615123456789", "41111111111111111111", "a4111111111111111",
      "4111111111111111a",   "x-4111111111111111",  "/4111111111111111/",   "4111111111111111.pdf",
      "4111.1111.1111.1112", "4111-1111 1111-1111", "411111-1111111111",    "1764457215123452",
      "2208988800000004",
  };
  check_kept(KEPT, G_N_ELEMENTS(KEPT));
}

static void test_categories(void) {
  const char *text = "a@b.de 555-123-4567 123-45-6789 4111111111111111";
  g_autofree char *none = whole(0, text);
  g_assert_cmpstr(none, ==, text);
  g_autofree char *ssn = whole(personal_category("ssn"), text);
  g_assert_cmpstr(ssn, ==, "a@b.de 555-123-4567 " SSN " 4111111111111111");
  g_autofree char *email = whole(personal_category("email"), text);
  g_assert_cmpstr(email, ==, EMAIL " 555-123-4567 123-45-6789 4111111111111111");
  g_autofree char *two = whole(personal_category("phone") | personal_category("credit_card"), text);
  g_assert_cmpstr(two, ==, "a@b.de " PHONE " 123-45-6789 " CARD);
  g_assert_cmpuint(personal_category("name"), ==, 0);
}

/* What commands print all day. */
static void test_logs(void) {
  static const char *const KEPT[] = {
      "-rw-r--r-- 1 root root 4096 2024-11-29 22:00 data.bin",
      "Compiling libc v0.2.155 (registry+https://example.org/index)",
      "commit 3f785f0123456789abcdef0123456789abcdef01",
      "PASS 1234 tests in 56.78s (1234.56 ops/s)",
      "127.0.0.1 - - [29/Nov/2026:22:00:15 +0000] \"GET / HTTP/1.1\" 200 5123",
      "0000000 7f45 4c46 0201 0100 0000 0000 0000 0000",
      "Filesystem 1K-blocks 61255492 12345678 48909814 21%",
      "3.141592653589793 2.718281828459045",
      "run_0123456789abcdef0123456789abcdef",
      "sha256:0123456789012345678901234567890123456789012345678901234567890123",
  };
  check_kept(KEPT, G_N_ELEMENTS(KEPT));
  GString *numbers = g_string_new(NULL);
  for (guint i = 1; i < 300000; i += 7) {
    g_string_append_printf(numbers, "%u\n", i);
  }
  g_assert_null(personal_redact(PERSONAL_ALL, numbers->str, numbers->len));
  g_string_free(numbers, TRUE);
}

/* Bounded, whatever is printed: a line without an end, and every byte there is. */
static void test_hostile(void) {
  static const char *const PIECES[] = {"4111 ", "1 ", "a@", "(",  "+1 ",
                                       "9",     "a",  ".",  "a.", "555-"};
  for (gsize i = 0; i < G_N_ELEMENTS(PIECES); i++) {
    GString *text = g_string_new(NULL);
    while (text->len < 300000) {
      g_string_append(text, PIECES[i]);
    }
    g_assert_cmpuint(personal_open((const guint8 *)text->str, text->len), <=, PERSONAL_MOST_HELD);
    g_autofree char *stepped = in_steps(PERSONAL_ALL, text->str, text->len, 1000);
    g_autofree char *at_once = whole(PERSONAL_ALL, text->str);
    g_assert_cmpuint(strlen(stepped), >, 0);
    g_assert_cmpuint(strlen(at_once), >, 0);
    g_string_free(text, TRUE);
  }
}

static void test_random(void) {
  static const char LETTERS[] = "0123456789 -.@a(+)b:_/\\n\xc3\xa4,4111";
  for (guint round = 0; round < 20000; round++) {
    char text[80];
    gsize length = (gsize)g_test_rand_int_range(0, sizeof text);
    for (gsize i = 0; i < length; i++) {
      text[i] = LETTERS[g_test_rand_int_range(0, sizeof LETTERS - 1)];
    }
    GString *made = personal_redact(PERSONAL_ALL, text, length);
    g_autofree char *wanted = made ? g_string_free(made, FALSE) : g_strndup(text, length);
    gsize step = (gsize)g_test_rand_int_range(1, 20);
    g_autofree char *got = in_steps(PERSONAL_ALL, text, length, step);
    g_assert_cmpstr(got, ==, wanted);
  }
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/privacy/personal/email", test_email);
  g_test_add_func("/privacy/personal/phone", test_phone);
  g_test_add_func("/privacy/personal/ssn", test_ssn);
  g_test_add_func("/privacy/personal/card", test_card);
  g_test_add_func("/privacy/personal/categories", test_categories);
  g_test_add_func("/privacy/personal/logs", test_logs);
  g_test_add_func("/privacy/personal/hostile", test_hostile);
  g_test_add_func("/privacy/personal/random", test_random);
  return g_test_run();
}
