/* SPDX-License-Identifier: Apache-2.0 */
/* exercise.h: each operation once, small and as it should go. What it returns is what other checks look at. */
#ifndef SANDHOST_CONFORMANCE_EXERCISE_H
#define SANDHOST_CONFORMANCE_EXERCISE_H

#include "suite.h"

typedef struct {
  const char *name;
  gboolean (*is_there)(const struct sandhost_provider *table);
  void (*run)(Box *box);
} Exercise;

/* The last has no name. All can be repeated in one sandbox. */
extern const Exercise EXERCISES[];

/* What they need; FALSE: wrong() was called. */
gboolean exercise_prepare(Box *box, Verdict *verdict);
/* One sandbox, from create to release, in which nothing is done. */
void exercise_sandbox(Subject *subject);
/* One instance more, from open to close. */
void exercise_instance(Subject *subject);
/* All of that once. */
void exercise_everything(Subject *subject);

#endif
