/* SPDX-License-Identifier: Apache-2.0 */
/* approver-program.c: one question to a program, and its exit code as the answer. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "run/approver.h"

#define MOST_SAID 4096 /* bytes of stderr that are looked at */
#define LOOK_MS 20     /* how often its end is looked for */

typedef struct {
  GPid pid;
  int err; /* its stderr, ours to close; -1 */
  GString *said;
  int status; /* of waitpid */
} Asked;

static gboolean fail(GError **error, const char *program, const char *why) {
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_FAILED,
              "the approver check %s could not be asked: %s; nothing was decided", program, why);
  return FALSE;
}

/* In the child, where only what is safe in a signal handler may be called. */
static void in_child(void *data) {
  sigset_t none;
  (void)data;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* A file in memory, so that nobody has to write while the program does not read. -1 with errno. */
static int question_fd(JsonObject *question) {
  g_autofree char *text = json_text(question);
  g_autofree char *line = g_strconcat(text, "\n", NULL);
  gsize length = strlen(line);
  int fd = memfd_create("approver-question", MFD_CLOEXEC);
  if (fd < 0) {
    return -1;
  }
  for (gsize done = 0; done < length;) {
    ssize_t count = write(fd, line + done, length - done);
    if (count < 0 && errno != EINTR) {
      int reason = errno;
      close(fd);
      errno = reason;
      return -1;
    }
    done += count > 0 ? (gsize)count : 0;
  }
  lseek(fd, 0, SEEK_SET);
  return fd;
}

static gboolean start(Asked *asked, const char *const *argv, int question, GError **error) {
  g_autoptr(GError) failure = NULL;
  const GSpawnFlags flags = G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL;
  if (!g_spawn_async_with_pipes_and_fds("/", argv, NULL, flags, in_child, NULL, question, -1, -1,
                                        NULL, NULL, 0, &asked->pid, NULL, NULL, &asked->err,
                                        &failure)) {
    return fail(error, argv[0], failure->message);
  }
  setpgid(asked->pid, asked->pid); /* whoever is first */
  return TRUE;
}

/* What is there to be read, for so long at most. FALSE: nothing more will come. */
static gboolean hear(Asked *asked, int wait_ms) {
  char bytes[MOST_SAID];
  struct pollfd watched = {.fd = asked->err, .events = POLLIN};
  if (poll(&watched, 1, wait_ms) <= 0 || asked->err < 0) {
    return FALSE;
  }
  ssize_t count = read(asked->err, bytes, sizeof bytes);
  if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) {
    close(asked->err);
    asked->err = -1;
    return FALSE;
  }
  gsize room = MOST_SAID - asked->said->len;
  g_string_append_len(asked->said, bytes, (gssize)MIN(room, (gsize)MAX(count, 0)));
  return TRUE;
}

typedef enum {
  END_NOT_YET,
  END_KNOWN, /* not yet reaped, so that its id is still its own */
  END_LOST, /* somebody else has reaped it: its id may be another's, and its exit code is nobody's */
} End;

static End end_of(GPid pid) {
  siginfo_t info = {0};
  if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return errno == EINTR ? END_NOT_YET : END_LOST;
  }
  return info.si_pid == pid ? END_KNOWN : END_NOT_YET;
}

/* Signals that would end this process are held back while the program runs, so that it is ended first. */
static void ending_signals(sigset_t *ret_set) {
  sigemptyset(ret_set);
  sigaddset(ret_set, SIGINT);
  sigaddset(ret_set, SIGTERM);
  sigaddset(ret_set, SIGHUP);
}

/* With the signals held back. */
static gboolean is_told_to_end(Cancel *cancel) {
  sigset_t ends;
  sigset_t pending;
  ending_signals(&ends);
  sigpending(&pending);
  sigandset(&pending, &pending, &ends);
  return cancel_raised(cancel) || !sigisemptyset(&pending);
}

/* END_NOT_YET: it was too slow, or nobody waits any more. Nothing of it is left, unless its end was lost. */
static End await_end(Asked *asked, gint64 seconds, Cancel *cancel) {
  gint64 deadline = clock_deadline(seconds * CLOCK_SECOND);
  End end = END_NOT_YET;
  while ((end = end_of(asked->pid)) == END_NOT_YET && clock_now() < deadline &&
         !is_told_to_end(cancel)) {
    hear(asked, LOOK_MS);
  }
  while (end == END_KNOWN && asked->said->len < MOST_SAID && hear(asked, 0)) {
    /* what it said last */
  }
  if (end == END_LOST) {
    return END_LOST;
  }
  kill(-asked->pid, SIGKILL);
  kill(asked->pid, SIGKILL);
  int reaped = -1;
  while ((reaped = waitpid(asked->pid, &asked->status, 0)) < 0 && errno == EINTR) {
    /* again */
  }
  return end == END_KNOWN && reaped < 0 ? END_LOST : end;
}

static gboolean judge(const Asked *asked, const char *program, GError **error) {
  if (WIFSIGNALED(asked->status)) {
    g_autofree char *why = g_strdup_printf("it was ended by signal %d", WTERMSIG(asked->status));
    return fail(error, program, why);
  }
  if (WEXITSTATUS(asked->status) == 0) {
    return TRUE;
  }
  gsize line = strcspn(asked->said->str, "\n");
  g_autofree char *first = g_strndup(asked->said->str, line);
  g_strstrip(first);
  if (!*first) {
    g_free(first);
    first = g_strdup_printf("%s ended with %d", program, WEXITSTATUS(asked->status));
  }
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_DENIED, first);
  return FALSE;
}

static gboolean hear_out(Asked *asked, const char *program, gint64 seconds, Cancel *cancel,
                         GError **error) {
  g_autofree char *slow =
      g_strdup_printf("it gave no answer within %" G_GINT64_FORMAT " seconds", seconds);
  switch (await_end(asked, seconds, cancel)) {
  case END_KNOWN:
    return judge(asked, program, error);
  case END_LOST:
    return fail(error, program,
                "its exit code is lost, since SIGCHLD is ignored or handled elsewhere");
  case END_NOT_YET:
    break;
  }
  return fail(error, program, is_told_to_end(cancel) ? "it was interrupted" : slow);
}

gboolean approver_ask_program(const char *const *argv, JsonObject *question, gint64 seconds,
                              Cancel *cancel, GError **error) {
  sigset_t ends;
  sigset_t before;
  Asked asked = {.err = -1, .said = g_string_new(NULL)};
  int input = question_fd(question);
  gboolean ok = FALSE;
  ending_signals(&ends);
  pthread_sigmask(SIG_BLOCK, &ends, &before);
  if (input < 0) {
    fail(error, argv[0], g_strerror(errno));
  } else if (start(&asked, argv, input, error)) {
    ok = hear_out(&asked, argv[0], seconds, cancel, error);
  }
  if (input >= 0) {
    close(input);
  }
  if (asked.err >= 0) {
    close(asked.err);
  }
  g_string_free(asked.said, TRUE);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return ok;
}
