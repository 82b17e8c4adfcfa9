/* SPDX-License-Identifier: Apache-2.0 */
/* http-client-tls.c: encrypted connections: who is trusted, and raw bytes over them. */
#include "fake-tls.h"
#include "http-client.h"

#define PEER "the peer"
#define PATIENCE ((int64_t)60 * 1000000000)

/* An authority, a server and a client of it, and an authority that nobody knows. */
struct fixture {
  char *folder;
  struct fake_identity authority;
  struct fake_identity stranger;
  struct fake_identity server;
  struct fake_identity client;
  char *ca;
  char *other_ca;
  char *cert;
  char *key;
  FakeTls *tls;
  char *url;
  struct sandhost_call call;
};

static void fixture_begin(struct fixture *self, const char *names, gboolean wants_certificate,
                          fake_tls_script script, void *data) {
  self->folder = g_dir_make_tmp("sandhost-tls-XXXXXX", NULL);
  self->authority = fake_identity_new("authority", NULL, NULL);
  self->stranger = fake_identity_new("stranger", NULL, NULL);
  self->server = fake_identity_new("server", names, &self->authority);
  self->client = fake_identity_new("client", NULL, &self->authority);
  fake_identity_save(&self->authority, self->folder, "ca.pem", "ca-key.pem");
  fake_identity_save(&self->stranger, self->folder, "other.pem", "other-key.pem");
  fake_identity_save(&self->client, self->folder, "cert.pem", "key.pem");
  self->ca = g_build_filename(self->folder, "ca.pem", NULL);
  self->other_ca = g_build_filename(self->folder, "other.pem", NULL);
  self->cert = g_build_filename(self->folder, "cert.pem", NULL);
  self->key = g_build_filename(self->folder, "key.pem", NULL);
  self->tls =
      fake_tls_start(&self->server, wants_certificate ? &self->authority : NULL, script, data);
  self->url = g_strdup_printf("https://127.0.0.1:%u/x", self->tls->port);
  fake_call_init(&self->call);
  self->call.deadline = fake_now() + PATIENCE;
}

static void fixture_end(struct fixture *self) {
  static const char *const files[] = {"ca.pem",        "ca-key.pem", "other.pem",
                                      "other-key.pem", "cert.pem",   "key.pem"};
  fake_tls_end(self->tls);
  for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
    g_autofree char *path = g_build_filename(self->folder, files[i], NULL);
    g_unlink(path);
  }
  g_rmdir(self->folder);
  fake_identity_clear(&self->authority);
  fake_identity_clear(&self->stranger);
  fake_identity_clear(&self->server);
  fake_identity_clear(&self->client);
  g_free(self->folder);
  g_free(self->ca);
  g_free(self->other_ca);
  g_free(self->cert);
  g_free(self->key);
  g_free(self->url);
  fake_call_clear(&self->call);
}

static int32_t ask(struct fixture *self, const struct http_client_settings *settings) {
  g_autoptr(HttpClient) client = http_client_new(&fake_host, settings);
  const struct http_request request = {.method = "GET", .url = self->url};
  struct http_reply reply;
  int32_t status = http_client_send(client, &self->call, PEER, &request, &reply);
  if (status == SANDHOST_OK) {
    g_assert_cmpstr(reply.body, ==, "{}");
    http_reply_clear(&reply);
  }
  return status;
}

static void assert_message(struct fixture *self, const char *start, const char *part) {
  g_assert_true(g_str_has_prefix(self->call.message, start));
  g_assert_nonnull(strstr(self->call.message, part));
  g_assert_cmpint(self->call.may_have_happened, ==, 0);
}

#define TLS_FAILED "the peer is not reachable: "

static void test_good(void) {
  struct fixture self;
  fixture_begin(&self, "IP:127.0.0.1", FALSE, fake_tls_serve, NULL);
  const struct http_client_settings settings = {.ca_file = self.ca};
  g_assert_cmpint(ask(&self, &settings), ==, SANDHOST_OK);
  fixture_end(&self);
}

static void test_connection_is_kept(void) {
  struct fixture self;
  fixture_begin(&self, "IP:127.0.0.1", FALSE, fake_tls_serve, NULL);
  const struct http_client_settings settings = {.ca_file = self.ca};
  const struct http_request request = {.method = "GET", .url = self.url};
  HttpClient *client = http_client_new(&fake_host, &settings);
  for (int i = 0; i < 5; i++) {
    struct http_reply reply;
    g_assert_cmpint(http_client_send(client, &self.call, PEER, &request, &reply), ==, SANDHOST_OK);
    http_reply_clear(&reply);
  }
  http_client_free(client);
  g_assert_cmpint(self.tls->connections, ==, 1);
  g_assert_cmpint(self.tls->requests, ==, 5);
  fixture_end(&self);
}

