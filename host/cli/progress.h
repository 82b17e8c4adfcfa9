/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h: lines for a person who waits (an image being pulled), on stderr. At a terminal they are one line that is
 * written over and goes away; elsewhere only what takes long is told, a line every ten seconds.
 */
#ifndef SANDHOST_CLI_PROGRESS_H
#define SANDHOST_CLI_PROGRESS_H

#include <glib.h>
#include <pthread.h>

typedef struct {
  pthread_mutex_t lock; /* guards all below; lines and output come from several threads */
  gboolean terminal;
  gboolean verbose; /* every line, each on its own */
  gboolean shown;   /* a line stands on the terminal */
  gint64
      told; /* clock_now of the last line, or of the first that was kept back; 0: none came yet */
} Progress;

void progress_init(Progress *progress, gboolean verbose);
void progress_clear(Progress *progress);

/* line is one line without control characters. */
void progress_tell(Progress *progress, const char *line);

/* Before anything else is written: takes the line off the terminal. */
void progress_end(Progress *progress);

#endif
