/* SPDX-License-Identifier: Apache-2.0 */
/* http-client-hostile.c: a peer that stays silent, breaks off, lies, and never ends. */
#include "http-fixture.h"

static void check_canned(struct canned canned, int64_t silence, int32_t status,
                         const char *message) {
  struct fixture self;
  struct http_request request = get;
  request.silence = silence;
  fixture_begin(&self, script_canned, &canned);
  assert_fails(&self, &request, status, message, 1);
  fixture_end(&self);
}

static void test_upload_stopped_by_source(void) {
  struct canned canned = {.bytes = "HTTP/1.1 100 Continue\r\n\r\n", .stay = TRUE};
  struct fixture self;
  g_autoptr(GByteArray) data = pattern(1000000);
  struct bytes bytes = {.data = data, .stop = 100000};
  const struct sandhost_source source = {.size = sizeof source, .user = &bytes, .read = give};
  const struct http_request request = {.method = "PUT", .url = URL, .upload = &source};
  fixture_begin(&self, script_canned, &canned);
  assert_fails(&self, &request, SANDHOST_CANCELLED, "the source of the request's body stopped", 1);
  fixture_end(&self);
}

static void test_closed_without_answer(void) {
  check_canned((struct canned){.bytes = ""}, 0, SANDHOST_UNAVAILABLE,
               "the peer closed the connection without an answer");
}

static void test_cut_in_header(void) {
  check_canned((struct canned){.bytes = "HTTP/1.1 200 OK\r\nContent-Le"}, 0, SANDHOST_UNAVAILABLE,
               "the peer broke the connection off in the middle of its answer");
}

