/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operations.h: every operation on a sandbox in one shape, so that a check can ask the same of all of them. Each gets
 * its call from outside and moves a stream of at least three pieces; a Moment says what happens at one of them.
 */
#ifndef SANDHOST_CONFORMANCE_OPERATIONS_H
#define SANDHOST_CONFORMANCE_OPERATIONS_H

#include "suite.h"

typedef enum {
  ACT_NONE,
  ACT_CANCEL,   /* the caller cancels while the stream stands still */
  ACT_DEADLINE, /* the stream stands still until the deadline has passed */
  ACT_STOP,     /* the stream says stop */
  ACT_HOOK,     /* the check's own */
} Act;

typedef struct {
  Act act;
  guint at;                 /* the piece at which it happens, from 1 */
  void (*hook)(void *user); /* ACT_HOOK */
  void *user;

  struct sandhost_call *call; /* what follows is the operation's */
  guint pieces;
  guint64 bytes;
  gint64 acted; /* when; 0: the piece never came */
  int input_fd; /* never readable */
  gboolean over;
  gboolean late;    /* a stream was used after the return */
  gboolean ignored; /* it was used after it had said stop */
} Moment;

typedef struct {
  const char *name;
  gboolean (*is_there)(const struct sandhost_provider *table);
  gint32 (*run)(Box *box, struct sandhost_call *call, Moment *moment);
  gboolean streams;       /* moments come */
  gboolean may_be_done;   /* it has an end of its own */
  gboolean may_be_absent; /* UNSUPPORTED, before a stream was touched, is an answer */
  /* Whether OK is a true answer although the call ended early: everything had come already. */
  gboolean (*is_whole)(const Moment *moment);
} Operation;

/* Ends with one without a name. */
extern const Operation OPERATIONS[];

/* What the operations work on; once per sandbox. */
gboolean operations_prepare(Box *box, Verdict *verdict);
/* That operations which did not succeed left nothing of theirs, and no half of it. */
gboolean operations_left_nothing(Box *box, Verdict *verdict);

/* Whether its stream comes out of the sandbox; the others' goes in, or they have none. */
gboolean operation_gives(const Operation *operation);

/* Whether the answer says that the sandbox has no such operation. */
gboolean operation_is_absent(const Operation *operation, const Moment *moment, gint32 status);

/* Runs it with that call, and notes in the moment when it is over. */
gint32 operation_run(const Operation *operation, Box *box, struct sandhost_call *call,
                     Moment *moment);

#endif
