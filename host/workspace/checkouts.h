/* SPDX-License-Identifier: Apache-2.0 */
/* checkouts.h: which folders of the workspace are git checkouts (behaviour 8.5). */
#ifndef SANDHOST_WORKSPACE_CHECKOUTS_H
#define SANDHOST_WORKSPACE_CHECKOUTS_H

#include <glib.h>

/* What was found out, for as long as one copy takes. Zeroed: for checkouts_find to begin with. */
typedef struct {
  GHashTable *folders; /* of those looked at: whether it holds .git */
} Checkouts;

void checkouts_clear(Checkouts *checkouts);

/* The topmost folder below root and above path that holds .git, whatever that is; the root itself may be one. Owned; NULL:
 * there is none. */
char *checkouts_find(Checkouts *checkouts, int root, const char *path);

#endif
