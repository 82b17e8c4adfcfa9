/* SPDX-License-Identifier: Apache-2.0 */
/* options.h: the configuration's options against what a provider declares. */
#ifndef SANDHOST_PROVIDER_OPTIONS_H
#define SANDHOST_PROVIDER_OPTIONS_H

#include <sandhost/provider.h>

#include "base/json.h"

/* Checked values in the order declared, and what they point to. */
typedef struct OptionValues OptionValues;

/* table's arrays must be checked copies. options is borrowed; NULL: none given. Unset options come from the
 * environment, then from the fallback. CONFIG error with the texts of behaviour 3.3; no value is ever in one.
 * Returns owned. */
OptionValues *option_values_new(const struct sandhost_provider *table, JsonObject *options,
                                GError **error);
void option_values_free(OptionValues *values);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OptionValues, option_values_free)

/* Borrowed; table->option_count of them. */
const struct sandhost_value *option_values_get(const OptionValues *values);

/* In force, secrets as "[REDACTED]". Returns owned. */
JsonObject *option_values_to_json(const OptionValues *values,
                                  const struct sandhost_provider *table);

/* Adds a copy (owned by strings) of every text that a secret option holds, and of its variable of the environment. */
void option_values_secrets(const OptionValues *values, const struct sandhost_provider *table,
                           GPtrArray *strings);

/* Whether a declared fallback or choice list makes sense; the reason goes into a refusal of the plugin. NULL:
 * it does. Constant. */
const char *option_fault(const struct sandhost_option *option);

#endif
