/* SPDX-License-Identifier: Apache-2.0 */
/* cancel.h: a flag that may be raised once, from any thread or a signal handler, and polled. */
#ifndef SANDHOST_BASE_CANCEL_H
#define SANDHOST_BASE_CANCEL_H

#include <glib.h>

typedef struct Cancel Cancel;

/* Returns owned, one reference. */
Cancel *cancel_new(void);
Cancel *cancel_ref(Cancel *cancel);
void cancel_unref(Cancel *cancel);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Cancel, cancel_unref)

/* Async-signal-safe. */
void cancel_raise(Cancel *cancel);
/* NULL counts as never raised. */
gboolean cancel_raised(const Cancel *cancel);
/* Readable once raised; -1 for NULL. Borrowed; never read it. */
int cancel_fd(const Cancel *cancel);

#endif
