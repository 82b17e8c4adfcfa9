/* SPDX-License-Identifier: Apache-2.0 */
/* short.c: its table ends before the required operations do. */
#include "good.h"

GOOD_PLUGIN("short", table.size = 40)
