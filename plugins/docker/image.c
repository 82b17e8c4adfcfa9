/* SPDX-License-Identifier: Apache-2.0 */
/* image.c: what the engine knows of an image, and the pull of one that it does not have. */
#include "image.h"

#include "failure.h"
#include "image-name.h"
#include "pull.h"

#include <string.h>

/* Labels and environments of images can be long. */
#define MAX_INSPECTION ((size_t)4 * 1024 * 1024)
#define MAX_VOLUMES 64u
#define MAX_PATH 4096u
#define MAX_WORD 32u

void image_clear(struct image *image) {
  g_free(image->id);
  g_free(image->architecture);
  g_free(image->os);
  if (image->volumes) {
    g_ptr_array_unref(image->volumes);
  }
  memset(image, 0, sizeof *image);
}

/* ---- Reading ---------------------------------------------------------------------------------- */

/* "amd64", "linux"; "unknown" for what is no such word. Owned. */
static char *word_of(json_object *json, const char *key) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const char *text = engine_text(json, key);
  size_t length = text ? strlen(text) : 0;
  gboolean good = length > 0 && length <= MAX_WORD && strspn(text, allowed) == length;
  return g_strdup(good ? text : "unknown");
}

/* The folder that an engine makes of what an image declares: absolute, without "." and "..", no
 * slash at the end. Owned. NULL: it is none. */
static char *normal_folder(const char *declared) {
  if (declared[0] == '\0' || strlen(declared) > MAX_PATH) {
    return NULL;
  }
  g_auto(GStrv) parts = g_strsplit(declared, "/", -1);
  g_autoptr(GPtrArray) kept = g_ptr_array_new();
  for (char **part = parts; *part; part++) {
    if (strcmp(*part, "..") == 0) {
      if (kept->len > 0) {
        g_ptr_array_set_size(kept, (gint)kept->len - 1);
      }
    } else if ((*part)[0] != '\0' && strcmp(*part, ".") != 0) {
      g_ptr_array_add(kept, *part);
    }
  }
  if (kept->len == 0) {
    return NULL;
  }
  g_ptr_array_add(kept, NULL);
  g_autofree char *joined = g_strjoinv("/", (char **)kept->pdata);
  return g_strconcat("/", joined, NULL);
}

/* FALSE: it declares what no container can be made of. */
static gboolean read_volumes(json_object *json, GPtrArray *volumes) {
  json_object *declared = engine_object(json, "Config/Volumes");
  if (!declared) {
    return TRUE;
  }
  json_object_object_foreach(declared, key, value) {
    (void)value;
    char *folder = normal_folder(key);
    if (!folder || volumes->len >= MAX_VOLUMES) {
      g_free(folder);
      return FALSE;
    }
    g_ptr_array_add(volumes, folder);
  }
  return TRUE;
}

static gboolean has_entrypoint(json_object *json) {
  json_object *config = engine_object(json, "Config");
  json_object *entrypoint = NULL;
  return config && json_object_object_get_ex(config, "Entrypoint", &entrypoint) &&
         json_object_is_type(entrypoint, json_type_array) &&
         json_object_array_length(entrypoint) > 0;
}

static int32_t read_image(Engine *engine, const struct sandhost_host *host,
                          struct sandhost_call *call, const char *name, json_object *json,
                          struct image *ret_image) {
  const char *id = engine_text(json, "Id");
  g_autofree char *full =
      id && !g_str_has_prefix(id, "sha256:") ? g_strconcat("sha256:", id, NULL) : g_strdup(id);
  if (!full || !image_is_id(full)) {
    return fail_call(host, call, SANDHOST_PROTOCOL, "%s describes the image %s without an id",
                     engine_name(engine), name);
  }
  g_autoptr(GPtrArray) volumes = g_ptr_array_new_with_free_func(g_free);
  if (!read_volumes(json, volumes)) {
    return fail_call(host, call, SANDHOST_UNSUPPORTED,
                     "the image %s declares volumes that no sandbox can have", name);
  }
  *ret_image = (struct image){.id = g_steal_pointer(&full),
                              .architecture = word_of(json, "Architecture"),
                              .os = word_of(json, "Os"),
                              .volumes = g_steal_pointer(&volumes),
                              .has_entrypoint = has_entrypoint(json)};
  return SANDHOST_OK;
}

