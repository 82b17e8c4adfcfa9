/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.c: the working directory, kept as an image.
 *
 * The root of a sandbox is read-only and its working directory is in memory, so a commit of the
 * container itself would keep nothing. Instead the working directory is copied into a folder of a
 * container that is never started, made of the same image, and that one is committed. The folder
 * belongs to root with mode 0700: commands of a sandbox made of the snapshot cannot see it. Such a
 * sandbox gets it copied back into its own working directory when it is made.
 *
 * A snapshot of a sandbox that was itself made of a snapshot starts from the first image again, or
 * what was deleted in between would come back. Its id is a label, and believed only where its
 * layers are those that the snapshot begins with: a label that somebody else wrote cannot name an
 * image whose content the sandbox does not have anyway.
 *
 * The id of a snapshot is the image's. It also has a tag, sandhost-snapshot:NUMBER, since prune
 * removes images without one. Its layers are the image's and one more. Files are copied while
 * commands may run: one that is written to at that moment is kept half-written, or fails the
 * snapshot when it shrinks.
 */
#include "archive-copy.h"
#include "failure.h"
#include "image-name.h"
#include "instance.h"

#include <string.h>

#define SECOND ((int64_t)1000000000)
#define KEEP_FOLDER "/.sandhost-snapshot"
#define REPOSITORY "sandhost-snapshot"
#define LABEL_SNAPSHOT "omnicoreagent.snapshot"
#define LABEL_BASE "omnicoreagent.snapshot.image"
#define TAG_DIGITS 32
#define MAX_INSPECTION ((size_t)4 * 1024 * 1024)
#define MAX_LAYERS 256u
/* Engines that copy where others share write the whole image for this. */
#define COMMIT_SILENCE (300 * SECOND)
/* Headers and padding of as many members as a working directory can have. */
#define ARCHIVE_EXTRA ((uint64_t)192 * 1024 * 1024)

/* ---- Images ----------------------------------------------------------------------------------- */

/* What the engine says of an image by its id. *ret_reply is to be cleared by the caller. accept
 * as for engine_ask. */
static int32_t inspect_image(Engine *engine, struct sandhost_call *call, const char *id,
                             long accept, struct engine_reply *ret_reply) {
  g_autofree char *path = g_strdup_printf("/images/%s/json", id);
  struct engine_request request = {.method = "GET", .path = path, .max_body = MAX_INSPECTION};
  return engine_ask(engine, call, &request, accept, "cannot look at the image", ret_reply);
}

static const char *label_of(json_object *image, const char *name) {
  json_object *labels = engine_object(image, "Config/Labels");
  return labels ? engine_text(labels, name) : NULL;
}

static gboolean is_snapshot(json_object *image) {
  return g_strcmp0(label_of(image, LABEL_SNAPSHOT), "1") == 0;
}

static json_object *layers_of(json_object *image) {
  json_object *layers = NULL;
  json_object *root = engine_object(image, "RootFS");
  if (!root || !json_object_object_get_ex(root, "Layers", &layers) ||
      !json_object_is_type(layers, json_type_array) ||
      json_object_array_length(layers) > MAX_LAYERS) {
    return NULL;
  }
  return layers;
}

/* Whether image begins with all the layers of base. */
static gboolean begins_with(json_object *image, json_object *base) {
  json_object *all = layers_of(image);
  json_object *first = layers_of(base);
  if (!all || !first || json_object_array_length(first) == 0 ||
      json_object_array_length(first) > json_object_array_length(all)) {
    return FALSE;
  }
  for (size_t i = 0; i < json_object_array_length(first); i++) {
    json_object *a = json_object_array_get_idx(all, i);
    json_object *b = json_object_array_get_idx(first, i);
    if (!json_object_is_type(a, json_type_string) || !json_object_is_type(b, json_type_string) ||
        strcmp(json_object_get_string(a), json_object_get_string(b)) != 0) {
      return FALSE;
    }
  }
  return TRUE;
}

/* The image to build the snapshot on: the sandbox's own, or the one that its snapshot was built
 * on. *ret_id is owned, *ret_config too; the latter is NULL where the image has no settings. */
