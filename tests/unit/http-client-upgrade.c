/* SPDX-License-Identifier: Apache-2.0 */
/* http-client-upgrade.c: connections that become raw, and peers that do not let them. */
#include "fake-http.h"
#include "http-client.h"

#include <malloc.h>

#define PEER "the peer"
#define PATIENCE (60 * FAKE_SECOND)

struct fixture {
  FakeHttp *http;
  HttpClient *client;
  struct sandhost_call call;
};

static const struct http_request attach = {
    .method = "POST", .url = "http://docker/v1.41/containers/x/attach?stream=1"};

static void fixture_begin(struct fixture *self, fake_http_script script, void *data) {
  self->http = fake_http_start(script, data);
  const struct http_client_settings settings = {.unix_socket = self->http->path};
  self->client = http_client_new(&fake_host, &settings);
  fake_call_init(&self->call);
  self->call.deadline = fake_now() + PATIENCE;
}

static void fixture_end(struct fixture *self) {
  http_client_free(self->client);
  fake_http_end(self->http);
  fake_call_clear(&self->call);
}

/* Exactly length bytes of the channel, as text. Owned. */
static char *channel_read(ByteChannel *channel, gsize length) {
  char *text = g_malloc0(length + 1);
  for (gsize at = 0; at < length;) {
    struct pollfd fd = {.fd = channel->receive_fd(channel), .events = POLLIN};
    if (!channel->pending || !channel->pending(channel)) {
      g_assert_cmpint(poll(&fd, 1, 60000), >, 0);
    }
    ssize_t count = channel->receive(channel, text + at, length - at);
    g_assert_true(count > 0 || (count < 0 && errno == EAGAIN));
    at += count > 0 ? (gsize)count : 0;
  }
  return text;
}

static void channel_write(ByteChannel *channel, const char *text) {
  g_assert_cmpint(channel->send(channel, text, strlen(text)), ==, (ssize_t)strlen(text));
}

/* ---- Peers that switch ----------------------------------------------------------------------- */

struct switched {
  const char *answer;
  char *request; /* owned: what was asked */
};

static void script_switch(FakeHttp *http, int fd, int number) {
  (void)number;
  struct switched *switched = http->data;
  char got[5] = "";
  switched->request = fake_http_read(http, fd);
  fake_http_say(fd, switched->answer);
  if (fake_read_all(fd, got, 4)) {
    g_assert_cmpstr(got, ==, "ping");
    fake_http_say(fd, "pong");
    fake_http_keep_still(http, fd);
  }
}

static void check_switch(const char *answer, const char *behind) {
  struct switched switched = {.answer = answer};
  struct fixture self;
  struct http_reply reply;
  ByteChannel *channel = NULL;
  fixture_begin(&self, script_switch, &switched);
  g_assert_cmpint(http_client_upgrade(self.client, &self.call, PEER, &attach, &reply, &channel), ==,
                  SANDHOST_OK);
  g_assert_nonnull(channel);
  http_reply_clear(&reply);
  http_client_free(self.client); /* the channel outlives it */
  self.client = NULL;
  g_autofree char *first = channel_read(channel, strlen(behind));
  g_assert_cmpstr(first, ==, behind);
  channel_write(channel, "ping");
  g_autofree char *pong = channel_read(channel, 4);
  g_assert_cmpstr(pong, ==, "pong");
  channel->free(channel);
  g_assert_cmpstr(
      switched.request, ==,
      "POST /v1.41/containers/x/attach?stream=1 HTTP/1.1\r\nHost: docker\r\nUser-Agent: "
      "sandhost/0.0.0-test\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: "
      "0\r\n\r\n");
  fixture_end(&self);
  g_free(switched.request);
}

static void test_switch(void) {
  check_switch("HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
               "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
               "");
}

static void test_bytes_behind(void) {
  check_switch("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nhello",
               "hello");
}

static void test_old_engine(void) {
  check_switch("HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n", "");
}

