/* SPDX-License-Identifier: Apache-2.0 */
/* http-client-raw.c: bytes to and from a peer, which end at the deadline, at a cancel and at its silence. */
#include "http-client-raw.h"

#include <errno.h>
#include <poll.h>

#define READ_SIZE ((size_t)4096)

static int32_t wait_for(struct http_raw *raw, int fd, short events) {
  const struct sandhost_host *host = raw->client->host;
  int64_t patience = -1;
  if (raw->silence > 0) {
    patience = MAX(raw->last_byte + raw->silence - contract_now(), 0);
  }
  int32_t status = host->wait(raw->call, fd, events, patience);
  int32_t over = http_call_over(raw->client, raw->call);
  if (over != 0) {
    return http_fail(raw->client, raw->call, raw->sent, over,
                     over == SANDHOST_TIMEOUT ? "the deadline passed" : "cancelled");
  }
  if (status == SANDHOST_TIMEOUT && raw->silence > 0 &&
      contract_now() - raw->last_byte >= raw->silence) {
    return http_fail_silent(raw->client, raw->call, raw->sent, raw->peer, raw->silence);
  }
  return SANDHOST_OK;
}

int32_t http_raw_fail_closed(struct http_raw *raw) {
  if (raw->in->len == 0 && raw->client->connect) {
    return http_fail_unreachable(raw->client, raw->call, raw->sent, raw->peer, HTTP_CUT, 0,
                                 "the connection ended");
  }
  return http_fail(raw->client, raw->call, raw->sent, SANDHOST_UNAVAILABLE,
                   raw->in->len > 0 ? "%s broke the connection off in the middle of its answer"
                                    : "%s closed the connection without an answer",
                   raw->peer);
}

static gboolean is_again(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

int32_t http_raw_send(struct http_raw *raw, const char *data, size_t length) {
  ByteChannel *channel = raw->channel;
  while (length > 0) {
    ssize_t count = channel->send(channel, data, length);
    if (count > 0) {
      raw->sent = TRUE;
      raw->last_byte = contract_now();
      data += count;
      length -= (size_t)count;
      continue;
    }
    if (count < 0 && !is_again(errno)) {
      return http_raw_fail_closed(raw);
    }
    int32_t status = wait_for(raw, channel->send_fd(channel), POLLOUT);
    if (status != SANDHOST_OK) {
      return status;
    }
  }
  return SANDHOST_OK;
}

int32_t http_raw_receive(struct http_raw *raw, gboolean *ret_ended) {
  ByteChannel *channel = raw->channel;
  char buffer[READ_SIZE];
  for (;;) {
    ssize_t count = channel->receive(channel, buffer, sizeof buffer);
    if (count > 0) {
      raw->last_byte = contract_now();
      g_byte_array_append(raw->in, (const guint8 *)buffer, (guint)count);
    }
    if (count >= 0 || !is_again(errno)) {
      *ret_ended = count <= 0;
      return SANDHOST_OK;
    }
    int32_t status = wait_for(raw, channel->receive_fd(channel), POLLIN);
    if (status != SANDHOST_OK) {
      return status;
    }
  }
}

int32_t http_raw_fail_answer(struct http_raw *raw, const char *what) {
  return http_fail(raw->client, raw->call, raw->sent, SANDHOST_PROTOCOL, "%s %s", raw->peer, what);
}
