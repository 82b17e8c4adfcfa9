/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-http.c: any bytes as what a peer answers to an HTTP request, from its first line on: to requests that libcurl speaks,
 * and to those that the client speaks by hand, which turn the connection into a raw one.
 *
 * Every request returns; status and error agree; a body keeps the limits of its request; a sink hears of a good answer
 * alone; what came behind the answer that switches is neither lost nor made up.
 *
 * The first byte: which request; the second: how long a body may be. Each connection gives the rest, and then ends. */
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"
#include "http-client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BIT_UPGRADE 0x01u
#define BIT_SINK 0x02u
#define BIT_BODY 0x04u   /* the request has one */
#define BIT_UPLOAD 0x08u /* the request has one that comes piece by piece */
#define BIT_TWICE 0x10u  /* the connection may serve another request */
#define BIT_STOP 0x20u   /* the sink stops soon */
#define PATIENCE INT64_C(10000000000)
#define MOST_CONNECTIONS 4
#define MOST_ERROR ((size_t)64 << 10)
#define PEER "the peer"

struct sandhost_call {
  gboolean failed;
  int64_t deadline;
};

/* ---- The host ---------------------------------------------------------------------------------- */

static int64_t host_deadline(const struct sandhost_call *call) {
  return call->deadline;
}

static int32_t host_cancelled(const struct sandhost_call *call) {
  return contract_now() >= call->deadline;
}

static int32_t host_cancel_fd(const struct sandhost_call *call) {
  (void)call;
  return -1;
}

static int32_t host_wait(const struct sandhost_call *call, int32_t fd, int32_t events,
                         int64_t duration) {
  struct pollfd ready = {.fd = fd, .events = (short)events};
  (void)call;
  g_assert_cmpint(fd, >=, 0);
  /* All is there: whoever waits for long waits for nothing. */
  int count = poll(&ready, 1, 5000);
  g_assert_true(count > 0 || duration == 0);
  return count > 0 ? SANDHOST_OK : SANDHOST_TIMEOUT;
}

static int32_t host_fail(struct sandhost_call *call, int32_t status, struct sandhost_text message) {
  g_assert_cmpint(status, !=, SANDHOST_OK);
  g_assert_cmpuint(message.length, >, 0);
  g_assert_true(g_utf8_validate(message.data, (gssize)message.length, NULL));
  for (size_t i = 0; i < message.length; i++) {
    g_assert_true((unsigned char)message.data[i] >= ' ' && message.data[i] != 0x7f);
  }
  call->failed = TRUE;
  return status;
}

static void host_fail_details(struct sandhost_call *call, const struct sandhost_failure *details) {
  (void)call;
  g_assert_nonnull(details->service_code.data);
}

static void host_say(struct sandhost_call *call, uint32_t kind, struct sandhost_text text) {
  (void)call;
  (void)kind;
  (void)text;
}

static void host_progress(struct sandhost_call *call, struct sandhost_text line) {
  host_say(call, 0, line);
}

static const struct sandhost_host HOST = {.size = sizeof(struct sandhost_host),
                                          .minor = SANDHOST_ABI_MINOR,
                                          .version = {.data = "0", .length = 1},
                                          .deadline = host_deadline,
                                          .cancelled = host_cancelled,
                                          .cancel_fd = host_cancel_fd,
                                          .wait = host_wait,
                                          .fail = host_fail,
                                          .fail_details = host_fail_details,
                                          .report = host_say,
                                          .progress = host_progress};

/* ---- The peer ---------------------------------------------------------------------------------- */

struct peer {
  const uint8_t *answer;
  size_t length;
  int fds[MOST_CONNECTIONS]; /* its ends, open until the input is over: requests go nowhere */
  int count;
};

static int connect_peer(void *user, char **ret_error) {
  struct peer *peer = user;
  int ends[2];
  if (peer->count == MOST_CONNECTIONS) {
    *ret_error = g_strdup("there is no other");
    return -1;
  }
  g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), ==, 0);
  g_assert_cmpint(write(ends[1], peer->answer, peer->length), ==, (ssize_t)peer->length);
  g_assert_cmpint(shutdown(ends[1], SHUT_WR), ==, 0);
  peer->fds[peer->count++] = ends[1];
  return ends[0];
}

/* ---- One request ------------------------------------------------------------------------------- */

struct taken {
  size_t bytes;
  unsigned char sum; /* so that every byte is read */
  gboolean stops;
  gboolean stopped;
};

static int32_t take(void *user, const void *bytes, size_t length) {
  struct taken *taken = user;
  g_assert_false(taken->stopped);
  for (size_t i = 0; i < length; i++) {
    taken->sum ^= ((const unsigned char *)bytes)[i];
  }
  taken->bytes += length;
  taken->stopped = taken->stops && taken->bytes > 10;
  return taken->stopped ? SANDHOST_CANCELLED : SANDHOST_OK;
}

