/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a sandbox: found, pulled, and what an engine can say instead. */
#include "docker-fixture.h"

/* The parts under test. */
#include "../../plugins/docker/credential-helper.c"
#include "../../plugins/docker/image-name.c"
#include "../../plugins/docker/image.c"
#include "../../plugins/docker/pull-progress.c"
#include "../../plugins/docker/pull.c"
#include "../../plugins/docker/registry-auth.c"

#define DIGITS "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define GOOD_IMAGE "{\"Id\":\"sha256:" DIGITS "\",\"Architecture\":\"amd64\",\"Os\":\"linux\"}"

/* An engine that lacks the image at first, and answers the pull with status and body. */
#define CANNED_PULL(pull_status, pull_body)                                                        \
  {                                                                                                \
    CANNED_FACTS, {.match = "GET /images", .status = "404 Not Found", .body = "{}", .times = 1},   \
        {.match = "/images/create", .status = (pull_status), .body = (pull_body)}, {               \
      .match = NULL, .status = "200 OK", .body = GOOD_IMAGE                                        \
    }                                                                                              \
  }

struct got {
  struct fake_engine fake;
  struct engine_call call;
  struct image image;
  int32_t status;
};

static void get(struct got *got, struct canned *answers, const char *name, gboolean may_pull) {
  fake_engine_start(&got->fake, answers);
  struct sandhost_call *call = engine_call_begin(&got->call);
  got->image = (struct image){0};
  got->status = image_get(got->fake.engine, &call_relay_host, call, name, may_pull, &got->image);
  if (got->status != SANDHOST_OK) {
    g_assert_cmpint(got->call.call.status, ==, got->status);
  }
}

static void got_clear(struct got *got) {
  image_clear(&got->image);
  engine_call_end(&got->call);
  fake_engine_end(&got->fake);
}

static void check_failure(struct canned *answers, const char *name, gboolean may_pull,
                          int32_t status, const char *message) {
  struct got got;
  get(&got, answers, name, may_pull);
  /* The engine's address differs from test to test. */
  g_autoptr(GString) expected = g_string_new(message);
  g_string_replace(expected, "{engine}", engine_name(got.fake.engine), 0);
  g_assert_cmpstr(got.call.call.message, ==, expected->str);
  g_assert_cmpint(got.status, ==, status);
  g_assert_cmpint(got.call.call.may_have_happened, ==, 0); /* no sandbox is made yet */
  got_clear(&got);
}

static void check_pull(const char *pull_status, const char *body, int32_t status,
                       const char *message) {
  struct canned answers[] = CANNED_PULL(pull_status, body);
  check_failure(answers, "x:1", TRUE, status, message);
}

/* ---- Looking ---------------------------------------------------------------------------------- */

static void test_present(void) {
  struct canned answers[] = {
      CANNED_FACTS,
      {.match = NULL,
       .status = "200 OK",
       .body =
           "{\"Id\":\"sha256:" DIGITS "\",\"Architecture\":\"arm64\",\"Os\":\"linux\",\"Config\":{"
           "\"Entrypoint\":[\"/x\"],\"Volumes\":{\"/data/\":{},\"/a/./b/../c\":{},\"rel\":{}}}}"}};
  struct got got;
  get(&got, answers, "host:5000/x:1", FALSE);
  g_assert_cmpint(got.status, ==, SANDHOST_OK);
  g_assert_cmpstr(got.image.id, ==, "sha256:" DIGITS);
  g_assert_cmpstr(got.image.architecture, ==, "arm64");
  g_assert_cmpstr(got.image.os, ==, "linux");
  g_assert_true(got.image.has_entrypoint);
  g_assert_cmpuint(got.image.volumes->len, ==, 3);
  g_assert_cmpstr(g_ptr_array_index(got.image.volumes, 0), ==, "/data");
  g_assert_cmpstr(g_ptr_array_index(got.image.volumes, 1), ==, "/a/c");
  g_assert_cmpstr(g_ptr_array_index(got.image.volumes, 2), ==, "/rel");
  g_assert_cmpstr(got.fake.asked->str, ==, "GET /images/host%3A5000/x%3A1/json\n");
  g_assert_cmpuint(got.call.call.progress->len, ==, 0);
  got_clear(&got);
}

static void test_missing_and_not_pulled(void) {
  struct canned answers[] = {CANNED_FACTS,
                             {.match = NULL, .status = "404 Not Found", .body = "{}"}};
  check_failure(answers, "x:1", FALSE, SANDHOST_NOT_FOUND,
                "Sandbox image x:1 is not present and pulling is disabled");
}

