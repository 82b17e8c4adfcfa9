/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c: the guest's side of keepers: the pool, and what they say. Their own code is keeper-
 * main.c. */
#include "keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "keeper-main.h"
#include "mark.h"
#include "tree.h"

#define MAX_IDLE 4

static struct keeper *keepers;
static int lost; /* what a keeper had below may be nobody's: it was killed, or is no reaper */

static struct keeper *find(pid_t pid) {
  for (struct keeper *keeper = keepers; keeper; keeper = keeper->next) {
    if (keeper->pid == pid && !keeper->reaped) {
      return keeper;
    }
  }
  return NULL;
}

int keeper_is(pid_t pid) {
  return find(pid) != NULL;
}

int keeper_any_busy(void) {
  if (lost) {
    return 1;
  }
  for (struct keeper *keeper = keepers; keeper; keeper = keeper->next) {
    if (keeper->busy) {
      return 1;
    }
  }
  return 0;
}

static int is_idle(const struct keeper *keeper) {
  return !keeper->busy && !keeper->reaped && !keeper->closed;
}

static size_t idle_count(void) {
  size_t count = 0;
  for (struct keeper *keeper = keepers; keeper; keeper = keeper->next) {
    count += (size_t)is_idle(keeper);
  }
  return count;
}

static void unlink_keeper(struct keeper *gone) {
  for (struct keeper **at = &keepers; *at; at = &(*at)->next) {
    if (*at == gone) {
      *at = gone->next;
      return;
    }
  }
}

/* Takes it out of the list and lets it end: it does so when its socket closes. */
static void dismiss(struct keeper *keeper) {
  unlink_keeper(keeper);
  loop_drop(&keeper->source);
  loop_free_later(keeper);
}

static void became_idle(struct keeper *keeper) {
  keeper->busy = 0;
  keeper->command = NULL;
  if (idle_count() > MAX_IDLE && !keeper->reaped) {
    kill(keeper->pid, SIGKILL);
    dismiss(keeper);
  }
}

static void hear(struct keeper *keeper, const struct keeper_message *message) {
  void *command = keeper->command;
  /* First, since a command that is told of its end has a keeper made where none is idle. */
  if (message->kind == KEEPER_IDLE || (message->kind == KEEPER_ENDED && message->idle)) {
    became_idle(keeper);
  } else if (message->kind == KEEPER_ENDED) {
    keeper->command = NULL; /* it stays busy with what the command left behind */
  }
  if (command && message->kind != KEEPER_IDLE) {
    command_told(command, message);
  }
}

/* Hears what it says until there is nothing more now. */
static void listen_to(struct keeper *keeper) {
  while (keeper->source.fd >= 0 && !keeper->closed) {
    struct keeper_message message;
    ssize_t count = recv(keeper->source.fd, &message, sizeof message, MSG_DONTWAIT);
    if (count == (ssize_t)sizeof message) {
      hear(keeper, &message);
    } else if (count < 0 && errno == ECONNRESET) {
      keeper->unbegun = 1; /* it left our packet unread */
    } else if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    } else {
      keeper->closed = 1;
      loop_watch(&keeper->source, 0);
    }
  }
}

/* A keeper was killed. Whoever did that may have killed more of them, which only do not know it
 * yet. */
static void dismiss_idle(void) {
  struct keeper *next = NULL;
  for (struct keeper *keeper = keepers; keeper; keeper = next) {
    next = keeper->next;
    if (is_idle(keeper)) {
      kill(keeper->pid, SIGKILL);
      dismiss(keeper);
    }
  }
}

/* Its process is gone and all is heard. */
static void bury(struct keeper *keeper) {
  void *command = keeper->command;
  int unbegun = keeper->unbegun;
  lost = lost || (keeper->busy && !unbegun);
  dismiss(keeper);
  dismiss_idle();
  if (command) {
    command_keeper_gone(command, unbegun);
  }
}

static void keeper_ready(struct source *source, uint32_t events) {
  struct keeper *keeper = (struct keeper *)(void *)source;
  (void)events;
  listen_to(keeper);
  if (keeper->reaped && keeper->closed) {
    bury(keeper);
  }
}

void keeper_listen_all(void) {
  struct keeper *next = NULL;
  for (struct keeper *keeper = keepers; keeper; keeper = next) {
    next = keeper->next; /* it may be dismissed */
    if (keeper->command) {
      listen_to(keeper);
    }
  }
}

