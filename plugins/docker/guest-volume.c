/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-volume.c: brings sandhost-guest to the engine.
 *
 * The volume's name holds the hash of the program, so each version has its own and what is there is never changed.
 * The program is mode 0111: a command cannot read it, and then the kernel also hides what /proc/1 tells of it. A
 * runtime with a kernel of its own may have to read what it runs; for that there is a second copy.
 */
#include "guest-volume.h"

#include "create-request.h"
#include "failure.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#define MOST_GUEST_BYTES ((gsize)16 * 1024 * 1024)
#define HASH_DIGITS 16

/* ---- The program as a tar --------------------------------------------------------------------- */

struct tar_bytes {
  GByteArray *bytes;
  size_t at; /* given so far */
};

static la_ssize_t append_bytes(struct archive *archive, void *user, const void *data,
                               size_t length) {
  struct tar_bytes *tar = user;
  (void)archive;
  g_byte_array_append(tar->bytes, data, (guint)length);
  return (la_ssize_t)length;
}

static int64_t give_bytes(void *user, void *buffer, size_t length) {
  struct tar_bytes *tar = user;
  size_t count = MIN(length, tar->bytes->len - tar->at);
  memcpy(buffer, tar->bytes->data + tar->at, count);
  tar->at += count;
  return (int64_t)count;
}

static gboolean pack_one(struct archive *archive, const char *name, unsigned mode,
                         const char *program, gsize length) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_set_pathname(entry, name);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, (mode_t)mode);
  archive_entry_set_size(entry, (la_int64_t)length);
  gboolean packed = archive_write_header(archive, entry) == ARCHIVE_OK &&
                    archive_write_data(archive, program, length) == (la_ssize_t)length;
  archive_entry_free(entry);
  return packed;
}

static gboolean pack(struct tar_bytes *tar, const char *program, gsize length) {
  struct archive *archive = archive_write_new();
  archive_write_set_format_ustar(archive);
  archive_write_set_bytes_per_block(archive, 0);
  gboolean packed = archive_write_open(archive, tar, NULL, append_bytes, NULL) == ARCHIVE_OK &&
                    pack_one(archive, GUEST_PROGRAM, 0111, program, length) &&
                    pack_one(archive, GUEST_READABLE_PROGRAM, 0555, program, length) &&
                    archive_write_close(archive) == ARCHIVE_OK;
  archive_write_free(archive);
  return packed;
}

/* ---- Filling ---------------------------------------------------------------------------------- */

static json_object *new_filler(const char *image_id, const char *volume) {
  json_object *body = json_object_new_object();
  json_object *labels = json_object_new_object();
  json_object *host = json_object_new_object();
  json_object *mounts = json_object_new_array();
  json_object *mount = json_object_new_object();
  json_object *options = json_object_new_object();
  json_object *entrypoint = json_object_new_array();
  json_object_object_add(body, "Image", json_object_new_string(image_id));
  json_object_array_add(entrypoint, json_object_new_string(GUEST_FOLDER "/" GUEST_PROGRAM));
  json_object_object_add(body, "Entrypoint", entrypoint);
  json_object_object_add(labels, DOCKER_LABEL_SANDBOX, json_object_new_string("1"));
  json_object_object_add(body, "Labels", labels);
  json_object_object_add(body, "NetworkDisabled", json_object_new_boolean(TRUE));
  json_object_object_add(mount, "Type", json_object_new_string("volume"));
  json_object_object_add(mount, "Source", json_object_new_string(volume));
  json_object_object_add(mount, "Target", json_object_new_string(GUEST_FOLDER));
  /* Whatever the image has there must not become part of what every sandbox runs. */
  json_object_object_add(options, "NoCopy", json_object_new_boolean(TRUE));
  json_object_object_add(mount, "VolumeOptions", options);
  json_object_array_add(mounts, mount);
  json_object_object_add(host, "Mounts", mounts);
  json_object_object_add(host, "NetworkMode", json_object_new_string("none"));
  json_object_object_add(body, "HostConfig", host);
  return body;
}