static int32_t find_base(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *image_id, char **ret_id, json_object **ret_config) {
  Engine *engine = sandbox->instance->engine;
  struct engine_reply image = {0};
  struct engine_reply base = {0};
  int32_t status = inspect_image(engine, call, image_id, 0, &image);
  const char *id = image_id;
  struct engine_reply *chosen = &image;
  if (status == SANDHOST_OK && is_snapshot(image.json)) {
    id = label_of(image.json, LABEL_BASE);
    chosen = &base;
    if (!id || !image_is_id(id)) {
      status = fail_call(sandbox->host, call, SANDHOST_CONFLICT,
                         "the snapshot that the sandbox was made of does not name its image");
    } else {
      status = inspect_image(engine, call, id, 0, &base);
    }
    if (status == SANDHOST_OK && !begins_with(image.json, base.json)) {
      status = fail_call(sandbox->host, call, SANDHOST_CONFLICT,
                         "the snapshot that the sandbox was made of names an image that it was not "
                         "made of");
    }
  }
  if (status == SANDHOST_OK) {
    json_object *config = engine_object(chosen->json, "Config");
    *ret_id = g_strdup(id);
    *ret_config = config ? json_object_get(config) : NULL;
  }
  engine_reply_clear(&image);
  engine_reply_clear(&base);
  return status;
}

/* ---- Containers that are never started -------------------------------------------------------- */

static void put_label(json_object *labels, const char *name, const char *value) {
  if (value) {
    json_object_object_add(labels, name, json_object_new_string(value));
  }
}

static json_object *new_labels(const struct sandhost_sandbox *sandbox) {
  json_object *labels = json_object_new_object();
  put_label(labels, DOCKER_LABEL_SANDBOX, "1"); /* a sweep finds what was left behind */
  put_label(labels, DOCKER_LABEL_SESSION, sandbox->key);
  put_label(labels, DOCKER_LABEL_RUN, sandbox->run_id);
  return labels;
}

static gboolean has_words(json_object *config, const char *key) {
  json_object *words = NULL;
  return config && json_object_object_get_ex(config, key, &words) &&
         json_object_is_type(words, json_type_array) && json_object_array_length(words) > 0;
}

/* config: the image's settings, borrowed; NULL: it has none. take_labels: those of the
 * container. *ret_id is owned. The container is to be removed by the caller. */
static int32_t make_still(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const char *image_id, json_object *config, json_object *take_labels,
                          char **ret_id) {
  Engine *engine = sandbox->instance->engine;
  json_object *body = json_object_new_object();
  json_object *settings = json_object_new_object();
  json_object_object_add(body, "Image", json_object_new_string(image_id));
  if (!has_words(config, "Cmd") && !has_words(config, "Entrypoint")) {
    /* An image that names no command needs one for its containers, which this one never runs. */
    json_object *command = json_object_new_array();
    json_object_array_add(command, json_object_new_string("-"));
    json_object_object_add(body, "Cmd", command);
  }
  json_object_object_add(body, "Labels", take_labels);
  json_object_object_add(body, "NetworkDisabled", json_object_new_boolean(TRUE));
  json_object_object_add(settings, "NetworkMode", json_object_new_string("none"));
  json_object_object_add(body, "HostConfig", settings);
  struct engine_request request = {
      .method = "POST", .path = "/containers/create", .json = body, .silence = COMMIT_SILENCE};
  struct engine_reply reply = {0};
  int32_t status = engine_ask(engine, call, &request, 0,
                              "cannot make the container that holds the snapshot", &reply);
  json_object_put(body);
  const char *id = engine_text(reply.json, "Id");
  if (status == SANDHOST_OK && !container_is_id(id)) {
    status = fail_call(sandbox->host, call, SANDHOST_PROTOCOL, "%s made a container without an id",
                       engine_name(engine));
  }
  if (status == SANDHOST_OK) {
    *ret_id = g_strdup(id);
  }
  engine_reply_clear(&reply);
  return status;
}

static int64_t read_bytes(void *user, void *buffer, size_t length) {
  GByteArray *bytes = user;
  size_t part = MIN(length, (size_t)bytes->len);
  memcpy(buffer, bytes->data, part);
  if (part > 0) {
    g_byte_array_remove_range(bytes, 0, (guint)part);
  }
  return (int64_t)part;
}