static struct keeper *make(void) {
  int pair[2];
  struct keeper *keeper = calloc(1, sizeof *keeper);
  if (!keeper || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
    free(keeper);
    return NULL;
  }
  pid_t guest = getpid();
  pid_t pid = fork();
  if (pid == 0) {
    keeper_main(pair[1], guest);
  }
  close(pair[1]);
  if (pid < 0) {
    int saved = errno;
    close(pair[0]);
    free(keeper);
    errno = saved;
    return NULL;
  }
  keeper->pid = pid;
  keeper->source = (struct source){.fd = pair[0], .ready = keeper_ready};
  keeper->next = keepers;
  keepers = keeper;
  loop_watch(&keeper->source, EPOLLIN);
  return keeper;
}

int keeper_init(void) {
  return make() ? 0 : -1;
}

void keeper_prepare(void) {
  if (idle_count() == 0) {
    make();
  }
}

static struct keeper *take(void) {
  for (struct keeper *keeper = keepers; keeper; keeper = keeper->next) {
    if (is_idle(keeper)) {
      return keeper;
    }
  }
  return make();
}

/* Large parameters go through memory, so that a keeper that does not read (a command may have
 * stopped it) never blocks the guest. */
static int parameters_in_memory(const unsigned char *parameters, size_t length) {
  int fd = memfd_create("parameters", MFD_CLOEXEC);
  if (fd < 0) {
    return -1;
  }
  while (length > 0) {
    ssize_t count = write(fd, parameters, length);
    if (count <= 0) {
      close(fd);
      return -1;
    }
    parameters += count;
    length -= (size_t)count;
  }
  return fd;
}

/* One packet with the descriptors. 0, or -1 with errno. */
static int send_job(const struct keeper *keeper, uint64_t mark, const unsigned char *bytes,
                    size_t length, const int *fds, size_t count) {
  union {
    const void *from;
    void *to;
  } borrowed = {.from = bytes}; /* sendmsg does not write to it */
  struct iovec parts[2] = {{.iov_base = &mark, .iov_len = sizeof mark},
                           {.iov_base = borrowed.to, .iov_len = length}};
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(4 * sizeof(int))];
  } control;
  memset(&control, 0, sizeof control);
  struct msghdr message = {.msg_iov = parts,
                           .msg_iovlen = 2,
                           .msg_control = control.room,
                           .msg_controllen = CMSG_SPACE(count * sizeof(int))};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  memcpy(CMSG_DATA(header), fds, count * sizeof(int));
  return sendmsg(keeper->source.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 0;
}

struct keeper *keeper_start(void *command, uint64_t mark, const unsigned char *parameters,
                            size_t length, const int fds[3]) {
  int passed[4] = {fds[0], fds[1], fds[2], -1};
  size_t count = 3;
  if (length > KEEPER_INLINE) {
    passed[3] = parameters_in_memory(parameters, length);
    if (passed[3] < 0) {
      return NULL;
    }
    count = 4;
    length = 1; /* a packet without any byte is an end */
  }
  struct keeper *keeper = take();
  while (keeper && send_job(keeper, mark, parameters, length, passed, count) < 0) {
    if (errno != EPIPE && errno != ECONNRESET) {
      keeper = NULL;
      break;
    }
    dismiss(keeper); /* it was killed and we have not heard of it yet */
    keeper = take();
  }
  int saved = errno;
  if (passed[3] >= 0) {
    close(passed[3]);
  }
  errno = saved;
  if (keeper) {
    kill(keeper->pid, SIGCONT); /* a command may have stopped it */
    keeper->busy = 1;
    lost = lost || mark_is_needed(); /* what a command leaves behind is nobody's there */
    keeper->command = command;
  }
  return keeper;
}

int keeper_kill_tree(struct keeper *keeper) {
  kill(keeper->pid, SIGCONT);
  return tree_kill(keeper->pid, NULL);
}

void keeper_kill_everything(void) {
  tree_kill(getpid(), NULL);
  for (struct keeper *keeper = keepers; keeper; keeper = keeper->next) {
    if (!keeper->reaped) {
      kill(keeper->pid, SIGKILL); /* where /proc does not show it */
    }
  }
}

int keeper_reaped(pid_t pid) {
  struct keeper *keeper = find(pid);
  if (!keeper) {
    return 0;
  }
  keeper->reaped = 1;
  keeper_ready(&keeper->source, 0);
  return 1;
}
