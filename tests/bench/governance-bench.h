/* SPDX-License-Identifier: Apache-2.0 */
/* governance-bench.h: what a decision and the reading of a command cost. */
#ifndef SANDHOST_BENCH_GOVERNANCE_BENCH_H
#define SANDHOST_BENCH_GOVERNANCE_BENCH_H

/* Prints a table: median and slowest of a hundred rounds. */
void bench_governance(void);

#endif
