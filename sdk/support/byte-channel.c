/* SPDX-License-Identifier: Apache-2.0 */
/* byte-channel.c: a ByteChannel over descriptors: sockets, pipes, or one of each. */
#include "guest-client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  ByteChannel channel;
  int receive_fd;
  int send_fd;
  gboolean send_is_socket;
} FdChannel;

static ssize_t fd_receive(ByteChannel *channel, void *buffer, size_t length) {
  return read(((FdChannel *)channel)->receive_fd, buffer, length);
}

/* Writes to a pipe. A pipe without a reader raises SIGPIPE, which this process may not have ignored
 * and must not get: it is blocked here and, if this write raised it, taken back. */
static ssize_t write_quietly(int fd, const void *data, size_t length) {
  sigset_t pipe_signal;
  sigset_t old;
  sigset_t pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  gboolean was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &old);
  ssize_t count = write(fd, data, length);
  int error = errno;
  if (count < 0 && error == EPIPE && !was_pending) {
    const struct timespec now = {0};
    while (sigtimedwait(&pipe_signal, NULL, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  errno = error;
  return count;
}

static ssize_t fd_send(ByteChannel *channel, const void *data, size_t length) {
  FdChannel *self = (FdChannel *)channel;
  if (self->send_is_socket) {
    return send(self->send_fd, data, length, MSG_NOSIGNAL);
  }
  return write_quietly(self->send_fd, data, length);
}

static int fd_receive_fd(ByteChannel *channel) {
  return ((FdChannel *)channel)->receive_fd;
}

static int fd_send_fd(ByteChannel *channel) {
  return ((FdChannel *)channel)->send_fd;
}

static void fd_free(ByteChannel *channel) {
  FdChannel *self = (FdChannel *)channel;
  close(self->receive_fd);
  if (self->send_fd != self->receive_fd) {
    close(self->send_fd);
  }
  g_free(self);
}

static void make_non_blocking(int fd) {
  int flags = fcntl(fd, F_GETFL);
  if (flags >= 0) {
    (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  }
}

ByteChannel *byte_channel_for_fds(int receive_fd, int send_fd) {
  FdChannel *self = g_new0(FdChannel, 1);
  int type;
  socklen_t length = sizeof type;
  self->channel = (ByteChannel){.receive = fd_receive,
                                .send = fd_send,
                                .receive_fd = fd_receive_fd,
                                .send_fd = fd_send_fd,
                                .free = fd_free};
  self->receive_fd = receive_fd;
  self->send_fd = send_fd;
  self->send_is_socket = getsockopt(send_fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0;
  make_non_blocking(receive_fd);
  make_non_blocking(send_fd);
  return &self->channel;
}
