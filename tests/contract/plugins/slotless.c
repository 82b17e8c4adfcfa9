/* SPDX-License-Identifier: Apache-2.0 */
/* slotless.c: lacks a required operation. */
#include "good.h"

GOOD_PLUGIN("slotless", table.write_file = NULL)
