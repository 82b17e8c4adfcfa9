/* SPDX-License-Identifier: Apache-2.0 */
/* record-held.c: what is said where another process holds the record, as one that is stopped does. */
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "record-fixture.h"
#include "record/record-private.h"

#define RUN "run_00000000000000000000000000000001"

/* A process that has begun to write, and does not go on; stops: it is stopped. */
static pid_t hold(const char *path, gboolean stops) {
  int ready[2];
  g_assert_cmpint(pipe(ready), ==, 0);
  pid_t child = fork();
  if (child == 0) {
    Record *record = record_open(path, NULL);
    record_run_statement(record, STATEMENT_BEGIN);
    close(ready[0]);
    (void)!write(ready[1], "", 1);
    while (TRUE) {
      stops ? raise(SIGSTOP) : pause();
    }
  }
  char byte;
  g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
  if (stops) {
    int status = 0;
    g_assert_cmpint(waitpid(child, &status, WUNTRACED), ==, child);
    g_assert_true(WIFSTOPPED(status));
  }
  close(ready[0]);
  close(ready[1]);
  return child;
}

static void check(const Place *place, gboolean stops, const char *wanted) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, RUN);
  pid_t child = hold(place->path, stops);
  record->longest = CLOCK_SECOND / 10;
  g_assert_false(record_append(record, RUN, "a", NULL, NULL, &error));
  g_autofree char *number = g_strdup_printf("%ld", (long)child);
  g_auto(GStrv) parts = g_strsplit(wanted, "PID", -1);
  g_autofree char *end = g_strjoinv(number, parts);
  g_autofree char *text = g_strdup_printf("could not write the record %s: %s", place->path, end);
  g_assert_cmpstr(error->message, ==, text);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
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
