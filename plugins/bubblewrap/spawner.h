/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawner.h: a thread that starts processes for the others.
 *
 * bwrap --die-with-parent asks the kernel for a kill when its parent is gone, and for the kernel the
 * parent is the thread that started it. Calls of the host run in threads that come and go; this one
 * stays as long as the sandboxes. It sees few mounts where it may choose (mount-view.h).
 */
#ifndef SANDHOST_BUBBLEWRAP_SPAWNER_H
#define SANDHOST_BUBBLEWRAP_SPAWNER_H

#include "guest-sandbox.h"
#include "guest-spawn.h"

typedef struct Spawner Spawner;

/* needed (ended by NULL, not kept): what on the disk is started and shown; NULL: nobody knows. Returns owned;
 * NULL with errno where there can be no thread. */
Spawner *spawner_new(const char *const *needed);

/* Joins the thread; what it started dies with it. No call may be running. NULL is allowed. */
void spawner_free(Spawner *spawner);

/* guest_spawn in that thread. Threads: any. */
int spawner_spawn(Spawner *spawner, const char *const argv[],
                  const struct guest_spawn_options *options, struct guest_process *ret_process);

#endif
