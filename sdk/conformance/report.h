/* SPDX-License-Identifier: Apache-2.0 */
/* report.h: all checks in their order, a line for each as soon as it is known. */
#ifndef SANDHOST_CONFORMANCE_REPORT_H
#define SANDHOST_CONFORMANCE_REPORT_H

#include "suite.h"

typedef void (*ReportRun)(const Subject *subject, const Check *check, Verdict *verdict);

/* Whether the text is in a check's name. */
gboolean report_knows(const char *text);

/* Runs those that have one of the texts in their name; without any, all. tells: each is named before it is run, in a line
 * of its own; a terminal shows it in any case, until it is over. */
void report_all(const Subject *subject, const GPtrArray *only, gboolean tells, ReportRun run);

/* Whether one is asked for that judges what was seen around all calls; it is run by report_watched, when nobody calls. */
gboolean report_watches(void);
void report_watched(const Subject *subject, ReportRun run);

/* The last line, owned, and the exit code. */
char *report_sum(int *ret_code);

/* An operation of the check that is being run, or of the end of all, does not come back. Says so, and of the checks behind it
 * that they were not tried. Never returns: the program ends with 1. */
void report_stuck(const char *operation, gint64 seconds) G_GNUC_NORETURN;

#endif