static void test_id_is_never_pulled(void) {
  struct canned answers[] = {CANNED_FACTS,
                             {.match = NULL, .status = "404 Not Found", .body = "{}"}};
  check_failure(answers, "sha256:" DIGITS, TRUE, SANDHOST_NOT_FOUND,
                "Sandbox image sha256:" DIGITS
                " is not present, and no registry knows an image by its id");
}

static void test_bad_name(void) {
  struct canned answers[] = {CANNED_FACTS, {.match = NULL, .status = "200 OK", .body = "{}"}};
  check_failure(answers, "../containers\x1b[2J", TRUE, SANDHOST_INVALID,
                "'../containers?[2J' is no image name, such as python:3.12-slim or "
                "ghcr.io/team/image:tag");
}

static void test_no_id(void) {
  static const char *const bodies[] = {"{}", "[]", "{\"Id\":7}", "{\"Id\":\"sha256:12\"}", "oops"};
  for (size_t i = 0; i < G_N_ELEMENTS(bodies); i++) {
    struct canned answers[] = {CANNED_FACTS,
                               {.match = NULL, .status = "200 OK", .body = bodies[i]}};
    check_failure(answers, "x:1", TRUE, SANDHOST_PROTOCOL,
                  "{engine} describes the image x:1 without an id");
  }
}

static void test_root_as_volume(void) {
  struct canned answers[] = {
      CANNED_FACTS,
      {.match = NULL,
       .status = "200 OK",
       .body = "{\"Id\":\"sha256:" DIGITS "\",\"Config\":{\"Volumes\":{\"/a/..\":{}}}}"}};
  check_failure(answers, "x:1", TRUE, SANDHOST_UNSUPPORTED,
                "the image x:1 declares volumes that no sandbox can have");
}

static void test_words_that_are_none(void) {
  struct canned answers[] = {
      CANNED_FACTS,
      {.match = NULL,
       .status = "200 OK",
       .body = "{\"Id\":\"sha256:" DIGITS "\",\"Architecture\":\"a\\u001b[2J\",\"Os\":7}"}};
  struct got got;
  get(&got, answers, "x", FALSE);
  g_assert_cmpint(got.status, ==, SANDHOST_OK);
  g_assert_cmpstr(got.image.architecture, ==, "unknown");
  g_assert_cmpstr(got.image.os, ==, "unknown");
  g_assert_false(got.image.has_entrypoint);
  got_clear(&got);
}

/* ---- Pulling ---------------------------------------------------------------------------------- */

static void test_pull(void) {
  struct canned answers[] = CANNED_PULL(
      "200 OK",
      "{\"status\":\"Pulling from library/x\",\"id\":\"1\"}\r\n"
      "{\"status\":\"Pulling fs layer\",\"progressDetail\":{},\"id\":\"a\"}\r\n"
      "{\"status\":\"Already exists\",\"progressDetail\":{},\"id\":\"b\"}\r\n\r\n"
      "{\"status\":\"Downloading\",\"progressDetail\":{\"current\":1,\"total\":2500000},\"id\":"
      "\"a\"}\n"
      "{\"status\":\"Download complete\",\"progressDetail\":{},\"id\":\"a\"}\n"
      "{\"status\":\"Extracting\",\"progressDetail\":{\"current\":9,\"total\":99},\"id\":\"a\"}\n"
      "{\"status\":\"Pull complete\",\"progressDetail\":{},\"id\":\"a\"}\n"
      "{\"status\":\"Digest: sha256:1\"}");
  struct got got;
  get(&got, answers, "x:1", TRUE);
  g_assert_cmpstr(got.call.call.message, ==, NULL);
  g_assert_cmpint(got.status, ==, SANDHOST_OK);
  g_assert_cmpstr(got.image.id, ==, "sha256:" DIGITS);
  g_assert_cmpstr(got.fake.asked->str, ==,
                  "GET /images/x%3A1/json\nPOST /images/create?fromImage=x&tag=1\n"
                  "GET /images/x%3A1/json\n");
  GPtrArray *lines = got.call.call.progress;
  g_assert_cmpuint(lines->len, >=, 2);
  g_assert_cmpstr(g_ptr_array_index(lines, 0), ==, "pulling x:1");
  g_assert_cmpstr(g_ptr_array_index(lines, lines->len - 1), ==, "pulled x:1: 2 layers, 2.5 MB");
  got_clear(&got);
}

