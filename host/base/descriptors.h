/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.h: a failure for want of file descriptors says what to do about it. */
#ifndef SANDHOST_BASE_DESCRIPTORS_H
#define SANDHOST_BASE_DESCRIPTORS_H

#include <glib.h>

/* The message, followed by the way out where this process has run out of descriptors, or the message says that somebody has.
 * Saying it twice changes nothing. Returns owned. */
char *descriptors_explain(const char *message);

#endif
