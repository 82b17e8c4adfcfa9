/* SPDX-License-Identifier: Apache-2.0 */
/* strings.h: the string rules of the manifest (behaviour 2.2), each with its texts. Every
 * function returns the normalised string, owned, or NULL with a CONFIG error. */
#ifndef SANDHOST_CONFIG_STRINGS_H
#define SANDHOST_CONFIG_STRINGS_H

#include <glib.h>

/* Of NAME=value: Linux gives a program no longer word (MAX_ARG_STRLEN, with its end). */
#define STRING_MAX_VARIABLE 131071u

/* P: percent-decoded, trimmed, absolute, no .. segment; backslashes read as slashes. */
char *string_path(const char *text, GError **error);
/* Whether a path that string_path gave can be a folder inside: it is not the root, and no system takes a longer one. what
 * names it in the texts. */
gboolean string_is_place(const char *path, const char *what, GError **error);
/* M: an absolute path, or scheme://host/path without user information. */
char *string_mount_source(const char *text, GError **error);
/* H: a host name, or *.name; lower-cased. A lone * is refused. */
char *string_host(const char *text, GError **error);
/* E: the name of an environment variable. */
gboolean string_is_environment_name(const char *text, GError **error);
/* Whether a command can be given it. The value is not told. */
gboolean string_is_environment_value(const char *name, const char *value, GError **error);
/* R: a reference to a secret. */
gboolean string_is_secret_ref(const char *text, GError **error);

#endif
