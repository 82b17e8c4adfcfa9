/* SPDX-License-Identifier: Apache-2.0 */
/* noentry.c: exports something, but no entry. */
#include <sandhost/provider.h>

SANDHOST_EXPORT int noentry_is_no_entry(void);

int noentry_is_no_entry(void) {
  return 1;
}
