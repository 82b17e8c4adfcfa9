/* SPDX-License-Identifier: Apache-2.0 */
/* tar-sums.h: a header whose sum is wrong ends a tar stream, so most that a mutation can do would be lost behind it. */
#ifndef SANDHOST_FUZZ_TAR_SUMS_H
#define SANDHOST_FUZZ_TAR_SUMS_H

#include <stddef.h>
#include <stdint.h>

/* Puts the sums of all headers right that look like some, in a stream that begins at data. */
void tar_sums_mend(uint8_t *data, size_t length);

#endif
