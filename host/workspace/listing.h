/* SPDX-License-Identifier: Apache-2.0 */
/* listing.h: every visible regular file of the workspace, by its stat alone. */
#ifndef SANDHOST_WORKSPACE_LISTING_H
#define SANDHOST_WORKSPACE_LISTING_H

#include "workspace/beneath.h"

/* The temporary names that the bridge writes to (safe-write.h): this and as many small hex digits. Whoever writes has
 * the folder locked (flock, shared). */
#define LISTING_TEMPORARY_PREFIX ".sandhost-"
#define LISTING_TEMPORARY_DIGITS 16

/* Paths are relative and valid until the function returns. */
typedef struct {
  void *user;
  void (*file)(void *user, const char *path, const FileIdentity *identity);
  /* Something below path could not be looked at. A name that is not UTF-8 comes as the bytes that
   * it is. */
  void (*trouble)(void *user, const char *path, const FileIdentity *identity, const char *reason);
} ListingVisitor;

/* Walks the folder root, in no particular order. Hidden names, links and special files are passed
 * over; links are never followed. Temporary files that a killed host left are removed. */
void listing_walk(int root, const ListingVisitor *visitor);

#endif
