/* SPDX-License-Identifier: Apache-2.0 */
/* record-weight.h: what taking a run out would free, found by reading alone. */
#ifndef SANDHOST_RECORD_RECORD_WEIGHT_H
#define SANDHOST_RECORD_RECORD_WEIGHT_H

#include "record/record-private.h"

/* Under the lock. About how many bytes of the file the run uses: small rows share pages with others'. */
int record_weigh_run(Record *record, gint64 number, gint64 *ret_bytes);

#endif
