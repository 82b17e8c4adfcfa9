/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.h: which values are looked for in text, and in which spellings. */
#ifndef SANDHOST_PRIVACY_CREDENTIALS_H
#define SANDHOST_PRIVACY_CREDENTIALS_H

#include "privacy/needles.h"

/* What was declared to be a credential is taken from this many bytes on; a shorter one would be found in texts that have
 * nothing to do with it. */
#define CREDENTIAL_LEAST_BYTES 8u
/* What only has the name of one (a variable of the environment) is taken from this many on, when it is one word and
 * neither a path nor a number. */
#define CREDENTIAL_LEAST_NAMED 12u

/* declared: values that the configuration or a provider's options hold as credentials. environment: NAME=VALUE, as
 * environ has them. Both may be NULL. Each value is looked for as it is, as JSON writes it, and, when it has several
 * lines, line by line. NULL: there is none. Returns owned. */
Needles *credentials_new(const char *const *declared, const char *const *environment);

#endif
