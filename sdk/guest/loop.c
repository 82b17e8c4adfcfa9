/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c: waits for the stream, the keepers, the pipes, the children and the clock. */
#include "guest.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUND 64 /* events taken at once */

static int set = -1;
static int over;
static void **garbage;
static size_t garbage_count;
static size_t garbage_room;

static struct source in_source = {.fd = -1};
static struct source out_source = {.fd = -1};
static struct source wake_source = {.fd = -1};
static struct source child_source = {.fd = -1};

int64_t guest_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void loop_watch(struct source *source, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = source};
  if (events == source->events) {
    return;
  }
  int action = !events ? EPOLL_CTL_DEL : source->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  epoll_ctl(set, action, source->fd, &event);
  source->events = events;
}

void loop_drop(struct source *source) {
  if (source->fd >= 0) {
    loop_watch(source, 0);
    close(source->fd);
    source->fd = -1;
  }
}

void loop_free_later(void *container) {
  if (garbage_count == garbage_room) {
    size_t room = garbage_room ? 2 * garbage_room : 64;
    void **grown = realloc(garbage, room * sizeof *garbage);
    if (!grown) {
      return; /* a small leak is better than a use after free */
    }
    garbage = grown;
    garbage_room = room;
  }
  garbage[garbage_count++] = container;
}

void loop_wake(void) {
  eventfd_write(wake_source.fd, 1);
}

static void in_ready(struct source *source, uint32_t events) {
  (void)source;
  (void)events;
  over = over || stream_receive() < 0;
}

static void out_ready(struct source *source, uint32_t events) {
  (void)source;
  (void)events;
  int was_full = !stream_has_room();
  over = over || stream_flush() < 0;
  if (was_full && stream_has_room()) {
    request_wake_all();
  }
}

static void wake_ready(struct source *source, uint32_t events) {
  eventfd_t count;
  (void)events;
  eventfd_read(source->fd, &count);
}

static void child_ready(struct source *source, uint32_t events) {
  struct signalfd_siginfo info[8];
  (void)events;
  while (read(source->fd, info, sizeof info) > 0) {
  }
  keeper_listen_all(); /* whose children have ended is known before it is told that they have */
  for (;;) {
    struct rusage usage;
    int status = 0;
    pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) {
      return;
    }
    if (!keeper_reaped(pid)) {
      keeper_listen_all();
      command_reaped(pid, status, &usage);
    }
  }
}

int loop_init(void) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  set = epoll_create1(EPOLL_CLOEXEC);
  in_source = (struct source){.fd = stream_in_fd(), .ready = in_ready};
  out_source = (struct source){.fd = stream_out_fd(), .ready = out_ready};
  wake_source = (struct source){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = wake_ready};
  child_source =
      (struct source){.fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK), .ready = child_ready};
  if (set < 0 || wake_source.fd < 0 || child_source.fd < 0) {
    return -1;
  }
  loop_watch(&wake_source, EPOLLIN);
  loop_watch(&child_source, EPOLLIN);
  /* A stream that cannot be waited for (a file, /dev/null) is none. */
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &in_source};
  in_source.events = EPOLLIN;
  return epoll_ctl(set, EPOLL_CTL_ADD, in_source.fd, &event);
}

/* Milliseconds until the next limit, rounded up; -1: none. */
static int patience(void) {
  int64_t left = command_next_deadline();
  if (left < 0) {
    return -1;
  }
  int64_t milliseconds = (left + 999999) / 1000000;
  return milliseconds > 3600000 ? 3600000 : (int)milliseconds;
}

void loop_run(void) {
  struct epoll_event events[ROUND];
  while (!over) {
    pthread_mutex_lock(&guest_lock);
    loop_watch(&out_source, stream_is_pending() ? EPOLLOUT : 0);
    int wait = patience();
    pthread_mutex_unlock(&guest_lock);

    int count = epoll_wait(set, events, ROUND, wait);
    pthread_mutex_lock(&guest_lock);
    for (int i = 0; i < count; i++) {
      struct source *source = events[i].data.ptr;
      if (source->fd >= 0) {
        source->ready(source, events[i].events);
      }
    }
    command_check_deadlines();
    while (garbage_count > 0) {
      free(garbage[--garbage_count]);
    }
    pthread_mutex_unlock(&guest_lock);
  }
}
