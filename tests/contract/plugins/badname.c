/* SPDX-License-Identifier: Apache-2.0 */
/* badname.c: calls itself something that is no name. */
#include "good.h"

GOOD_PLUGIN("Bad\033Name", (void)0)
