/* SPDX-License-Identifier: Apache-2.0 */
/* mount-check.c: what is mounted is the resolved path that was checked, so no link can change it meanwhile. */
#include "provider/mount-check.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static const char *const SOCKETS[] = {"docker.sock", "containerd.sock", "podman.sock", "crio.sock",
                                      NULL};
static const char *const CREDENTIALS[] = {
    ".ssh",   ".aws",        ".azure", ".docker",          ".kube",
    ".gnupg", ".config",     ".netrc", ".git-credentials", ".pypirc",
    ".npmrc", ".modal.toml", NULL};
static const char *const SYSTEM[] = {"/etc",
                                     "/proc",
                                     "/sys",
                                     "/dev",
                                     "/boot",
                                     "/root",
                                     "/run",
                                     "/var/run",
                                     "/var/lib/docker",
                                     "/var/lib/containerd",
                                     "/usr",
                                     "/bin",
                                     "/sbin",
                                     "/lib",
                                     "/lib64",
                                     "/snap",
                                     NULL};

/* Whether path is folder or lies in it. */
static gboolean is_inside(const char *path, const char *folder) {
  gsize length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* The reason, owned; NULL: none. */
static char *compare(const char *path, const char *other) {
  if (is_inside(path, other)) {
    return g_strdup_printf("it is inside %s", other);
  }
  if (is_inside(other, path)) {
    return g_strdup_printf("it contains %s", other);
  }
  return NULL;
}

static gboolean has_credential_component(const char *path) {
  g_auto(GStrv) components = g_strsplit(path, "/", -1);
  for (gsize i = 0; components[i]; i++) {
    if (g_strv_contains(CREDENTIALS, components[i])) {
      return TRUE;
    }
  }
  return FALSE;
}

/* A folder that holds credentials directly, or as the home of its owner does. */
static char *holds_credentials(const char *path) {
  for (gsize i = 0; CREDENTIALS[i]; i++) {
    g_autofree char *inside = g_build_filename(path, CREDENTIALS[i], NULL);
    struct stat status;
    if (lstat(inside, &status) == 0) {
      return g_strdup_printf("it contains %s", inside);
    }
  }
  return NULL;
}

static char *check_home(const char *path) {
  const char *home = g_get_home_dir();
  for (gsize i = 0; home && *home && CREDENTIALS[i]; i++) {
    g_autofree char *credential = g_build_filename(home, CREDENTIALS[i], NULL);
    struct stat status;
    if (lstat(credential, &status) == 0 && is_inside(credential, path)) {
      return g_strdup_printf("it contains %s", credential);
    }
  }
  return NULL;
}

static char *find_reason(const char *path) {
  if (strcmp(path, "/") == 0) {
    return g_strdup("it is the host root");
  }
  const char *base = strrchr(path, '/') + 1;
  if (g_strv_contains(SOCKETS, base)) {
    return g_strdup("it is a container engine socket");
  }
  if (has_credential_component(path)) {
    return g_strdup("it is or is inside a credential directory");
  }
  for (gsize i = 0; SYSTEM[i]; i++) {
    char *reason = compare(path, SYSTEM[i]);
    if (reason) {
      return reason;
    }
  }
  char *reason = check_home(path);
  return reason ? reason : holds_credentials(path);
}

char *mount_check(const char *provider, const char *source, GError **error) {
  char resolved[PATH_MAX];
  if (source[0] != '/') {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "%s must not be mounted: the %c%s sandbox mounts local paths only", source,
                g_ascii_toupper(provider[0]), provider + 1);
    return NULL;
  }
  if (!realpath(source, resolved)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "%s cannot be mounted: %s", source,
                g_strerror(errno));
    return NULL;
  }
  g_autofree char *reason = find_reason(resolved);
  if (reason) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "%s must not be mounted into a sandbox: %s", source, reason);
    return NULL;
  }
  return g_strdup(resolved);
}
