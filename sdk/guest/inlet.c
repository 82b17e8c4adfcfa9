/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inlet.c: bytes of the host on their way into a command's stdin. What the pipe does not take
 * waits, a window at most; where nobody reads, it is dropped.
 */
#include "inlet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct inlet {
  struct source source;
  uint32_t request;
  unsigned char *bytes; /* received and not yet taken */
  size_t from;
  size_t to;
  int ended; /* END was received */
};

static void write_some(struct inlet *inlet) {
  while (inlet->from < inlet->to) {
    size_t length = inlet->to - inlet->from;
    ssize_t count = -1;
    if (inlet->source.fd >= 0) {
      count = write(inlet->source.fd, inlet->bytes + inlet->from, length);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        loop_watch(&inlet->source, EPOLLOUT);
        return;
      }
    }
    if (count < 0) { /* nobody reads: what comes is dropped, and credited */
      loop_drop(&inlet->source);
      count = (ssize_t)length;
    }
    inlet->from += (size_t)count;
    stream_credit(inlet->request, (size_t)count);
  }
  inlet->from = inlet->to = 0;
  if (inlet->ended) {
    loop_drop(&inlet->source);
  } else if (inlet->source.fd >= 0) {
    loop_watch(&inlet->source, 0);
  }
}

static void inlet_ready(struct source *source, uint32_t events) {
  (void)events;
  write_some((struct inlet *)(void *)source);
}

struct inlet *inlet_new(uint32_t request, int *ret_read_end) {
  int ends[2];
  struct inlet *inlet = calloc(1, sizeof *inlet);
  if (!inlet) {
    return NULL;
  }
  inlet->bytes = malloc(GUEST_WINDOW);
  if (!inlet->bytes || pipe2(ends, O_CLOEXEC) < 0) {
    int number = errno;
    free(inlet->bytes);
    free(inlet);
    errno = number;
    return NULL;
  }
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  inlet->source = (struct source){.fd = ends[1], .ready = inlet_ready};
  inlet->request = request;
  *ret_read_end = ends[0];
  return inlet;
}

void inlet_data(struct inlet *inlet, const unsigned char *data, size_t length) {
  if (inlet->ended) {
    stream_credit(inlet->request, length);
    return;
  }
  if (inlet->from > 0) {
    memmove(inlet->bytes, inlet->bytes + inlet->from, inlet->to - inlet->from);
    inlet->to -= inlet->from;
    inlet->from = 0;
  }
  if (inlet->to + length > GUEST_WINDOW) {
    return; /* the host keeps its window */
  }
  memcpy(inlet->bytes + inlet->to, data, length);
  inlet->to += length;
  write_some(inlet);
}

void inlet_end(struct inlet *inlet) {
  inlet->ended = 1;
  write_some(inlet);
}

void inlet_drop(struct inlet *inlet) {
  if (inlet) {
    loop_drop(&inlet->source);
    free(inlet->bytes);
    loop_free_later(inlet);
  }
}
