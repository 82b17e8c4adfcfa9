/* SPDX-License-Identifier: Apache-2.0 */
/* engine-address.c: where an engine is, and which TLS files go with it. */
#include "engine-private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_HOST "unix:///var/run/docker.sock"
#define MAX_HOST 1024
#define WAYS "unix:///path, tcp://host:port or ssh://user@host"

static const char *non_empty(const char *text) {
  return text && text[0] ? text : NULL;
}

static const char *variable(const char *name) {
  return non_empty(g_getenv(name));
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* DIR/name when it is there. Owned. */
static char *file_in(const char *dir, const char *name) {
  char *path = g_build_filename(dir, name, NULL);
  if (access(path, F_OK) < 0) {
    g_clear_pointer(&path, g_free);
  }
  return path;
}

/* What the options do not name comes from a folder as docker lays it out. */
static void fill_from_folder(struct engine_address *address, const char *dir) {
  if (!address->ca) {
    address->ca = file_in(dir, "ca.pem");
  }
  if (!address->cert && !address->key) {
    address->cert = file_in(dir, "cert.pem");
    address->key = file_in(dir, "key.pem");
  }
}

static gboolean is_readable(const char *path, const char *what, char **ret_error) {
  if (!path || access(path, R_OK) == 0) {
    return TRUE;
  }
  *ret_error = g_strdup_printf("cannot read the TLS %s %s: %s", what, path, g_strerror(errno));
  return FALSE;
}

static gboolean check_files(const struct engine_address *address, char **ret_error) {
  if (!address->cert != !address->key) {
    *ret_error = g_strdup("a TLS certificate needs its key: set both of the options tls_cert and "
                          "tls_key, or neither");
    return FALSE;
  }
  return is_readable(address->ca, "CA file", ret_error) &&
         is_readable(address->cert, "certificate", ret_error) &&
         is_readable(address->key, "key", ret_error);
}

/* TLS is on where anything asks for it. The server is then checked, unless the option or the context says that it
 * is not to be: that DOCKER_TLS_VERIFY is not set is not enough for that. */
static gboolean read_tls(struct engine_address *address, const struct engine_settings *settings,
                         const struct engine_context *context, char **ret_error) {
  const char *folder = variable("DOCKER_CERT_PATH");
  const char *verify = variable("DOCKER_TLS_VERIFY");
  gboolean of_context = context->host != NULL;
  address->ca = g_strdup(non_empty(settings->tls_ca));
  address->cert = g_strdup(non_empty(settings->tls_cert));
  address->key = g_strdup(non_empty(settings->tls_key));
  address->tls = address->ca || address->cert || address->key || settings->tls_verify_set;
  if (of_context) {
    address->tls = address->tls || context->tls_dir || context->skip_verify;
    folder = context->tls_dir;
  } else {
    address->tls = address->tls || folder || verify;
  }
  if (address->tls && folder) {
    fill_from_folder(address, folder);
  } else if (address->tls && verify && !of_context) {
    g_autofree char *dir = settings->config_dir
                               ? g_strdup(settings->config_dir)
                               : g_build_filename(g_get_home_dir(), ".docker", NULL);
    fill_from_folder(address, dir);
  }
  address->insecure =
      settings->tls_verify_set ? !settings->tls_verify : of_context && context->skip_verify;
  return check_files(address, ret_error);
}

/* ---- Hosts and ports ------------------------------------------------------------------------- */

static gboolean refuse(const char *host, const char *why, char **ret_error) {
  *ret_error = g_strdup_printf("the Docker host '%s' %s; write it as " WAYS, host, why);
  return FALSE;
}

static gboolean is_port(const char *text) {
  guint64 port;
  return g_ascii_string_to_unsigned(text, 10, 1, 65535, &port, NULL);
}

static gboolean is_name(const char *text, const char *more) {
  if (!g_ascii_isalnum(text[0]) && text[0] != '_') {
    return FALSE;
  }
  for (const char *at = text; *at; at++) {
    if (!g_ascii_isalnum(*at) && !strchr(more, *at)) {
      return FALSE;
    }
  }
  return TRUE;
}

/* Whether text is an IPv6 address in brackets. */
static gboolean is_bracketed(const char *text) {
  size_t length = strlen(text);
  if (length < 4 || text[0] != '[' || text[length - 1] != ']') {
    return FALSE;
  }
  g_autofree char *inner = g_strndup(text + 1, length - 2);
  return strspn(inner, "0123456789abcdefABCDEF:.") == strlen(inner);
}

/* Splits "host", "host:port", "[::1]:port". */
static gboolean split_port(const char *text, char **ret_host, char **ret_port) {
  const char *colon = strrchr(text, ':');
  const char *bracket = strrchr(text, ']');
  if (bracket && colon && colon < bracket) {
    colon = NULL;
  }
  g_autofree char *host = colon ? g_strndup(text, (size_t)(colon - text)) : g_strdup(text);
  if ((!is_name(host, "-_.") && !is_bracketed(host)) || (colon && !is_port(colon + 1))) {
    return FALSE;
  }
  *ret_host = g_steal_pointer(&host);
  *ret_port = colon ? g_strdup(colon + 1) : NULL;
  return TRUE;
}

static gboolean read_unix(struct engine_address *address, const char *path, char **ret_error) {
  if (path[0] != '/') {
    return refuse(address->text, "is no absolute path", ret_error);
  }
  address->transport = ENGINE_UNIX;
  address->unix_path = g_strdup(path);
  address->base = g_strdup("http://docker");
  return TRUE;
}

static gboolean read_tcp(struct engine_address *address, const char *place, char **ret_error) {
  g_autofree char *trimmed = g_strdup(place);
  g_autofree char *host = NULL;
  g_autofree char *port = NULL;
  if (g_str_has_suffix(trimmed, "/")) {
    trimmed[strlen(trimmed) - 1] = '\0';
  }
  if (!split_port(trimmed, &host, &port)) {
    return refuse(address->text, "names no host and port", ret_error);
  }
  address->transport = ENGINE_TCP;
  address->base = g_strdup_printf("%s://%s:%s", address->tls ? "https" : "http", host,
                                  port ? port : (address->tls ? "2376" : "2375"));
  return TRUE;
}

static gboolean read_ssh(struct engine_address *address, const char *place, char **ret_error) {
  const char *slash = strchr(place, '/');
  g_autofree char *authority = slash ? g_strndup(place, (size_t)(slash - place)) : g_strdup(place);
  const char *at = strrchr(authority, '@');
  address->transport = ENGINE_SSH;
  address->base = g_strdup("http://docker");
  if (at) {
    address->ssh_user = g_strndup(authority, (size_t)(at - authority));
    if (strchr(address->ssh_user, ':')) {
      g_clear_pointer(&address->text, g_free);
      address->text = g_strdup_printf("ssh://%s", at + 1);
      return refuse(address->text, "holds a password, which ssh does not take", ret_error);
    }
    if (!is_name(address->ssh_user, "-_.+@")) {
      return refuse(address->text, "names no user that ssh could take", ret_error);
    }
  }
  if (!split_port(at ? at + 1 : authority, &address->ssh_host, &address->ssh_port)) {
    return refuse(address->text, "names no host", ret_error);
  }
  if (is_bracketed(address->ssh_host)) {
    char *inner = g_strndup(address->ssh_host + 1, strlen(address->ssh_host) - 2);
    g_free(address->ssh_host);
    address->ssh_host = inner;
  }
  if (slash && strcmp(slash, "/") != 0) {
    if (!is_name(slash + 1, "-_./")) { /* it goes through a shell over there */
      return refuse(address->text, "names a socket with characters that ssh would not keep",
                    ret_error);
    }
    address->ssh_path = g_strdup(slash);
  }
  return TRUE;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static gboolean read_host(struct engine_address *address, char **ret_error) {
  const char *host = address->text;
  if (g_str_has_prefix(host, "unix://")) {
    return read_unix(address, host + 7, ret_error);
  }
  if (g_str_has_prefix(host, "tcp://")) {
    return read_tcp(address, host + 6, ret_error);
  }
  if (g_str_has_prefix(host, "ssh://")) {
    return read_ssh(address, host + 6, ret_error);
  }
  return refuse(host, "is of no kind that sandhost knows", ret_error);
}

static gboolean is_plain(const char *host, char **ret_error) {
  gboolean plain = strlen(host) <= MAX_HOST && g_utf8_validate(host, -1, NULL);
  for (const char *at = host; plain && *at; at++) {
    plain = (unsigned char)*at >= ' ' && *at != 127;
  }
  if (!plain) {
    *ret_error =
        g_strdup("the Docker host has characters that do not belong there; write it as " WAYS);
  }
  return plain;
}

gboolean engine_address_read(const struct engine_settings *settings,
                             struct engine_address *ret_address, char **ret_error) {
  struct engine_address address = {0};
  struct engine_context context = {0};
  const char *host = non_empty(settings->host);
  host = host ? host : variable("DOCKER_HOST");
  if (!host && !engine_context_read(settings->config_dir, &context, ret_error)) {
    return FALSE;
  }
  host = host ? host : context.host;
  address.text = g_strdup(host ? host : DEFAULT_HOST);
  gboolean good = is_plain(address.text, ret_error);
  if (good && g_str_has_prefix(address.text, "tcp://")) {
    good = read_tls(&address, settings, &context, ret_error);
  }
  good = good && read_host(&address, ret_error);
  engine_context_clear(&context);
  if (!good) {
    engine_address_clear(&address);
    return FALSE;
  }
  *ret_address = address;
  return TRUE;
}

void engine_address_clear(struct engine_address *address) {
  g_free(address->text);
  g_free(address->base);
  g_free(address->unix_path);
  g_free(address->ca);
  g_free(address->cert);
  g_free(address->key);
  g_free(address->ssh_host);
  g_free(address->ssh_user);
  g_free(address->ssh_port);
  g_free(address->ssh_path);
  *address = (struct engine_address){0};
}