static void test_preliminary(void) {
  check_switch("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 UPGRADED\r\n\r\n", "");
}

static void script_pieces(FakeHttp *http, int fd, int number) {
  (void)number;
  static const char answer[] = "HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n\r\nhello";
  if (fake_http_skip(http, fd)) {
    for (const char *at = answer; *at; at++) {
      fake_write_all(fd, at, 1);
      g_thread_yield();
    }
    fake_http_keep_still(http, fd);
  }
}

static void test_answer_in_pieces(void) {
  struct fixture self;
  struct http_reply reply;
  ByteChannel *channel = NULL;
  fixture_begin(&self, script_pieces, NULL);
  g_assert_cmpint(http_client_upgrade(self.client, &self.call, PEER, &attach, &reply, &channel), ==,
                  SANDHOST_OK);
  g_autofree char *text = channel_read(channel, 5);
  g_assert_cmpstr(text, ==, "hello");
  http_reply_clear(&reply);
  channel->free(channel);
  fixture_end(&self);
}

static void script_body(FakeHttp *http, int fd, int number) {
  (void)number;
  g_autofree char *request = fake_http_read(http, fd);
  g_assert_true(g_str_has_suffix(request,
                                 "Content-Type: application/json\r\nContent-Length: 14\r\n\r\n"

                                 "{\"Tty\":false}x"));
  fake_http_say(fd, "HTTP/1.1 101 UPGRADED\r\n\r\n");
  fake_http_keep_still(http, fd);
}

static void test_request_with_body(void) {
  const char *const headers[] = {"Content-Type: application/json", NULL};
  struct http_request request = attach;
  struct fixture self;
  struct http_reply reply;
  ByteChannel *channel = NULL;
  request.headers = headers;
  request.body = "{\"Tty\":false}x";
  request.body_length = 14;
  fixture_begin(&self, script_body, NULL);
  g_assert_cmpint(http_client_upgrade(self.client, &self.call, PEER, &request, &reply, &channel),
                  ==, SANDHOST_OK);
  http_reply_clear(&reply);
  channel->free(channel);
  fixture_end(&self);
}

/* ---- Peers that refuse ----------------------------------------------------------------------- */

struct canned {
  const char *bytes;
  gboolean stay; /* open and silent behind them; else the peer closes */
};

static void script_canned(FakeHttp *http, int fd, int number) {
  const struct canned *canned = http->data;
  if (number > 0) {
    fake_http_serve(http, fd, number);
  } else if (fake_http_skip(http, fd)) {
    fake_http_say(fd, canned->bytes);
    if (canned->stay) {
      fake_http_keep_still(http, fd);
    }
  }
}

/* Another request on the same client works, whatever became of the first. */
static void assert_unaffected(struct fixture *self) {
  struct sandhost_call call;
  struct http_reply reply;
  const struct http_request get = {.method = "GET", .url = "http://docker/x"};
  fake_call_init(&call);
  call.deadline = fake_now() + PATIENCE;
  g_assert_cmpint(http_client_send(self->client, &call, PEER, &get, &reply), ==, SANDHOST_OK);
  http_reply_clear(&reply);
  fake_call_clear(&call);
}

static void check_refusal(const char *answer, gboolean stay, long status, const char *body) {
  struct canned canned = {.bytes = answer, .stay = stay};
  struct fixture self;
  struct http_reply reply;
  ByteChannel *channel = NULL;
  fixture_begin(&self, script_canned, &canned);
  g_assert_cmpint(http_client_upgrade(self.client, &self.call, PEER, &attach, &reply, &channel), ==,
                  SANDHOST_OK);
  g_assert_null(channel);
  g_assert_cmpint(reply.status, ==, status);
  g_assert_cmpstr(reply.body, ==, body);
  g_assert_cmpuint(reply.length, ==, strlen(body));
  http_reply_clear(&reply);
  assert_unaffected(&self);
  fixture_end(&self);
}

