/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create-request.c: the hardened container, as the engine's API words it. Each line of the list in the manual page
 * has its line here.
 */
#include "create-request.h"

#include "plain.h"

#include <inttypes.h>
#include <string.h>

#define TMP_FILES "nr_inodes=16k"
#define WORK_FILES "nr_inodes=64k"
#define SHM_BYTES (64 * 1024 * 1024)
#define NOFILE_SOFT 1024
#define NOFILE_HARD 16384
#define PODMAN_NPROC 32768
/* When the machine runs out of memory, a sandbox is what the kernel ends first. */
#define OOM_SCORE 500
/* What gVisor takes of the engine's limit on processes for itself and for each process inside: threads of its own, and
 * processes of the machine. It ends when it gets none. */
#define GVISOR_OWN 64
#define GVISOR_EACH 8

static void put_text(json_object *object, const char *key, const char *value) {
  json_object_object_add(object, key, json_object_new_string(value));
}

static void put_boolean(json_object *object, const char *key, gboolean value) {
  json_object_object_add(object, key, json_object_new_boolean(value));
}

static void put_integer(json_object *object, const char *key, uint64_t value) {
  json_object_object_add(object, key, json_object_new_int64((int64_t)value));
}

static json_object *new_list(const char *const *texts) {
  json_object *list = json_object_new_array();
  for (size_t i = 0; texts[i]; i++) {
    json_object_array_add(list, json_object_new_string(texts[i]));
  }
  return list;
}

/* ---- Environment and labels ------------------------------------------------------------------- */

static json_object *new_environment(const GPtrArray *variables) {
  json_object *list = json_object_new_array();
  json_object_array_add(list, json_object_new_string("HOME=/tmp"));
  for (guint i = 0; i < variables->len; i++) {
    json_object_array_add(list, json_object_new_string(g_ptr_array_index(variables, i)));
  }
  return list;
}

static json_object *new_labels(const struct container_plan *plan) {
  json_object *labels = json_object_new_object();
  put_text(labels, DOCKER_LABEL_SANDBOX, "1");
  put_text(labels, DOCKER_LABEL_SESSION, plan->session);
  put_text(labels, DOCKER_LABEL_RUN, plan->run_id);
  return labels;
}

/* ---- What is mounted -------------------------------------------------------------------------- */

static json_object *new_mount(const char *type, const char *source, const char *target,
                              gboolean read_only) {
  json_object *mount = json_object_new_object();
  put_text(mount, "Type", type);
  if (source) {
    put_text(mount, "Source", source);
  }
  put_text(mount, "Target", target);
  put_boolean(mount, "ReadOnly", read_only);
  return mount;
}

static json_object *new_guest_mount(const char *volume) {
  json_object *mount = new_mount("volume", volume, GUEST_FOLDER, TRUE);
  json_object *options = json_object_new_object();
  put_boolean(options, "NoCopy", TRUE);
  json_object_object_add(mount, "VolumeOptions", options);
  return mount;
}

char *create_request_volume_options(const struct sandhost_instance *instance) {
  return g_strdup_printf("size=%" PRIu64 "," WORK_FILES ",uid=%u,gid=%u,mode=0700,nosuid,nodev",
                         instance->workdir_size, instance->uid, instance->gid);
}

/* The working directory: in memory, bounded, the user's own, gone with the container. */
static json_object *new_work_volume(const struct container_plan *plan) {
  g_autofree char *how = create_request_volume_options(plan->instance);
  json_object *mount = new_mount("volume", NULL, plan->working_dir, FALSE);
  json_object *options = json_object_new_object();
  json_object *driver = json_object_new_object();
  json_object *driver_options = json_object_new_object();
  put_text(driver_options, "type", "tmpfs");
  put_text(driver_options, "device", "tmpfs");
  put_text(driver_options, "o", how);
  put_text(driver, "Name", "local");
  json_object_object_add(driver, "Options", driver_options);
  put_boolean(options, "NoCopy", TRUE);
  json_object_object_add(options, "DriverConfig", driver);
  json_object_object_add(mount, "VolumeOptions", options);
  return mount;
}

static json_object *new_bind(const struct sandhost_mount *wanted) {
  g_autofree char *source = g_strndup(wanted->source.data, wanted->source.length);
  g_autofree char *target = g_strndup(wanted->target.data, wanted->target.length);
  json_object *mount = new_mount("bind", source, target, !wanted->writable);
  json_object *options = json_object_new_object();
  put_text(options, "Propagation", "rprivate");
  json_object_object_add(mount, "BindOptions", options);
  return mount;
}

