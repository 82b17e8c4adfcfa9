/* SPDX-License-Identifier: Apache-2.0 */
/* check-execute.c: commands, their output, their input and their ends. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"

/* Most checks need one sandbox: this makes it, runs the check's body, and ends it. */
#define WITH_BOX(name, body)                                                                       \
  static void name(Subject *subject, Verdict *verdict) {                                           \
    Box box;                                                                                       \
    if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {                                \
      return;                                                                                      \
    }                                                                                              \
    body(&box, verdict);                                                                           \
    box_close(&box, verdict);                                                                      \
  }

static void exit_codes(Box *box, Verdict *verdict) {
  want_run(box, "true", 0, "", verdict);
  want_run(box, "exit 3", 3, "", verdict);
  want_run(box, "exit 137", 137, "", verdict);
  want_run(box, "exit 255", 255, "", verdict);
}
WITH_BOX(check_exit_codes, exit_codes)

static void streams(Box *box, Verdict *verdict) {
  Ran ran;
  run_script(box, "echo out; echo err >&2; printf '\\000\\377\\200'", NULL, &ran);
  if (ran.out->len != 7 || memcmp(ran.out->str, "out\n\000\377\200", 7) != 0 ||
      strcmp(ran.err->str, "err\n") != 0) {
    wrong(verdict, "stdout has %zu bytes, stderr '%.100s'", (size_t)ran.out->len, ran.err->str);
  } else if (ran.result.stdout_bytes != 7 || ran.result.stderr_bytes != 4) {
    wrong(verdict, "counted %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT " bytes",
          ran.result.stdout_bytes, ran.result.stderr_bytes);
  }
  ran_clear(&ran);
}
WITH_BOX(check_streams, streams)

static void signals(Box *box, Verdict *verdict) {
  Ran ran;
  run_script(box, "kill -TERM $$; sleep 5", NULL, &ran);
  if (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_SIGNAL ||
      ran.result.signal != 15 || ran.result.exit_code != 143) {
    wrong(verdict, "SIGTERM: status %s, ended %u, signal %d, exit code %d", status_name(ran.status),
          ran.result.ended, ran.result.signal, ran.result.exit_code);
  }
  ran_clear(&ran);
  run_script(box, "kill -KILL $$; sleep 5", &(RunOptions){.limit = 30}, &ran);
  if (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_SIGNAL ||
      ran.result.signal != 9) {
    wrong(verdict, "SIGKILL by itself: status %s, ended %u, signal %d", status_name(ran.status),
          ran.result.ended, ran.result.signal);
  }
  ran_clear(&ran);
}
WITH_BOX(check_signals, signals)

static void not_found(Box *box, Verdict *verdict) {
  const char *const argv[] = {"no-such-program-here", NULL};
  Ran ran;
  run_argv(box, argv, NULL, &ran);
  if (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_EXIT ||
      ran.result.exit_code != 127 || ran.err->len == 0) {
    wrong(verdict, "a missing program: status %s, exit code %d, stderr '%.100s'",
          status_name(ran.status), ran.result.exit_code, ran.err->str);
  }
  ran_clear(&ran);
  want_run(box, "echo no > plain", 0, "", verdict);
  g_autofree char *plain = below(box, "plain");
  const char *const unrunnable[] = {plain, NULL};
  run_argv(box, unrunnable, NULL, &ran);
  if (ran.status != SANDHOST_OK || ran.result.exit_code != 126) {
    wrong(verdict, "a program without permission: status %s, exit code %d", status_name(ran.status),
          ran.result.exit_code);
  }
  ran_clear(&ran);
  g_autofree char *missing = below(box, "no-such-folder");
  run_script(box, "echo ran", &(RunOptions){.cwd = missing}, &ran);
  if (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_EXIT ||
      (ran.result.exit_code != 126 && ran.result.exit_code != 127) || ran.err->len == 0 ||
      ran.out->len > 0) {
    wrong(verdict, "a missing working directory: status %s, exit code %d, stderr '%.100s'",
          status_name(ran.status), ran.result.exit_code, ran.err->str);
  }
  ran_clear(&ran);
}
WITH_BOX(check_not_found, not_found)

