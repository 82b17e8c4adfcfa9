/* SPDX-License-Identifier: Apache-2.0 */
/* http-client.c: requests to a peer that answers, connections that are kept or cannot be made, and cancelled calls. */
#include "http-fixture.h"

/* ---- Answers --------------------------------------------------------------------------------- */

static void script_echo(FakeHttp *http, int fd, int number) {
  (void)number;
  for (;;) {
    g_autofree char *request = fake_http_read(http, fd);
    if (!request) {
      return;
    }
    fake_http_answer(fd, "200 OK", request);
  }
}

static void test_get(void) {
  struct fixture self;
  struct http_reply reply;
  const char *const headers[] = {"X-One: 1", NULL};
  const struct http_request request = {
      .method = "GET", .url = "http://docker/v1.41/info?a=b", .headers = headers};
  fixture_begin(&self, script_echo, NULL);
  g_assert_cmpint(send_request(&self, &request, &reply), ==, SANDHOST_OK);
  g_assert_cmpint(reply.status, ==, 200);
  g_assert_cmpstr(reply.content_type, ==, "application/json");
  g_assert_cmpstr(reply.body, ==,
                  "GET /v1.41/info?a=b HTTP/1.1\r\nHost: docker\r\nUser-Agent: "
                  "sandhost/0.0.0-test\r\nAccept: */*\r\nX-One: 1\r\n\r\n");
  g_assert_cmpuint(reply.length, ==, strlen(reply.body));
  http_reply_clear(&reply);
  fixture_end(&self);
}

static void test_post_body(void) {
  struct fixture self;
  struct http_reply reply;
  const char *const headers[] = {"Content-Type: application/json", NULL};
  const struct http_request request = {.method = "POST",
                                       .url = "http://docker/x",
                                       .headers = headers,
                                       .body = "{\"a\":1}",
                                       .body_length = 7};
  fixture_begin(&self, script_echo, NULL);
  g_assert_cmpint(send_request(&self, &request, &reply), ==, SANDHOST_OK);
  g_assert_cmpstr(reply.body, ==,
                  "POST /x HTTP/1.1\r\nHost: docker\r\nUser-Agent: sandhost/0.0.0-test\r\nAccept: "
                  "*/*\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}");
  http_reply_clear(&reply);
  fixture_end(&self);
}

static void test_methods_without_body(void) {
  static const char *const methods[] = {"POST", "PUT", "DELETE"};
  struct fixture self;
  fixture_begin(&self, script_echo, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(methods); i++) {
    struct http_reply reply;
    const struct http_request request = {.method = methods[i], .url = URL};
    g_assert_cmpint(send_request(&self, &request, &reply), ==, SANDHOST_OK);
    g_autofree char *start = g_strdup_printf("%s /thing HTTP/1.1\r\n", methods[i]);
    g_assert_true(g_str_has_prefix(reply.body, start));
    g_assert_null(strstr(reply.body, "Content-Type"));
    g_assert_cmpint(strstr(reply.body, "Content-Length: 0\r\n") != NULL, ==, i < 2);
    http_reply_clear(&reply);
  }
  fixture_end(&self);
}

static void script_head(FakeHttp *http, int fd, int number) {
  (void)number;
  while (fake_http_skip(http, fd)) {
    fake_http_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  }
}

static void test_head_has_no_body(void) {
  struct fixture self;
  struct http_reply reply;
  const struct http_request request = {.method = "HEAD", .url = URL};
  fixture_begin(&self, script_head, NULL);
  for (int i = 0; i < 2; i++) {
    g_assert_cmpint(send_request(&self, &request, &reply), ==, SANDHOST_OK);
    g_assert_cmpstr(reply.body, ==, "");
    http_reply_clear(&reply);
  }
  g_assert_cmpint(fake_http_count(&self.http->connections), ==, 1);
  fixture_end(&self);
}

static void script_refuse(FakeHttp *http, int fd, int number) {
  (void)number;
  while (next_bad(http, fd)) {
    fake_http_say(fd, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: "
                      "4\r\n\r\nwait");
  }
}

