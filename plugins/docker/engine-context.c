/* SPDX-License-Identifier: Apache-2.0 */
/* engine-context.c: the current context of Docker's own configuration: a host, and TLS files beside it. */
#include "engine-private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE ((size_t)1 << 20)
#define ADVICE "; choose another with `docker context use`, or set DOCKER_HOST or the option host"

/* A regular file of at most MAX_FILE. Owned; NULL with errno. */
static char *read_file(const char *path, size_t *ret_length) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return NULL;
  }
  struct stat facts;
  if (fstat(fd, &facts) < 0 || !S_ISREG(facts.st_mode) || facts.st_size > (off_t)MAX_FILE) {
    close(fd);
    errno = EINVAL;
    return NULL;
  }
  g_autofree char *text = g_malloc(MAX_FILE + 1);
  size_t length = 0;
  for (;;) {
    ssize_t count = read(fd, text + length, MAX_FILE - length);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      int error = errno;
      close(fd);
      errno = error;
      return NULL;
    }
    if (count == 0) {
      break;
    }
    length += (size_t)count;
  }
  close(fd);
  text[length] = '\0';
  *ret_length = length;
  return g_realloc(g_steal_pointer(&text), length + 1);
}

/* NULL with *ret_error where the file is there but of no use; NULL alone where it is not there. */
static json_object *read_json(const char *path, char **ret_error) {
  size_t length = 0;
  g_autofree char *text = read_file(path, &length);
  if (!text) {
    if (errno != ENOENT && errno != ENOTDIR) {
      *ret_error = g_strdup_printf("cannot read %s: %s", path, g_strerror(errno));
    }
    return NULL;
  }
  json_object *json = engine_parse(text, length);
  if (!json_object_is_type(json, json_type_object)) {
    json_object_put(json);
    *ret_error = g_strdup_printf("%s holds no JSON object", path);
    return NULL;
  }
  return json;
}

static char *configuration_folder(const char *config_dir) {
  const char *dir = config_dir ? config_dir : g_getenv("DOCKER_CONFIG");
  return dir && dir[0] ? g_strdup(dir) : g_build_filename(g_get_home_dir(), ".docker", NULL);
}

/* The name of the current context. Owned. NULL: the default one, or with *ret_error an unusable configuration. */
static char *current_name(const char *folder, char **ret_error) {
  const char *name = g_getenv("DOCKER_CONTEXT");
  g_autofree char *path = g_build_filename(folder, "config.json", NULL);
  json_object *json = NULL;
  if (!name || !name[0]) {
    json = read_json(path, ret_error);
    name = engine_text(json, "currentContext");
  }
  char *current = name && name[0] && strcmp(name, "default") != 0 ? g_strdup(name) : NULL;
  json_object_put(json);
  return current;
}

static gboolean read_named(const char *folder, const char *name, struct engine_context *ret_context,
                           char **ret_error) {
  /* The folder of a context is the hash of its name: no name leads out of the configuration. */
  g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, name, -1);
  g_autofree char *path = g_build_filename(folder, "contexts", "meta", hash, "meta.json", NULL);
  g_autofree char *clean = engine_clean(name, MIN(strlen(name), (size_t)128));
  json_object *meta = read_json(path, ret_error);
  if (!meta) {
    if (!*ret_error) {
      *ret_error = g_strdup_printf("Docker's current context '%s' does not exist" ADVICE, clean);
    }
    return FALSE;
  }
  const char *host = engine_text(meta, "Endpoints/docker/Host");
  if (!host || !host[0]) {
    json_object_put(meta);
    *ret_error = g_strdup_printf("Docker's current context '%s' names no host" ADVICE, clean);
    return FALSE;
  }
  g_autofree char *tls = g_build_filename(folder, "contexts", "tls", hash, "docker", NULL);
  *ret_context = (struct engine_context){
      .host = g_strdup(host),
      .tls_dir = access(tls, F_OK) == 0 ? g_steal_pointer(&tls) : NULL,
      .skip_verify = engine_boolean(meta, "Endpoints/docker/SkipTLSVerify", FALSE)};
  json_object_put(meta);
  return TRUE;
}

gboolean engine_context_read(const char *config_dir, struct engine_context *ret_context,
                             char **ret_error) {
  g_autofree char *folder = configuration_folder(config_dir);
  char *error = NULL;
  g_autofree char *name = current_name(folder, &error);
  if (error) {
    *ret_error = error;
    return FALSE;
  }
  if (!name) {
    *ret_context = (struct engine_context){0};
    return TRUE;
  }
  if (!read_named(folder, name, ret_context, &error)) {
    *ret_error = error;
    return FALSE;
  }
  return TRUE;
}

void engine_context_clear(struct engine_context *context) {
  g_free(context->host);
  g_free(context->tls_dir);
  *context = (struct engine_context){0};
}
