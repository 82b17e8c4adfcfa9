/* SPDX-License-Identifier: Apache-2.0 */
/* lost.h: what is asked of a sandbox that is gone, however it went. */
#ifndef SANDHOST_CONFORMANCE_LOST_H
#define SANDHOST_CONFORMANCE_LOST_H

#include "suite.h"

/* Every operation on it is SANDHOST_LOST. */
void want_all_lost(Box *box, Verdict *verdict);

#endif
