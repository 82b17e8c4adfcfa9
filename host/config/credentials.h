/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.h: which names say that what they name is a credential, and what a configuration holds under such names. */
#ifndef SANDHOST_CONFIG_CREDENTIALS_H
#define SANDHOST_CONFIG_CREDENTIALS_H

#include "base/json.h"

/* Its value without "Bearer " and such, which stand before that of a header. A place in value. */
const char *credential_without_scheme(const char *value);

/* Adds a copy (owned by strings) of every password in an address, scheme://user:PASSWORD@host. pairs: also of those in
 * key=value;... or key=value ..., where the key names one. */
void credentials_within(const char *value, gboolean pairs, GPtrArray *strings);

/* A key, an option, a header or an environment variable: api_key, apiKey, X-Api-Key, GITHUB_TOKEN, password. Not what
 * only leads to one (token_file, secret_refs) or counts (max_tokens). PGPASSWORD and API_KEY_2 are as good. */
gboolean credential_is_name(const char *name);

/* Adds a copy (owned by strings) of every text that stands below such a key (or pass, or pwd), at any depth, and of the
 * passwords within any. */
void credentials_collect(JsonObject *value, GPtrArray *strings);

#endif
