/* SPDX-License-Identifier: Apache-2.0 */
/* last-words.c: what is said here is said in a signal handler or an exit handler, so it is put together of pieces. */
#include "cli/last-words.h"

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "provider/inside.h"

static const struct {
  int number;
  const char *words;
} CRASHES[] = {
    {SIGABRT, "crashed (Aborted)"},
    {SIGSEGV, "crashed (Segmentation fault)"},
    {SIGBUS, "crashed (Bus error)"},
    {SIGILL, "crashed (Illegal instruction)"},
    {SIGFPE, "crashed (Floating point exception)"},
};

static gint listens; /* atomic */

static void put(const char *text) {
  ssize_t written = write(STDERR_FILENO, text, strlen(text));
  (void)written; /* there is nobody left to tell */
}

static void tell(const char *what) {
  Inside inside = inside_now();
  put("sandhost: ");
  if (inside.provider) {
    put("the provider ");
    put(inside.provider);
    put(" ");
    put(what);
    put(" in ");
    put(inside.operation);
  } else {
    put(gettid() == getpid() ? "the program " : "a thread outside of any call ");
    put(what);
  }
  put("; a run that had begun is on record as interrupted\n");
}

static void on_crash(int number) {
  for (gsize i = 0; i < G_N_ELEMENTS(CRASHES); i++) {
    if (CRASHES[i].number == number && g_atomic_int_get(&listens)) {
      tell(CRASHES[i].words);
    }
  }
  raise(number); /* its handler is gone, so this is the end */
}

/* What GLib does after --help is in the main thread and in no provider. */
static void on_exit_of_a_stranger(void) {
  if (g_atomic_int_get(&listens) && (inside_now().provider || gettid() != getpid())) {
    tell("ended the program");
    _exit(EXIT_SANDHOST);
  }
}

void last_words_begin(void) {
  const struct sigaction action = {.sa_handler = on_crash,
                                   .sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_ONSTACK};
  for (gsize i = 0; i < G_N_ELEMENTS(CRASHES); i++) {
    struct sigaction before;
    if (sigaction(CRASHES[i].number, NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
      sigaction(CRASHES[i].number, &action, NULL); /* a sanitizer's own words say more */
    }
  }
  g_atomic_int_set(&listens, 1);
  atexit(on_exit_of_a_stranger);
}

/* ---- Loading -------------------------------------------------------------------------------------------------- */

/* dlopen and the entry run in the thread that asks, with the loader's locks: nothing but the end gets out of there. A
 * thread that is there before sees to it, since a plugin may block any signal; it calls nothing that needs the loader. */
static struct {
  pthread_mutex_t lock; /* guards over */
  pthread_cond_t change;
  gboolean over;
  gboolean runs;
  const char *name; /* constant while it runs */
  pthread_t watch;
} load = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static void *watch_load(void *unused) {
  const gint64 until = clock_deadline(LAST_WORDS_LOAD_PATIENCE);
  const struct timespec end = {.tv_sec = (time_t)(until / CLOCK_SECOND),
                               .tv_nsec = (long)(until % CLOCK_SECOND)};
  int code = 0;
  (void)unused;
  pthread_mutex_lock(&load.lock);
  while (!load.over && code != ETIMEDOUT) {
    code = pthread_cond_clockwait(&load.change, &load.lock, CLOCK_MONOTONIC, &end);
  }
  if (!load.over) {
    put("sandhost: the provider ");
    put(load.name);
    put(" does not come back in loading\n");
    _exit(EXIT_SANDHOST);
  }
  pthread_mutex_unlock(&load.lock);
  return NULL;
}

static void load_begun(const char *name) {
  sigset_t all;
  sigset_t before;
  load.name = name;
  load.over = FALSE;
  if (!g_atomic_int_get(&listens)) {
    return;
  }
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the other threads' */
  load.runs = pthread_create(&load.watch, NULL, watch_load, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void load_done(void) {
  if (load.runs) {
    pthread_mutex_lock(&load.lock);
    load.over = TRUE;
    pthread_cond_signal(&load.change);
    pthread_mutex_unlock(&load.lock);
    pthread_join(load.watch, NULL);
    load.runs = FALSE;
  }
}

const LoadWatch last_words_of_loads = {.begun = load_begun, .done = load_done};

void last_words_end(void) {
  g_atomic_int_set(&listens, 0);
}
