/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.h: the one JSON object of exec --json. It is printed when the sandbox has ended, since what is told of that belongs
 * into it; but at once where the program is told to end before: whoever told it may not wait.
 */
#ifndef SANDHOST_CLI_RESULT_H
#define SANDHOST_CLI_RESULT_H

#include <pthread.h>

#include "base/cancel.h"
#include "base/json.h"

typedef struct {
  pthread_mutex_t lock; /* guards the next two */
  JsonObject *object;   /* what is still to be printed; NULL: nothing, or it is printed */
  JsonObject *warnings;
  Cancel *cancel; /* borrowed */
  int wake[2];    /* a pipe: its end is the end of the watch; -1: nobody watches */
  pthread_t watch;
} Result;

void result_init(Result *result);
/* Thread-safe; before the object is printed it becomes part of it, afterwards nothing. */
void result_warn(Result *result, const char *line);
/* From here on it is printed as soon as cancel (borrowed until result_print) is raised. Once. */
void result_hold(Result *result, JsonObject *take_object, Cancel *cancel);
/* Prints what was held and is not printed yet. What cannot be written shows in cli_stdout_fault. */
void result_print(Result *result);
void result_clear(Result *result);

#endif
