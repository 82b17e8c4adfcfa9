/* SPDX-License-Identifier: Apache-2.0 */
/* strings.c: paths, hosts and names of a manifest. */
#include "config/strings.h"

#include <limits.h>
#include <string.h>

#include "config/check.h"

/* %41 -> A, as a URL reads it; a % without two digits stays. NULL when a NUL comes out. */
static char *percent_decode(const char *text) {
  GString *out = g_string_new(NULL);
  for (const char *at = text; *at; at++) {
    int high = *at == '%' ? g_ascii_xdigit_value(at[1]) : -1;
    int low = high >= 0 ? g_ascii_xdigit_value(at[2]) : -1;
    if (low < 0) {
      g_string_append_c(out, *at);
      continue;
    }
    if (high * 16 + low == 0) {
      g_string_free(out, TRUE);
      return NULL;
    }
    g_string_append_c(out, (char)(high * 16 + low));
    at += 2;
  }
  return g_string_free(out, FALSE);
}

static gboolean has_parent_segment(const char *path) {
  g_auto(GStrv) parts = g_strsplit(path, "/", -1);
  return g_strv_contains((const char *const *)parts, "..");
}

/* The absolute path without empty and . segments. */
static char *normalise(const char *path) {
  g_auto(GStrv) parts = g_strsplit(path, "/", -1);
  GString *out = g_string_new(NULL);
  for (gsize i = 0; parts[i]; i++) {
    if (*parts[i] && strcmp(parts[i], ".") != 0) {
      g_string_append_printf(out, "/%s", parts[i]);
    }
  }
  if (out->len == 0) {
    g_string_append_c(out, '/');
  }
  return g_string_free(out, FALSE);
}

/* text without its escapes and outer white space, backslashes as slashes. what names it in the
 * texts. Returns owned; NULL with an error when nothing is left or it is no text. */
static char *decoded_text(const char *text, const char *what, GError **error) {
  g_autofree char *decoded = percent_decode(text);
  if (!decoded) {
    check_refuse(error, "%s contains a null byte", what);
    return NULL;
  }
  g_strstrip(decoded);
  if (!*decoded) {
    check_refuse(error, "%s is required", what);
    return NULL;
  }
  if (!g_utf8_validate(decoded, -1, NULL)) {
    check_refuse(error, "%s must be UTF-8: %s", what, text);
    return NULL;
  }
  g_strdelimit(decoded, "\\", '/');
  return g_steal_pointer(&decoded);
}

/* kind is what a path that is not absolute should have been. */
static char *absolute_path(const char *text, const char *what, const char *kind, GError **error) {
  g_autofree char *decoded = decoded_text(text, what, error);
  if (!decoded) {
    return NULL;
  }
  if (decoded[0] != '/') {
    check_refuse(error, "%s must be %s: %s", what, kind, decoded);
    return NULL;
  }
  if (has_parent_segment(decoded)) {
    check_refuse(error, "%s escapes allowed scope: %s", what, decoded);
    return NULL;
  }
  return normalise(decoded);
}

char *string_path(const char *text, GError **error) {
  return absolute_path(text, "sandbox path", "absolute", error);
}

gboolean string_is_place(const char *path, const char *what, GError **error) {
  gsize length = strlen(path);
  if (strcmp(path, "/") == 0) {
    return check_refuse(error, "%s cannot be /; name a folder below it", what);
  }
  if (length >= PATH_MAX) {
    return check_refuse(error, "%s must be at most %d bytes long, got %" G_GSIZE_FORMAT, what,
                        PATH_MAX - 1, length);
  }
  for (const char *name = path + 1; *name; name += name[0] == '/') {
    gsize size = strcspn(name, "/");
    if (size > NAME_MAX) {
      return check_refuse(
          error, "%s must have folders whose names are at most %d bytes long, got %" G_GSIZE_FORMAT,
          what, NAME_MAX, size);
    }
    name += size;
  }
  return TRUE;
}

/* What stands behind scheme:// or NULL. */
static const char *behind_scheme(const char *text) {
  gsize length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
  return g_ascii_isalpha(*text) && g_str_has_prefix(text + length, "://") ? text + length + 3
                                                                          : NULL;
}

/* A URI is checked as it is meant, with its escapes read, and kept as it is written. */
char *string_mount_source(const char *text, GError **error) {
  static const char WHAT[] = "workspace mount source";
  g_autofree char *written = g_strstrip(g_strdup(text));
  const char *authority = behind_scheme(written);
  if (!authority) {
    return absolute_path(text, WHAT, "absolute or URI", error);
  }
  g_autofree char *decoded = decoded_text(written, WHAT, error);
  if (!decoded) {
    return NULL;
  }
  gsize length = strcspn(authority, "/\\?#");
  if (memchr(authority, '@', length)) {
    check_refuse(error, "%s must not contain credentials", WHAT);
    return NULL;
  }
  if (length == 0) {
    check_refuse(error, "%s must be absolute or URI: %s", WHAT, written);
    return NULL;
  }
  if (has_parent_segment(decoded)) {
    check_refuse(error, "%s escapes allowed scope: %s", WHAT, written);
    return NULL;
  }
  return g_steal_pointer(&written);
}

static gboolean is_host(const char *host) {
  const char *name = g_str_has_prefix(host, "*.") ? host + 2 : host;
  if (!*name || strlen(name) > 253) {
    return FALSE;
  }
  g_auto(GStrv) labels = g_strsplit(name, ".", -1);
  for (gsize i = 0; labels[i]; i++) {
    gsize length = strlen(labels[i]);
    if (length == 0 || length > 63 || labels[i][0] == '-' || labels[i][length - 1] == '-' ||
        strspn(labels[i], "abcdefghijklmnopqrstuvwxyz0123456789-_") != length) {
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean has_port(const char *host) {
  const char *colon = strrchr(host, ':');
  return colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

char *string_host(const char *text, GError **error) {
  g_autofree char *host = g_ascii_strdown(text, -1);
  g_strstrip(host);
  if (!*host) {
    check_refuse(error, "network host pattern is required");
    return NULL;
  }
  if (!strpbrk(host, "/\\@") && has_port(host)) {
    check_refuse(error, "network host pattern must not include a port: %s", host);
    return NULL;
  }
  if (!is_host(host)) {
    check_refuse(error, "invalid network host pattern: %s", host);
    return NULL;
  }
  return g_steal_pointer(&host);
}

gboolean string_is_environment_name(const char *text, GError **error) {
  gboolean ok = g_ascii_isalpha(*text) || *text == '_';
  for (const char *at = text; ok && *at; at++) {
    ok = g_ascii_isalnum(*at) || *at == '_';
  }
  return ok || check_refuse(error, "invalid sandbox environment variable name: %s", text);
}

gboolean string_is_environment_value(const char *name, const char *value, GError **error) {
  gsize length = strlen(name) + 1 + strlen(value);
  return length <= STRING_MAX_VARIABLE ||
         check_refuse(error,
                      "environment variable %.60s is too long: with its name it may have %u bytes, "
                      "got %" G_GSIZE_FORMAT "; put long text into a file of the workspace",
                      name, STRING_MAX_VARIABLE, length);
}

gboolean string_is_secret_ref(const char *text, GError **error) {
  if (!*text) {
    return check_refuse(error, "sandbox secret ref is required");
  }
  for (const char *at = text; *at; at++) {
    if (g_ascii_isspace(*at)) {
      return check_refuse(error, "sandbox secret ref must not contain whitespace or null bytes");
    }
  }
  return !has_parent_segment(text) ||
         check_refuse(error, "sandbox secret ref escapes allowed scope: %s", text);
}
