/* SPDX-License-Identifier: Apache-2.0 */
/* privacy-rows.h: what it costs to take credentials and personal data out of output. */
#ifndef SANDHOST_BENCH_PRIVACY_ROWS_H
#define SANDHOST_BENCH_PRIVACY_ROWS_H

/* Prints a table of ratios. */
void privacy_rows(void);

#endif