static void test_refusal(void) {
  check_refusal("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: "
                "7\r\n\r\n{\"a\":1}",
                TRUE, 404, "{\"a\":1}");
}

static void test_refusal_in_chunks(void) {
  check_refusal("HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n"
                "4;x=y\r\n\":1}\r\n0\r\n\r\n",
                TRUE, 409, "{\"a\":1}");
}

static void test_refusal_to_the_end(void) {
  check_refusal("HTTP/1.1 500 Oops\r\n\r\nsome text", FALSE, 500, "some text");
}

static void test_refusal_cut(void) {
  check_refusal("HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nsome text", FALSE, 500,
                "some text");
}

static void test_plain_answer(void) {
  check_refusal("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", TRUE, 200, "{}");
}

/* ---- Hostile ones ---------------------------------------------------------------------------- */

static void check_failure(struct canned canned, int64_t silence, int32_t status,
                          const char *message) {
  struct http_request request = attach;
  struct fixture self;
  struct http_reply reply;
  ByteChannel *channel = NULL;
  request.silence = silence;
  fixture_begin(&self, script_canned, &canned);
  g_assert_cmpint(http_client_upgrade(self.client, &self.call, PEER, &request, &reply, &channel),
                  ==, status);
  g_assert_cmpstr(self.call.message, ==, message);
  g_assert_cmpint(self.call.may_have_happened, ==, 1);
  assert_unaffected(&self);
  fixture_end(&self);
}

static void test_closed(void) {
  check_failure((struct canned){.bytes = ""}, 0, SANDHOST_UNAVAILABLE,
                "the peer closed the connection without an answer");
}

static void test_cut_in_header(void) {
  check_failure((struct canned){.bytes = "HTTP/1.1 101 UPGR"}, 0, SANDHOST_UNAVAILABLE,
                "the peer broke the connection off in the middle of its answer");
}

static void test_mute(void) {
  check_failure((struct canned){.bytes = "HTTP/1.1 101", .stay = TRUE}, 200 * FAKE_MILLISECOND,
                SANDHOST_UNAVAILABLE, "the peer has said nothing for 0.2 s");
}

static void test_mute_in_refusal(void) {
  check_failure(
      (struct canned){.bytes = "HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\nabc", .stay = TRUE},
      200 * FAKE_MILLISECOND, SANDHOST_UNAVAILABLE, "the peer has said nothing for 0.2 s");
}

static void test_no_http(void) {
  check_failure((struct canned){.bytes = "SSH-2.0-OpenSSH_9.2p1\r\n", .stay = TRUE}, 0,
                SANDHOST_PROTOCOL, "the peer sent what is no HTTP answer");
}

static void test_bad_heads(void) {
  static const char *const heads[] = {
      "HTTP/1.1 1x1 A\r\n\r\n",
      "HTTP/2 101\r\n\r\n",
      "HTTP/1.1 1011\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
      "HTTP/1.1 500 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  };
  for (gsize i = 0; i < G_N_ELEMENTS(heads); i++) {
    check_failure((struct canned){.bytes = heads[i], .stay = TRUE}, 0, SANDHOST_PROTOCOL,
                  "the peer sent what is no HTTP answer");
  }
}

static void script_endless(FakeHttp *http, int fd, int number) {
  const char *const *texts = http->data;
  if (number > 0) {
    fake_http_serve(http, fd, number);
  } else if (fake_http_skip(http, fd)) {
    fake_http_say(fd, texts[0]);
    while (send(fd, texts[1], strlen(texts[1]), MSG_NOSIGNAL) > 0) {
    }
  }
}

static void test_endless_header(void) {
  static const char *const texts[][2] = {{"HTTP/1.1 101 OK\r\n", "X-Filler: 012345678901234\r\n"},
                                         {"HTTP/1.1 101 OK\r\nX: ", "01234567890123456789012345"},
                                         {"", "HTTP/1.1 100 Continue\r\n\r\n"}};
  for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
    struct fixture self;
    struct http_reply reply;
    ByteChannel *channel = NULL;
    fixture_begin(&self, script_endless, (void *)(gsize)texts[i]);
    g_assert_cmpint(http_client_upgrade(self.client, &self.call, PEER, &attach, &reply, &channel),
                    ==, SANDHOST_PROTOCOL);
    g_assert_cmpstr(self.call.message, ==, "the peer sent a header that is too long");
    assert_unaffected(&self);
    fixture_end(&self);
  }
}

