/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h: brings an image from a registry to the engine, and says how far it is. */
#ifndef SANDHOST_DOCKER_PULL_H
#define SANDHOST_DOCKER_PULL_H

#include "engine.h"
#include "image-name.h"

/* text: the name as it was given, for messages. Logs in with what Docker's own configuration
 * has. */
int32_t image_pull(Engine *engine, const struct sandhost_host *host, struct sandhost_call *call,
                   const char *text, const struct image_name *name);

/* ---- pull-progress.c ---- */

/* How far a pull is, from what the engine says of its layers. One thread. */
typedef struct PullProgress PullProgress;
PullProgress *pull_progress_new(const char *image); /* copied */
void pull_progress_free(PullProgress *progress);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PullProgress, pull_progress_free)

/* Takes one line of the engine: the layer and what it does ("Downloading"), with the bytes so
 * far and in all, below 0 where they are not said. id may be NULL. All is hostile. */
void pull_progress_take(PullProgress *progress, const char *id, const char *status, int64_t current,
                        int64_t total);

/* "pulling python:3.12-slim: 3 of 5 layers, 21.4 of 45.0 MB". Owned. NULL: the last one was less
 * than 200 ms ago, or nothing is new. now: nanoseconds of any steady clock. */
char *pull_progress_line(PullProgress *progress, int64_t now);
/* "pulled python:3.12-slim: 5 layers, 45.0 MB". Owned. */
char *pull_progress_last_line(const PullProgress *progress);

#endif