static void test_cut_in_body(void) {
  check_canned((struct canned){.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"}, 0,
               SANDHOST_UNAVAILABLE,
               "the peer broke the connection off in the middle of its answer");
}

static void test_cut_in_chunk(void) {
  check_canned(
      (struct canned){.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc"}, 0,
      SANDHOST_UNAVAILABLE, "the peer broke the connection off in the middle of its answer");
}

static void test_mute(void) {
  check_canned((struct canned){.bytes = "", .stay = TRUE}, 200 * FAKE_MILLISECOND,
               SANDHOST_UNAVAILABLE, "the peer has said nothing for 0.2 s");
}

static void test_mute_in_body(void) {
  check_canned(
      (struct canned){.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", .stay = TRUE},
      200 * FAKE_MILLISECOND, SANDHOST_UNAVAILABLE, "the peer has said nothing for 0.2 s");
}

static void test_no_http(void) {
  check_canned((struct canned){.bytes = "SSH-2.0-OpenSSH_9.2p1\r\n"}, 0, SANDHOST_PROTOCOL,
               "the peer sent what is no HTTP answer (Received HTTP/0.9 when not allowed)");
}

/* curl takes what stands behind the version's first digit for the status. */
static void test_no_status(void) {
  check_canned(
      (struct canned){.bytes = "HTTP/201304  OK\r\nContent-Length: 2\r\n\r\nab", .stay = TRUE}, 0,
      SANDHOST_PROTOCOL, "the peer sent what is no HTTP answer");
}

static void test_bad_chunk(void) {
  check_canned(
      (struct canned){.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc"}, 0,
      SANDHOST_UNAVAILABLE, "the peer broke the connection off in the middle of its answer");
}

static void test_unasked_switch(void) {
  check_canned(
      (struct canned){.bytes = "HTTP/1.1 101 Switching\r\nUpgrade: tcp\r\n\r\nabc", .stay = TRUE},
      0, SANDHOST_PROTOCOL, "the peer switched protocols, which it was not asked to");
}

static void test_huge_content_length(void) {
  check_canned((struct canned){.bytes = "HTTP/1.1 200 OK\r\nContent-Length: "
                                        "99999999999999999999999999\r\n\r\nabc"},
               0, SANDHOST_PROTOCOL,
               "the peer sent what is no HTTP answer (Maximum file size exceeded)");
}

/* A length that is too small: what is behind it belongs to nobody, and the connection is not used again. */
static void test_short_content_length(void) {
  struct canned canned = {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcdef",
                          .stay = TRUE};
  struct fixture self;
  struct http_reply reply;
  fixture_begin(&self, script_canned, &canned);
  g_assert_cmpint(send_request(&self, &get, &reply), ==, SANDHOST_OK);
  g_assert_cmpstr(reply.body, ==, "ab");
  http_reply_clear(&reply);
  assert_unaffected(&self);
  g_assert_cmpint(fake_http_count(&self.http->connections), ==, 2);
  fixture_end(&self);
}

/* Repeats something until the other side has had enough. */
static void test_endless_body(void) {
  const char *const texts[] = {"HTTP/1.1 200 OK\r\n\r\n",
                               "0123456789012345678901234567890123456789"};
  struct fixture self;
  fixture_begin(&self, script_endless, (void *)(gsize)texts);
  assert_fails(&self, &get, SANDHOST_PROTOCOL, "the peer sent an answer that is too long", 1);
  fixture_end(&self);
}

static void test_max_body(void) {
  struct fixture self;
  struct http_reply reply;
  g_autoptr(GByteArray) data = pattern(1000);
  struct http_request request = get;
  request.max_body = 1000;
  fixture_begin(&self, script_give, data);
  g_assert_cmpint(send_request(&self, &request, &reply), ==, SANDHOST_OK);
  g_assert_cmpuint(reply.length, ==, 1000);
  http_reply_clear(&reply);
  fixture_end(&self);
  request.max_body = 999;
  fixture_begin(&self, script_give, data);
  assert_fails(&self, &request, SANDHOST_PROTOCOL, "the peer sent an answer that is too long", 1);
  fixture_end(&self);
}

static void test_endless_error(void) {
  const char *const texts[] = {"HTTP/1.1 500 Bad\r\n\r\n",
                               "0123456789012345678901234567890123456789"};
  struct fixture self;
  struct http_reply reply;
  fixture_begin(&self, script_endless, (void *)(gsize)texts);
  g_assert_cmpint(send_request(&self, &get, &reply), ==, SANDHOST_OK);
  g_assert_cmpint(reply.status, ==, 500);
  g_assert_cmpuint(reply.length, ==, 65536);
  g_assert_cmpuint(strlen(reply.body), ==, 65536);
  http_reply_clear(&reply);
  assert_unaffected(&self);
  fixture_end(&self);
}

static void test_endless_headers(void) {
  const char *const texts[] = {"HTTP/1.1 200 OK\r\n", "X-Filler: 0123456789012345678901234\r\n"};
  struct fixture self;
  fixture_begin(&self, script_endless, (void *)(gsize)texts);
  assert_fails(&self, &get, SANDHOST_PROTOCOL, "the peer sent a header that is too long", 1);
  fixture_end(&self);
}

static void test_endless_header_line(void) {
  const char *const texts[] = {"HTTP/1.1 200 OK\r\nX: ",
                               "0123456789012345678901234567890123456789"};
  struct fixture self;
  fixture_begin(&self, script_endless, (void *)(gsize)texts);
  assert_fails(&self, &get, SANDHOST_PROTOCOL, "the peer sent a header that is too long", 1);
  fixture_end(&self);
}

static void script_drip(FakeHttp *http, int fd, int number) {
  (void)number;
  if (!next_bad(http, fd)) {
    return;
  }
  fake_http_say(fd, "HTTP/1.1 200 OK\r\n\r\n");
  while (fake_http_wait(http, fd, 5) && send(fd, "x", 1, MSG_NOSIGNAL) > 0) {
  }
}

/* Who drips is not silent: the deadline ends it. */
static void test_slow_drip(void) {
  struct fixture self;
  struct http_request request = get;
  request.silence = 20 * FAKE_SECOND;
  fixture_begin(&self, script_drip, NULL);
  self.call.deadline = fake_now() + 300 * FAKE_MILLISECOND;
  assert_fails(&self, &request, SANDHOST_TIMEOUT, "the deadline passed", 1);
  fixture_end(&self);
}

static void test_deadline(void) {
  struct canned canned = {.bytes = "", .stay = TRUE};
  struct fixture self;
  fixture_begin(&self, script_canned, &canned);
  self.call.deadline = fake_now() + 200 * FAKE_MILLISECOND;
  assert_fails(&self, &get, SANDHOST_TIMEOUT, "the deadline passed", 1);
  fixture_end(&self);
}

static void test_deadline_passed_before(void) {
  struct fixture self;
  struct http_reply reply;
  fixture_begin(&self, fake_http_serve, NULL);
  self.call.deadline = fake_now() - 1;
  g_assert_cmpint(send_request(&self, &get, &reply), ==, SANDHOST_TIMEOUT);
  g_assert_cmpstr(self.call.message, ==, "the deadline passed");
  g_assert_cmpint(self.call.may_have_happened, ==, 0);
  g_assert_cmpint(fake_http_count(&self.http->requests), ==, 0);
  fixture_end(&self);
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/http-client-hostile/upload-stopped", test_upload_stopped_by_source);
  g_test_add_func("/http-client-hostile/closed-without-answer", test_closed_without_answer);
  g_test_add_func("/http-client-hostile/cut-in-header", test_cut_in_header);
  g_test_add_func("/http-client-hostile/cut-in-body", test_cut_in_body);
  g_test_add_func("/http-client-hostile/cut-in-chunk", test_cut_in_chunk);
  g_test_add_func("/http-client-hostile/mute", test_mute);
  g_test_add_func("/http-client-hostile/mute-in-body", test_mute_in_body);
  g_test_add_func("/http-client-hostile/no-http", test_no_http);
  g_test_add_func("/http-client-hostile/no-status", test_no_status);
  g_test_add_func("/http-client-hostile/bad-chunk", test_bad_chunk);
  g_test_add_func("/http-client-hostile/unasked-switch", test_unasked_switch);
  g_test_add_func("/http-client-hostile/huge-content-length", test_huge_content_length);
  g_test_add_func("/http-client-hostile/short-content-length", test_short_content_length);
  g_test_add_func("/http-client-hostile/endless-body", test_endless_body);
  g_test_add_func("/http-client-hostile/max-body", test_max_body);
  g_test_add_func("/http-client-hostile/endless-error", test_endless_error);
  g_test_add_func("/http-client-hostile/endless-headers", test_endless_headers);
  g_test_add_func("/http-client-hostile/endless-header-line", test_endless_header_line);
  g_test_add_func("/http-client-hostile/slow-drip", test_slow_drip);
  g_test_add_func("/http-client-hostile/deadline", test_deadline);
  g_test_add_func("/http-client-hostile/deadline-before", test_deadline_passed_before);
  return g_test_run();
}
