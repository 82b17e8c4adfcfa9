/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http-client-tls.c: a ByteChannel over a connection that curl encrypts.
 *
 * One record may come off the socket with more bytes than were asked for, which then no poll announces. So what is
 * received goes through a buffer of a whole record, and pending looks into the connection before it says no.
 */
#include "http-client-private.h"

#include <errno.h>
#include <string.h>

/* The most that one TLS record holds. */
#define RECORD ((size_t)16384)

typedef struct {
  ByteChannel channel;
  struct http_handle handle;
  int fd;       /* curl's */
  char *buffer; /* RECORD bytes once something came; freed when it is empty */
  size_t at;
  size_t length;
  gboolean more; /* the last look found bytes: there may be others behind them */
  gboolean ended;
  int error;
  /* A record that did not go out whole must be offered again as it was, from the same place, though the caller may
   * come with another length: what is held is the start of what it sends next. */
  char *held;
  size_t held_length;
  size_t ahead; /* bytes that went out before the caller offered them */
} TlsChannel;

/* Fills the empty buffer. */
static void look(TlsChannel *self) {
  size_t count = 0;
  if (!self->buffer) {
    self->buffer = g_malloc(RECORD);
  }
  CURLcode code = curl_easy_recv(self->handle.easy, self->buffer, RECORD, &count);
  self->at = 0;
  self->length = code == CURLE_OK ? count : 0;
  self->more = self->length > 0;
  if (code == CURLE_OK && count == 0) {
    self->ended = TRUE;
  } else if (code != CURLE_OK && code != CURLE_AGAIN) {
    self->error = ECONNRESET;
  }
  if (self->length == 0) {
    g_clear_pointer(&self->buffer, g_free);
  }
}

static void look_guarded(TlsChannel *self) {
  struct http_pipe_guard guard;
  http_pipe_guard_begin(&guard);
  look(self);
  http_pipe_guard_end(&guard);
}

static ssize_t tls_receive(ByteChannel *channel, void *buffer, size_t length) {
  TlsChannel *self = (TlsChannel *)channel;
  if (length == 0) {
    return 0;
  }
  if (self->at == self->length && !self->ended && !self->error) {
    look_guarded(self);
  }
  if (self->at < self->length) {
    size_t part = MIN(length, self->length - self->at);
    memcpy(buffer, self->buffer + self->at, part);
    self->at += part;
    if (self->at == self->length) {
      g_clear_pointer(&self->buffer, g_free);
      self->at = self->length = 0;
    }
    return (ssize_t)part;
  }
  if (self->ended) {
    return 0;
  }
  errno = self->error ? self->error : EAGAIN;
  return -1;
}

static int tls_pending(ByteChannel *channel) {
  TlsChannel *self = (TlsChannel *)channel;
  if (self->at == self->length && self->more && !self->ended && !self->error) {
    look_guarded(self);
  }
  return self->at < self->length || self->ended || self->error;
}

/* Sends what is held, or else data. How much went out; -1 with errno. */
static ssize_t send_record(TlsChannel *self, const void *data, size_t length) {
  size_t sent = 0;
  if (!self->held) {
    self->held_length = MIN(length, RECORD);
    self->held = g_memdup2(data, self->held_length);
  }
  CURLcode code = curl_easy_send(self->handle.easy, self->held, self->held_length, &sent);
  if (code == CURLE_OK && sent > 0) {
    g_clear_pointer(&self->held, g_free);
    return (ssize_t)sent;
  }
  errno = code == CURLE_AGAIN || code == CURLE_OK ? EAGAIN : EPIPE;
  return -1;
}

static ssize_t tls_send(ByteChannel *channel, const void *data, size_t length) {
  TlsChannel *self = (TlsChannel *)channel;
  if (self->ahead == 0 && length > 0) {
    struct http_pipe_guard guard;
    http_pipe_guard_begin(&guard);
    ssize_t sent = send_record(self, data, length);
    int error = errno;
    http_pipe_guard_end(&guard);
    if (sent < 0) {
      errno = error;
      return -1;
    }
    self->ahead = (size_t)sent;
  }
  size_t taken = MIN(self->ahead, length);
  self->ahead -= taken;
  return (ssize_t)taken;
}

static int tls_fd(ByteChannel *channel) {
  return ((TlsChannel *)channel)->fd;
}

static void tls_free(ByteChannel *channel) {
  TlsChannel *self = (TlsChannel *)channel;
  struct http_pipe_guard guard;
  http_pipe_guard_begin(&guard);
  http_handle_free(self->handle);
  http_pipe_guard_end(&guard);
  g_free(self->buffer);
  g_free(self->held);
  g_free(self);
}

ByteChannel *http_channel_for_handle(struct http_handle take_handle) {
  curl_socket_t fd = CURL_SOCKET_BAD;
  if (curl_easy_getinfo(take_handle.easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK ||
      fd == CURL_SOCKET_BAD) {
    return NULL;
  }
  TlsChannel *self = g_new0(TlsChannel, 1);
  self->channel = (ByteChannel){.receive = tls_receive,
                                .send = tls_send,
                                .receive_fd = tls_fd,
                                .send_fd = tls_fd,
                                .free = tls_free,
                                .pending = tls_pending};
  self->handle = take_handle;
  self->fd = fd;
  self->more = TRUE;
  return &self->channel;
}