static void test_endless_refusal(void) {
  static const char *const texts[][2] = {
      {"HTTP/1.1 500 X\r\n\r\n", "0123456789"},
      {"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n", "a\r\n0123456789\r\n"}};
  for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
    struct fixture self;
    struct http_reply reply;
    ByteChannel *channel = NULL;
    fixture_begin(&self, script_endless, (void *)(gsize)texts[i]);
    g_assert_cmpint(http_client_upgrade(self.client, &self.call, PEER, &attach, &reply, &channel),
                    ==, SANDHOST_OK);
    g_assert_cmpint(reply.status, ==, 500);
    g_assert_cmpuint(reply.length, ==, 65536);
    http_reply_clear(&reply);
    assert_unaffected(&self);
    fixture_end(&self);
  }
}

static void test_deadline(void) {
  struct canned canned = {.bytes = "", .stay = TRUE};
  struct fixture self;
  struct http_reply reply;
  ByteChannel *channel = NULL;
  fixture_begin(&self, script_canned, &canned);
  self.call.deadline = fake_now() + 200 * FAKE_MILLISECOND;
  g_assert_cmpint(http_client_upgrade(self.client, &self.call, PEER, &attach, &reply, &channel), ==,
                  SANDHOST_TIMEOUT);
  g_assert_cmpstr(self.call.message, ==, "the deadline passed");
  assert_unaffected(&self);
  fixture_end(&self);
}

static void test_cancel(void) {
  struct canned canned = {.bytes = "", .stay = TRUE};
  struct fixture self;
  struct http_reply reply;
  ByteChannel *channel = NULL;
  fixture_begin(&self, script_canned, &canned);
  struct fake_canceller canceller = {.call = &self.call, .flag = &self.http->requests};
  GThread *thread = g_thread_new("cancel", fake_cancel_when, &canceller);
  g_assert_cmpint(http_client_upgrade(self.client, &self.call, PEER, &attach, &reply, &channel), ==,
                  SANDHOST_CANCELLED);
  g_thread_join(thread);
  g_assert_cmpstr(self.call.message, ==, "cancelled");
  assert_unaffected(&self);
  fixture_end(&self);
}

static void test_no_socket(void) {
  struct sandhost_call call;
  struct http_reply reply;
  ByteChannel *channel = NULL;
  const struct http_client_settings settings = {.unix_socket = "/nonexistent/engine.sock"};
  g_autoptr(HttpClient) client = http_client_new(&fake_host, &settings);
  fake_call_init(&call);
  g_assert_cmpint(http_client_upgrade(client, &call, PEER, &attach, &reply, &channel), ==,
                  SANDHOST_UNAVAILABLE);
  g_assert_cmpstr(call.message, ==, "the peer is not reachable: No such file or directory");
  g_assert_cmpint(call.may_have_happened, ==, 0);
  fake_call_clear(&call);
}

/* ---- What it costs --------------------------------------------------------------------------- */

