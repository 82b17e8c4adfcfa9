/* SPDX-License-Identifier: Apache-2.0 */
/* ids.h: names for things: a prefix, _, and 32 random hex digits. */
#ifndef SANDHOST_BASE_IDS_H
#define SANDHOST_BASE_IDS_H

#include <glib.h>

/* Returns owned, e.g. id_new("run") -> "run_0123...". The randomness is the kernel's. */
char *id_new(const char *prefix);

/* Whether text is prefix, _, and 32 lower-case hex digits. */
gboolean id_is(const char *text, const char *prefix);

#endif
