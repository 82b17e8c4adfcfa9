/* SPDX-License-Identifier: Apache-2.0 */
/* bound.h: a provider's table whose functions are watched: one that does not come back is told, with how long it had. */
#ifndef SANDHOST_CONFORMANCE_BOUND_H
#define SANDHOST_CONFORMANCE_BOUND_H

#include "suite.h"

/* Called once, in a thread of its own, while everybody else who asks the provider stands still; ends the program. */
typedef void (*BoundStuck)(const char *operation, gint64 seconds);

/* The same functions, watched. One table in a process; it and provider live as long as that.
 * seconds: how long each may take; 0: until its call's deadline, and a minute more. */
void bound_table(const struct sandhost_provider *provider, gint64 seconds, BoundStuck stuck,
                 struct sandhost_provider *ret_table);

#endif
