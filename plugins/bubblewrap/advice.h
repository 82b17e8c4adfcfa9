/* SPDX-License-Identifier: Apache-2.0 */
/* advice.h: what a person can do when bwrap made no sandbox. */
#ifndef SANDHOST_BUBBLEWRAP_ADVICE_H
#define SANDHOST_BUBBLEWRAP_ADVICE_H

#include <glib.h>

/* One line from bwrap's last words, which are clean already, and the kernel's settings below sys
 * ("/proc/sys"). Returns owned. */
char *advice_for_complaint(const char *complaint, const char *bwrap, const char *sys);

/* One line for a bwrap that is not there; bwrap is NULL where it was searched for. Returns owned. */
char *advice_for_missing(const char *bwrap);

/* Whether bwrap complained of an option that it does not know, or could not use, by that name. */
gboolean advice_is_about(const char *complaint, const char *option);

#endif
