/* SPDX-License-Identifier: Apache-2.0 */
/* output-watch.h: the streams of the commands that run now, so that what a silent one has printed is kept too. */
#ifndef SANDHOST_RUN_OUTPUT_WATCH_H
#define SANDHOST_RUN_OUTPUT_WATCH_H

#include "run/output.h"

typedef struct OutputWatch OutputWatch;

OutputWatch *output_watch_new(void);
void output_watch_free(OutputWatch *watch);

/* Borrowed until it is removed. Any thread. */
void output_watch_add(OutputWatch *watch, Output *output);
/* Afterwards nobody else looks at it. */
void output_watch_remove(OutputWatch *watch, Output *output);

/* Has each of them keep what it is given (output_keep_now). */
void output_watch_look(OutputWatch *watch);

#endif