#define CHANNELS 50

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static void test_idle_channels_are_cheap(void) {
  g_test_skip("a sanitizer's allocator does not count as malloc does");
}
#else
/* One thread for all connections, so that the test's own threads do not count. */
static gpointer switch_all(gpointer data) {
  int listen_fd = *(const int *)data;
  static int fds[CHANNELS];
  for (int i = 0; i < CHANNELS; i++) {
    char buffer[1024];
    /* cppcheck-suppress nullPointer; accept4(2) takes none where nobody asks who it is */
    fds[i] = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(recv(fds[i], buffer, sizeof buffer, 0), >, 0);
    fake_http_say(fds[i], "HTTP/1.1 101 UPGRADED\r\n\r\n");
  }
  for (int i = 0; i < CHANNELS; i++) {
    fake_wait_for_end(fds[i]);
    close(fds[i]);
  }
  return NULL;
}

/* An open channel costs a descriptor and next to no memory. */
static void test_idle_channels_are_cheap(void) {
  struct fixture self;
  struct http_reply reply;
  ByteChannel *channels[CHANNELS];
  size_t before = 0;
  fixture_begin(&self, fake_http_serve, NULL);
  g_autofree char *path = g_build_filename(self.http->folder, "many.sock", NULL);
  int listen_fd = fake_http_listen(path, CHANNELS);
  const struct http_client_settings settings = {.unix_socket = path};
  HttpClient *client = http_client_new(&fake_host, &settings);
  GThread *thread = g_thread_new("switch", switch_all, &listen_fd);
  for (gsize i = 0; i < CHANNELS; i++) {
    if (i == 1) { /* what the first one made for all is made */
      before = mallinfo2().uordblks;
    }
    g_assert_cmpint(http_client_upgrade(client, &self.call, PEER, &attach, &reply, &channels[i]),
                    ==, SANDHOST_OK);
    http_reply_clear(&reply);
  }
  size_t each = (mallinfo2().uordblks - before) / (CHANNELS - 1);
  g_test_message("bytes of memory for an open channel: %zu", each);
  g_assert_cmpuint(each, <, 1024);
  for (gsize i = 0; i < CHANNELS; i++) {
    channels[i]->free(channels[i]);
  }
  g_thread_join(thread);
  http_client_free(client);
  close(listen_fd);
  g_unlink(path);
  fixture_end(&self);
}
#endif

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/http-client-upgrade/switch", test_switch);
  g_test_add_func("/http-client-upgrade/bytes-behind", test_bytes_behind);
  g_test_add_func("/http-client-upgrade/old-engine", test_old_engine);
  g_test_add_func("/http-client-upgrade/preliminary", test_preliminary);
  g_test_add_func("/http-client-upgrade/pieces", test_answer_in_pieces);
  g_test_add_func("/http-client-upgrade/body", test_request_with_body);
  g_test_add_func("/http-client-upgrade/refusal", test_refusal);
  g_test_add_func("/http-client-upgrade/refusal-chunks", test_refusal_in_chunks);
  g_test_add_func("/http-client-upgrade/refusal-to-end", test_refusal_to_the_end);
  g_test_add_func("/http-client-upgrade/refusal-cut", test_refusal_cut);
  g_test_add_func("/http-client-upgrade/plain-answer", test_plain_answer);
  g_test_add_func("/http-client-upgrade/closed", test_closed);
  g_test_add_func("/http-client-upgrade/cut-in-header", test_cut_in_header);
  g_test_add_func("/http-client-upgrade/mute", test_mute);
  g_test_add_func("/http-client-upgrade/mute-in-refusal", test_mute_in_refusal);
  g_test_add_func("/http-client-upgrade/no-http", test_no_http);
  g_test_add_func("/http-client-upgrade/bad-heads", test_bad_heads);
  g_test_add_func("/http-client-upgrade/endless-header", test_endless_header);
  g_test_add_func("/http-client-upgrade/endless-refusal", test_endless_refusal);
  g_test_add_func("/http-client-upgrade/deadline", test_deadline);
  g_test_add_func("/http-client-upgrade/cancel", test_cancel);
  g_test_add_func("/http-client-upgrade/no-socket", test_no_socket);
  g_test_add_func("/http-client-upgrade/cheap", test_idle_channels_are_cheap);
  return g_test_run();
}
