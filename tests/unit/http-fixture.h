/* SPDX-License-Identifier: Apache-2.0 */
/* http-fixture.h: a client, its peer, and what is sent between them. */
#ifndef SANDHOST_TESTS_HTTP_FIXTURE_H
#define SANDHOST_TESTS_HTTP_FIXTURE_H

#include "fake-http.h"
#include "http-client.h"

#define PEER "the peer"
#define URL "http://peer/thing"
/* Nothing here may take longer, however slow the machine: it would have hung. */
#define PATIENCE (60 * FAKE_SECOND)

struct fixture {
  FakeHttp *http;
  HttpClient *client;
  struct sandhost_call call;
  int64_t begin;
};

FAKE_UNUSED static void fixture_begin(struct fixture *self, fake_http_script script, void *data) {
  self->http = fake_http_start(script, data);
  const struct http_client_settings settings = {.unix_socket = self->http->path};
  self->client = http_client_new(&fake_host, &settings);
  fake_call_init(&self->call);
  self->call.deadline = fake_now() + PATIENCE;
  self->begin = fake_now();
}

FAKE_UNUSED static void fixture_end(struct fixture *self) {
  http_client_free(self->client);
  fake_http_end(self->http);
  fake_call_clear(&self->call);
}

FAKE_UNUSED static int32_t send_request(struct fixture *self, const struct http_request *request,
                                        struct http_reply *reply) {
  return http_client_send(self->client, &self->call, PEER, request, reply);
}

FAKE_UNUSED static const struct http_request get = {.method = "GET", .url = URL};
FAKE_UNUSED static const struct http_request post = {
    .method = "POST", .url = URL, .body = "{}", .body_length = 2};

/* A second call on the same client works, whatever became of the first. */
FAKE_UNUSED static void assert_unaffected(struct fixture *self) {
  struct sandhost_call call;
  struct http_reply reply;
  fake_call_init(&call);
  call.deadline = fake_now() + PATIENCE;
  const struct http_request good = {.method = "GET", .url = "http://peer/good"};
  g_assert_cmpint(http_client_send(self->client, &call, PEER, &good, &reply), ==, SANDHOST_OK);
  g_assert_cmpint(reply.status, ==, 200);
  g_assert_cmpstr(reply.body, ==, "good");
  http_reply_clear(&reply);
  fake_call_clear(&call);
}

/* Serves /good; TRUE: the request is another one, which the script must answer. FALSE: the end. */
FAKE_UNUSED static gboolean next_bad(FakeHttp *http, int fd) {
  for (;;) {
    g_autofree char *request = fake_http_read(http, fd);
    if (!request) {
      return FALSE;
    }
    if (!strstr(request, " /good ")) {
      return TRUE;
    }
    fake_http_answer(fd, "200 OK", "good");
  }
}

FAKE_UNUSED static void assert_fails(struct fixture *self, const struct http_request *request,
                                     int32_t status, const char *message, int may_have_happened) {
  struct http_reply reply;
  g_assert_cmpint(send_request(self, request, &reply), ==, status);
  g_assert_cmpint(self->call.status, ==, status);
  g_assert_cmpstr(self->call.message, ==, message);
  g_assert_cmpint(self->call.may_have_happened, ==, may_have_happened);
  assert_unaffected(self);
}

struct bytes {
  GByteArray *data;
  gsize at;
  gsize stop; /* a sink or source stops there; 0: never */
  int *begun; /* atomic: raised at the first byte; NULL */
};

FAKE_UNUSED static int32_t keep(void *user, const void *data, size_t length) {
  struct bytes *bytes = user;
  g_byte_array_append(bytes->data, data, (guint)length);
  if (bytes->begun) {
    __atomic_store_n(bytes->begun, 1, __ATOMIC_SEQ_CST);
  }
  return bytes->stop > 0 && bytes->data->len >= bytes->stop ? SANDHOST_LIMIT : SANDHOST_OK;
}

FAKE_UNUSED static int64_t give(void *user, void *buffer, size_t length) {
  struct bytes *bytes = user;
  if (bytes->begun) {
    __atomic_store_n(bytes->begun, 1, __ATOMIC_SEQ_CST);
  }
  if (bytes->stop > 0 && bytes->at >= bytes->stop) {
    return -1;
  }
  gsize part = MIN(length, bytes->data->len - bytes->at);
  memcpy(buffer, bytes->data->data + bytes->at, part);
  bytes->at += part;
  return (int64_t)part;
}

FAKE_UNUSED static GByteArray *pattern(guint length) {
  GByteArray *data = g_byte_array_set_size(g_byte_array_new(), length);
  for (guint i = 0; i < length; i++) {
    data->data[i] = (guint8)(i * 31 >> 3);
  }
  return data;
}

/* Answers with the bytes that are the script's data. */
FAKE_UNUSED static void script_give(FakeHttp *http, int fd, int number) {
  (void)number;
  const GByteArray *data = http->data;
  if (!next_bad(http, fd)) {
    return;
  }
  g_autofree char *header =
      g_strdup_printf("HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", data->len);
  fake_http_say(fd, header);
  fake_write_all(fd, data->data, data->len);
  fake_http_keep_still(http, fd);
}

/* An answer of just these bytes. */
struct canned {
  const char *bytes;
  gboolean stay; /* open and silent behind them; else the peer closes */
};

FAKE_UNUSED static void script_canned(FakeHttp *http, int fd, int number) {
  (void)number;
  const struct canned *canned = http->data;
  if (!next_bad(http, fd)) {
    return;
  }
  fake_http_say(fd, canned->bytes);
  if (canned->stay) {
    fake_http_keep_still(http, fd);
  }
}

/* The first text, then the second for ever. */
FAKE_UNUSED static void script_endless(FakeHttp *http, int fd, int number) {
  (void)number;
  const char *const *texts = http->data;
  if (!next_bad(http, fd)) {
    return;
  }
  fake_http_say(fd, texts[0]);
  while (send(fd, texts[1], strlen(texts[1]), MSG_NOSIGNAL) > 0) {
  }
}

#endif