static void test_retry_after(void) {
  struct fixture self;
  struct http_reply reply;
  fixture_begin(&self, script_refuse, NULL);
  g_assert_cmpint(send_request(&self, &get, &reply), ==, SANDHOST_OK);
  g_assert_cmpint(reply.status, ==, 429);
  g_assert_cmpint(reply.retry_after, ==, 7 * FAKE_SECOND);
  g_assert_cmpstr(reply.body, ==, "wait");
  http_reply_clear(&reply);
  fixture_end(&self);
}

static void test_connection_is_kept(void) {
  struct fixture self;
  struct http_reply reply;
  fixture_begin(&self, fake_http_serve, NULL);
  for (int i = 0; i < 10; i++) {
    g_assert_cmpint(send_request(&self, i % 2 ? &post : &get, &reply), ==, SANDHOST_OK);
    http_reply_clear(&reply);
  }
  g_assert_cmpint(fake_http_count(&self.http->connections), ==, 1);
  g_assert_cmpint(fake_http_count(&self.http->requests), ==, 10);
  fixture_end(&self);
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* The body of a chunked upload, with the answer that Expect asks for; the length in hex. */
static void script_take_upload(FakeHttp *http, int fd, int number) {
  (void)number;
  GByteArray *got = http->data;
  g_autofree char *request = fake_http_read(http, fd);
  g_assert_nonnull(strstr(request, "Transfer-Encoding: chunked\r\n"));
  if (strstr(request, "Expect: 100-continue")) {
    fake_http_say(fd, "HTTP/1.1 100 Continue\r\n\r\n");
  }
  for (;;) {
    g_autoptr(GString) line = g_string_new(NULL);
    char byte = 0;
    while (byte != '\n') {
      g_assert_true(fake_read_all(fd, &byte, 1));
      g_string_append_c(line, byte);
    }
    gsize length = (gsize)g_ascii_strtoull(line->str, NULL, 16);
    g_autofree char *chunk = g_malloc(length + 2);
    g_assert_true(fake_read_all(fd, chunk, length + 2));
    g_byte_array_append(got, (guint8 *)chunk, (guint)length);
    if (length == 0) {
      break;
    }
  }
  fake_http_answer(fd, "200 OK", "{}");
  fake_http_keep_still(http, fd);
}

static void test_upload(void) {
  struct fixture self;
  struct http_reply reply;
  g_autoptr(GByteArray) data = pattern(3000001);
  g_autoptr(GByteArray) got = g_byte_array_new();
  struct bytes bytes = {.data = data};
  const struct sandhost_source source = {.size = sizeof source, .user = &bytes, .read = give};
  const struct http_request request = {.method = "PUT", .url = URL, .upload = &source};
  fixture_begin(&self, script_take_upload, got);
  g_assert_cmpint(send_request(&self, &request, &reply), ==, SANDHOST_OK);
  g_assert_cmpint(reply.status, ==, 200);
  g_assert_cmpuint(got->len, ==, data->len);
  g_assert_true(memcmp(got->data, data->data, data->len) == 0);
  http_reply_clear(&reply);
  fixture_end(&self);
}

static void script_refuse_upload(FakeHttp *http, int fd, int number) {
  (void)number;
  if (next_bad(http, fd)) {
    fake_http_answer(fd, "404 Not Found", "{\"message\":\"no such container\"}");
    fake_http_keep_still(http, fd);
  }
}

/* An engine that wants no upload says so before it got any of it. */
static void test_upload_refused_early(void) {
  struct fixture self;
  struct http_reply reply;
  g_autoptr(GByteArray) data = pattern(30000000);
  struct bytes bytes = {.data = data};
  const struct sandhost_source source = {.size = sizeof source, .user = &bytes, .read = give};
  const struct http_request request = {.method = "PUT", .url = URL, .upload = &source};
  fixture_begin(&self, script_refuse_upload, NULL);
  g_assert_cmpint(send_request(&self, &request, &reply), ==, SANDHOST_OK);
  g_assert_cmpint(reply.status, ==, 404);
  g_assert_cmpstr(reply.body, ==, "{\"message\":\"no such container\"}");
  http_reply_clear(&reply);
  assert_unaffected(&self);
  fixture_end(&self);
}

/* One that finds out in the middle is heard as well. */
static void script_refuse_midway(FakeHttp *http, int fd, int number) {
  (void)number;
  static char some[100000];
  if (!next_bad(http, fd)) {
    return;
  }
  fake_http_say(fd, "HTTP/1.1 100 Continue\r\n\r\n");
  g_assert_true(fake_read_all(fd, some, sizeof some));
  fake_http_answer(fd, "500 Internal Server Error", "{\"message\":\"no space left\"}");
  fake_http_keep_still(http, fd);
}

static void test_upload_refused_midway(void) {
  struct fixture self;
  struct http_reply reply;
  g_autoptr(GByteArray) data = pattern(30000000);
  struct bytes bytes = {.data = data};
  const struct sandhost_source source = {.size = sizeof source, .user = &bytes, .read = give};
  const struct http_request request = {.method = "PUT", .url = URL, .upload = &source};
  fixture_begin(&self, script_refuse_midway, NULL);
  g_assert_cmpint(send_request(&self, &request, &reply), ==, SANDHOST_OK);
  g_assert_cmpint(reply.status, ==, 500);
  g_assert_cmpstr(reply.body, ==, "{\"message\":\"no space left\"}");
  http_reply_clear(&reply);
  assert_unaffected(&self);
  fixture_end(&self);
}

static void test_download_to_sink(void) {
  struct fixture self;
  struct http_reply reply;
  g_autoptr(GByteArray) data = pattern(3000001);
  struct bytes bytes = {.data = g_byte_array_new()};
  const struct sandhost_sink sink = {.size = sizeof sink, .user = &bytes, .write = keep};
  const struct http_request request = {.method = "GET", .url = URL, .sink = &sink};
  fixture_begin(&self, script_give, data);
  g_assert_cmpint(send_request(&self, &request, &reply), ==, SANDHOST_OK);
  g_assert_cmpuint(reply.length, ==, 0);
  g_assert_cmpuint(bytes.data->len, ==, data->len);
  g_assert_true(memcmp(bytes.data->data, data->data, data->len) == 0);
  g_byte_array_unref(bytes.data);
  http_reply_clear(&reply);
  fixture_end(&self);
}

static void test_download_stopped_by_sink(void) {
  struct fixture self;
  g_autoptr(GByteArray) data = pattern(3000001);
  struct bytes bytes = {.data = g_byte_array_new(), .stop = 100000};
  const struct sandhost_sink sink = {.size = sizeof sink, .user = &bytes, .write = keep};
  const struct http_request request = {.method = "GET", .url = URL, .sink = &sink};
  fixture_begin(&self, script_give, data);
  assert_fails(&self, &request, SANDHOST_CANCELLED, "the receiver of the answer stopped", 1);
  g_byte_array_unref(bytes.data);
  fixture_end(&self);
}

static void test_error_does_not_reach_sink(void) {
  struct fixture self;
  struct http_reply reply;
  struct bytes bytes = {.data = g_byte_array_new()};
  const struct sandhost_sink sink = {.size = sizeof sink, .user = &bytes, .write = keep};
  const struct http_request request = {.method = "GET", .url = URL, .sink = &sink};
  fixture_begin(&self, script_refuse, NULL);
  g_assert_cmpint(send_request(&self, &request, &reply), ==, SANDHOST_OK);
  g_assert_cmpstr(reply.body, ==, "wait");
  g_assert_cmpuint(bytes.data->len, ==, 0);
  g_byte_array_unref(bytes.data);
  http_reply_clear(&reply);
  fixture_end(&self);
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

static void check_cancel(struct fixture *self, const struct http_request *request, int *flag,
                         gboolean with_descriptor) {
  struct fake_canceller canceller = {.call = &self->call, .flag = flag};
  struct http_reply reply;
  if (!with_descriptor) {
    close(self->call.cancel_fd);
    self->call.cancel_fd = -1;
  }
  GThread *thread = g_thread_new("cancel", fake_cancel_when, &canceller);
  g_assert_cmpint(send_request(self, request, &reply), ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(self->call.message, ==, "cancelled");
  g_thread_join(thread);
}

static void test_cancel_while_waiting(void) {
  struct canned canned = {.bytes = "", .stay = TRUE};
  struct fixture self;
  for (int i = 0; i < 2; i++) {
    fixture_begin(&self, script_canned, &canned);
    check_cancel(&self, &get, &self.http->requests, i == 0);
    g_assert_cmpint(self.call.may_have_happened, ==, 1);
    assert_unaffected(&self);
    fixture_end(&self);
  }
}

static int waits; /* atomic */

static int32_t count_waits(const struct sandhost_call *call, int32_t fd, int32_t events,
                           int64_t duration) {
  __atomic_fetch_add(&waits, 1, __ATOMIC_SEQ_CST);
  return fake_host_wait(call, fd, events, duration);
}

/* A peer that never takes a connection out of its full queue. */
static void test_cancel_while_connecting(void) {
  struct fixture self;
  fixture_begin(&self, fake_http_serve, NULL);
  g_autofree char *path = g_build_filename(self.http->folder, "mute.sock", NULL);
  int listener = fake_http_listen(path, 0);
  const struct http_client_settings settings = {.unix_socket = path};
  struct sandhost_host host = fake_host;
  host.wait = count_waits;
  g_autoptr(HttpClient) client = http_client_new(&host, &settings);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, path, strlen(path));
  int filler = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint(connect(filler, (const struct sockaddr *)&address, sizeof address), ==, 0);
  struct fake_canceller canceller = {.call = &self.call, .flag = &waits};
  struct http_reply reply;
  GThread *thread = g_thread_new("cancel", fake_cancel_when, &canceller);
  int32_t status = http_client_send(client, &self.call, PEER, &get, &reply);
  g_thread_join(thread);
  g_assert_cmpstr(self.call.message, ==, "cancelled");
  g_assert_cmpint(status, ==, SANDHOST_CANCELLED);
  g_assert_cmpint(self.call.may_have_happened, ==, 0);
  close(filler);
  close(listener);
  g_unlink(path);
  fixture_end(&self);
}

static void test_cancel_while_uploading(void) {
  struct canned canned = {.bytes = "HTTP/1.1 100 Continue\r\n\r\n", .stay = TRUE};
  struct fixture self;
  g_autoptr(GByteArray) data = pattern(100000000);
  int begun = 0;
  struct bytes bytes = {.data = data, .begun = &begun};
  const struct sandhost_source source = {.size = sizeof source, .user = &bytes, .read = give};
  const struct http_request request = {.method = "PUT", .url = URL, .upload = &source};
  fixture_begin(&self, script_canned, &canned);
  check_cancel(&self, &request, &begun, TRUE);
  assert_unaffected(&self);
  fixture_end(&self);
}

static void test_cancel_while_downloading(void) {
  const char *const texts[] = {"HTTP/1.1 200 OK\r\n\r\n",
                               "0123456789012345678901234567890123456789"};
  struct fixture self;
  int begun = 0;
  struct bytes bytes = {.data = g_byte_array_new(), .begun = &begun};
  const struct sandhost_sink sink = {.size = sizeof sink, .user = &bytes, .write = keep};
  const struct http_request request = {.method = "GET", .url = URL, .sink = &sink};
  fixture_begin(&self, script_endless, (void *)(gsize)texts);
  check_cancel(&self, &request, &begun, TRUE);
  g_byte_array_unref(bytes.data);
  assert_unaffected(&self);
  fixture_end(&self);
}

/* ---- Kept connections that are dead ---------------------------------------------------------- */

/* The first connection answers once and is then closed, before or after it took a second request. */
static void script_stale(FakeHttp *http, int fd, int number) {
  const int *taken = http->data;
  if (number > 0) {
    fake_http_serve(http, fd, number);
    return;
  }
  for (int i = 0; i <= *taken && fake_http_skip(http, fd); i++) {
    if (i == 0) {
      fake_http_answer(fd, "200 OK", "{}");
    }
  }
}

/* Until the peer has closed its end. */
static void begin_stale(struct fixture *self, int *taken) {
  struct http_reply reply;
  fixture_begin(self, script_stale, taken);
  g_assert_cmpint(send_request(self, &get, &reply), ==, SANDHOST_OK);
  http_reply_clear(&reply);
  if (*taken == 0) {
    while (fake_http_count(&self->http->closed) == 0) {
      g_thread_yield();
    }
  }
}

static void test_stale_connection(void) {
  static const struct http_request *const requests[] = {&get, &post};
  for (gsize i = 0; i < G_N_ELEMENTS(requests); i++) {
    struct fixture self;
    struct http_reply reply;
    int taken = 0;
    begin_stale(&self, &taken);
    g_assert_cmpint(send_request(&self, requests[i], &reply), ==, SANDHOST_OK);
    http_reply_clear(&reply);
    g_assert_cmpint(fake_http_count(&self.http->requests), ==, 2);
    fixture_end(&self);
  }
}

/* What the peer took and did not answer is asked again where that does no harm, */
static void test_unanswered_get_is_repeated(void) {
  struct fixture self;
  struct http_reply reply;
  int taken = 1;
  begin_stale(&self, &taken);
  g_assert_cmpint(send_request(&self, &get, &reply), ==, SANDHOST_OK);
  http_reply_clear(&reply);
  g_assert_cmpint(fake_http_count(&self.http->requests), ==, 3);
  fixture_end(&self);
}

/* and else is not. */
static void test_unanswered_post_is_not_repeated(void) {
  struct fixture self;
  struct http_reply reply;
  int taken = 1;
  begin_stale(&self, &taken);
  g_assert_cmpint(send_request(&self, &post, &reply), ==, SANDHOST_UNAVAILABLE);
  g_assert_cmpstr(self.call.message, ==, "the peer closed the connection without an answer");
  g_assert_cmpint(self.call.may_have_happened, ==, 1);
  g_assert_cmpint(fake_http_count(&self.http->requests), ==, 2);
  fixture_end(&self);
}

/* ---- No connection --------------------------------------------------------------------------- */

static char *explain_number(void *user, enum http_trouble trouble, int error_number,
                            const char *reason) {
  *(int *)user = error_number;
  return g_strdup_printf("%s (%d)", reason, (int)trouble);
}

static void test_no_socket(void) {
  struct sandhost_call call;
  struct http_reply reply;
  int number = 0;
  const struct http_client_settings settings = {
      .unix_socket = "/nonexistent/engine.sock", .explain = explain_number, .user = &number};
  g_autoptr(HttpClient) client = http_client_new(&fake_host, &settings);
  fake_call_init(&call);
  g_assert_cmpint(http_client_send(client, &call, PEER, &get, &reply), ==, SANDHOST_UNAVAILABLE);
  g_assert_cmpstr(call.message, ==, "the peer is not reachable: No such file or directory (0)");
  g_assert_cmpint(number, ==, ENOENT);
  g_assert_cmpint(call.may_have_happened, ==, 0);
  fake_call_clear(&call);
}

static int refuse_to_connect(void *user, char **ret_error) {
  (void)user;
  *ret_error = g_strdup("the program is not there");
  return -1;
}

static void test_connect_fails(void) {
  struct sandhost_call call;
  struct http_reply reply;
  const struct http_client_settings settings = {.connect = refuse_to_connect};
  g_autoptr(HttpClient) client = http_client_new(&fake_host, &settings);
  fake_call_init(&call);
  g_assert_cmpint(http_client_send(client, &call, PEER, &get, &reply), ==, SANDHOST_UNAVAILABLE);
  g_assert_cmpstr(call.message, ==, "the peer is not reachable: the program is not there");
  fake_call_clear(&call);
}

static void test_refused_port(void) {
  struct sandhost_call call;
  struct http_reply reply;
  const struct http_client_settings settings = {0};
  const struct http_request request = {.method = "GET", .url = "http://127.0.0.1:1/"};
  g_autoptr(HttpClient) client = http_client_new(&fake_host, &settings);
  fake_call_init(&call);
  g_setenv("http_proxy", "http://127.0.0.1:2", TRUE);
  g_assert_cmpint(http_client_send(client, &call, PEER, &request, &reply), ==,
                  SANDHOST_UNAVAILABLE);
  g_unsetenv("http_proxy");
  g_assert_cmpstr(call.message, ==, "the peer is not reachable: Connection refused");
  fake_call_clear(&call);
}

static void test_bad_requests(void) {
  static const char *const folded[] = {"X: a\r\nY: b", NULL};
  static const struct http_request requests[] = {
      {.method = "GET /x", .url = URL},
      {.method = "GET", .url = "http://peer/a b"},
      {.method = "GET", .url = "http://peer/\r\nX:"},
      {.method = "GET", .url = "file:///etc/passwd"},
      {.method = "GET", .url = URL, .headers = folded},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(requests); i++) {
    struct fixture self;
    struct http_reply reply;
    fixture_begin(&self, fake_http_serve, NULL);
    g_assert_cmpint(send_request(&self, &requests[i], &reply), ==, SANDHOST_INVALID);
    g_assert_cmpint(fake_http_count(&self.http->connections), ==, 0);
    fixture_end(&self);
  }
}

/* ---- Many threads ---------------------------------------------------------------------------- */

static gpointer send_many(gpointer data) {
  struct fixture *self = data;
  for (int i = 0; i < 50; i++) {
    assert_unaffected(self);
  }
  return NULL;
}

static void script_good(FakeHttp *http, int fd, int number) {
  (void)number;
  while (next_bad(http, fd)) {
  }
}

static void test_many_threads(void) {
  struct fixture self;
  GThread *threads[16];
  fixture_begin(&self, script_good, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    threads[i] = g_thread_new("sender", send_many, &self);
  }
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    g_thread_join(threads[i]);
  }
  g_assert_cmpint(fake_http_count(&self.http->connections), <=, 800);
  fixture_end(&self);
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/http-client/get", test_get);
  g_test_add_func("/http-client/post-body", test_post_body);
  g_test_add_func("/http-client/methods-without-body", test_methods_without_body);
  g_test_add_func("/http-client/head", test_head_has_no_body);
  g_test_add_func("/http-client/retry-after", test_retry_after);
  g_test_add_func("/http-client/kept", test_connection_is_kept);
  g_test_add_func("/http-client/upload", test_upload);
  g_test_add_func("/http-client/upload-refused-early", test_upload_refused_early);
  g_test_add_func("/http-client/upload-refused-midway", test_upload_refused_midway);
  g_test_add_func("/http-client/download", test_download_to_sink);
  g_test_add_func("/http-client/download-stopped", test_download_stopped_by_sink);
  g_test_add_func("/http-client/error-not-to-sink", test_error_does_not_reach_sink);
  g_test_add_func("/http-client/cancel-waiting", test_cancel_while_waiting);
  g_test_add_func("/http-client/cancel-connecting", test_cancel_while_connecting);
  g_test_add_func("/http-client/cancel-uploading", test_cancel_while_uploading);
  g_test_add_func("/http-client/cancel-downloading", test_cancel_while_downloading);
  g_test_add_func("/http-client/stale", test_stale_connection);
  g_test_add_func("/http-client/unanswered-get", test_unanswered_get_is_repeated);
  g_test_add_func("/http-client/unanswered-post", test_unanswered_post_is_not_repeated);
  g_test_add_func("/http-client/no-socket", test_no_socket);
  g_test_add_func("/http-client/connect-fails", test_connect_fails);
  g_test_add_func("/http-client/refused-port", test_refused_port);
  g_test_add_func("/http-client/bad-requests", test_bad_requests);
  g_test_add_func("/http-client/many-threads", test_many_threads);
  return g_test_run();
}