static void stdin_given(Box *box, Verdict *verdict) {
  Ran ran;
  g_autofree char *much = g_strnfill(300000, 'i');
  run_script(box, "cat", &(RunOptions){.input = much, .input_length = 300000}, &ran);
  if (ran.status != SANDHOST_OK || ran.out->len != 300000) {
    wrong(verdict, "300,000 bytes of stdin: %zu came back", (size_t)ran.out->len);
  }
  ran_clear(&ran);
  run_script(box, "exec 0<&-; sleep 0.1; echo done",
             &(RunOptions){.input = much, .input_length = 300000}, &ran);
  if (ran.status != SANDHOST_OK || strcmp(ran.out->str, "done\n") != 0) {
    wrong(verdict, "stdin closed by the command: status %s, '%.100s'", status_name(ran.status),
          ran.out->str);
  }
  ran_clear(&ran);
  run_script(box, "head -c 5",
             &(RunOptions){.input = "hello", .input_length = 5, .input_stays_open = TRUE}, &ran);
  if (ran.status != SANDHOST_OK || strcmp(ran.out->str, "hello") != 0) {
    wrong(verdict, "stdin left open: status %s, '%.100s'", status_name(ran.status), ran.out->str);
  }
  ran_clear(&ran);
}
WITH_BOX(check_stdin, stdin_given)

static void stdin_empty(Box *box, Verdict *verdict) {
  want_run(box, "cat; echo end", 0, "end\n", verdict);
}
WITH_BOX(check_stdin_empty, stdin_empty)

static void background(Box *box, Verdict *verdict) {
  Ran ran;
  run_script(box, "(sleep 30; echo late) & echo now", NULL, &ran);
  if (ran.status != SANDHOST_OK || strcmp(ran.out->str, "now\n") != 0 || ran.took > 20 * SECOND) {
    wrong(verdict, "returned after %" G_GINT64_FORMAT " ms with '%.100s'", ran.took / 1000000,
          ran.out->str);
  }
  ran_clear(&ran);
  want_run(box, "(while :; do echo beat >> beat; sleep 0.05; done) > /dev/null 2>&1 &", 0, "",
           verdict);
  want_run(box,
           "rm -f beat; for i in $(seq 200); do test -s beat && exit 0; sleep 0.1; done; exit 1", 0,
           "", verdict);
}
WITH_BOX(check_background, background)

static void background_noise(Box *box, Verdict *verdict) {
  Ran ran;
  run_script(box, "(while :; do echo noise; done) & sleep 0.1; echo end >&2", NULL, &ran);
  if (ran.status != SANDHOST_OK || strcmp(ran.err->str, "end\n") != 0) {
    wrong(verdict, "a noisy child: status %s, stderr '%.100s'", status_name(ran.status),
          ran.err->str);
  }
  ran_clear(&ran);
}
WITH_BOX(check_background_noise, background_noise)

static void caps(Box *box, Verdict *verdict) {
  Ran ran;
  run_script(box, "head -c 3000000 /dev/zero | tr '\\0' x; echo 123456789 >&2; exit 4",
             &(RunOptions){.max_output = 1000}, &ran);
  if (ran.status != SANDHOST_OK || ran.result.exit_code != 4) {
    wrong(verdict, "status %s, exit code %d", status_name(ran.status), ran.result.exit_code);
  } else if (ran.out->len != 1000 || ran.err->len != 10 || ran.result.stdout_bytes != 3000000 ||
             ran.result.stderr_bytes != 10) {
    wrong(verdict,
          "delivered %zu and %zu bytes, counted %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT,
          (size_t)ran.out->len, (size_t)ran.err->len, ran.result.stdout_bytes,
          ran.result.stderr_bytes);
  }
  ran_clear(&ran);
}
WITH_BOX(check_caps, caps)

static void floods(Box *box, Verdict *verdict) {
  Ran ran;
  run_script(box, "head -c 30000000 /dev/zero | tr '\\0' x; echo end >&2", NULL, &ran);
  if (ran.status != SANDHOST_OK || ran.out->len != 30000000 || strcmp(ran.err->str, "end\n") != 0) {
    wrong(verdict, "30 MB of output: %zu bytes came, status %s", (size_t)ran.out->len,
          status_name(ran.status));
  }
  ran_clear(&ran);
}
WITH_BOX(check_floods, floods)

static void split_text(Box *box, Verdict *verdict) {
  want_run(box, "printf '\\342'; sleep 0.1; printf '\\202\\254'", 0, "\xe2\x82\xac", verdict);
}
WITH_BOX(check_split_text, split_text)