static int64_t give(void *user, void *buffer, size_t length) {
  unsigned *left = user;
  g_assert_cmpuint(length, >, 0);
  if (*left == 0) {
    return 0;
  }
  --*left;
  memset(buffer, 'u', MIN(length, (size_t)100));
  return (int64_t)MIN(length, (size_t)100);
}

static void check_reply(const struct http_reply *reply, const struct http_request *request,
                        size_t most, size_t answered) {
  const gboolean good = reply->status >= 200 && reply->status < 300;
  g_assert_true(reply->status >= 100 && reply->status <= 999);
  g_assert_nonnull(reply->body);
  g_assert_cmpint(reply->body[reply->length], ==, '\0');
  g_assert_cmpuint(reply->length, <=, good && !request->sink ? most : MOST_ERROR);
  g_assert_cmpuint(reply->length, <=, answered);
  g_assert_true(!good || !request->sink || reply->length == 0);
  g_assert_true(!reply->content_type || g_utf8_validate(reply->content_type, -1, NULL));
  g_assert_true(reply->retry_after >= 0 && reply->retry_after <= INT64_C(86400000000000));
}

/* What is behind the answer's header is the end of what was sent. */
static void check_channel(ByteChannel *channel, const struct peer *peer) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  unsigned char buffer[100];
  ssize_t count = 0;
  while ((count = channel->receive(channel, buffer, sizeof buffer)) > 0) {
    g_byte_array_append(bytes, buffer, (guint)count);
  }
  g_assert_cmpint(count, ==, 0);
  g_assert_cmpuint(bytes->len, <=, peer->length);
  const uint8_t *tail = peer->answer + peer->length - bytes->len;
  g_assert_cmpmem(bytes->data, bytes->len, tail, bytes->len);
  g_assert_cmpuint(peer->length - bytes->len, >=, strlen("HTTP/1.1 101\r\n\r\n"));
  g_assert_cmpmem(tail - 4, 4, "\r\n\r\n", 4);
  channel->free(channel);
}

static void send_one(HttpClient *client, const struct peer *peer, uint8_t bits, uint8_t limit) {
  static const char *const HEADERS[] = {"X-Test: 1", NULL};
  struct taken taken = {.stops = (bits & BIT_STOP) != 0};
  unsigned left = 3;
  const struct sandhost_sink sink = {.size = sizeof sink, .user = &taken, .write = take};
  const struct sandhost_source upload = {.size = sizeof upload, .user = &left, .read = give};
  const gboolean uploads = (bits & BIT_UPLOAD) && !(bits & BIT_UPGRADE);
  const size_t most = limit ? limit * (size_t)16 : (size_t)1 << 20;
  const struct http_request request = {.method = bits & (BIT_BODY | BIT_UPLOAD) ? "POST" : "GET",
                                       .url = "http://peer/path?x=1",
                                       .headers = HEADERS,
                                       .body = (bits & BIT_BODY) && !uploads ? "body" : NULL,
                                       .body_length = (bits & BIT_BODY) && !uploads ? 4 : 0,
                                       .upload = uploads ? &upload : NULL,
                                       .sink = (bits & BIT_SINK) && !(bits & BIT_UPGRADE) ? &sink
                                                                                          : NULL,
                                       .max_body = limit * (size_t)16};
  struct sandhost_call call = {.deadline = contract_now() + PATIENCE};
  struct http_reply reply = {0};
  ByteChannel *channel = NULL;
  int32_t status = bits & BIT_UPGRADE
                       ? http_client_upgrade(client, &call, PEER, &request, &reply, &channel)
                       : http_client_send(client, &call, PEER, &request, &reply);
  g_assert_true((status == SANDHOST_OK) == !call.failed);
  g_assert_true(status == SANDHOST_OK || (!reply.body && !channel));
  g_assert_true(!taken.stopped || status != SANDHOST_OK);
  g_assert_cmpint(status, !=, SANDHOST_TIMEOUT);
  if (status == SANDHOST_OK) {
    check_reply(&reply, &request, bits & BIT_UPGRADE ? MOST_ERROR : most, peer->length);
    g_assert_true(taken.bytes == 0 || (reply.status >= 200 && reply.status < 300));
  }
  if (channel) {
    check_channel(channel, peer);
  }
  http_reply_clear(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) {
    return 0;
  }
  struct peer peer = {.answer = data + 2, .length = size - 2};
  const struct http_client_settings settings = {.connect = connect_peer, .user = &peer};
  HttpClient *client = http_client_new(&HOST, &settings);
  g_assert_nonnull(client);
  send_one(client, &peer, data[0], data[1]);
  if (data[0] & BIT_TWICE) {
    send_one(client, &peer, data[0] & (uint8_t)~BIT_UPGRADE, data[1]);
  }
  http_client_free(client);
  for (int i = 0; i < peer.count; i++) {
    close(peer.fds[i]);
  }
  return 0;
}
