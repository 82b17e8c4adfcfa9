/* SPDX-License-Identifier: Apache-2.0 */
/* othername.c: calls itself other than its file. */
#include "good.h"

GOOD_PLUGIN("another", (void)0)