static gboolean is_mounted(const struct container_plan *plan, const char *target) {
  const struct sandhost_create *request = plan->request;
  for (size_t i = 0; i < request->mount_count; i++) {
    const struct sandhost_path *path = &request->mounts[i].target;
    if (strlen(target) == path->length && memcmp(path->data, target, path->length) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

static json_object *new_mounts(const struct container_plan *plan) {
  json_object *mounts = json_object_new_array();
  if (plan->guest_volume) {
    json_object_array_add(mounts, new_guest_mount(plan->guest_volume));
  }
  if (!plan->is_podman && !is_mounted(plan, plan->working_dir)) {
    json_object_array_add(mounts, new_work_volume(plan));
  }
  for (size_t i = 0; i < plan->request->mount_count; i++) {
    json_object_array_add(mounts, new_bind(&plan->request->mounts[i]));
  }
  return mounts;
}

/* Podman puts folders in memory without a bound where the root is read-only: they become as the root is. */
static void close_podman_folders(const struct container_plan *plan, json_object *tmpfs) {
  static const char *const FOLDERS[] = {"/run", "/var/tmp"};
  for (size_t i = 0; i < G_N_ELEMENTS(FOLDERS); i++) {
    if (strcmp(FOLDERS[i], plan->working_dir) != 0 && !is_mounted(plan, FOLDERS[i])) {
      put_text(tmpfs, FOLDERS[i], "ro,nosuid,nodev,noexec,size=4096");
    }
  }
}

/* Folders in memory that nothing has to survive in: /tmp, and what the image declares as a volume, which would
 * be a folder on the engine's disk without a bound. */
static json_object *new_tmpfs(const struct container_plan *plan) {
  const struct sandhost_instance *instance = plan->instance;
  json_object *tmpfs = json_object_new_object();
  if (plan->is_podman && !is_mounted(plan, plan->working_dir)) {
    /* Without a way to name its owner: the sticky bit and the one user that there is. */
    g_autofree char *how =
        g_strdup_printf("rw,nosuid,nodev,exec,size=%" PRIu64 ",mode=1777", instance->workdir_size);
    put_text(tmpfs, plan->working_dir, how);
  }
  g_autofree char *small =
      g_strdup_printf("rw,nosuid,nodev,noexec,size=%" PRIu64 "%s,mode=1777", instance->tmp_size,
                      plan->is_podman ? "" : "," TMP_FILES);
  if (strcmp(plan->working_dir, "/tmp") != 0 && !is_mounted(plan, "/tmp")) {
    put_text(tmpfs, "/tmp", small);
  }
  if (plan->is_podman) {
    close_podman_folders(plan, tmpfs);
  }
  for (guint i = 0; i < plan->image->volumes->len; i++) {
    const char *folder = g_ptr_array_index(plan->image->volumes, i);
    if (strcmp(folder, plan->working_dir) != 0 && strcmp(folder, GUEST_FOLDER) != 0 &&
        !is_mounted(plan, folder)) {
      put_text(tmpfs, folder, small);
    }
  }
  return tmpfs;
}

/* ---- Limits ----------------------------------------------------------------------------------- */

static json_object *new_ulimit(const char *name, uint64_t soft, uint64_t hard) {
  json_object *limit = json_object_new_object();
  put_text(limit, "Name", name);
  put_integer(limit, "Soft", soft);
  put_integer(limit, "Hard", hard);
  return limit;
}

uint64_t create_request_pids(uint64_t pids_limit, gboolean is_gvisor) {
  return !is_gvisor || pids_limit > (INT64_MAX - GVISOR_OWN) / GVISOR_EACH
             ? pids_limit
             : GVISOR_OWN + GVISOR_EACH * pids_limit;
}

static void put_limits(json_object *host, const struct container_plan *plan) {
  const struct sandhost_create *request = plan->request;
  json_object *ulimits = json_object_new_array();
  json_object_array_add(ulimits, new_ulimit("nofile", NOFILE_SOFT, NOFILE_HARD));
  json_object_array_add(ulimits, new_ulimit("core", 0, 0));
  if (plan->is_podman) {
    /* Left alone, podman raises it to a number that its own service may not be allowed. */
    json_object_array_add(ulimits, new_ulimit("nproc", PODMAN_NPROC, PODMAN_NPROC));
  }
  json_object_object_add(host, "Ulimits", ulimits);
  put_integer(
      host, "PidsLimit",
      create_request_pids(plan->instance->pids_limit,
                          plan->guest_readable || runtime_is_gvisor(plan->instance->runtime)));
  if (request->memory_bytes > 0) {
    put_integer(host, "Memory", request->memory_bytes);
    put_integer(host, "MemorySwap", request->memory_bytes); /* memory and swap together: no swap */
  }
  if (request->cpu_millis > 0) {
    put_integer(host, "NanoCpus", request->cpu_millis * 1000000);
  }
  put_integer(host, "ShmSize", SHM_BYTES);
  put_integer(host, "OomScoreAdj", OOM_SCORE);
}

/* ---- The whole -------------------------------------------------------------------------------- */

static json_object *new_host_config(const struct container_plan *plan) {
  static const char *const ALL[] = {"ALL", NULL};
  static const char *const SECURITY[] = {"no-new-privileges", NULL};
  gboolean network = plan->request->network->mode == SANDHOST_NETWORK_ALLOW;
  json_object *host = json_object_new_object();
  json_object *log = json_object_new_object();
  put_text(host, "NetworkMode", network ? "bridge" : "none");
  put_boolean(host, "ReadonlyRootfs", TRUE);
  json_object_object_add(host, "CapDrop", new_list(ALL));
  json_object_object_add(host, "SecurityOpt", new_list(SECURITY));
  put_boolean(host, "Privileged", FALSE);
  put_text(host, "IpcMode", "private");
  put_text(host, "CgroupnsMode", "private");
  put_boolean(host, "AutoRemove", TRUE);
  put_boolean(host, "Init", FALSE); /* the guest is the init; another one's child could be killed */
  put_text(log, "Type", "none");
  json_object_object_add(host, "LogConfig", log);
  if (plan->instance->runtime) {
    put_text(host, "Runtime", plan->instance->runtime);
  }
  put_limits(host, plan);
  json_object_object_add(host, "Mounts", new_mounts(plan));
  json_object_object_add(host, "Tmpfs", new_tmpfs(plan));
  return host;
}

json_object *create_request_new(const struct container_plan *plan) {
  static const char *const GUEST[] = {GUEST_FOLDER "/" GUEST_PROGRAM, "--filter", NULL};
  static const char *const READABLE[] = {GUEST_FOLDER "/" GUEST_READABLE_PROGRAM, "--filter", NULL};
  static const char *const PLAIN[] = {"/bin/sh", "-c", plain_script_first, NULL};
  static const char *const NOTHING[] = {NULL};
  static const char *const NO_CHECK[] = {"NONE", NULL};
  g_autofree char *user = g_strdup_printf("%u:%u", plan->instance->uid, plan->instance->gid);
  json_object *body = json_object_new_object();
  json_object *health = json_object_new_object();
  put_text(body, "Image", plan->image->id);
  json_object_object_add(body, "Entrypoint",
                         new_list(!plan->guest_volume    ? PLAIN
                                  : plan->guest_readable ? READABLE
                                                         : GUEST));
  json_object_object_add(body, "Cmd", new_list(NOTHING));
  put_text(body, "User", user);
  put_text(body, "WorkingDir", plan->working_dir);
  put_text(body, "Hostname", "sandbox");
  json_object_object_add(body, "Env", new_environment(plan->environment));
  json_object_object_add(body, "Labels", new_labels(plan));
  /* Halves the start, but for good: an engine never gives such a container an interface. */
  put_boolean(body, "NetworkDisabled",
              plan->request->network->mode != SANDHOST_NETWORK_ALLOW &&
                  !plan->instance->network_switchable);
  put_boolean(body, "OpenStdin", TRUE);
  put_boolean(body, "StdinOnce",
              TRUE); /* when the host dies, stdin ends, and with it the container */
  put_boolean(body, "AttachStdin", TRUE);
  put_boolean(body, "AttachStdout", TRUE);
  put_boolean(body, "AttachStderr", TRUE);
  put_boolean(body, "Tty", FALSE);
  put_text(body, "StopSignal", "SIGKILL");
  json_object_object_add(health, "Test", new_list(NO_CHECK));
  json_object_object_add(body, "Healthcheck", health);
  json_object_object_add(body, "HostConfig", new_host_config(plan));
  return body;
}
