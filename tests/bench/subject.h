/* SPDX-License-Identifier: Apache-2.0 */
/* subject.h: a run of ours over a folder, with the provider bubblewrap, inside this process. */
#ifndef SANDHOST_BENCH_SUBJECT_H
#define SANDHOST_BENCH_SUBJECT_H

#include "record/record.h"
#include "run/execute.h"
#include "sandbox-line.h"

typedef struct {
  ProviderRegistry *registry;
  Harness *harness;
  Record *record;
  Run *run;
} Subject;

/* Its record is in scratch. */
void subject_open(Subject *subject, const char *scratch, const char *workspace);
void subject_close(Subject *subject);

/* A line of shell with all that belongs to it: policy, bridge, record. Nanoseconds; -1 when it does not exit with 0. */
gint64 subject_line(const Subject *subject, const char *line);

/* A sandbox beside the run's own; key is new each time. NULL: it could not be made. */
Sandbox *subject_sandbox(const Subject *subject);

#endif
