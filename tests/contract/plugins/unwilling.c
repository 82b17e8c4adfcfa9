/* SPDX-License-Identifier: Apache-2.0 */
/* unwilling.c: says that it will not work with this host. */
#include "good.h"

const struct sandhost_provider *sandhost_provider_1(const struct sandhost_host *host) {
  (void)host;
  return NULL;
}