static void test_pull_by_digest(void) {
  struct canned answers[] = {
      CANNED_FACTS,
      {.match = "GET /images", .status = "404 Not Found", .body = "{}", .times = 1},
      {.match = "/images/create", .status = "200 OK", .body = ""},
      {.match = NULL, .status = "200 OK", .body = GOOD_IMAGE}};
  struct got got;
  get(&got, answers, "h:1/x:2@sha256:" DIGITS, TRUE);
  g_assert_cmpint(got.status, ==, SANDHOST_OK);
  g_assert_nonnull(strstr(got.fake.asked->str,
                          "POST /images/create?fromImage=h%3A1%2Fx&tag=sha256%3A" DIGITS "\n"));
  got_clear(&got);
}

static void test_pull_without_result(void) {
  struct canned answers[] = {CANNED_FACTS,
                             {.match = "/images/create", .status = "200 OK", .body = "{}\n"},
                             {.match = NULL, .status = "404 Not Found", .body = "{}"}};
  check_failure(answers, "x:1", TRUE, SANDHOST_PROTOCOL,
                "{engine} ended the pull of x:1 without a failure, and does not have the image");
}

/* A failure comes under status 200, in a line. */
static void test_error_line(void) {
  check_pull("200 OK",
             "{\"status\":\"Pulling from library/x\",\"id\":\"1\"}\n"
             "{\"errorDetail\":{\"message\":\"write /a: no space left on device\"},"
             "\"error\":\"write /a: no space left on device\"}\n",
             SANDHOST_LIMIT,
             "the engine has no space left for the image x:1: free some, as with docker system "
             "prune: write /a: no space left on device");
}

static void test_error_line_without_text(void) {
  check_pull("200 OK", "{\"errorDetail\":{}}\n", SANDHOST_UNAVAILABLE,
             "cannot pull the image x:1: no reason was given");
}

static void test_error_text_is_cleaned(void) {
  check_pull("200 OK", "{\"error\":\"bad\\u001b[2J\\nthing\\u0007\"}", SANDHOST_UNAVAILABLE,
             "cannot pull the image x:1: bad [2J thing");
}

static void test_unknown_tag(void) {
  check_pull("404 Not Found",
             "{\"message\":\"manifest for x:1 not found: manifest unknown: manifest unknown\"}",
             SANDHOST_NOT_FOUND,
             "the registry docker.io has no image x:1: check the name and the tag: manifest for "
             "x:1 not found: manifest unknown: manifest unknown");
}

static void test_unknown_or_private(void) {
  check_pull(
      "404 Not Found",
      "{\"message\":\"pull access denied for x, repository does not exist or may require "
      "'docker login'\"}",
      SANDHOST_NOT_FOUND,
      "the registry docker.io has no image x:1, or a private one: check the name, or log in "
      "with docker login: pull access denied for x, repository does not exist or may require "
      "'docker login'");
}

static void test_login_wanted(void) {
  check_pull("500 Internal Server Error", "{\"message\":\"no basic auth credentials\"}",
             SANDHOST_UNAUTHENTICATED,
             "the registry docker.io wants a login to pull x:1: log in with docker login: no basic "
             "auth credentials");
}

static void test_rate_limit(void) {
  check_pull(
      "200 OK", "{\"error\":\"toomanyrequests: You have reached your pull rate limit.\"}\n",
      SANDHOST_RATE_LIMITED,
      "the registry docker.io lets nobody without a login pull more for now: wait, or log in "
      "with docker login: toomanyrequests: You have reached your pull rate limit.");
}

static void test_registry_not_reachable(void) {
  check_pull("500 Internal Server Error",
             "{\"message\":\"Get \\\"https://h/v2/\\\": dial tcp: lookup h: no such host\"}",
             SANDHOST_UNAVAILABLE,
             "{engine} cannot reach the registry docker.io for x:1: check the engine's network and "
             "proxy: Get \"https://h/v2/\": dial tcp: lookup h: no such host");
}

static void test_wrong_machine(void) {
  check_pull("200 OK",
             "{\"error\":\"no matching manifest for linux/arm64/v8 in the manifest list entries\"}",
             SANDHOST_UNSUPPORTED,
             "the image x:1 is not made for the engine's kind of machine: no matching manifest for "
             "linux/arm64/v8 in the manifest list entries");
}

