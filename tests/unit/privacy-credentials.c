/* SPDX-License-Identifier: Apache-2.0 */
/* privacy-credentials.c: which values count, and that no spelling or cut of them gets through. */
#include <string.h>

#include "config/credentials.h"
#include "privacy/credential-stream.h"
#include "privacy/credentials.h"

#define M CREDENTIAL_MARKER

/* Through a stream that is fed step bytes at a time. Owned. */
static char *through(const Needles *needles, const char *text, gsize length, gsize step,
                     gboolean cut) {
  GString *out = g_string_new(NULL);
  const TextSink sink = {.put = text_sink_append, .user = out};
  g_autoptr(CredentialStream) stream = credential_stream_new(needles, sink);
  for (gsize at = 0; at < length; at += step) {
    credential_stream_add(stream, text + at, MIN(step, length - at));
  }
  credential_stream_finish(stream, cut);
  return g_string_free(out, FALSE);
}

static void check(const char *const *values, const char *text, const char *wanted) {
  gsize count = g_strv_length((char **)(gsize)values);
  g_autoptr(Needles) needles = needles_new(values, count);
  for (gsize step = 1; step <= strlen(text) + 1; step++) {
    g_autofree char *got = through(needles, text, strlen(text), step, FALSE);
    g_assert_cmpstr(got, ==, wanted);
  }
}

static void test_replaced(void) {
  const char *const one[] = {"sk-123456789abc", NULL};
  check(one, "sk-123456789abc", M);
  check(one, "key=sk-123456789abc;", "key=" M ";");
  check(one, "sk-123456789absk-123456789abcsk-123456789", "sk-123456789ab" M "sk-123456789");
  check(one, "sk-123456789abcsk-123456789abc", M M);
  check(one, "sk-123456789ab", "sk-123456789ab");
  check(one, "", "");
}

static void test_overlaps(void) {
  const char *const prefix[] = {"secretvalue", "secretvalue-and-more", NULL};
  check(prefix, "a secretvalue b", "a " M " b");
  check(prefix, "a secretvalue-and-more b", "a " M " b");
  check(prefix, "a secretvalue-and-mor b", "a " M "-and-mor b");
  const char *const crossing[] = {"abcdefghij", "ghijklmnop", NULL};
  check(crossing, "-abcdefghijklmnop-", "-" M "-");
  check(crossing, "-abcdefghijkl-", "-" M "kl-");
  const char *const inside[] = {"xxabcdefghyy", "abcdefgh", NULL};
  check(inside, "xxabcdefghyy", M);
  check(inside, "xxabcdefghy", "xx" M "y");
  const char *const periodic[] = {"aaaaaaaa", NULL};
  check(periodic, "aaaaaaaaaaaaaaaaaaaaaaaaaaaab", M "b");
  check(periodic, "baaaaaaab", "baaaaaaab");
}

static void test_odd_bytes(void) {
  const char *const odd[] = {".*[a-z]+(\\d)?$^{2}", "\xc3\xa4\xc3\xb6\xc3\xbc-schl\xc3\xbcssel",
                             NULL};
  check(odd, "x.*[a-z]+(\\d)?$^{2}x", "x" M "x");
  check(odd, "aaaa(d)", "aaaa(d)");
  check(odd, "\xc3\xa4\xc3\xb6\xc3\xbc-schl\xc3\xbcssel!", M "!");
  const char binary[] = "\0\xff\xfe"
                        "sk-123456789abc"
                        "\0\xc3";
  const char *const one[] = {"sk-123456789abc", NULL};
  g_autoptr(Needles) needles = needles_new(one, 1);
  GString *out = g_string_new(NULL);
  const TextSink sink = {.put = text_sink_append, .user = out};
  g_autoptr(CredentialStream) stream = credential_stream_new(needles, sink);
  credential_stream_add(stream, binary, sizeof binary - 1);
  credential_stream_finish(stream, FALSE);
  const char wanted[] = "\0\xff\xfe" M "\0\xc3";
  g_assert_cmpuint(out->len, ==, sizeof wanted - 1);
  g_assert_true(memcmp(out->str, wanted, out->len) == 0);
  g_string_free(out, TRUE);
}

