/* SPDX-License-Identifier: Apache-2.0 */
/* command-forms.h: credentials that nobody registered, by the way in which a command line gives them. */
#ifndef SANDHOST_PRIVACY_COMMAND_FORMS_H
#define SANDHOST_PRIVACY_COMMAND_FORMS_H

#include <glib.h>

/* The command with the value of each of these replaced, for names that credential_is_name knows:
 *
 *   --api-key=VALUE  --api-key VALUE  TOKEN=VALUE  "password": "VALUE"  X-Api-Key: VALUE
 *   Authorization: SCHEME VALUE   Bearer VALUE   scheme://user:VALUE@host
 *
 * A value that is taken from elsewhere ($TOKEN, $(cat key)) is left as it is; between single quotes none is. NULL: there
 * is none. Returns owned. */
char *command_forms_redact(const char *command);

#endif
