/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network-check.h: a sandbox that a service was asked to make without a network is tried from inside before a command
 * runs in it (behaviour 3.4).
 */
#ifndef SANDHOST_RUN_NETWORK_CHECK_H
#define SANDHOST_RUN_NETWORK_CHECK_H

#include "provider/sandbox.h"

/* Whether the sandbox keeps the manifest's word about the network. *ret_verdict is constant or borrowed from sandbox:
 * "checked", "unchecked", "not required", or what the provider itself reported (NULL: nothing). On failure the sandbox
 * must not be used: it reached the internet, or nobody knows whether it can. */
gboolean network_check(Sandbox *sandbox, const ProviderInstance *instance, const Manifest *manifest,
                       const CallScope *scope, const char **ret_verdict, GError **error);

#endif