static void test_wrong_name(void) {
  struct fixture self;
  fixture_begin(&self, "DNS:engine.example,IP:127.0.0.2", FALSE, fake_tls_serve, NULL);
  const struct http_client_settings settings = {.ca_file = self.ca};
  g_assert_cmpint(ask(&self, &settings), ==, SANDHOST_UNAVAILABLE);
  assert_message(&self, TLS_FAILED, "127.0.0.1");
  g_assert_cmpint(self.tls->requests, ==, 0);
  fixture_end(&self);
}

static void test_unknown_authority(void) {
  struct fixture self;
  fixture_begin(&self, "IP:127.0.0.1", FALSE, fake_tls_serve, NULL);
  const struct http_client_settings settings = {.ca_file = self.other_ca};
  g_assert_cmpint(ask(&self, &settings), ==, SANDHOST_UNAVAILABLE);
  assert_message(&self, TLS_FAILED, "certificate");
  g_assert_cmpint(self.tls->requests, ==, 0);
  fixture_end(&self);
}

static void test_system_does_not_know_it(void) {
  struct fixture self;
  fixture_begin(&self, "IP:127.0.0.1", FALSE, fake_tls_serve, NULL);
  const struct http_client_settings settings = {0};
  g_assert_cmpint(ask(&self, &settings), ==, SANDHOST_UNAVAILABLE);
  assert_message(&self, TLS_FAILED, "certificate");
  fixture_end(&self);
}

static void test_insecure(void) {
  struct fixture self;
  fixture_begin(&self, "DNS:engine.example", FALSE, fake_tls_serve, NULL);
  const struct http_client_settings settings = {.insecure = TRUE};
  g_assert_cmpint(ask(&self, &settings), ==, SANDHOST_OK);
  fixture_end(&self);
}

static void test_client_certificate(void) {
  struct fixture self;
  fixture_begin(&self, "IP:127.0.0.1", TRUE, fake_tls_serve, NULL);
  const struct http_client_settings settings = {
      .ca_file = self.ca, .cert_file = self.cert, .key_file = self.key};
  g_assert_cmpint(ask(&self, &settings), ==, SANDHOST_OK);
  fixture_end(&self);
}

static char *name_trouble(void *user, enum http_trouble trouble, int error_number,
                          const char *reason) {
  (void)error_number;
  (void)reason;
  *(enum http_trouble *)user = trouble;
  return NULL;
}

static void test_no_client_certificate(void) {
  struct fixture self;
  enum http_trouble trouble = HTTP_CUT;
  fixture_begin(&self, "IP:127.0.0.1", TRUE, fake_tls_serve, NULL);
  const struct http_client_settings settings = {
      .ca_file = self.ca, .explain = name_trouble, .user = &trouble};
  g_assert_cmpint(ask(&self, &settings), ==, SANDHOST_UNAVAILABLE);
  assert_message(&self, TLS_FAILED, "certificate required");
  g_assert_cmpint(trouble, ==, HTTP_NO_TLS);
  fixture_end(&self);
}

static void test_missing_file(void) {
  struct fixture self;
  fixture_begin(&self, "IP:127.0.0.1", FALSE, fake_tls_serve, NULL);
  const struct http_client_settings settings = {.ca_file = "/nonexistent/ca.pem"};
  g_assert_cmpint(ask(&self, &settings), ==, SANDHOST_UNAVAILABLE);
  assert_message(&self, TLS_FAILED, "/nonexistent/ca.pem");
  fixture_end(&self);
}

struct canceller {
  struct sandhost_call *call;
  int *connections; /* atomic */
};

static gpointer cancel_when_connected(gpointer data) {
  struct canceller *canceller = data;
  while (__atomic_load_n(canceller->connections, __ATOMIC_SEQ_CST) == 0) {
    g_usleep(1000);
  }
  fake_call_cancel(canceller->call);
  return NULL;
}