/* Where the text was cut, what may be a credential's beginning is taken for one. */
static void test_cut(void) {
  const char *const one[] = {"sk-123456789abc", NULL};
  g_autoptr(Needles) needles = needles_new(one, 1);
  static const struct {
    const char *text;
    const char *wanted;
  } CASES[] = {
      {"out: sk-123456789ab", "out: " M},
      {"out: sk-1", "out: " M},
      {"out: sk-", "out: sk-"},
      {"out: sk-123456789abc", "out: " M},
      {"out: sk-123456789abx", "out: sk-123456789abx"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autofree char *got = through(needles, CASES[i].text, strlen(CASES[i].text), 3, TRUE);
    g_assert_cmpstr(got, ==, CASES[i].wanted);
  }
}

/* Held back is no more than what may be the beginning of a credential. */
static void test_prompt(void) {
  const char *const one[] = {"sk-123456789abc", NULL};
  g_autoptr(Needles) needles = needles_new(one, 1);
  GString *out = g_string_new(NULL);
  const TextSink sink = {.put = text_sink_append, .user = out};
  g_autoptr(CredentialStream) stream = credential_stream_new(needles, sink);
  credential_stream_add(stream, "Password: ", 10);
  g_assert_cmpstr(out->str, ==, "Password: ");
  credential_stream_add(stream, "asks", 4);
  g_assert_cmpstr(out->str, ==, "Password: ask"); /* the s may begin one */
  credential_stream_add(stream, "!", 1);
  g_assert_cmpstr(out->str, ==, "Password: asks!");
  g_string_free(out, TRUE);
}

/* The slow and certain way: every place is tried with every value. Owned. */
static char *by_hand(const char *const *values, const char *text, gsize length) {
  g_autofree guint8 *covered = g_malloc0(length + 1); /* 1: replaced; 2: and begins a marker */
  gsize end = 0;
  for (gsize at = 0; at < length; at++) {
    gsize longest = 0;
    for (gsize i = 0; values[i]; i++) {
      gsize size = strlen(values[i]);
      if (size <= length - at && memcmp(text + at, values[i], size) == 0) {
        longest = MAX(longest, size);
      }
    }
    if (longest > 0 && at >= end) {
      covered[at] = 2;
    }
    end = MAX(end, longest > 0 ? at + longest : 0);
    if (at < end && covered[at] == 0) {
      covered[at] = 1;
    }
  }
  GString *out = g_string_new(NULL);
  for (gsize at = 0; at < length; at++) {
    if (covered[at] == 2) {
      g_string_append(out, M);
    } else if (covered[at] == 0) {
      g_string_append_c(out, text[at]);
    }
  }
  return g_string_free(out, FALSE);
}

/* Few letters, so that values overlap in every way. */
static void test_random(void) {
  for (guint round = 0; round < 3000; round++) {
    char text[200];
    char values[5][12];
    const char *list[6] = {NULL};
    gsize count = (gsize)g_test_rand_int_range(1, 6);
    for (gsize i = 0; i < count; i++) {
      gsize size = (gsize)g_test_rand_int_range(1, 12);
      for (gsize k = 0; k < size; k++) {
        values[i][k] = (char)g_test_rand_int_range('a', 'c');
      }
      values[i][size] = '\0';
      list[i] = values[i];
    }
    gsize length = (gsize)g_test_rand_int_range(0, sizeof text);
    for (gsize k = 0; k < length; k++) {
      text[k] = (char)g_test_rand_int_range('a', 'd');
    }
    g_autoptr(Needles) needles = needles_new(list, count);
    g_autofree char *wanted = by_hand(list, text, length);
    gsize step = (gsize)g_test_rand_int_range(1, 40);
    g_autofree char *got = through(needles, text, length, step, FALSE);
    g_assert_cmpstr(got, ==, wanted);
  }
}

/* Of credentials, and of what is none. */
static const char *const YES[] = {
    "api_key",
    "apiKey",
    "API-KEY",
    "X-Api-Key",
    "token",
    "TOKEN",
    "GITHUB_TOKEN",
    "access_token",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "password",
    "DB_PASSWORD",
    "PG_PASSWD",
    "client_secret",
    "Authorization",
    "cookie",
    "MODAL_TOKEN_ID",
    "privateKey",
    "signing_key",
    "DB_PWD",
    "SetCookie",
    "basic_auth",
    "secret",
    "PGPASSWORD",
    "mypassword",
    "SMTP_PASS",
    "SSHPASS",
    "dbPass",
    "GITHUB_PAT",
    "accesstoken",
    "openaiapikey",
    "clientsecret",
    "DBPassword",
    "NPM_AUTHTOKEN",
    "JWTSecret",
    "GITHUB_TOKEN2",
    "OPENAI_API_KEY_1",
    "apiKey2",
    "AWS_ACCESS_KEY_ID_2",
    "DB_PASS",
    "GH_PAT",
    "github_pat",
    "MYTOKEN",
    "TOKENS",
    "api_tokens",
    "authtoken",
    "pgpassword",
    "dsn",
    "SENTRY_DSN",
    "connection_string",
    "connectionString",
};

static const char *const NO[] = {
    "max_tokens",
    "threshold_tokens",
    "token_file",
    "secret_refs",
    "redact_keys",
    "key",
    "keyboard",
    "PWD",
    "OLDPWD",
    "public_key",
    "host",
    "author",
    "cache_key",
    "password_file",
    "tokenizer",
    "",
    "---",
    "secretary",
    "token_url",
    "SSH_AUTH_SOCK",
    "total_tokens_limit",
    "monkey",
    "pass",
    "PATH",
    "PAT",
    "bypass",
    "compass",
    "passthrough",
    "mytokens",
    "monkey2",
    "12",
    "3_4",
    "key_1",
    "public_key2",
    "subtokens",
    "token_file_2",
    "pat",
    "PASSES",
    "input_tokens",
    "string",
};

static void test_names(void) {
  for (gsize i = 0; i < G_N_ELEMENTS(YES); i++) {
    g_test_message("%s", YES[i]);
    g_assert_true(credential_is_name(YES[i]));
  }
  for (gsize i = 0; i < G_N_ELEMENTS(NO); i++) {
    g_test_message("%s", NO[i]);
    g_assert_false(credential_is_name(NO[i]));
  }
}

static gboolean finds(const Needles *needles, const char *text) {
  return needles && needles_any(needles, text, strlen(text));
}

static void test_environment(void) {
  const char *const environment[] = {"GITHUB_TOKEN=ghp_0123456789",
                                     "SHORT_TOKEN=elevenbytes",
                                     "WORDS_TOKEN=two words of it",
                                     "PATH_TOKEN=/run/secrets/token.txt",
                                     "NUMBER_TOKEN=123456789012345",
                                     "HOME=/home/somebody-else",
                                     "AWS_SECRET_ACCESS_KEY=ab/cdEFgh+ij0123456789",
                                     "EDITOR=something-long-enough",
                                     "BROKEN",
                                     NULL};
  g_autoptr(Needles) needles = credentials_new(NULL, environment);
  g_assert_true(finds(needles, "ghp_0123456789"));
  g_assert_true(finds(needles, "ab/cdEFgh+ij0123456789"));
  g_assert_true(finds(needles, "ab\\/cdEFgh+ij0123456789"));
  g_assert_false(finds(needles, "elevenbytes"));
  g_assert_false(finds(needles, "two words of it"));
  g_assert_false(finds(needles, "/run/secrets/token.txt"));
  g_assert_false(finds(needles, "123456789012345"));
  g_assert_false(finds(needles, "something-long-enough /home/somebody-else"));
  g_assert_null(credentials_new(NULL, NULL));
}

/* Of an address the password alone, whatever names it; of what a credential's name has, every part that is one. */
static void test_within(void) {
  const char *const environment[] = {"DATABASE_URL=postgres://app:pw%2F%4012345@db.example.com/app",
                                     "PG_DSN=host=db password=pairedsecret user=app",
                                     "HTTP_AUTHORIZATION=Bearer headersecret0",
                                     "PLAIN_URL=https://host.example.com:8080/a@b", NULL};
  const char *const declared[] = {"Bearer declaredsecret", NULL};
  g_autoptr(Needles) needles = credentials_new(declared, environment);
  g_assert_true(finds(needles, "pw%2F%4012345"));
  g_assert_true(finds(needles, "pw/@12345"));
  g_assert_true(finds(needles, "pairedsecret"));
  g_assert_true(finds(needles, "headersecret0"));
  g_assert_true(finds(needles, "declaredsecret"));
  g_assert_false(finds(needles, "db.example.com host.example.com:8080"));
}

static void test_declared(void) {
  const char *const lines =
      "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort\nline777\nline8888\n"
      "-----END KEY-----\n";
  const char *const declared[] = {"12345678",
                                  "seven77",
                                  "with \"quotes\" and\ttab",
                                  "two words",
                                  "x<y&z>x-value",
                                  "k\xc3\xa4se-\xf0\x9f\xa7\x80-key",
                                  lines,
                                  NULL};
  g_autoptr(Needles) needles = credentials_new(declared, NULL);
  g_assert_true(finds(needles, "x12345678x"));
  g_assert_false(finds(needles, "seven77"));
  g_assert_true(finds(needles, "{\"a\":\"with \\\"quotes\\\" and\\ttab\"}"));
  g_assert_true(finds(needles, "two words"));
  g_assert_true(finds(needles, "k\\u00e4se-\\ud83e\\uddc0-key"));
  g_assert_true(finds(needles, "k\\u00E4se-\\uD83E\\uDDC0-key"));
  g_assert_true(finds(needles, "line8888"));
  g_assert_false(finds(needles, "line777"));
  g_assert_true(finds(needles, "x\\u003cy\\u0026z\\u003ex-value"));
  g_assert_true(finds(needles, "x\\u003Cy\\u0026z\\u003Ex-value"));
  g_assert_true(finds(needles, "with \\u0022quotes\\u0022 and\\ttab"));
  g_assert_true(finds(needles, "  MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\r\n"));
  g_assert_false(finds(needles, "-----BEGIN KEY-----"));
}

/* A host with thousands of them is as fast, and a value of a megabyte is bounded. */
static void test_many(void) {
  g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(g_free);
  for (guint i = 0; i < 5000; i++) {
    g_ptr_array_add(values, g_strdup_printf("credential-%05u-%08x", i, i * 2654435761u));
  }
  g_ptr_array_insert(values, 0, g_strnfill(1u << 20, 'z'));
  g_ptr_array_add(values, NULL);
  g_autoptr(Needles) needles = credentials_new((const char *const *)values->pdata, NULL);
  g_assert_true(finds(needles, g_ptr_array_index(values, 1)));
  g_assert_true(finds(needles, g_ptr_array_index(values, 0)));
  g_assert_false(finds(needles, "credential-00001-"));
}

static void test_collect(void) {
  g_autoptr(JsonObject) config = json_tokener_parse(
      "{\"model_config\": {\"api_key\": \"model-key\", \"model\": \"m\"},"
      " \"agent_config\": {\"headers\": [{\"Authorization\": \"Bearer abc\"}],"
      "   \"secrets\": {\"a\": [\"one\", {\"b\": \"two\"}], \"n\": 5}, \"max_tokens\": \"many\","
      "   \"pass\": \"three\", \"url\": \"https://me:four@host\", \"dsn\": \"host=h pwd=five\"}}");
  g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
  credentials_collect(config, found);
  g_ptr_array_add(found, NULL);
  g_autofree char *all = g_strjoinv("|", (char **)found->pdata);
  g_assert_cmpstr(all, ==, "model-key|Bearer abc|one|two|three|four|host=h pwd=five|five");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/privacy/credentials/replaced", test_replaced);
  g_test_add_func("/privacy/credentials/overlaps", test_overlaps);
  g_test_add_func("/privacy/credentials/odd-bytes", test_odd_bytes);
  g_test_add_func("/privacy/credentials/cut", test_cut);
  g_test_add_func("/privacy/credentials/prompt", test_prompt);
  g_test_add_func("/privacy/credentials/random", test_random);
  g_test_add_func("/privacy/credentials/names", test_names);
  g_test_add_func("/privacy/credentials/environment", test_environment);
  g_test_add_func("/privacy/credentials/within", test_within);
  g_test_add_func("/privacy/credentials/declared", test_declared);
  g_test_add_func("/privacy/credentials/many", test_many);
  g_test_add_func("/privacy/credentials/collect", test_collect);
  return g_test_run();
}
