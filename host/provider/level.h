/* SPDX-License-Identifier: Apache-2.0 */
/* level.h: the lock of a declared thread level: one call at a time. A call that does not come back is not
 * waited for. */
#ifndef SANDHOST_PROVIDER_LEVEL_H
#define SANDHOST_PROVIDER_LEVEL_H

#include <glib.h>
#include <pthread.h>

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t free;
  gboolean busy;
  const char
      *abandoned; /* the operation that holds it and that nobody waits for any more; constant */
} Level;

typedef enum {
  LEVEL_ENTERED,
  LEVEL_OVER,      /* the waiting call was cancelled or its deadline passed */
  LEVEL_ABANDONED, /* the holder is a call that did not come back: *ret_holder names it */
} LevelAnswer;

void level_init(Level *level);
void level_clear(Level *level);

/* Waits until nobody is in, is_over(user) holds (asked at every level_poke), or deadline (CLOCK_MONOTONIC ns)
 * passes. NULL level: nothing is serialised. */
LevelAnswer level_enter(Level *level, gint64 deadline, gboolean (*is_over)(void *user), void *user,
                        const char **ret_holder);
void level_leave(Level *level);
/* Wakes the waiting calls so that they ask is_over again. */
void level_poke(Level *level);
/* The call inside, of this operation, is not waited for any more. */
void level_abandon(Level *level, const char *operation);

#endif
