/* SPDX-License-Identifier: Apache-2.0 */
/* credential-helper.c: one question to one program, which may hang, lie, or talk without end. */
#include "credential-helper.h"

#include "guest-spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND ((int64_t)1000000000)
#define MILLISECOND ((int64_t)1000000)
#define HELPER_PATIENCE (10 * SECOND)
#define MAX_HELPER_OUTPUT ((size_t)64 * 1024)
#define MAX_HELPER_NAME 64u
/* How often a process is looked after on kernels that cannot tell its end through a descriptor. */
#define LOOK_EVERY (20 * MILLISECOND)

void secret_init(struct secret *secret, size_t capacity) {
  *secret = (struct secret){.data = g_malloc0(capacity + 1), .capacity = capacity};
}

void secret_clear(struct secret *secret) {
  if (secret->data) {
    explicit_bzero(secret->data, secret->capacity + 1);
  }
  g_free(secret->data);
  memset(secret, 0, sizeof *secret);
}

/* One running helper. */
struct helper {
  pid_t pid;
  int pidfd;
  int stream_fd;
  int error_fd;
  int cancel_fd;
  int64_t until;
  gboolean ended;
  int status; /* of waitpid, once end_helper has run */
  gboolean too_long;
  gboolean cancelled;
};

static int64_t steady_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

static gboolean is_helper_name(const char *name) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  size_t length = strlen(name);
  return length > 0 && length <= MAX_HELPER_NAME && strspn(name, allowed) == length;
}

/* The ended helper is left unreaped: its number stays its own until what it left behind is
 * killed. */
static void look_for_end(struct helper *helper) {
  siginfo_t info = {0};
  int result = waitid(P_PID, (id_t)helper->pid, &info, WEXITED | WNOHANG | WNOWAIT);
  /* An error: the program that we are in does not keep the ends of its children. What the helper
   * printed must do. */
  helper->ended = (result == 0 && info.si_pid == helper->pid) || (result < 0 && errno != EINTR);
}

