/* SPDX-License-Identifier: Apache-2.0 */
/* config-private.h: the two halves of reading a configuration. */
#ifndef SANDHOST_CONFIG_CONFIG_PRIVATE_H
#define SANDHOST_CONFIG_CONFIG_PRIVATE_H

#include "config/config.h"

/* Reads governance_config into config, where defaults stand already. */
gboolean config_read_governance(Config *config, JsonObject *object,
                                const char *const *provider_names, GError **error);

#endif
