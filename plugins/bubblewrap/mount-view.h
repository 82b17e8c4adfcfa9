/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount-view.h: a thread that sees few mounts.
 *
 * bwrap copies every mount that there is, and reads the list of all of them again for each folder that it
 * binds. A machine with a container engine has hundreds, none of which a sandbox shows.
 */
#ifndef SANDHOST_BUBBLEWRAP_MOUNT_VIEW_H
#define SANDHOST_BUBBLEWRAP_MOUNT_VIEW_H

#include <glib.h>

/* Of one thread: made, used and freed by it. */
typedef struct MountView MountView;

/*
 * Gives the calling thread, and what it starts from then on, a mount namespace of its own that keeps what
 * bwrap itself uses (/, /proc, /dev) and what is mounted at, above or below needed: absolute paths, ended by
 * NULL, not kept, with links allowed; what of them does not exist is passed over. Nothing changes for the rest of
 * the process or of the machine.
 *
 * Returns owned; NULL where the thread has no right to such a namespace (it takes root): everything is as it was
 * then.
 */
MountView *mount_view_new(const char *const *needed);

/* Before something is started: mounts that the machine has made since come in, where it shares them, and those that
 * are not needed go again. */
void mount_view_refresh(MountView *view);

/* The namespace stays as long as its thread and what that started. NULL is allowed. */
void mount_view_free(MountView *view);

#endif