static int32_t make_folder(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                           const char *id) {
  g_autoptr(GByteArray) tar = g_byte_array_new();
  tar_append_folder(tar, &KEEP_FOLDER[1], 0700);
  tar_append_end(tar);
  g_autofree char *path = g_strdup_printf("/containers/%s/archive?path=/", id);
  struct sandhost_source source = {.size = sizeof source, .user = tar, .read = read_bytes};
  struct engine_request request = {.method = "PUT", .path = path, .upload = &source};
  return engine_ask(sandbox->instance->engine, call, &request, 0,
                    "cannot make the folder that holds the snapshot", NULL);
}

/* The archive of the folder has the folder itself as a member, with the owner and mode of the
 * working directory: what holds it is put back to root's own afterwards. */
static int32_t fill(struct sandhost_sandbox *sandbox, struct sandhost_call *call, const char *id) {
  struct archive_copy copy = {.engine = sandbox->instance->engine,
                              .host = sandbox->host,
                              .from = sandbox->id,
                              .from_path = sandbox->working_dir,
                              .to = id,
                              .to_path = KEEP_FOLDER,
                              .max_bytes = sandbox->instance->workdir_size + ARCHIVE_EXTRA};
  int32_t status = make_folder(sandbox, call, id);
  if (status == SANDHOST_OK) {
    status = archive_copy(&copy, call);
  }
  return status == SANDHOST_OK ? make_folder(sandbox, call, id) : status;
}

/* ---- Taking one ------------------------------------------------------------------------------- */

static json_object *new_snapshot_labels(const struct sandhost_sandbox *sandbox,
                                        const char *base_id) {
  json_object *labels = new_labels(sandbox);
  put_label(labels, LABEL_SNAPSHOT, "1");
  put_label(labels, LABEL_BASE, base_id);
  return labels;
}

/* The image's own settings, with our labels. Docker takes them from here; podman takes those of
 * the container, which therefore has the labels as well. Owned. */
static json_object *new_config(const struct sandhost_sandbox *sandbox, const char *base_id,
                               json_object *config) {
  json_object *body = json_object_new_object();
  json_object *labels = new_snapshot_labels(sandbox, base_id);
  /* A container that somebody starts from the image is no sandbox of ours to sweep. */
  put_label(labels, DOCKER_LABEL_SANDBOX, "snapshot");
  if (config) {
    json_object_object_foreach(config, key, value) {
      json_object_object_add(body, key, json_object_get(value));
    }
    json_object *known = engine_object(config, "Labels");
    if (known) {
      json_object_object_foreach(known, name, text) {
        if (!json_object_object_get_ex(labels, name, NULL)) {
          json_object_object_add(labels, name, json_object_get(text));
        }
      }
    }
  }
  json_object_object_add(body, "Labels", labels);
  return body;
}

static int32_t commit(struct sandhost_sandbox *sandbox, struct sandhost_call *call, const char *id,
                      const char *base_id, json_object *config) {
  json_object *body = new_config(sandbox, base_id, config);
  g_autofree char *path =
      g_strdup_printf("/commit?container=%s&repo=" REPOSITORY "&tag=%.*s&pause=0&comment=sandhost",
                      id, TAG_DIGITS, id);
  struct engine_request request = {
      .method = "POST", .path = path, .json = body, .silence = COMMIT_SILENCE};
  struct engine_reply reply = {0};
  int32_t status = engine_ask(sandbox->instance->engine, call, &request, 0,
                              "cannot keep the snapshot as an image", &reply);
  json_object_put(body);
  const char *image = engine_text(reply.json, "Id");
  g_autofree char *full = image && !g_str_has_prefix(image, "sha256:")
                              ? g_strconcat("sha256:", image, NULL)
                              : g_strdup(image);
  if (status == SANDHOST_OK && (!full || !image_is_id(full))) {
    status = fail_call(sandbox->host, call, SANDHOST_PROTOCOL, "%s made an image without an id",
                       engine_name(sandbox->instance->engine));
  }
  if (status == SANDHOST_OK) {
    report_fact(sandbox->host, call, SANDHOST_REPORT_SNAPSHOT, full);
  }
  engine_reply_clear(&reply);
  return status;
}

