/* SPDX-License-Identifier: Apache-2.0 */
/* floors.c: the bare costs of programs that ours are compared with, measured in the same run. */
#include "floors.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define BUFFER ((size_t)64 << 10)

static const char measure_child[] = TEST_BUILD_DIR "/bin/sandhost-bench-measure";

/* Each of the three is thrown away or read from nothing when it is below 0. */
static pid_t start(const char *const *argv, int in, int out, int complaints) {
  const int given[3] = {in, out, complaints};
  posix_spawn_file_actions_t actions;
  pid_t pid = -1;
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; i++) {
    if (given[i] >= 0) {
      posix_spawn_file_actions_adddup2(&actions, given[i], i);
    } else {
      posix_spawn_file_actions_addopen(&actions, i, "/dev/null", i ? O_WRONLY : O_RDONLY, 0);
    }
  }
  union {
    const char *const *given;
    char *const *wanted; /* posix_spawn does not write to them */
  } words = {.given = argv};
  if (posix_spawnp(&pid, argv[0], &actions, NULL, words.wanted, environ) != 0) {
    pid = -1;
  }
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

pid_t floor_start(const char *const *argv, int in, int out) {
  return start(argv, in, out, -1);
}

static gboolean ended_well(pid_t pid) {
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

gint64 floor_spawn(const char *const *argv) {
  gint64 from = clock_now();
  return ended_well(floor_start(argv, -1, -1)) ? clock_now() - from : -1;
}

/* ---- Bytes out ------------------------------------------------------------------------------------------------- */

/* Takes both ends. */
static gint64 read_all(const char *const *argv, const int ends[2], guint64 bytes) {
  g_autofree char *buffer = g_malloc(BUFFER);
  guint64 seen = 0;
  ssize_t count = 1;
  gint64 from = clock_now();
  pid_t pid = floor_start(argv, -1, ends[1]);
  close(ends[1]);
  while (count > 0) {
    count = read(ends[0], buffer, BUFFER);
    seen += count > 0 ? (guint64)count : 0;
  }
  gboolean ok = ended_well(pid) && seen == bytes;
  close(ends[0]);
  return ok ? clock_now() - from : -1;
}

gint64 floor_read_pipe(const char *const *argv, guint64 bytes) {
  int ends[2];
  return pipe2(ends, O_CLOEXEC) == 0 ? read_all(argv, ends, bytes) : -1;
}

gint64 floor_read_sockets(const char *const *argv, guint64 bytes) {
  int ends[2];
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 ? read_all(argv, ends, bytes)
                                                                       : -1;
}

/* ---- An end ---------------------------------------------------------------------------------------------------- */

gint64 floor_end(const char *const *argv) {
  int in[2];
  int out[2];
  if (pipe2(in, O_CLOEXEC) != 0) {
    return -1;
  }
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(in[0]);
    close(in[1]);
    return -1;
  }
  pid_t pid = floor_start(argv, in[0], out[1]);
  close(out[1]);
  char letter = 'x';
  /* This end of its input is open until the answer is there: nobody is killed by a closed pipe. */
  gboolean answers = pid > 0 && write(in[1], &letter, 1) == 1 && read(out[0], &letter, 1) == 1;
  close(in[0]);
  gint64 from = clock_now();
  close(in[1]);
  gboolean ok = ended_well(pid) && answers;
  gint64 took = clock_now() - from;
  close(out[0]);
  return ok ? took : -1;
}

/* ---- What a program was and said ------------------------------------------------------------------------------- */

/* All that can be read, as text; owned. Takes the end. */
static char *text_of(int end) {
  GString *text = g_string_new(NULL);
  char buffer[4096];
  for (ssize_t count = 1; count > 0;) {
    count = read(end, buffer, sizeof buffer);
    g_string_append_len(text, buffer, MAX(count, 0));
  }
  close(end);
  return g_string_free(text, FALSE);
}

gint64 floor_measure(const char *const *argv, gint64 *ret_peak) {
  guint count = 0;
  while (argv[count]) {
    count++;
  }
  g_autofree const char **words = g_new0(const char *, count + 2);
  words[0] = measure_child;
  memcpy(words + 1, argv, count * sizeof *words);
  int ends[2];
  int code = -1;
  long long took = 0;
  long peak = 0;
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return -1;
  }
  pid_t pid = floor_start(words, -1, ends[1]);
  close(ends[1]);
  g_autofree char *said = text_of(ends[0]);
  /* NOLINTNEXTLINE(cert-err34-c): our own program's three numbers */
  if (!ended_well(pid) || sscanf(said, "%d %lld %ld", &code, &took, &peak) != 3 || code != 0) {
    return -1;
  }
  *ret_peak = (gint64)peak * 1024;
  return took;
}

char *floor_complaint(const char *const *argv) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return g_strdup("no pipe");
  }
  pid_t pid = start(argv, -1, -1, ends[1]);
  close(ends[1]);
  g_autofree char *said = text_of(ends[0]);
  if (ended_well(pid)) {
    return NULL;
  }
  const char *last = strrchr(g_strchomp(said), '\n');
  last = last ? last + 1 : said;
  return g_strdup(*last ? last : "it says nothing");
}