static void test_refusal_that_is_no_json(void) {
  check_pull("502 Bad Gateway", "<html>", SANDHOST_UNAVAILABLE,
             "cannot pull the image x:1: it answered with status 502");
}

static void test_nonsense(void) {
  static const char *const lines[] = {"hello\n", "[1]\n", "{\"a\":\n", "{} {}\n", "\x01\n", "7"};
  for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
    check_pull("200 OK", lines[i], SANDHOST_PROTOCOL,
               "{engine} says what is no JSON while it pulls x:1");
  }
}

/* Wrong types and wild numbers are no failure, and show as nothing. */
static void test_odd_lines(void) {
  struct canned answers[] = CANNED_PULL(
      "200 OK", "{\"status\":7,\"id\":[],\"progressDetail\":\"x\"}\n"
                "{\"status\":\"Downloading\",\"id\":\"a\",\"progressDetail\":{\"current\":-5,"
                "\"total\":9223372036854775807}}\n"
                "{\"status\":\"Downloading\",\"id\":\"b\",\"progressDetail\":{\"current\":"
                "9223372036854775807,\"total\":-1}}\n"
                "{\"status\":\"\\u001b[2J\",\"id\":\"c\"}\n{\"status\":\"Waiting\"}\n");
  struct got got;
  get(&got, answers, "x:1", TRUE);
  g_assert_cmpint(got.status, ==, SANDHOST_OK);
  GPtrArray *lines = got.call.call.progress;
  g_assert_cmpstr(g_ptr_array_index(lines, lines->len - 1), ==,
                  "pulled x:1: 2 layers, 2251799813.7 MB");
  got_clear(&got);
}

static void test_giant_line(void) {
  g_autofree char *spaces = g_strnfill(MAX_PULL_LINE + 1, 'x');
  g_autofree char *line = g_strdup_printf("{\"status\":\"%s\"}\n", spaces);
  check_pull("200 OK", line, SANDHOST_PROTOCOL,
             "{engine} says a line of more than 64 KiB while it pulls x:1");
}

/* One line short of the bound passes, whatever pieces it comes in. */
static void test_long_line(void) {
  g_autofree char *letters = g_strnfill(MAX_PULL_LINE - strlen("{\"status\":\"\"}"), 'x');
  g_autofree char *line = g_strdup_printf("{\"status\":\"%s\"}\n", letters);
  struct canned answers[] = CANNED_PULL("200 OK", line);
  struct got got;
  get(&got, answers, "x:1", TRUE);
  g_assert_cmpint(got.status, ==, SANDHOST_OK);
  got_clear(&got);
}

/* The engine dies in the middle of a line. */
static void test_cut_stream(void) {
  struct canned answers[] =
      CANNED_PULL(NULL, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "5\r\n{\"sta\r\n");
  struct got got;
  get(&got, answers, "x:1", TRUE);
  g_assert_cmpint(got.status, ==, SANDHOST_UNAVAILABLE);
  g_assert_nonnull(got.call.call.message);
  g_assert_cmpint(got.call.call.may_have_happened, ==, 0);
  got_clear(&got);
}

/* A login is sent along, and what the registry says then is told otherwise. */
static void test_login_is_sent(void) {
  g_autofree char *folder = g_dir_make_tmp("sandhost-login-XXXXXX", NULL);
  g_autofree char *file = g_build_filename(folder, "config.json", NULL);
  g_assert_true(
      g_file_set_contents(file, "{\"auths\":{\"h:1\":{\"registrytoken\":\"t\"}}}", -1, NULL));
  g_assert_true(g_setenv("DOCKER_CONFIG", folder, TRUE));
  struct canned answers[] = {
      CANNED_FACTS,
      {.match = "GET /images", .status = "404 Not Found", .body = "{}"},
      {.match = NULL, .status = "200 OK", .body = "{\"error\":\"unauthorized: no\"}"}};
  struct got got;
  get(&got, answers, "h:1/x", TRUE);
  g_assert_cmpint(got.status, ==, SANDHOST_UNAUTHENTICATED);
  g_assert_cmpstr(got.call.call.message, ==,
                  "the registry h:1 does not let the stored login pull h:1/x: log in again with "
                  "docker login h:1: unauthorized: no");
  /* {"registrytoken":"t","serveraddress":"h:1"} */
  g_assert_nonnull(strstr(got.fake.last->str,
                          "\r\nX-Registry-Auth: "
                          "eyJyZWdpc3RyeXRva2VuIjoidCIsInNlcnZlcmFkZHJlc3MiOiJoOjEifQ==\r\n"));
  got_clear(&got);
  g_assert_true(g_setenv("DOCKER_CONFIG", "/nonexistent", TRUE));
  g_unlink(file);
  g_rmdir(folder);
}