/* The image that the sandbox's container was made of. *ret_id is owned. */
static int32_t image_of(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                        char **ret_id) {
  Engine *engine = sandbox->instance->engine;
  g_autofree char *path = g_strdup_printf("/containers/%s/json", sandbox->id);
  struct engine_request request = {.method = "GET", .path = path};
  struct engine_reply reply = {0};
  int32_t status = engine_ask(engine, call, &request, 404, "cannot look at the sandbox", &reply);
  if (status == SANDHOST_OK) {
    const char *id = engine_text(reply.json, "Image");
    g_autofree char *full =
        id && !g_str_has_prefix(id, "sha256:") ? g_strconcat("sha256:", id, NULL) : g_strdup(id);
    if (reply.status == 404 || !engine_boolean(reply.json, "State/Running", FALSE)) {
      status = fail_call(sandbox->host, call, SANDHOST_LOST, "the sandbox is gone");
    } else if (!full || !image_is_id(full)) {
      status =
          fail_call(sandbox->host, call, SANDHOST_PROTOCOL,
                    "%s does not say which image the sandbox was made of", engine_name(engine));
    } else {
      *ret_id = g_steal_pointer(&full);
    }
  }
  engine_reply_clear(&reply);
  return status;
}

int32_t docker_snapshot(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  g_autofree char *image_id = NULL;
  g_autofree char *base_id = NULL;
  g_autofree char *still = NULL;
  json_object *config = NULL;
  int32_t status = image_of(sandbox, call, &image_id);
  if (status == SANDHOST_OK) {
    status = find_base(sandbox, call, image_id, &base_id, &config);
  }
  if (status == SANDHOST_OK) {
    status =
        make_still(sandbox, call, base_id, config, new_snapshot_labels(sandbox, base_id), &still);
  }
  if (status == SANDHOST_OK) {
    status = fill(sandbox, call, still);
    if (status == SANDHOST_OK) {
      status = commit(sandbox, call, still, base_id, config);
    }
    /* One that cannot be removed now carries the label by which it is swept later. */
    (void)container_clean_up(sandbox->instance, call, still);
  }
  json_object_put(config);
  return status;
}

/* ---- Giving it back, and its end -------------------------------------------------------------- */

int32_t snapshot_restore(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *image_id) {
  const struct sandhost_instance *instance = sandbox->instance;
  struct engine_reply image = {0};
  int32_t status = inspect_image(instance->engine, call, image_id, 0, &image);
  gboolean wanted = status == SANDHOST_OK && is_snapshot(image.json);
  g_autofree char *still = NULL;
  if (wanted) {
    status = make_still(sandbox, call, image_id, engine_object(image.json, "Config"),
                        new_labels(sandbox), &still);
  }
  engine_reply_clear(&image);
  if (wanted && status == SANDHOST_OK) {
    const struct tar_owner owner = {.uid = instance->uid, .gid = instance->gid};
    struct archive_copy copy = {.engine = instance->engine,
                                .host = sandbox->host,
                                .from = still,
                                .from_path = KEEP_FOLDER,
                                .to = sandbox->id,
                                .to_path = sandbox->working_dir,
                                .owner = &owner,
                                .max_bytes = instance->workdir_size + ARCHIVE_EXTRA};
    status = archive_copy(&copy, call);
    (void)container_clean_up(sandbox->instance, call, still);
  }
  return status;
}

int32_t docker_delete_snapshot(struct sandhost_call *call, struct sandhost_instance *instance,
                               struct sandhost_text id) {
  g_autofree char *image_id = g_strndup(id.data, id.length);
  if (!image_is_id(image_id)) {
    return fail_call(instance->host, call, SANDHOST_INVALID,
                     "that is no id of a snapshot, which is sha256: and 64 digits");
  }
  struct engine_reply image = {0};
  int32_t status = inspect_image(instance->engine, call, image_id, 404, &image);
  gboolean missing = status == SANDHOST_OK && image.status == 404;
  gboolean ours = status == SANDHOST_OK && is_snapshot(image.json);
  engine_reply_clear(&image);
  if (status != SANDHOST_OK || missing) {
    return status;
  }
  if (!ours) {
    return fail_call(instance->host, call, SANDHOST_DENIED,
                     "the image %s is no snapshot of sandhost and is left alone", image_id);
  }
  /* Not forced: podman would remove the containers that run it. noprune: the image that it was
   * built on stays. */
  g_autofree char *path = g_strdup_printf("/images/%s?noprune=1", image_id);
  struct engine_request request = {.method = "DELETE", .path = path};
  return engine_ask(instance->engine, call, &request, 404, "cannot remove the snapshot", NULL);
}
