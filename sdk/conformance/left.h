/* SPDX-License-Identifier: Apache-2.0 */
/* left.h: what a create that failed has left. */
#ifndef SANDHOST_CONFORMANCE_LEFT_H
#define SANDHOST_CONFORMANCE_LEFT_H

#include "suite.h"

/* What a sweep of this suite's sandboxes finds, when none is wanted any more. Where create was not certain it is taken
 * away, which is what a sweep is for. */
void want_none_left(Subject *subject, gboolean certain, Verdict *verdict);

#endif