/* A peer that takes the connection and never shakes hands. */
static void check_mute_peer(gboolean upgrade, gboolean cancels, int32_t status,
                            const char *message) {
  FakeTls *tls = fake_tls_start(NULL, NULL, NULL, NULL);
  g_autofree char *url = g_strdup_printf("https://127.0.0.1:%u/x", tls->port);
  const struct http_request request = {.method = "GET", .url = url};
  const struct http_client_settings settings = {
      .insecure = TRUE, .connect_patience = cancels ? PATIENCE : 300 * FAKE_MILLISECOND};
  HttpClient *client = http_client_new(&fake_host, &settings);
  struct sandhost_call call;
  struct http_reply reply;
  ByteChannel *channel = NULL;
  struct canceller canceller = {.call = &call, .connections = &tls->connections};
  fake_call_init(&call);
  call.deadline = fake_now() + PATIENCE;
  GThread *thread = cancels ? g_thread_new("cancel", cancel_when_connected, &canceller) : NULL;
  g_assert_cmpint(upgrade ? http_client_upgrade(client, &call, PEER, &request, &reply, &channel)
                          : http_client_send(client, &call, PEER, &request, &reply),
                  ==, status);
  if (thread) {
    g_thread_join(thread);
  }
  g_assert_cmpstr(call.message, ==, message);
  g_assert_cmpint(call.may_have_happened, ==, 0);
  http_client_free(client);
  fake_tls_end(tls);
  fake_call_clear(&call);
}

static void test_mute_peer(void) {
  for (int upgrade = 0; upgrade < 2; upgrade++) {
    check_mute_peer(upgrade, FALSE, SANDHOST_UNAVAILABLE,
                    "the peer is not reachable: no connection within 0.3 s");
  }
}

static void test_cancel_in_handshake(void) {
  for (int upgrade = 0; upgrade < 2; upgrade++) {
    check_mute_peer(upgrade, TRUE, SANDHOST_CANCELLED, "cancelled");
  }
}

/* ---- Raw bytes ------------------------------------------------------------------------------- */

#define RECORD 10000

/* The answer, then one record; then everything comes back that the client sends. */
static void script_echo(FakeTls *tls, SSL *ssl, int number) {
  static char buffer[16384];
  (void)number;
  if (!fake_tls_read_request(tls, ssl)) {
    return;
  }
  fake_tls_say(ssl, "HTTP/1.1 101 UPGRADED\r\n\r\n");
  memset(buffer, 'x', RECORD);
  (void)SSL_write(ssl, buffer, RECORD);
  for (;;) {
    int count = SSL_read(ssl, buffer, sizeof buffer);
    if (count <= 0 || SSL_write(ssl, buffer, count) <= 0) {
      return;
    }
  }
}

static ByteChannel *open_raw(struct fixture *self, fake_tls_script script, void *data) {
  fixture_begin(self, "IP:127.0.0.1", FALSE, script, data);
  const struct http_client_settings settings = {.ca_file = self->ca};
  const struct http_request request = {.method = "POST", .url = self->url};
  HttpClient *client = http_client_new(&fake_host, &settings);
  struct http_reply reply;
  ByteChannel *channel = NULL;
  g_assert_cmpint(http_client_upgrade(client, &self->call, PEER, &request, &reply, &channel), ==,
                  SANDHOST_OK);
  g_assert_nonnull(channel);
  http_reply_clear(&reply);
  http_client_free(client); /* the channel outlives it */
  return channel;
}

/* A record that is read in small pieces stays announced, although its bytes have left the socket. */
static void test_pending(void) {
  struct fixture self;
  ByteChannel *channel = open_raw(&self, script_echo, NULL);
  char piece[1000];
  for (int got = 0; got < RECORD;) {
    struct pollfd fd = {.fd = channel->receive_fd(channel), .events = POLLIN};
    gboolean announced = channel->pending(channel) != 0;
    if (!announced) {
      g_assert_cmpint(poll(&fd, 1, 60000), ==, 1);
    }
    ssize_t count = channel->receive(channel, piece, sizeof piece);
    if (count < 0) {
      g_assert_false(announced);
      g_assert_cmpint(errno, ==, EAGAIN);
      continue;
    }
    g_assert_cmpint(count, >, 0);
    got += (int)count;
  }
  g_assert_cmpint(channel->pending(channel), ==, 0);
  g_assert_cmpint(channel->receive(channel, piece, sizeof piece), ==, -1);
  g_assert_cmpint(errno, ==, EAGAIN);
  channel->free(channel);
  fixture_end(&self);
}

