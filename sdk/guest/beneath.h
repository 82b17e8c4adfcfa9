/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.h: opening what lies below a folder, and nothing else, whatever links a command has put
 * there. */
#ifndef SANDHOST_GUEST_BENEATH_H
#define SANDHOST_GUEST_BENEATH_H

#include <stddef.h>
#include <sys/types.h>

/* All return a descriptor, or -1 with errno; EXDEV: the path leads out. Paths are relative. */

/* The folder itself; links on the way to it are followed. */
int beneath_root(const char *root);
/* flags as openat; links are followed only while they stay below, or not at all where the kernel
 * has no openat2. With O_NOFOLLOW none is, on the way neither. */
int beneath_open(int root, const char *path, int flags);
/* A folder below, made with its parents (0755) where it is missing; the empty path is root. ELOOP
 * where a link is in the way. */
int beneath_make_folder(int root, const char *path);
/* Whether a path is relative and has no empty, . or .. component. */
int beneath_is_plain(const char *path);

#endif
