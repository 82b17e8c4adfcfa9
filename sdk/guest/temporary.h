/* SPDX-License-Identifier: Apache-2.0 */
/* temporary.h: a file under a hidden name until it is whole. */
#ifndef SANDHOST_GUEST_TEMPORARY_H
#define SANDHOST_GUEST_TEMPORARY_H

#include <stddef.h>
#include <sys/types.h>

struct temporary {
  int folder; /* borrowed */
  int fd;
  char name[32];
};

/* 0, or -1 with errno. */
int temporary_make(struct temporary *ret_temporary, int folder);
int temporary_write(int fd, const void *bytes, size_t length);
/* Gives it its name and mode, and closes it. On failure it is still there. */
int temporary_place(struct temporary *temporary, const char *name, mode_t mode);
/* Closes and removes. */
void temporary_drop(struct temporary *temporary);

#endif
