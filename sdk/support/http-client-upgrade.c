/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http-client-upgrade.c: a request that turns its connection into a raw one, spoken by hand.
 *
 * curl only makes the connection, and encrypts it where it is encrypted. A plain one is taken from curl, so that
 * an open channel costs a descriptor and a few words of memory.
 */
#include "http-client-raw.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ROOM 4096u

/* ---- Bytes that came right behind the answer ------------------------------------------------- */

typedef struct {
  ByteChannel channel;
  ByteChannel *inner;
  char *bytes; /* NULL once they are read */
  size_t at;
  size_t length;
} PrefixedChannel;

static ssize_t prefixed_receive(ByteChannel *channel, void *buffer, size_t length) {
  PrefixedChannel *self = (PrefixedChannel *)channel;
  if (!self->bytes) {
    return self->inner->receive(self->inner, buffer, length);
  }
  size_t part = MIN(length, self->length - self->at);
  memcpy(buffer, self->bytes + self->at, part);
  self->at += part;
  if (self->at == self->length) {
    g_clear_pointer(&self->bytes, g_free);
  }
  return (ssize_t)part;
}

static ssize_t prefixed_send(ByteChannel *channel, const void *data, size_t length) {
  ByteChannel *inner = ((PrefixedChannel *)channel)->inner;
  return inner->send(inner, data, length);
}

static int prefixed_receive_fd(ByteChannel *channel) {
  ByteChannel *inner = ((PrefixedChannel *)channel)->inner;
  return inner->receive_fd(inner);
}

static int prefixed_send_fd(ByteChannel *channel) {
  ByteChannel *inner = ((PrefixedChannel *)channel)->inner;
  return inner->send_fd(inner);
}

static int prefixed_pending(ByteChannel *channel) {
  PrefixedChannel *self = (PrefixedChannel *)channel;
  return self->bytes || (self->inner->pending && self->inner->pending(self->inner));
}

static void prefixed_free(ByteChannel *channel) {
  PrefixedChannel *self = (PrefixedChannel *)channel;
  self->inner->free(self->inner);
  g_free(self->bytes);
  g_free(self);
}

