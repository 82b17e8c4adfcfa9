/* SPDX-License-Identifier: Apache-2.0 */
/* level.c: a mutex of its own kind: waiting for it ends at a deadline, by a cancel, and when its holder hangs. */
#include "provider/level.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"

void level_init(Level *level) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&level->lock, NULL);
  pthread_cond_init(&level->free, &attributes);
  pthread_condattr_destroy(&attributes);
  level->busy = FALSE;
  level->abandoned = NULL;
}

void level_clear(Level *level) {
  pthread_cond_destroy(&level->free);
  pthread_mutex_destroy(&level->lock);
}

static void wait_until(Level *level, gint64 deadline) {
  if (deadline == G_MAXINT64) {
    pthread_cond_wait(&level->free, &level->lock);
    return;
  }
  const struct timespec until = {
      .tv_sec = (time_t)(deadline / CLOCK_SECOND),
      .tv_nsec = (long)(deadline % CLOCK_SECOND),
  };
  pthread_cond_timedwait(&level->free, &level->lock, &until);
}

LevelAnswer level_enter(Level *level, gint64 deadline, gboolean (*is_over)(void *user), void *user,
                        const char **ret_holder) {
  if (!level) {
    return is_over(user) ? LEVEL_OVER : LEVEL_ENTERED;
  }
  LevelAnswer answer = LEVEL_ENTERED;
  pthread_mutex_lock(&level->lock);
  for (;;) {
    if (is_over(user)) {
      answer = LEVEL_OVER;
      break;
    }
    if (!level->busy) {
      level->busy = TRUE;
      break;
    }
    if (level->abandoned) {
      *ret_holder = level->abandoned;
      answer = LEVEL_ABANDONED;
      break;
    }
    wait_until(level, deadline);
  }
  pthread_mutex_unlock(&level->lock);
  return answer;
}

void level_leave(Level *level) {
  if (!level) {
    return;
  }
  pthread_mutex_lock(&level->lock);
  level->busy = FALSE;
  level->abandoned = NULL;
  pthread_cond_broadcast(&level->free);
  pthread_mutex_unlock(&level->lock);
}

void level_poke(Level *level) {
  if (!level) {
    return;
  }
  pthread_mutex_lock(&level->lock);
  pthread_cond_broadcast(&level->free);
  pthread_mutex_unlock(&level->lock);
}

void level_abandon(Level *level, const char *operation) {
  if (!level) {
    return;
  }
  pthread_mutex_lock(&level->lock);
  level->abandoned = operation;
  pthread_cond_broadcast(&level->free);
  pthread_mutex_unlock(&level->lock);
}
