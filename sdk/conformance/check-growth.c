/* SPDX-License-Identifier: Apache-2.0 */
/* check-growth.c: what is done again and again leaves no descriptor open and no memory taken. */
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "descriptors.h"
#include "exercise.h"

/* ---- Descriptors ------------------------------------------------------------------------------------------------------- */

/* The first rounds may fill what is kept for later ones. */
#define WARM_ROUNDS 2
#define ROUNDS 4

typedef void (*Turn)(void *user);

static void want_none_open(Turn turn, void *user, const char *name, Verdict *verdict) {
  guint before = 0;
  for (int i = 0; i < WARM_ROUNDS + ROUNDS; i++) {
    before = i == WARM_ROUNDS ? descriptors_open(FALSE) : before;
    turn(user);
  }
  guint more = descriptors_grown(FALSE, before);
  if (more >= ROUNDS) {
    wrong(verdict, "%u more descriptors are open after %d more of %s", more, ROUNDS, name);
  }
}

static void one_instance(void *user) {
  exercise_instance(user);
}

static void one_sandbox(void *user) {
  exercise_sandbox(user);
}

typedef struct {
  const Exercise *exercise;
  Box *box;
} OneOf;

static void one_of(void *user) {
  const OneOf *one = user;
  one->exercise->run(one->box);
}

static void want_operation_closed(const Exercise *exercise, Box *box, Verdict *verdict) {
  OneOf one = {exercise, box};
  want_none_open(one_of, &one, exercise->name, verdict);
}

typedef void (*EachExercise)(const Exercise *exercise, Box *box, Verdict *verdict);

static void each(Subject *subject, EachExercise look, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  gboolean ready = exercise_prepare(&box, verdict);
  for (const Exercise *exercise = EXERCISES; ready && exercise->name && !verdict->wrong;
       exercise++) {
    if (exercise->is_there(subject->table)) {
      look(exercise, &box, verdict);
    }
  }
  box_close(&box, verdict);
}

static void check_descriptors(Subject *subject, Verdict *verdict) {
  want_none_open(one_instance, subject, "open and close", verdict);
  if (!verdict->wrong) {
    each(subject, want_operation_closed, verdict);
  }
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------ */

/* What is lost is lost in each of the windows; what is kept for later, or grows by doubling, in some of them. One without
 * any growth is enough. */
#define WINDOWS 12
#define TURNS 6
/* Bytes, for each turn. Nobody keeps a note of that length about every command or sandbox that was. */
#define OF_INSTANCE 48
#define OF_SANDBOX 256
#define OF_OPERATION 1024
#define OF_MAPPED 65536 /* beside what malloc takes */

/* In use, of malloc, in all its arenas. */
static gsize allocated(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/* Private and writable, mapped by whomever. */
static gsize mapped(void) {
  g_autofree char *text = NULL;
  if (!g_file_get_contents("/proc/self/statm", &text, NULL, NULL)) {
    return 0;
  }
  g_auto(GStrv) words = g_strsplit(text, " ", -1);
  return g_strv_length(words) > 5
             ? (gsize)g_ascii_strtoull(words[5], NULL, 10) * (gsize)sysconf(_SC_PAGESIZE)
             : 0;
}

#define BIG 100000

/* A sanitizer's malloc tells nothing. */
static gboolean malloc_tells(void) {
  gsize before = allocated();
  void *volatile taken = malloc(BIG); /* what is small is in use to it while a thread keeps it */
  gboolean tells = allocated() > before;
  free(taken);
  return tells;
}

/* The least that a window added, for each turn. */
typedef struct {
  gsize allocated;
  gsize mapped;
} Growth;

static gsize more_than(gsize now, gsize before) {
  return now > before ? now - before : 0;
}

static gboolean is_lost(Growth growth, gsize bound) {
  return growth.allocated >= bound || growth.mapped >= OF_MAPPED;
}

static Growth measure(Turn turn, void *user, gsize bound) {
  Growth least = {G_MAXSIZE, G_MAXSIZE};
  for (int i = 0; i < WARM_ROUNDS; i++) {
    turn(user);
  }
  for (int window = 0; window < WINDOWS && is_lost(least, bound); window++) {
    Growth before = {allocated(), mapped()};
    for (int i = 0; i < TURNS; i++) {
      turn(user);
    }
    least.allocated = MIN(least.allocated, more_than(allocated(), before.allocated) / TURNS);
    least.mapped = MIN(least.mapped, more_than(mapped(), before.mapped) / TURNS);
  }
  return least;
}

static void want_given_back(Turn turn, void *user, const char *name, gsize bound,
                            Verdict *verdict) {
  Growth growth = measure(turn, user, bound);
  if (is_lost(growth, bound)) {
    wrong(verdict, "each %s keeps %zu bytes more", name,
          growth.allocated >= bound ? growth.allocated : growth.mapped);
  }
}

static void want_operation_given_back(const Exercise *exercise, Box *box, Verdict *verdict) {
  OneOf one = {exercise, box};
  want_given_back(one_of, &one, exercise->name, OF_OPERATION, verdict);
}

static void check_memory(Subject *subject, Verdict *verdict) {
  if (!malloc_tells()) {
    skipped(verdict, "this program's malloc does not tell what is in use");
    return;
  }
  want_given_back(one_instance, subject, "open and close", OF_INSTANCE, verdict);
  if (!verdict->wrong) {
    want_given_back(one_sandbox, subject, "create, terminate and release", OF_SANDBOX, verdict);
  }
  if (!verdict->wrong) {
    each(subject, want_operation_given_back, verdict);
  }
}

const Check GROWTH_CHECKS[] = {
    {"process: operations leave no descriptor", "an operation closes what it opened",
     check_descriptors},
    {"process: memory is given back",
     "close frees an instance, release frees a handle, and an operation what it took",
     check_memory},
    {0},
};
