/* SPDX-License-Identifier: Apache-2.0 */
/* forked.c: three numbers, and what a child does with them before anything else. */
#include "base/forked.h"

#include <pthread.h>

/* All atomic: a child is forked at any moment, so there is no lock that it could find taken. */
static gint generation;
static gint held;
static gint spoilt;

static void note_child(void) {
  g_atomic_int_inc(&generation);
  if (g_atomic_int_get(&held) > 0) {
    g_atomic_int_set(&spoilt, 1);
  }
}

static void watch_once(void) {
  if (pthread_atfork(NULL, NULL, note_child) != 0) {
    g_error("out of memory"); /* its only failure */
  }
}

void forked_watch(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_once);
}

guint forked_generation(void) {
  return (guint)g_atomic_int_get(&generation);
}

void forked_hold(void) {
  forked_watch();
  g_atomic_int_inc(&held);
}

void forked_release(void) {
  g_atomic_int_add(&held, -1);
}

gboolean forked_is_spoilt(void) {
  return g_atomic_int_get(&spoilt) != 0;
}
