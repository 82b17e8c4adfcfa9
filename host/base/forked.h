/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forked.h: whether this process is the one that made a thing, or a child that it forked. A child has its parent's
 * memory and none of its threads; what they were about stays half done.
 */
#ifndef SANDHOST_BASE_FORKED_H
#define SANDHOST_BASE_FORKED_H

#include <glib.h>

/* From here on forks are noticed. As often as one likes; before forked_generation is noted anywhere. */
void forked_watch(void);

/* Another one in each child. Safe in a signal handler. */
guint forked_generation(void);

/* Something is in use, or is so no more, of which a child can neither use the copy nor make another one. */
void forked_hold(void);
void forked_release(void);

/* This process, or one that it comes from, was forked while something was held. */
gboolean forked_is_spoilt(void);

#endif
