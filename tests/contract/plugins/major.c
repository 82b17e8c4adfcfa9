/* SPDX-License-Identifier: Apache-2.0 */
/* major.c: was built for another major of the ABI. */
#include <sandhost/provider.h>

SANDHOST_EXPORT const void *sandhost_provider_2(const void *host);

const void *sandhost_provider_2(const void *host) {
  return host;
}
