/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h: which settings agent_config may hold, and of what kind each is. */
#ifndef SANDHOST_CONFIG_SETTINGS_H
#define SANDHOST_CONFIG_SETTINGS_H

#include "base/json.h"

/* Checks names, types, ranges and choices of the settings and of the objects among them
 * (behaviour 1.1, 12). governance_config is only known by name here. A CONFIG error otherwise. */
gboolean settings_check(JsonObject *agent_config, GError **error);

#endif