static void arguments(Box *box, Verdict *verdict) {
  const char *const argv[] = {"printf", "%s|",       "two words", "",  "*",
                              "$HOME",  "new\nline", "\xff\xfe",  NULL};
  Ran ran;
  run_argv(box, argv, NULL, &ran);
  if (ran.status != SANDHOST_OK ||
      strcmp(ran.out->str, "two words||*|$HOME|new\nline|\xff\xfe|") != 0) {
    wrong(verdict, "the words arrived as '%.200s'", ran.out->str);
  }
  ran_clear(&ran);
}
WITH_BOX(check_arguments, arguments)

static void large_command(Box *box, Verdict *verdict) {
  GString *script = g_string_new("x=0\n");
  while (script->len < 3 << 20) {
    g_string_append(script, "x=$((x+1)) # a line of a command that is three megabytes long\n");
  }
  g_string_append(script, "echo end; exit 9\n");
  Ran ran;
  run_script(box, script->str, NULL, &ran);
  if (ran.status != SANDHOST_OK || ran.result.exit_code != 9 ||
      strcmp(ran.out->str, "end\n") != 0) {
    wrong(verdict, "a command of 3 MB: status %s, exit code %d, stderr '%.200s'",
          status_name(ran.status), ran.result.exit_code, ran.err->str);
  }
  ran_clear(&ran);
  g_string_free(script, TRUE);
}
WITH_BOX(check_large_command, large_command)

static void place(Box *box, Verdict *verdict) {
  Ran ran;
  const struct sandhost_pair environment[] = {{as_text("ONLY_HERE"), as_text("a b")}};
  want_run(box, "mkdir -p deep/er", 0, "", verdict);
  g_autofree char *deep = below(box, "deep/er");
  run_script(box, "pwd; echo \"$ONLY_HERE\"",
             &(RunOptions){.cwd = deep, .environment = environment, .environment_count = 1}, &ran);
  g_autofree char *expected = g_strdup_printf("%s\na b\n", deep);
  if (ran.status != SANDHOST_OK || strcmp(ran.out->str, expected) != 0) {
    wrong(verdict, "cwd and environment of one command: '%.200s'", ran.out->str);
  }
  ran_clear(&ran);
  want_run(box, "echo \"${ONLY_HERE-gone}\"", 0, "gone\n", verdict);
}
WITH_BOX(check_place, place)

/* ls has its three, and the folder that it reads. */
#define DESCRIPTORS                                                                                \
  "ls /proc/self/fd > /dev/null 2>&1 || { echo unknown; exit; }; "                                 \
  "ls /proc/self/fd | grep -v '^[0-3]$'; true"

static void fresh_state(Box *box, Verdict *verdict) {
  Ran ran;
  want_run(box, "umask", 0, "0022\n", verdict);
  run_script(box, DESCRIPTORS, NULL, &ran);
  if (ran.status == SANDHOST_OK && strcmp(ran.out->str, "unknown\n") == 0) {
    untried(verdict, "the sandbox has no /proc/self/fd to look at");
  } else if (ran.status != SANDHOST_OK || ran.out->len > 0) {
    wrong(verdict, "status %s, descriptors beyond the first four: '%.100s'",
          status_name(ran.status), ran.out->str);
  }
  ran_clear(&ran);
}
WITH_BOX(fresh_state_in_a_box, fresh_state)

/* What a careless host leaves open must not arrive either. */
static void check_fresh_state(Subject *subject, Verdict *verdict) {
  mode_t mask = umask(0077);
  int careless = fcntl(STDERR_FILENO, F_DUPFD, 20);
  fresh_state_in_a_box(subject, verdict);
  close(careless);
  umask(mask);
}

/* Long enough for a thread that is not joined. */
#define LATE_MICROSECONDS 300000

static void started(Box *box, Verdict *verdict) {
  Ran ran;
  guint late = late_calls();
  run_script(box, "echo x", NULL, &ran);
  g_usleep(LATE_MICROSECONDS);
  if (ran.starts != 1) {
    wrong(verdict, "started was called %u times", ran.starts);
  } else if (late_calls() > late) {
    wrong(verdict, "the host was told something after the return");
  }
  ran_clear(&ran);
}
WITH_BOX(check_started, started)

static void no_start(void *user, uint64_t execution) {
  (void)execution;
  *(gboolean *)user = TRUE;
}

static int32_t no_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)stream;
  (void)data;
  (void)length;
  *(gboolean *)user = TRUE;
  return SANDHOST_OK;
}

