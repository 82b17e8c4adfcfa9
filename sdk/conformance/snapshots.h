/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.h: taking and deleting a snapshot. */
#ifndef SANDHOST_CONFORMANCE_SNAPSHOTS_H
#define SANDHOST_CONFORMANCE_SNAPSHOTS_H

#include "suite.h"

/* Its id, owned; NULL: wrong() was called. */
char *snapshot_take(Box *box, Verdict *verdict);
void snapshot_delete(Subject *subject, const char *id, Verdict *verdict);

#endif
