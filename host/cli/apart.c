/* SPDX-License-Identifier: Apache-2.0 */
/* apart.c: the child sends what it found as JSON through a pipe, with a space before it once the plugin is loaded. */
#include "cli/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/last-words.h"

/* Opening, the try and its end each keep their own limit below this; what is later hangs where nobody set one. */
#define PATIENCE (100 * CLOCK_SECOND)
#define MAX_ANSWER (1u << 20)

static int answer_fd = -1; /* in the child */

void apart_loaded(void) {
  if (answer_fd >= 0) {
    cli_write(answer_fd, " ", 1);
  }
}

static G_GNUC_NORETURN void look_here(const Apart *apart, int answer, pid_t parent) {
  last_words_end(); /* the parent tells how it went */
  /* A sandbox that is being made is ended by whom it belongs to, even if the parent is killed. */
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) { /* it was, before it was asked for */
    _exit(1);
  }
  answer_fd = answer;
  g_autoptr(JsonObject) found = apart->look(apart->user);
  g_autofree char *text = json_text(found);
  cli_write(answer, text, strlen(text));
  provider_stop_all();
  _exit(0);
}

/* Until the child has closed its end. A signal that cancels is passed on, once, and the child comes to its end. FALSE:
 * it said too much, or nothing for too long. */
static gboolean read_answer(const Apart *apart, pid_t child, int fd, GString *answer) {
  const gint64 begun = clock_now();
  gboolean told = FALSE;
  for (;;) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    gint64 left = begun + (answer->len > 0 ? PATIENCE : LAST_WORDS_LOAD_PATIENCE) - clock_now();
    char chunk[4096];
    if (apart->cancel && cancel_raised(apart->cancel) && !told) {
      told = TRUE;
      kill(child, SIGTERM);
    }
    if (left <= 0 || answer->len > MAX_ANSWER) {
      return FALSE;
    }
    /* A signal may come just before the wait, so it is never long. */
    if (poll(&ready, 1, (int)MIN(left / CLOCK_MILLISECOND + 1, 200)) <= 0) {
      continue;
    }
    ssize_t count = read(fd, chunk, sizeof chunk);
    if (count == 0) {
      return TRUE;
    }
    if (count > 0) {
      g_string_append_len(answer, chunk, (gssize)count);
    } else if (errno != EINTR) {
      return FALSE;
    }
  }
}

/* What became of a child without a sound answer. Owned. */
static char *end_words(gboolean hung, int status) {
  if (hung) {
    return g_strdup("it does not come back");
  }
  if (WIFSIGNALED(status)) {
    return g_strdup_printf("it crashes (%s)", g_strsignal(WTERMSIG(status)));
  }
  return g_strdup_printf("it ends the program (with %d)", WEXITSTATUS(status));
}

static JsonObject *fail(int error, char **ret_why) {
  *ret_why = g_strdup(g_strerror(error));
  return NULL;
}

JsonObject *apart_look(const Apart *apart, char **ret_why) {
  int ends[2];
  pid_t self = getpid();
  if (pipe2(ends, O_CLOEXEC) < 0) {
    return fail(errno, ret_why);
  }
  pid_t child = fork();
  int code = errno;
  if (child == 0) {
    close(ends[0]);
    look_here(apart, ends[1], self);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return fail(code, ret_why);
  }
  g_autoptr(GString) answer = g_string_new(NULL);
  gboolean whole = read_answer(apart, child, ends[0], answer);
  close(ends[0]);
  if (!whole) {
    kill(child, SIGKILL);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  g_autoptr(GError) error = NULL;
  JsonObject *found = whole ? json_parse("the answer", answer->str, answer->len, &error) : NULL;
  if (json_object_is_type(found, json_type_object)) {
    return found;
  }
  json_object_put(found);
  *ret_why = end_words(!whole, status);
  return NULL;
}
