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

/*
 * Gives the calling thread, and what it starts from then on, a mount namespace of its own that keeps what
 * bwrap itself uses (/, /proc, /dev) and what is mounted at, above or below needed: absolute paths, ended by
 * NULL, with links allowed; what of them does not exist is passed over. Mounts that the machine shares and
 * that are made or taken away later in a kept place appear and go here too.
 *
 * Returns whether it did: where the thread has no right to (it takes root), everything stays as it was.
 * Nothing changes for the rest of the process or of the machine.
 */
gboolean mount_view_narrow(const char *const *needed);

#endif