/* Takes what is there to read. FALSE: the end. */
static gboolean take_output(struct helper *helper, struct secret *output) {
  for (;;) {
    size_t room = output->capacity - output->length;
    char spare;
    ssize_t got = recv(helper->stream_fd, room > 0 ? output->data + output->length : &spare,
                       room > 0 ? room : 1, MSG_DONTWAIT);
    if (got > 0 && room == 0) {
      helper->too_long = TRUE;
      return FALSE;
    }
    if (got > 0) {
      output->length += (size_t)got;
    } else if (got == 0) {
      return FALSE;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

/* What it complains about goes nowhere: it may name what must stay secret. */
static void drop_errors(struct helper *helper) {
  char buffer[1024];
  ssize_t got = read(helper->error_fd, buffer, sizeof buffer);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    close(helper->error_fd);
    helper->error_fd = -1;
  }
  explicit_bzero(buffer, sizeof buffer);
}

/* Sleeps until something happens. FALSE: time is over or the caller cancelled. */
static gboolean wait_for_news(struct helper *helper, gboolean reading) {
  int64_t left = helper->until - steady_now();
  if (left <= 0) {
    return FALSE;
  }
  if (helper->pidfd < 0) {
    left = MIN(left, LOOK_EVERY);
  }
  struct pollfd fds[] = {
      {.fd = reading ? helper->stream_fd : -1, .events = POLLIN},
      {.fd = helper->error_fd, .events = POLLIN},
      {.fd = helper->pidfd, .events = POLLIN},
      {.fd = helper->cancel_fd, .events = POLLIN},
  };
  int ready = poll(fds, G_N_ELEMENTS(fds), (int)((left + MILLISECOND - 1) / MILLISECOND));
  if (ready > 0 && fds[1].revents) {
    drop_errors(helper);
  }
  if (ready > 0 && fds[3].revents) {
    helper->cancelled = TRUE;
    return FALSE;
  }
  return TRUE;
}

/* Until the helper has ended; what a process that it left behind would add later is not waited
 * for. FALSE: it did not end in time. */
static gboolean collect(struct helper *helper, struct secret *output) {
  gboolean reading = TRUE;
  for (;;) {
    look_for_end(helper);
    if (reading) {
      reading = take_output(helper, output);
    }
    if (helper->ended || helper->too_long) {
      return TRUE;
    }
    if (!wait_for_news(helper, reading)) {
      return FALSE;
    }
  }
}

static void end_helper(struct helper *helper) {
  /* It leads a session of its own, whose first process group this is. */
  (void)kill(-helper->pid, SIGKILL);
  while (waitpid(helper->pid, &helper->status, 0) < 0 && errno == EINTR) {
  }
  close(helper->stream_fd);
  if (helper->error_fd >= 0) {
    close(helper->error_fd);
  }
  if (helper->pidfd >= 0) {
    close(helper->pidfd);
  }
}

static gboolean start_helper(struct helper *helper, const char *program, const char *registry,
                             char **ret_complaint) {
  const char *const argv[] = {program, "get", NULL};
  const struct guest_spawn_options options = {0};
  g_auto(GStrv) environment = g_get_environ();
  int error = guest_spawn(argv, (const char *const *)environment, &options, &helper->pid,
                          &helper->pidfd, &helper->stream_fd, &helper->error_fd);
  if (error < 0) {
    *ret_complaint = g_strdup_printf("%s cannot be started: %s", program, g_strerror(-error));
    return FALSE;
  }
  /* A registry's name fits into any socket's buffer; a helper that is gone already says so by
   * its end. */
  (void)!send(helper->stream_fd, registry, strlen(registry), MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)shutdown(helper->stream_fd, SHUT_WR);
  return TRUE;
}

/* What the result of a helper means. */
static enum credential_answer judge(const struct helper *helper, gboolean ended, const char *name,
                                    const struct secret *output, char **ret_complaint) {
  if (helper->cancelled) {
    *ret_complaint = g_strdup_printf("docker-credential-%s was not waited for", name);
  } else if (!ended) {
    *ret_complaint = g_strdup_printf("docker-credential-%s did not answer within 10 seconds", name);
  } else if (helper->too_long) {
    *ret_complaint = g_strdup_printf("docker-credential-%s answered with more than 64 KiB", name);
  } else if (WIFEXITED(helper->status) && WEXITSTATUS(helper->status) == 0) {
    return CREDENTIAL_FOUND;
  } else if (strstr(output->data, "credentials not found")) {
    return CREDENTIAL_NONE; /* the words by which every helper says it */
  } else if (WIFEXITED(helper->status)) {
    *ret_complaint = g_strdup_printf("docker-credential-%s failed with exit code %d", name,
                                     WEXITSTATUS(helper->status));
  } else {
    *ret_complaint = g_strdup_printf("docker-credential-%s was ended by signal %d", name,
                                     WTERMSIG(helper->status));
  }
  return CREDENTIAL_FAILED;
}

enum credential_answer credential_helper_get(const char *name, const char *registry, int cancel_fd,
                                             struct secret *ret_output, char **ret_complaint) {
  if (!is_helper_name(name)) {
    *ret_complaint =
        g_strdup("Docker's configuration names a credential helper that cannot be one");
    return CREDENTIAL_FAILED;
  }
  g_autofree char *command = g_strdup_printf("docker-credential-%s", name);
  g_autofree char *program = g_find_program_in_path(command);
  if (!program) {
    *ret_complaint = g_strdup_printf("the program %s is not on the PATH", command);
    return CREDENTIAL_FAILED;
  }
  struct helper helper = {.cancel_fd = cancel_fd, .until = steady_now() + HELPER_PATIENCE};
  if (!start_helper(&helper, program, registry, ret_complaint)) {
    return CREDENTIAL_FAILED;
  }
  struct secret output;
  secret_init(&output, MAX_HELPER_OUTPUT);
  gboolean ended = collect(&helper, &output);
  end_helper(&helper);
  enum credential_answer answer = judge(&helper, ended, name, &output, ret_complaint);
  if (answer == CREDENTIAL_FOUND) {
    *ret_output = output;
  } else {
    secret_clear(&output);
  }
  return answer;
}
