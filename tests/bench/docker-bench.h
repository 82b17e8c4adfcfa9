/* SPDX-License-Identifier: Apache-2.0 */
/* docker-bench.h: what the rows of the docker provider share. */
#ifndef SANDHOST_BENCH_DOCKER_BENCH_H
#define SANDHOST_BENCH_DOCKER_BENCH_H

#include "engine-hand.h"
#include "run/harness.h"
#include "sandbox-line.h"

typedef struct {
  const char *socket; /* of the engine */
  Hand *hand;
  Harness *harness;
  Sandbox *sandbox; /* open all the time */
  char *create;     /* the body for one more like it; NULL: the engine lacks what it names */
} Bench;

/* What the engine still does after an answer is not part of what comes next. */
void docker_settle(void);

/* NULL: it could not be made, and stderr says why. */
Sandbox *docker_open(const Bench *bench);

/* ---- By hand ---- */

/* The engine's exec in a container: create, start with its output read to the end, inspect. line has no quote in it.
 * Nanoseconds; -1 when it does not exit with 0 or does not print bytes bytes (-1: any). */
gint64 by_hand_exec(const char *socket, Hand *hand, const char *container, const char *line,
                    gint64 bytes);

/* Samples of a Bench: create, attach and start a container; remove it. */
gint64 by_hand_start(void *user);
gint64 by_hand_end(void *user);

/* ---- Rows ---- */

void docker_file_rows(Bench *bench, guint rounds);
void docker_crowd_rows(Bench *bench, guint rounds);

#endif
