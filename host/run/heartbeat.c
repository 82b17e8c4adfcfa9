/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat.c: a thread that keeps a run's lease and what its commands print, and notices when the run is no longer ours. */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "run/run-private.h"

/* How soon a run that was ended from outside is noticed. */
#define LOOK_INTERVAL CLOCK_SECOND

struct Heartbeat {
  Record *record;
  const char *run_id;
  const char *owner;
  gint64 interval; /* nanoseconds between beats */
  gint *lost;
  Cancel *cancel;
  OutputWatch *outputs;
  pthread_t thread;
  pthread_mutex_t lock; /* guards stopped */
  pthread_cond_t stopping;
  gboolean stopped;
};

/* FALSE when the heartbeat is to stop. */
static gboolean wait_a_while(Heartbeat *heartbeat) {
  struct timespec until;
  int code = 0;
  clock_gettime(CLOCK_MONOTONIC, &until);
  gint64 at = until.tv_nsec + MIN(LOOK_INTERVAL, heartbeat->interval);
  until.tv_sec += at / CLOCK_SECOND;
  until.tv_nsec = at % CLOCK_SECOND;
  pthread_mutex_lock(&heartbeat->lock);
  while (!heartbeat->stopped && code != ETIMEDOUT) {
    code = pthread_cond_timedwait(&heartbeat->stopping, &heartbeat->lock, &until);
  }
  gboolean goes_on = !heartbeat->stopped;
  pthread_mutex_unlock(&heartbeat->lock);
  return goes_on;
}

static void *beat(void *user) {
  Heartbeat *heartbeat = user;
  gint64 next = clock_now() + heartbeat->interval;
  while (wait_a_while(heartbeat)) {
    gboolean held = TRUE;
    gboolean due = clock_now() >= next;
    /* A record that cannot be written now is tried again; the commands themselves fail with it. */
    if (record_heartbeat(heartbeat->record, heartbeat->run_id, heartbeat->owner, due, &held,
                         NULL) &&
        due) {
      next = clock_now() + heartbeat->interval;
    }
    output_watch_look(heartbeat->outputs);
    if (!held) {
      g_atomic_int_set(heartbeat->lost, 1);
      if (heartbeat->cancel) {
        cancel_raise(heartbeat->cancel);
      }
      return NULL;
    }
  }
  return NULL;
}

Heartbeat *heartbeat_start(Record *record, const char *run_id, const char *owner,
                           gint64 lease_seconds, gint *lost, Cancel *cancel, OutputWatch *outputs) {
  Heartbeat *heartbeat = g_new0(Heartbeat, 1);
  heartbeat->record = record;
  heartbeat->run_id = run_id;
  heartbeat->owner = owner;
  heartbeat->interval = lease_seconds * CLOCK_SECOND / 3;
  heartbeat->lost = lost;
  heartbeat->cancel = cancel;
  heartbeat->outputs = outputs;
  pthread_mutex_init(&heartbeat->lock, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&heartbeat->stopping, &attributes);
  pthread_condattr_destroy(&attributes);

  /* Signals are for the threads that the program made for them. */
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int code = pthread_create(&heartbeat->thread, NULL, beat, heartbeat);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (code != 0) { /* a run without one is still told apart by its process */
    pthread_cond_destroy(&heartbeat->stopping);
    pthread_mutex_destroy(&heartbeat->lock);
    g_free(heartbeat);
    return NULL;
  }
  return heartbeat;
}

void heartbeat_stop(Heartbeat *take_heartbeat) {
  Heartbeat *heartbeat = take_heartbeat;
  if (!heartbeat) {
    return;
  }
  pthread_mutex_lock(&heartbeat->lock);
  heartbeat->stopped = TRUE;
  pthread_cond_signal(&heartbeat->stopping);
  pthread_mutex_unlock(&heartbeat->lock);
  pthread_join(heartbeat->thread, NULL);
  pthread_cond_destroy(&heartbeat->stopping);
  pthread_mutex_destroy(&heartbeat->lock);
  g_free(heartbeat);
}