/* ---- Looking and pulling ---------------------------------------------------------------------- */

/* Asks the engine. *ret_missing: it has no such image, and nothing else is wrong. */
static int32_t look_at_image(Engine *engine, const struct sandhost_host *host,
                             struct sandhost_call *call, const char *name, struct image *ret_image,
                             gboolean *ret_missing) {
  /* A name holds nothing that a path must not hold, but for the brackets of an IPv6 address. */
  g_auto(GStrv) parts = g_strsplit(name, "/", -1);
  for (char **part = parts; *part; part++) {
    char *escaped = engine_escape(*part);
    g_free(*part);
    *part = escaped;
  }
  g_autofree char *joined = g_strjoinv("/", parts);
  g_autofree char *path = g_strdup_printf("/images/%s/json", joined);
  struct engine_request request = {
      .method = "GET", .path = path, .max_body = MAX_INSPECTION, .no_effect = TRUE};
  struct engine_reply reply = {0};
  g_autofree char *what = g_strdup_printf("cannot look at the image %s", name);
  int32_t status = engine_ask(engine, call, &request, 404, what, &reply);
  if (status == SANDHOST_OK) {
    *ret_missing = reply.status == 404;
    if (!*ret_missing) {
      status = read_image(engine, host, call, name, reply.json, ret_image);
    }
  }
  engine_reply_clear(&reply);
  return status;
}

/* The name as it may be shown: without control characters, at most 200 bytes. Owned. */
static char *shown_name(const char *name) {
  g_autofree char *bounded = g_strndup(name, 200);
  char *shown = g_utf8_make_valid(bounded, -1);
  for (char *at = shown; *at; at++) {
    *at = g_ascii_iscntrl(*at) ? '?' : *at;
  }
  return shown;
}

static int32_t fail_missing(const struct sandhost_host *host, struct sandhost_call *call,
                            const char *name, gboolean may_pull) {
  return may_pull ? fail_call(
                        host, call, SANDHOST_NOT_FOUND,
                        "Sandbox image %s is not present, and no registry knows an image by its id",
                        name)
                  : fail_call(host, call, SANDHOST_NOT_FOUND,
                              "Sandbox image %s is not present and pulling is disabled", name);
}

static int32_t pull_and_look(Engine *engine, const struct sandhost_host *host,
                             struct sandhost_call *call, const char *name,
                             const struct image_name *parts, struct image *ret_image) {
  gboolean missing = FALSE;
  int32_t status = image_pull(engine, host, call, name, parts);
  if (status == SANDHOST_OK) {
    status = look_at_image(engine, host, call, name, ret_image, &missing);
  }
  if (status == SANDHOST_OK && missing) {
    status = fail_call(host, call, SANDHOST_PROTOCOL,
                       "%s ended the pull of %s without a failure, and does not have the image",
                       engine_name(engine), name);
  }
  return status;
}

int32_t image_get(Engine *engine, const struct sandhost_host *host, struct sandhost_call *call,
                  const char *name, gboolean may_pull, struct image *ret_image) {
  struct image_name parts;
  if (!image_name_read(name, &parts)) {
    g_autofree char *shown = shown_name(name);
    return fail_call(host, call, SANDHOST_INVALID,
                     "'%s' is no image name, such as python:3.12-slim or ghcr.io/team/image:tag",
                     shown);
  }
  gboolean missing = FALSE;
  int32_t status = look_at_image(engine, host, call, name, ret_image, &missing);
  if (status == SANDHOST_OK && missing) {
    status = !may_pull || parts.is_id ? fail_missing(host, call, name, may_pull)
                                      : pull_and_look(engine, host, call, name, &parts, ret_image);
  }
  image_name_clear(&parts);
  return status;
}
