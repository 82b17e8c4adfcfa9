/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-owner.h: which process a run belongs to, so that another one can tell that it is gone. A
 * process id alone is used again; with its start time and the boot it is not.
 */
#ifndef SANDHOST_RECORD_RECORD_OWNER_H
#define SANDHOST_RECORD_RECORD_OWNER_H

#include <glib.h>

typedef struct {
  gint64 pid;
  gint64 start;    /* clock ticks after boot (field 22 of /proc/PID/stat); 0: unknown */
  char *boot;      /* the kernel's id of this boot; "" where unknown */
  char *namespace; /* of process ids, as "pid:[4026531836]"; "" where unknown */
} RecordOwner;

/* This process. */
RecordOwner record_owner_self(void);
void record_owner_clear(RecordOwner *owner);

/* Whether owner surely is gone, as seen from self. What cannot be told, such as a process of
 * another container of this machine, counts as living. */
gboolean record_owner_is_gone(const RecordOwner *owner, const RecordOwner *self);

/* Whether both surely are one process. */
gboolean record_owner_is_same(const RecordOwner *owner, const RecordOwner *self);

#endif
