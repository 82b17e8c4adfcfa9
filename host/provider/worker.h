/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h: threads in which a plugin's functions run. */
#ifndef SANDHOST_PROVIDER_WORKER_H
#define SANDHOST_PROVIDER_WORKER_H

#include <glib.h>

/* Runs function(argument) soon, in a thread of its own that blocks every signal. FALSE when no thread can be
 * had; then it does not run. Threads: any. */
gboolean worker_run(void (*function)(void *argument), void *argument);

#endif
