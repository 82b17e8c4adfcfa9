/* SPDX-License-Identifier: Apache-2.0 */
/* strings.h: the string rules of the manifest (behaviour 2.2), each with its texts. Every
 * function returns the normalised string, owned, or NULL with a CONFIG error. */
#ifndef SANDHOST_CONFIG_STRINGS_H
#define SANDHOST_CONFIG_STRINGS_H

#include <glib.h>

/* P: percent-decoded, trimmed, absolute, no .. segment; backslashes read as slashes. */
char *string_path(const char *text, GError **error);
/* M: an absolute path, or scheme://host/path without user information. */
char *string_mount_source(const char *text, GError **error);
/* H: a host name, or *.name; lower-cased. A lone * is refused. */
char *string_host(const char *text, GError **error);
/* E: the name of an environment variable. */
gboolean string_is_environment_name(const char *text, GError **error);
/* R: a reference to a secret. */
gboolean string_is_secret_ref(const char *text, GError **error);

#endif
