/* SPDX-License-Identifier: Apache-2.0 */
/* contract.h: what every part that keeps the contract needs of it: its clock, and the sizes of its first release. */
#ifndef SANDHOST_SUPPORT_CONTRACT_H
#define SANDHOST_SUPPORT_CONTRACT_H

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC, nanoseconds. */
int64_t contract_now(void);

/* The size of a struct of the contract's first release, whose last member was last: what every caller
 * must at least have. */
#define CONTRACT_FIRST_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

#endif
