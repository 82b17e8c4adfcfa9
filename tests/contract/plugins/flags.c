/* SPDX-License-Identifier: Apache-2.0 */
/* flags.c: sets a flag that nobody knows. */
#include "good.h"

GOOD_PLUGIN("flags", table.flags = 0x104)
