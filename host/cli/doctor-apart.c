/* SPDX-License-Identifier: Apache-2.0 */
/* doctor-apart.c: a provider is examined in a child, which sends what it found as JSON through a pipe and ends. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/doctor.h"

/* Opening, the try and its end each keep their own limit below this; what is later hangs where nobody set one. */
#define PATIENCE (100 * CLOCK_SECOND)
#define MAX_ANSWER (1u << 20)

static G_GNUC_NORETURN void examine_here(const DoctorSettings *settings, const char *name,
                                         const char *file, int answer, pid_t parent) {
  /* A sandbox that is being made is ended by whom it belongs to, even if the parent is killed. */
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) { /* it was, before it was asked for */
    _exit(1);
  }
  g_autoptr(JsonObject) diagnosis = diagnose(settings, name, file);
  g_autofree char *text = json_text(diagnosis);
  cli_write(answer, text, strlen(text));
  provider_stop_all();
  _exit(0);
}

/* Until the child has closed its end. A signal that cancels is passed on, once, and the child comes to its end. FALSE:
 * it said too much, or nothing for too long. */
static gboolean read_answer(const DoctorSettings *settings, pid_t child, int fd, GString *answer) {
  gint64 until = clock_deadline(PATIENCE);
  gboolean told = FALSE;
  for (;;) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    gint64 left = until - clock_now();
    char chunk[4096];
    if (cancel_raised(settings->cancel) && !told) {
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

static JsonObject *failed(const DoctorSettings *settings, const char *name, const char *file,
                          const char *why) {
  JsonObject *object = json_object_new_object();
  json_add_text(object, "name", name);
  json_add_text(object, "version", NULL);
  json_add_text(object, "file", file);
  json_add_bool(object, "selected", g_strcmp0(settings->config->provider, name) == 0);
  json_add_bool(object, "usable", FALSE);
  json_add_bool(object, "tried", settings->tries);
  json_add_bool(object, "isolated", TRUE);
  json_add_bool(object, "trusted", FALSE);
  json_add_text(object, "remark", why);
  json_add_take(object, "missing", json_object_new_array());
  json_add_take(object, "enforces", json_object_new_object());
  json_add_take(object, "lowered", json_object_new_object());
  return object;
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

JsonObject *diagnose_apart(const DoctorSettings *settings, const char *name, const char *file) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) {
    return failed(settings, name, file, g_strerror(errno));
  }
  pid_t self = getpid();
  pid_t child = fork();
  if (child < 0) {
    int code = errno;
    close(ends[0]);
    close(ends[1]);
    return failed(settings, name, file, g_strerror(code));
  }
  if (child == 0) {
    close(ends[0]);
    examine_here(settings, name, file, ends[1], self);
  }
  close(ends[1]);
  g_autoptr(GString) answer = g_string_new(NULL);
  gboolean whole = read_answer(settings, child, ends[0], answer);
  close(ends[0]);
  if (!whole) {
    kill(child, SIGKILL);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  g_autoptr(GError) error = NULL;
  JsonObject *diagnosis =
      whole ? json_parse("the diagnosis", answer->str, answer->len, &error) : NULL;
  if (json_object_is_type(diagnosis, json_type_object)) {
    return diagnosis;
  }
  json_object_put(diagnosis);
  g_autofree char *why = end_words(!whole, status);
  return failed(settings, name, file, why);
}
