/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c: an engine's own account of a container, held against what it was asked for.
 *
 * Engines that speak the same API differ in what they leave out without a word. One look for each kind of request of
 * an instance finds that out; what was in force once is not looked for again.
 */
#include "verify.h"

#include "create-request.h"
#include "failure.h"

#include <string.h>

#define VERIFIED_WALLS 0x1u
#define VERIFIED_NETWORK_OFF 0x2u
#define VERIFIED_MEMORY 0x4u
#define VERIFIED_CPU 0x8u

static unsigned wanted(const struct sandhost_create *request) {
  return VERIFIED_WALLS |
         (request->network->mode == SANDHOST_NETWORK_ALLOW ? 0 : VERIFIED_NETWORK_OFF) |
         (request->memory_bytes > 0 ? VERIFIED_MEMORY : 0) |
         (request->cpu_millis > 0 ? VERIFIED_CPU : 0);
}

/* ---- What the engine says --------------------------------------------------------------------- */

static size_t list_length(json_object *list) {
  return list ? json_object_array_length(list) : 0;
}

static gboolean text_is(json_object *json, const char *keys, const char *expected) {
  return g_strcmp0(engine_text(json, keys), expected) == 0;
}

/* "no-new-privileges", with or without "true" behind it. */
static gboolean forbids_new_privileges(json_object *container) {
  json_object *list = engine_list(container, "HostConfig/SecurityOpt");
  for (size_t i = 0; i < list_length(list); i++) {
    const char *text = json_object_get_string(json_object_array_get_idx(list, i));
    if (text && g_str_has_prefix(text, "no-new-privileges") && !g_str_has_suffix(text, "false")) {
      return TRUE;
    }
  }
  return FALSE;
}

/* Docker repeats "ALL", podman names each one that there was to drop. */
static gboolean drops_capabilities(json_object *container) {
  return list_length(engine_list(container, "HostConfig/CapDrop")) > 0 &&
         list_length(engine_list(container, "HostConfig/CapAdd")) == 0 &&
         list_length(engine_list(container, "EffectiveCaps")) == 0;
}

/* Whether it is gVisor's may have been found out since. */
static gboolean limits_processes(json_object *container, uint64_t wanted) {
  int64_t limit = engine_integer(container, "HostConfig/PidsLimit", 0);
  return limit == (int64_t)create_request_pids(wanted, FALSE) ||
         limit == (int64_t)create_request_pids(wanted, TRUE);
}

static gboolean shares_namespace(json_object *container) {
  static const char *const MODES[] = {"HostConfig/PidMode", "HostConfig/IpcMode",
                                      "HostConfig/UTSMode", "HostConfig/NetworkMode"};
  for (size_t i = 0; i < G_N_ELEMENTS(MODES); i++) {
    const char *mode = engine_text(container, MODES[i]);
    if (mode && (strcmp(mode, "host") == 0 || g_str_has_prefix(mode, "container:"))) {
      return TRUE;
    }
  }
  return FALSE;
}

/* What is not as it was asked for, in words; NULL: all is. */
static const char *find_fault(const struct sandhost_sandbox *sandbox, json_object *container,
                              const struct sandhost_create *request) {
  const struct sandhost_instance *instance = sandbox->instance;
  g_autofree char *user = g_strdup_printf("%u:%u", instance->uid, instance->gid);
  if (!text_is(container, "Config/User", user)) {
    return "the user";
  }
  if (!engine_boolean(container, "HostConfig/ReadonlyRootfs", FALSE)) {
    return "the read-only root";
  }
  if (engine_boolean(container, "HostConfig/Privileged", TRUE) || !drops_capabilities(container)) {
    return "the dropping of capabilities";
  }
  if (!forbids_new_privileges(container)) {
    return "no-new-privileges";
  }
  if (shares_namespace(container)) {
    return "the private namespaces";
  }
  if (!limits_processes(container, instance->pids_limit)) {
    return "the limit on processes";
  }
  if (request->network->mode != SANDHOST_NETWORK_ALLOW &&
      !text_is(container, "HostConfig/NetworkMode", "none")) {
    return "no network";
  }
  if (request->memory_bytes > 0 &&
      engine_integer(container, "HostConfig/Memory", 0) != (int64_t)request->memory_bytes) {
    return "the memory limit";
  }
  if (request->cpu_millis > 0 && engine_integer(container, "HostConfig/NanoCpus", 0) !=
                                     (int64_t)request->cpu_millis * 1000000) {
    return "the CPU limit";
  }
  return NULL;
}

/* ---- The working directory -------------------------------------------------------------------- */

/* The name of the volume at the working directory; NULL: it is none. Borrowed from container. */
static const char *work_volume(json_object *container, const char *working_dir) {
  json_object *mounts = engine_list(container, "Mounts");
  for (size_t i = 0; i < list_length(mounts); i++) {
    json_object *mount = json_object_array_get_idx(mounts, i);
    if (text_is(mount, "Destination", working_dir) && text_is(mount, "Type", "volume")) {
      return engine_text(mount, "Name");
    }
  }
  return NULL;
}

/* Whether the options of the working directory's volume were taken: without them it lies on the engine's disk. */
static int32_t check_work_volume(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                                 json_object *container, const char **ret_fault) {
  const char *name = work_volume(container, sandbox->working_dir);
  if (!name) {
    return SANDHOST_OK; /* a tmpfs of the container, or a folder that was asked for */
  }
  g_autofree char *escaped = engine_escape(name);
  g_autofree char *path = g_strdup_printf("/volumes/%s", escaped);
  g_autofree char *options = create_request_volume_options(sandbox->instance);
  struct engine_request request = {.method = "GET", .path = path};
  struct engine_reply reply = {0};
  int32_t status = engine_ask(sandbox->instance->engine, call, &request, 0,
                              "cannot look at the working directory's volume", &reply);
  if (status == SANDHOST_OK && !text_is(reply.json, "Options/o", options)) {
    *ret_fault = "the size of the working directory";
  }
  engine_reply_clear(&reply);
  return status;
}

/* ---- One look --------------------------------------------------------------------------------- */

static int32_t look(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                    const struct sandhost_create *request, const char **ret_fault) {
  g_autofree char *path = g_strdup_printf("/containers/%s/json", sandbox->id);
  struct engine_request inspect = {.method = "GET", .path = path};
  struct engine_reply reply = {0};
  int32_t status = engine_ask(sandbox->instance->engine, call, &inspect, 0,
                              "cannot look at the container", &reply);
  if (status == SANDHOST_OK) {
    *ret_fault = find_fault(sandbox, reply.json, request);
    if (!*ret_fault) {
      status = check_work_volume(sandbox, call, reply.json, ret_fault);
    }
  }
  engine_reply_clear(&reply);
  return status;
}

int32_t verify_container(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const struct sandhost_create *request) {
  struct sandhost_instance *instance = sandbox->instance;
  const unsigned bits = wanted(request);
  const char *fault = NULL;
  pthread_mutex_lock(&instance->lock);
  gboolean known = (instance->verified & bits) == bits;
  pthread_mutex_unlock(&instance->lock);
  if (known) {
    return SANDHOST_OK;
  }
  int32_t status = look(sandbox, call, request, &fault);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (fault) {
    return fail_call(instance->host, call, SANDHOST_UNSUPPORTED,
                     "%s did not keep %s although it was asked to; the sandbox was removed",
                     engine_name(instance->engine), fault);
  }
  pthread_mutex_lock(&instance->lock);
  instance->verified |= bits;
  pthread_mutex_unlock(&instance->lock);
  return SANDHOST_OK;
}
