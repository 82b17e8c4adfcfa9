/* SPDX-License-Identifier: Apache-2.0 */
/* sleepers.h: what still runs of a sandbox, where that can be seen from here. */
#ifndef SANDHOST_CONFORMANCE_SLEEPERS_H
#define SANDHOST_CONFORMANCE_SLEEPERS_H

#include "suite.h"

/* How many of this machine's processes are a sleep with that word. */
guint sleepers_count(const char *word);

#endif
