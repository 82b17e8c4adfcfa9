/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c: declares a thread level that is none. */
#include "good.h"

GOOD_PLUGIN("threads", table.threads = 35)
