/* SPDX-License-Identifier: Apache-2.0 */
/* record-held.c: what is said where another process holds the record, as one that is stopped does. */
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "record-fixture.h"
#include "record/record-private.h"

#define RUN "run_00000000000000000000000000000001"

/* A process that begins to write when its gate is closed, says so, and does not go on; stops: it is stopped. It is forked
 * before this one has a record, or it could have none. */
typedef struct {
  pid_t child;
  int gate;
  int ready;
} Holder;

static void hold(const char *path, gboolean stops, int gate, int ready) {
  char byte = 0;
  if (read(gate, &byte, 1) != 0) {
    _exit(1);
  }
  Record *record = record_open(path, NULL);
  if (!record || record_run_statement(record, STATEMENT_BEGIN) != SQLITE_OK ||
      write(ready, "", 1) != 1) {
    _exit(1);
  }
  while (TRUE) {
    stops ? raise(SIGSTOP) : pause();
  }
}

static Holder holder_new(const char *path, gboolean stops) {
  int gate[2];
  int ready[2];
  g_assert_cmpint(pipe(gate) | pipe(ready), ==, 0);
  pid_t child = fork();
  if (child == 0) {
    close(gate[1]);
    close(ready[0]);
    hold(path, stops, gate[0], ready[1]);
  }
  close(gate[0]);
  close(ready[1]);
  return (Holder){.child = child, .gate = gate[1], .ready = ready[0]};
}

static void let_hold(const Holder *holder, gboolean stops) {
  char byte = 0;
  close(holder->gate);
  g_assert_cmpint(read(holder->ready, &byte, 1), ==, 1);
  close(holder->ready);
  if (stops) {
    int status = 0;
    g_assert_cmpint(waitpid(holder->child, &status, WUNTRACED), ==, holder->child);
    g_assert_true(WIFSTOPPED(status));
  }
}

static void check(const Place *place, gboolean stops, const char *wanted) {
  g_autoptr(GError) error = NULL;
  const Holder holder = holder_new(place->path, stops);
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, RUN);
  let_hold(&holder, stops);
  record->longest = CLOCK_SECOND / 10;
  g_assert_false(record_append(record, RUN, "a", NULL, NULL, &error));
  g_autofree char *number = g_strdup_printf("%ld", (long)holder.child);
  g_auto(GStrv) parts = g_strsplit(wanted, "PID", -1);
  g_autofree char *end = g_strjoinv(number, parts);
  g_autofree char *text = g_strdup_printf("could not write the record %s: %s", place->path, end);
  g_assert_cmpstr(error->message, ==, text);
  kill(holder.child, SIGKILL);
  waitpid(holder.child, NULL, 0);
  record->longest = 30 * CLOCK_SECOND;
  append_text(record, RUN, "a", NULL, NULL);
}

static void test_stopped(Place *place, gconstpointer unused) {
  (void)unused;
  check(place, TRUE,
        "process PID holds it and is stopped; kill -CONT PID lets it go on, kill -KILL PID ends "
        "it");
}

static void test_hangs(Place *place, gconstpointer unused) {
  (void)unused;
  check(place, FALSE, "process PID has held it for long; where that hangs, kill PID ends it");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add("/record/held/stopped", Place, NULL, place_make, test_stopped, place_remove);
  g_test_add("/record/held/hangs", Place, NULL, place_make, test_hangs, place_remove);
  return g_test_run();
}
