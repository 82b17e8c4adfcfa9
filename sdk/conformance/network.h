/* SPDX-License-Identifier: Apache-2.0 */
/* network.h: whether a sandbox reaches this machine, tried with a listener of the suite's own. */
#ifndef SANDHOST_CONFORMANCE_NETWORK_H
#define SANDHOST_CONFORMANCE_NETWORK_H

#include "suite.h"

/* Whether the provider says that it keeps SANDHOST_SETTING_*; one that declares nothing is trusted with all. */
gboolean declares_setting(const struct sandhost_provider *table, guint32 setting);

/* wrong(): the sandbox reaches this machine, resolves a name, has a route or a probe that does not say blocked.
 * untried(): nothing in the sandbox can try. */
void want_network_off(Box *box, Verdict *verdict);

/* wrong(): the sandbox has no route, or its probe denies what was reached. untried(): nothing in the sandbox can try, or
 * no address of this machine is where its network leads (a service's sandbox is far away). */
void want_network_on(Box *box, Verdict *verdict);

#endif