/* The words are the host's to check: no provider is asked with bad ones. */
static void bad_requests(Box *box, Verdict *verdict) {
  const struct sandhost_text words[] = {{"true", 4}};
  const struct sandhost_execute request = {
      .size = sizeof request, .argv = words, .argc = 1, .flags = 0x80000000u};
  gboolean called = FALSE;
  const struct sandhost_observer observer = {
      .size = sizeof observer, .user = &called, .started = no_start, .output = no_output};
  struct sandhost_result result = {.size = sizeof result};
  struct sandhost_call call;
  call_init(&call, 30);
  gint32 status = box->subject->table->execute(&call, box->handle, &request, &observer, &result);
  if (status != SANDHOST_INVALID) {
    wrong(verdict, "an unknown flag: %s instead of INVALID", status_name(status));
  } else if (called) {
    wrong(verdict, "an unknown flag: something was started");
  }
  call_clear(&call);
  want_run(box, "echo still here", 0, "still here\n", verdict);
}
WITH_BOX(check_bad_requests, bad_requests)

#define CROWD 12

/* Each says that it is there and waits for all: commands that come one after another never meet. The first one that has
 * waited long enough says so to those behind it. */
static gpointer one_command(gpointer data) {
  Verdict *verdict = g_new0(Verdict, 1);
  Ran ran;
  run_script(data,
             ": > \"$(mktemp here.XXXXXX)\"\n"
             "for i in $(seq 600); do\n"
             "  set -- here.*\n"
             "  test $# -ge " G_STRINGIFY(CROWD) " && { echo met; exit 0; }\n"
                                                 "  test -e alone && exit 1\n"
                                                 "  sleep 0.05\n"
                                                 "done\n"
                                                 ": > alone; exit 1\n",
             &(RunOptions){.deadline = 120}, &ran);
  if (ran.status != SANDHOST_OK || strcmp(ran.out->str, "met\n") != 0) {
    wrong(verdict, "a command did not meet the others: status %s, exit code %d, stderr '%.100s'",
          status_name(ran.status), ran.result.exit_code, ran.err->str);
  }
  ran_clear(&ran);
  return verdict;
}

static void parallel(Box *box, Verdict *verdict) {
  GThread *threads[CROWD];
  if (box->subject->table->threads < SANDHOST_THREADS_PARALLEL) {
    skipped(verdict, "the declared thread level allows one call at a time in a sandbox");
    return;
  }
  for (guint i = 0; i < CROWD; i++) {
    threads[i] = g_thread_new("command", one_command, box);
  }
  for (guint i = 0; i < CROWD; i++) {
    Verdict *one = g_thread_join(threads[i]);
    if (one->wrong) {
      wrong(verdict, "%s", one->wrong);
    }
    g_free(one->wrong);
    g_free(one);
  }
  want_run(box, "rm -f here.* alone", 0, "", verdict);
}
WITH_BOX(check_parallel, parallel)

const Check EXECUTE_CHECKS[] = {
    {"execute: exit codes", "a command that exits with n is a successful execute that carries n",
     check_exit_codes},
    {"execute: streams", "stdout and stderr come apart, any byte, and are counted", check_streams},
    {"execute: signals", "a signal that nobody here sent is ENDED_SIGNAL, with 128 + n",
     check_signals},
    {"execute: cannot start", "not found is 127, not allowed is 126, with the reason on stderr",
     check_not_found},
    {"execute: stdin", "input is given, may be closed early, and may be left open", check_stdin},
    {"execute: no stdin", "without SANDHOST_EXECUTE_STDIN the input is empty", check_stdin_empty},
    {"execute: background children",
     "execute returns when its own process has ended; children live on", check_background},
    {"execute: noisy child", "a child that goes on writing does not hold the end back",
     check_background_noise},
    {"execute: caps", "the observer gets at most max_output_bytes per stream; the rest is counted",
     check_caps},
    {"execute: floods", "without a cap everything comes", check_floods},
    {"execute: split characters", "output is bytes, cut anywhere", check_split_text},
    {"execute: words", "every word of argv arrives as it is", check_arguments},
    {"execute: large command", "a command may be 3 MB long", check_large_command},
    {"execute: place", "cwd and environment of a command are its own", check_place},
    {"execute: fresh state", "a command inherits no descriptor, and an ordinary umask",
     check_fresh_state},
    {"execute: started", "started is called once; nothing is called after the return",
     check_started},
    {"execute: bad requests", "an unknown bit of the flags is SANDHOST_INVALID",
     check_bad_requests},
    {"execute: in parallel", "commands of one sandbox run at once", check_parallel},
    {0},
};