/* ---- Progress --------------------------------------------------------------------------------- */

static void test_progress_is_throttled(void) {
  g_autoptr(PullProgress) progress = pull_progress_new("x");
  g_autofree char *first = pull_progress_line(progress, 0);
  g_assert_cmpstr(first, ==, "pulling x");
  pull_progress_take(progress, "a", "Downloading", 21400000, 45000000);
  g_assert_null(pull_progress_line(progress, LINE_EVERY - 1));
  g_autofree char *second = pull_progress_line(progress, LINE_EVERY);
  g_assert_cmpstr(second, ==, "pulling x: 0 of 1 layers, 21.4 of 45.0 MB");
  g_assert_null(pull_progress_line(progress, 3 * LINE_EVERY)); /* nothing is new */
  pull_progress_take(progress, "b", "Already exists", -1, -1);
  g_autofree char *third = pull_progress_line(progress, 4 * LINE_EVERY);
  g_assert_cmpstr(third, ==, "pulling x: 1 of 2 layers, 21.4 of 45.0 MB");
}

static void test_progress_is_bounded(void) {
  g_autoptr(PullProgress) progress = pull_progress_new("x");
  for (guint i = 0; i < 3 * MAX_LAYERS; i++) {
    g_autofree char *id = g_strdup_printf("%u", i);
    pull_progress_take(progress, id, "Downloading", INT64_MAX, INT64_MAX);
  }
  g_autofree char *long_id = g_strnfill(MAX_ID + 1, 'a');
  pull_progress_take(progress, long_id, "Waiting", -1, -1);
  g_assert_cmpuint(g_hash_table_size(progress->layers), ==, MAX_LAYERS);
  g_autofree char *line = pull_progress_last_line(progress);
  g_assert_cmpstr(line, ==, "pulled x: 1000 layers, 1125899906842.6 MB");
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_setenv("DOCKER_CONFIG", "/nonexistent", TRUE);
  g_test_add_func("/docker/image/present", test_present);
  g_test_add_func("/docker/image/missing", test_missing_and_not_pulled);
  g_test_add_func("/docker/image/id", test_id_is_never_pulled);
  g_test_add_func("/docker/image/bad-name", test_bad_name);
  g_test_add_func("/docker/image/no-id", test_no_id);
  g_test_add_func("/docker/image/root-volume", test_root_as_volume);
  g_test_add_func("/docker/image/words", test_words_that_are_none);
  g_test_add_func("/docker/pull/good", test_pull);
  g_test_add_func("/docker/pull/digest", test_pull_by_digest);
  g_test_add_func("/docker/pull/no-result", test_pull_without_result);
  g_test_add_func("/docker/pull/error-line", test_error_line);
  g_test_add_func("/docker/pull/error-without-text", test_error_line_without_text);
  g_test_add_func("/docker/pull/error-cleaned", test_error_text_is_cleaned);
  g_test_add_func("/docker/pull/unknown-tag", test_unknown_tag);
  g_test_add_func("/docker/pull/unknown-or-private", test_unknown_or_private);
  g_test_add_func("/docker/pull/login-wanted", test_login_wanted);
  g_test_add_func("/docker/pull/rate-limit", test_rate_limit);
  g_test_add_func("/docker/pull/not-reachable", test_registry_not_reachable);
  g_test_add_func("/docker/pull/wrong-machine", test_wrong_machine);
  g_test_add_func("/docker/pull/no-json-refusal", test_refusal_that_is_no_json);
  g_test_add_func("/docker/pull/nonsense", test_nonsense);
  g_test_add_func("/docker/pull/odd-lines", test_odd_lines);
  g_test_add_func("/docker/pull/giant-line", test_giant_line);
  g_test_add_func("/docker/pull/long-line", test_long_line);
  g_test_add_func("/docker/pull/cut", test_cut_stream);
  g_test_add_func("/docker/pull/login-sent", test_login_is_sent);
  g_test_add_func("/docker/progress/throttled", test_progress_is_throttled);
  g_test_add_func("/docker/progress/bounded", test_progress_is_bounded);
  return g_test_run();
}
