/* SPDX-License-Identifier: Apache-2.0 */
/* option.h: --option NAME=VALUE, as the configuration would hold it. */
#ifndef SANDHOST_CLI_OPTION_H
#define SANDHOST_CLI_OPTION_H

#include <sandhost/provider.h>

#include "base/json.h"

/* Adds NAME=VALUE to options, with the JSON type of the provider's option of that name: a list's values add up, a
 * map's are NAME=KEY=VALUE. What does not fit stays text, for the provider's own check to refuse. table may be NULL.
 * A CONFIG error for text without "=". */
gboolean option_add(JsonObject *options, const struct sandhost_provider *table, const char *text,
                    GError **error);

#endif