static int32_t put_program(Engine *engine, struct sandhost_call *call, const char *container,
                           const char *program, gsize length) {
  struct tar_bytes tar = {.bytes = g_byte_array_new()};
  struct sandhost_source source = {.size = sizeof source, .user = &tar, .read = give_bytes};
  int32_t status = SANDHOST_NO_MEMORY;
  if (pack(&tar, program, length)) {
    g_autofree char *path = g_strdup_printf("/containers/%s/archive?path=" GUEST_FOLDER, container);
    struct engine_request request = {.method = "PUT", .path = path, .upload = &source};
    status = engine_ask(engine, call, &request, 0, "cannot copy the guest to the engine", NULL);
  }
  g_byte_array_unref(tar.bytes);
  return status;
}

static int32_t fill(struct sandhost_instance *instance, struct sandhost_call *call,
                    const char *image_id, const char *volume, const char *program, gsize length) {
  Engine *engine = instance->engine;
  json_object *body = new_filler(image_id, volume);
  struct engine_reply reply = {0};
  struct engine_request request = {.method = "POST", .path = "/containers/create", .json = body};
  int32_t status = engine_ask(engine, call, &request, 0,
                              "cannot make the container that fills the guest's volume", &reply);
  json_object_put(body);
  if (status != SANDHOST_OK) {
    return status;
  }
  const char *id = engine_text(reply.json, "Id");
  if (!container_is_id(id)) {
    status = fail_call(instance->host, call, SANDHOST_PROTOCOL, "%s gave a container without an id",
                       engine_name(engine));
  } else {
    status = put_program(engine, call, id, program, length);
    int32_t removed = container_clean_up(instance, call, id);
    status = status == SANDHOST_OK ? removed : status;
  }
  engine_reply_clear(&reply);
  return status;
}

/* ---- Which ------------------------------------------------------------------------------------ */

static char *volume_name(const char *program, gsize length) {
  g_autofree char *hash =
      g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)program, length);
  return g_strdup_printf("sandhost-guest-%.*s", HASH_DIGITS, hash);
}

static int32_t look_for_volume(Engine *engine, struct sandhost_call *call, const char *name,
                               gboolean *ret_exists) {
  g_autofree char *path = g_strdup_printf("/volumes/%s", name);
  struct engine_reply reply = {0};
  struct engine_request request = {.method = "GET", .path = path};
  int32_t status =
      engine_ask(engine, call, &request, 404, "cannot look for the guest's volume", &reply);
  *ret_exists = status == SANDHOST_OK && reply.status != 404;
  engine_reply_clear(&reply);
  return status;
}

static const char *known_name(struct sandhost_instance *instance) {
  pthread_mutex_lock(&instance->lock);
  const char *name = instance->guest_volume;
  pthread_mutex_unlock(&instance->lock);
  return name;
}

static const char *keep_name(struct sandhost_instance *instance, const char *name) {
  pthread_mutex_lock(&instance->lock);
  if (!instance->guest_volume) {
    instance->guest_volume = g_strdup(name);
  }
  name = instance->guest_volume; /* set once: the program does not change while it is open */
  pthread_mutex_unlock(&instance->lock);
  return name;
}

int32_t guest_volume_get(struct sandhost_instance *instance, struct sandhost_call *call,
                         const char *image_id, gboolean refill, const char **ret_name) {
  const struct engine_facts *facts = NULL;
  const char *known = refill ? NULL : known_name(instance);
  if (known) {
    *ret_name = known;
    return SANDHOST_OK;
  }
  int32_t status = engine_facts(instance->engine, call, &facts);
  if (status != SANDHOST_OK) {
    return status;
  }
  g_autofree char *program = NULL;
  gsize length = 0;
  g_autofree char *path =
      instance->guest_dir
          ? g_strdup_printf("%s/sandhost-guest-%s", instance->guest_dir, facts->architecture)
          : NULL;
  if (!path || !g_file_get_contents(path, &program, &length, NULL) || length == 0 ||
      length > MOST_GUEST_BYTES) {
    *ret_name = NULL;
    return SANDHOST_OK;
  }
  g_autofree char *name = volume_name(program, length);
  gboolean exists = FALSE;
  if (!refill) {
    status = look_for_volume(instance->engine, call, name, &exists);
  }
  if (status == SANDHOST_OK && !exists) {
    status = fill(instance, call, image_id, name, program, length);
  }
  if (status == SANDHOST_OK) {
    *ret_name = keep_name(instance, name);
  }
  return status;
}
