/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.h: which names say that what they name is a credential, and what a configuration holds under such names. */
#ifndef SANDHOST_CONFIG_CREDENTIALS_H
#define SANDHOST_CONFIG_CREDENTIALS_H

#include "base/json.h"

/* A key, an option, a header or an environment variable: api_key, apiKey, X-Api-Key, GITHUB_TOKEN, password. Not what
 * only leads to one (token_file, secret_refs) or counts (max_tokens). PGPASSWORD and API_KEY_2 are as good. */
gboolean credential_is_name(const char *name);

/* Adds a copy (owned by strings) of every text that stands below such a key, at any depth. */
void credentials_collect(JsonObject *value, GPtrArray *strings);

#endif
