/* SPDX-License-Identifier: Apache-2.0 */
/* contract.c: the contract's clock. */
#include "contract.h"

#include <time.h>

#define SECOND INT64_C(1000000000)

int64_t contract_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}