/* Counts what comes, slowly at first, so that the client's sends do not go through whole. */
static void script_swallow(FakeTls *tls, SSL *ssl, int number) {
  static unsigned char buffer[16384];
  unsigned char *next = tls->data;
  (void)number;
  if (!fake_tls_read_request(tls, ssl)) {
    return;
  }
  fake_tls_say(ssl, "HTTP/1.1 101 UPGRADED\r\n\r\n");
  g_usleep(100000);
  for (gsize total = 0; total < 20000000;) {
    int count = SSL_read(ssl, buffer, sizeof buffer);
    g_assert_cmpint(count, >, 0);
    for (int i = 0; i < count; i++) {
      g_assert_cmpuint(buffer[i], ==, (*next)++);
    }
    total += (gsize)count;
  }
  fake_tls_say(ssl, "done");
  (void)SSL_read(ssl, buffer, 1);
}

/* Bytes arrive in order and once each, whatever lengths a full socket is offered again with. */
static void test_sending_against_pressure(void) {
  struct fixture self;
  unsigned char next = 0;
  unsigned char data[40000];
  ByteChannel *channel = open_raw(&self, script_swallow, &next);
  gboolean was_full = FALSE;
  for (gsize sent = 0; sent < 20000000;) {
    /* After a refusal the same bytes come with another length. */
    gsize length = MIN(was_full ? 1 + sent % 20000 : sizeof data, 20000000 - sent);
    for (gsize i = 0; i < length; i++) {
      data[i] = (unsigned char)(sent + i);
    }
    ssize_t count = channel->send(channel, data, length);
    was_full = count < 0;
    if (was_full) {
      struct pollfd fd = {.fd = channel->send_fd(channel), .events = POLLOUT};
      g_assert_cmpint(errno, ==, EAGAIN);
      g_assert_cmpint(poll(&fd, 1, 60000), ==, 1);
      continue;
    }
    sent += (gsize)count;
  }
  char end[5] = "";
  for (ssize_t got = 0; got < 4;) {
    struct pollfd fd = {.fd = channel->receive_fd(channel), .events = POLLIN};
    if (!channel->pending(channel)) {
      g_assert_cmpint(poll(&fd, 1, 60000), ==, 1);
    }
    ssize_t count = channel->receive(channel, end + got, (size_t)(4 - got));
    got += count > 0 ? count : 0;
  }
  g_assert_cmpstr(end, ==, "done");
  channel->free(channel);
  fixture_end(&self);
}

static void script_close(FakeTls *tls, SSL *ssl, int number) {
  (void)number;
  if (fake_tls_read_request(tls, ssl)) {
    fake_tls_say(ssl, "HTTP/1.1 101 UPGRADED\r\n\r\nlast");
    SSL_shutdown(ssl);
  }
}

static void test_end_is_seen(void) {
  struct fixture self;
  ByteChannel *channel = open_raw(&self, script_close, NULL);
  char buffer[16];
  ssize_t count;
  g_autoptr(GString) text = g_string_new(NULL);
  do {
    struct pollfd fd = {.fd = channel->receive_fd(channel), .events = POLLIN};
    if (!channel->pending(channel)) {
      g_assert_cmpint(poll(&fd, 1, 60000), ==, 1);
    }
    count = channel->receive(channel, buffer, sizeof buffer);
    g_string_append_len(text, buffer, MAX(count, 0));
  } while (count > 0 || (count < 0 && errno == EAGAIN));
  g_assert_cmpint(count, ==, 0);
  g_assert_cmpstr(text->str, ==, "last");
  channel->free(channel);
  fixture_end(&self);
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/http-client-tls/good", test_good);
  g_test_add_func("/http-client-tls/kept", test_connection_is_kept);
  g_test_add_func("/http-client-tls/wrong-name", test_wrong_name);
  g_test_add_func("/http-client-tls/unknown-authority", test_unknown_authority);
  g_test_add_func("/http-client-tls/system", test_system_does_not_know_it);
  g_test_add_func("/http-client-tls/insecure", test_insecure);
  g_test_add_func("/http-client-tls/client-certificate", test_client_certificate);
  g_test_add_func("/http-client-tls/no-client-certificate", test_no_client_certificate);
  g_test_add_func("/http-client-tls/missing-file", test_missing_file);
  g_test_add_func("/http-client-tls/mute", test_mute_peer);
  g_test_add_func("/http-client-tls/cancel", test_cancel_in_handshake);
  g_test_add_func("/http-client-tls/pending", test_pending);
  g_test_add_func("/http-client-tls/pressure", test_sending_against_pressure);
  g_test_add_func("/http-client-tls/end", test_end_is_seen);
  return g_test_run();
}