static ByteChannel *prefixed_channel(ByteChannel *take_inner, const void *bytes, size_t length) {
  if (length == 0) {
    return take_inner;
  }
  PrefixedChannel *self = g_new0(PrefixedChannel, 1);
  self->channel = (ByteChannel){.receive = prefixed_receive,
                                .send = prefixed_send,
                                .receive_fd = prefixed_receive_fd,
                                .send_fd = prefixed_send_fd,
                                .free = prefixed_free,
                                .pending = prefixed_pending};
  self->inner = take_inner;
  self->bytes = g_memdup2(bytes, length);
  self->length = length;
  return &self->channel;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* Takes the connection from curl: as a descriptor where it is plain, else with all of curl's handle. */
static ByteChannel *take_connection(struct http_exchange *exchange) {
  struct http_handle handle = exchange->handle;
  curl_socket_t fd = CURL_SOCKET_BAD;
  if (g_str_has_prefix(exchange->request->url, "https:")) {
    (void)curl_easy_setopt(handle.easy, CURLOPT_ERRORBUFFER, NULL); /* it is the exchange's */
    ByteChannel *channel = http_channel_for_handle(handle);
    if (channel) {
      exchange->handle = (struct http_handle){0};
    }
    return channel;
  }
  if (curl_easy_getinfo(handle.easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK ||
      fd == CURL_SOCKET_BAD) {
    return NULL;
  }
  int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  return own < 0 ? NULL : byte_channel_for_fds(own, own);
}

static int32_t connect_by_curl(struct http_exchange *exchange, ByteChannel **ret_channel) {
  CURLcode code = CURLE_OK;
  int32_t status = http_handle_new(&exchange->handle);
  if (status == SANDHOST_OK) {
    http_handle_prepare(exchange);
    (void)curl_easy_setopt(exchange->handle.easy, CURLOPT_CONNECT_ONLY, 1L);
    status = http_exchange_run(exchange, &code);
  }
  if (status != SANDHOST_OK || code != CURLE_OK) {
    return http_exchange_fail(exchange, status, code);
  }
  ByteChannel *channel = take_connection(exchange);
  if (!channel) {
    return http_exchange_fail(exchange, SANDHOST_INTERNAL, code);
  }
  *ret_channel = channel;
  return SANDHOST_OK;
}

static int32_t open_channel(struct http_exchange *exchange, ByteChannel **ret_channel) {
  int32_t status = http_call_over(exchange->client, exchange->call);
  if (status != 0) {
    return http_exchange_fail(exchange, status, CURLE_OK);
  }
  if (!http_connects_itself(exchange->client)) {
    return connect_by_curl(exchange, ret_channel);
  }
  int fd = http_open_socket(exchange);
  if (fd < 0) {
    status = http_call_over(exchange->client, exchange->call);
    return http_exchange_fail(exchange, status, CURLE_COULDNT_CONNECT);
  }
  *ret_channel = byte_channel_for_fds(fd, fd);
  return SANDHOST_OK;
}

/* ---- The request ----------------------------------------------------------------------------- */

/* The part of a URL between its scheme and its path, and the rest; without a fragment. */
static void split_url(const char *url, char **ret_host, char **ret_target) {
  const char *host = strstr(url, "://") + 3;
  size_t length = strcspn(host, "/?#");
  const char *rest = host + length;
  const char *name = memrchr(host, '@', length);
  *ret_host =
      name ? g_strndup(name + 1, length - (size_t)(name + 1 - host)) : g_strndup(host, length);
  *ret_target = g_strdup_printf("%s%.*s", rest[0] == '/' ? "" : "/", (int)strcspn(rest, "#"), rest);
}

static GString *request_text(const HttpClient *client, const struct http_request *request) {
  g_autofree char *host = NULL;
  g_autofree char *target = NULL;
  split_url(request->url, &host, &target);
  GString *text = g_string_new(NULL);
  g_string_append_printf(text,
                         "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n"
                         "Connection: Upgrade\r\nUpgrade: tcp\r\n",
                         request->method, target, host, client->agent);
  for (size_t i = 0; request->headers && request->headers[i]; i++) {
    g_string_append_printf(text, "%s\r\n", request->headers[i]);
  }
  if (request->body || strcmp(request->method, "GET") != 0) {
    g_string_append_printf(text, "Content-Length: %zu\r\n",
                           request->body ? request->body_length : 0);
  }
  g_string_append(text, "\r\n");
  if (request->body) {
    g_string_append_len(text, request->body, (gssize)request->body_length);
  }
  return text;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* Whether the connection is raw now. */
static gboolean has_switched(const struct http_head *head) {
  return head->status == 101 || (head->status == 200 && head->content_length < 0 && !head->chunked);
}

static int32_t speak(struct http_raw *raw, const struct http_request *request,
                     struct http_reply *ret_reply, ByteChannel **ret_channel) {
  struct http_head head = {0};
  GString *text = request_text(raw->client, request);
  int32_t status = http_raw_send(raw, text->str, text->len);
  g_string_free(text, TRUE);
  status = status != SANDHOST_OK ? status : http_raw_receive_head(raw, &head);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (has_switched(&head)) {
    *ret_reply = (struct http_reply){
        .status = head.status, .body = g_strdup(""), .content_type = head.content_type};
    *ret_channel = prefixed_channel(g_steal_pointer(&raw->channel), raw->in->data + raw->at,
                                    raw->in->len - raw->at);
    return SANDHOST_OK;
  }
  status = http_raw_receive_refusal(raw, &head, ret_reply);
  g_free(head.content_type);
  if (status == SANDHOST_OK) {
    *ret_channel = NULL;
  }
  return status;
}

static int32_t upgrade_guarded(struct http_exchange *exchange, struct http_reply *ret_reply,
                               ByteChannel **ret_channel) {
  struct http_raw raw = {.client = exchange->client,
                         .call = exchange->call,
                         .peer = exchange->peer,
                         .silence = exchange->silence};
  int32_t status = open_channel(exchange, &raw.channel);
  if (status != SANDHOST_OK) {
    return status;
  }
  raw.last_byte = contract_now();
  raw.in = g_byte_array_sized_new(FIRST_ROOM); /* its data is looked at while it is still empty */
  status = speak(&raw, exchange->request, ret_reply, ret_channel);
  if (raw.channel) {
    raw.channel->free(raw.channel);
  }
  g_byte_array_unref(raw.in);
  return status;
}

int32_t http_client_upgrade(HttpClient *client, struct sandhost_call *call, const char *peer,
                            const struct http_request *request, struct http_reply *ret_reply,
                            ByteChannel **ret_channel) {
  int32_t status = http_request_check(client, call, request);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (request->upload) {
    return http_fail(client, call, FALSE, SANDHOST_INVALID,
                     "a request that takes the connection over has no upload");
  }
  struct http_exchange exchange = {
      .client = client, .call = call, .peer = peer, .request = request, .silence = client->silence};
  if (request->silence != 0) {
    exchange.silence = MAX(request->silence, 0);
  }
  struct http_pipe_guard guard;
  http_pipe_guard_begin(&guard);
  status = upgrade_guarded(&exchange, ret_reply, ret_channel);
  http_exchange_clear(&exchange);
  http_pipe_guard_end(&guard);
  return status;
}
