/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup-private.h: what cgroup.c and cgroup-place.c share. */
#ifndef SANDHOST_BUBBLEWRAP_CGROUP_PRIVATE_H
#define SANDHOST_BUBBLEWRAP_CGROUP_PRIVATE_H

#include "cgroup.h"

struct CgroupPlace {
  int version;                       /* 1 or 2; 0: there is no place */
  char *parents[CGROUP_CONTROLLERS]; /* folders for the groups, perhaps not made yet; NULL: no such
                                      * limit here. The same one in version 2 */
  gboolean enable; /* the folder above has to pass its controllers on first (version 2) */
};

/* Writes a value into a file of a group. Returns 0 or a negative errno. */
int cgroup_write(const char *folder, const char *file, const char *value);

#endif
