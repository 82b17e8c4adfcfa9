/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c: tries one connection, so that whoever made the sandbox can see from inside what its
 * network reaches. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker.h"

#define SLICE INT64_C(50000000) /* nanoseconds between two looks for a cancel */

static socklen_t parse(const char *text, uint32_t port, struct sockaddr_storage *ret_address) {
  struct sockaddr_in *four = (struct sockaddr_in *)(void *)ret_address;
  struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)ret_address;
  memset(ret_address, 0, sizeof *ret_address);
  if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons((uint16_t)port);
    return sizeof *four;
  }
  if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    return sizeof *six;
  }
  return 0;
}

/* Whether the connection is decided within the patience; -1: cancelled. */
static int wait_for_answer(struct worker *worker, int fd, int64_t patience) {
  struct pollfd ready = {.fd = fd, .events = POLLOUT};
  int64_t begin = guest_now();
  for (;;) {
    int64_t left = patience - (guest_now() - begin);
    if (worker_is_cancelled(worker)) {
      return -1;
    }
    if (left <= 0) {
      return 0;
    }
    if (poll(&ready, 1, left < SLICE ? (int)(left / 1000000) + 1 : (int)(SLICE / 1000000)) > 0) {
      return 1;
    }
  }
}

/* 0 connected, else errno: ETIMEDOUT when nothing came in time, ECANCELED. */
static int try_connect(struct worker *worker, const struct sockaddr_storage *address,
                       socklen_t length, int64_t patience) {
  int number = 0;
  int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return errno;
  }
  if (connect(fd, (const struct sockaddr *)(const void *)address, length) < 0) {
    number = errno;
  }
  if (number == EINPROGRESS) {
    socklen_t size = sizeof number;
    int answered = wait_for_answer(worker, fd, patience);
    if (answered <= 0) {
      number = answered < 0 ? ECANCELED : ETIMEDOUT;
    } else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size) < 0) {
      number = errno;
    }
  }
  close(fd);
  return number;
}

void probe_connect(struct worker *worker, struct guest_reader *parameters) {
  char text[64] = "";
  size_t length = 0;
  const char *bytes = guest_read_bytes(parameters, &length);
  uint32_t port = guest_read_u32(parameters);
  int64_t patience = (int64_t)guest_read_u64(parameters);
  struct sockaddr_storage address;
  if (length < sizeof text && !memchr(bytes, '\0', length)) {
    memcpy(text, bytes, length);
  }
  socklen_t size = parse(text, port, &address);
  if (parameters->bad || size == 0 || port == 0 || port > 65535 || patience < 0) {
    worker_fail(worker, SANDHOST_INVALID, "a probe needs a numeric address, a port and a patience");
    return;
  }
  int number = try_connect(worker, &address, size, patience);
  unsigned char verdict[4];
  if (number == ECANCELED) {
    worker_done(worker, SANDHOST_CANCELLED, "cancelled");
    return;
  }
  /* A refusal comes from the far side: it was reached. */
  guest_put_u32(verdict, number == 0 || number == ECONNREFUSED ? SANDHOST_PROBE_REACHED
                                                               : SANDHOST_PROBE_BLOCKED);
  worker_done_results(worker, verdict, sizeof verdict);
}
