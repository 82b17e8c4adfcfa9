/* SPDX-License-Identifier: Apache-2.0 */
/* good.c: nothing is wrong. */
#include "good.h"

GOOD_PLUGIN("good", (void)0)
