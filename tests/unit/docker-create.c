/* SPDX-License-Identifier: Apache-2.0 */
/* docker-create.c: what the engine is asked for, wall by wall, and its frames taken off what comes back. */
#include <errno.h>
#include <string.h>

/* The parts under test, and what they need. */
#include "../../plugins/docker/attach-channel.c"
#include "../../plugins/docker/create-request.c"
#include "../../plugins/docker/engine-frames.c"
#include "../../plugins/docker/engine-json.c"
#include "../../plugins/docker/plain-script.c"

/* ---- The request ------------------------------------------------------------------------------ */

typedef struct {
  struct sandhost_instance instance;
  struct sandhost_network network;
  struct sandhost_create request;
  struct image image;
  GPtrArray *environment;
  struct container_plan plan;
  json_object *body;
} Asked;

static void asked_init(Asked *asked) {
  memset(asked, 0, sizeof *asked);
  asked->instance = (struct sandhost_instance){
      .uid = 65534, .gid = 65534, .workdir_size = 1 << 30, .tmp_size = 64 << 20, .pids_limit = 256};
  asked->network =
      (struct sandhost_network){.size = sizeof asked->network, .mode = SANDHOST_NETWORK_DENY};
  asked->request =
      (struct sandhost_create){.size = sizeof asked->request, .network = &asked->network};
  asked->image.id = g_strdup("sha256:1");
  asked->image.volumes = g_ptr_array_new_with_free_func(g_free);
  asked->environment = g_ptr_array_new();
  asked->plan = (struct container_plan){.instance = &asked->instance,
                                        .request = &asked->request,
                                        .image = &asked->image,
                                        .working_dir = "/workspace",
                                        .environment = asked->environment,
                                        .guest_volume = "sandhost-guest-1",
                                        .session = "s1",
                                        .run_id = "r1"};
}

static json_object *ask(Asked *asked) {
  asked->body = create_request_new(&asked->plan);
  return asked->body;
}

static void asked_clear(Asked *asked) {
  json_object_put(asked->body);
  g_free(asked->image.id);
  g_ptr_array_unref(asked->image.volumes);
  g_ptr_array_unref(asked->environment);
}

static const char *mount_text(json_object *body, const char *target, const char *keys) {
  json_object *mounts = engine_list(body, "HostConfig/Mounts");
  for (size_t i = 0; i < json_object_array_length(mounts); i++) {
    json_object *mount = json_object_array_get_idx(mounts, i);
    if (g_strcmp0(engine_text(mount, "Target"), target) == 0) {
      return engine_text(mount, keys);
    }
  }
  return NULL;
}

static void test_walls(void) {
  Asked asked;
  asked_init(&asked);
  json_object *body = ask(&asked);
  g_assert_cmpstr(engine_text(body, "Image"), ==, "sha256:1");
  g_assert_cmpstr(engine_text(body, "User"), ==, "65534:65534");
  g_assert_true(engine_boolean(body, "NetworkDisabled", FALSE));
  g_assert_true(engine_boolean(body, "StdinOnce", FALSE));
  g_assert_cmpstr(engine_text(body, "HostConfig/NetworkMode"), ==, "none");
  g_assert_true(engine_boolean(body, "HostConfig/ReadonlyRootfs", FALSE));
  g_assert_false(engine_boolean(body, "HostConfig/Privileged", TRUE));
  g_assert_false(engine_boolean(body, "HostConfig/Init", TRUE));
  g_assert_true(engine_boolean(body, "HostConfig/AutoRemove", FALSE));
  g_assert_cmpstr(json_object_to_json_string_ext(engine_list(body, "HostConfig/CapDrop"), 0), ==,
                  "[\"ALL\"]");
  g_assert_cmpstr(json_object_to_json_string_ext(engine_list(body, "HostConfig/SecurityOpt"), 0),
                  ==, "[\"no-new-privileges\"]");
  g_assert_cmpint(engine_integer(body, "HostConfig/PidsLimit", 0), ==, 256);
  g_assert_cmpstr(engine_text(body, "HostConfig/IpcMode"), ==, "private");
  g_assert_cmpstr(engine_text(body, "HostConfig/LogConfig/Type"), ==, "none");
  g_assert_null(engine_list(body, "HostConfig/Devices"));
  g_assert_null(engine_list(body, "HostConfig/Binds"));
  g_assert_cmpint(engine_integer(body, "HostConfig/Memory", -1), ==, -1);
  g_assert_cmpstr(mount_text(body, "/workspace", "VolumeOptions/DriverConfig/Options/o"), ==,
                  "size=1073741824,nr_inodes=64k,uid=65534,gid=65534,mode=0700,nosuid,nodev");
  g_assert_cmpstr(mount_text(body, "/.sandhost", "Source"), ==, "sandhost-guest-1");
  asked_clear(&asked);
}

static void test_wishes(void) {
  Asked asked;
  asked_init(&asked);
  asked.request.memory_bytes = 64 << 20;
  asked.request.cpu_millis = 500;
  g_ptr_array_add(asked.environment, (char *)(gsize) "A=b c");
  asked.network.mode = SANDHOST_NETWORK_ALLOW;
  json_object *body = ask(&asked);
  g_assert_cmpint(engine_integer(body, "HostConfig/Memory", 0), ==, 64 << 20);
  g_assert_cmpint(engine_integer(body, "HostConfig/MemorySwap", 0), ==, 64 << 20);
  g_assert_cmpint(engine_integer(body, "HostConfig/NanoCpus", 0), ==, 500000000);
  g_assert_cmpstr(engine_text(body, "HostConfig/NetworkMode"), ==, "bridge");
  g_assert_false(engine_boolean(body, "NetworkDisabled", TRUE));
  g_assert_cmpstr(json_object_to_json_string_ext(engine_list(body, "Env"), 0), ==,
                  "[\"HOME=\\/tmp\",\"A=b c\"]");
  asked_clear(&asked);
}

/* gVisor's own threads count as processes of the container. */
static void test_gvisor(void) {
  Asked asked;
  asked_init(&asked);
  asked.instance.runtime = (char[]){"runsc"};
  g_assert_cmpint(engine_integer(ask(&asked), "HostConfig/PidsLimit", 0), ==, 64 + 8 * 256);
  json_object_put(asked.body);
  asked.instance.runtime = NULL;
  g_assert_cmpint(engine_integer(ask(&asked), "HostConfig/PidsLimit", 0), ==, 256);
  json_object_put(asked.body);
  asked.plan.guest_readable = TRUE; /* found out by its behaviour */
  g_assert_cmpint(engine_integer(ask(&asked), "HostConfig/PidsLimit", 0), ==, 64 + 8 * 256);
  g_assert_cmpuint(create_request_pids(INT64_MAX, TRUE), ==, INT64_MAX);
  asked_clear(&asked);
}

static void test_switchable(void) {
  Asked asked;
  asked_init(&asked);
  asked.instance.network_switchable = TRUE;
  json_object *body = ask(&asked);
  g_assert_false(engine_boolean(body, "NetworkDisabled", TRUE));
  g_assert_cmpstr(engine_text(body, "HostConfig/NetworkMode"), ==, "none");
  asked_clear(&asked);
}

static json_object *tmpfs_of(json_object *body) {
  return engine_object(body, "HostConfig/Tmpfs");
}

static void test_declared_volumes(void) {
  Asked asked;
  asked_init(&asked);
  g_ptr_array_add(asked.image.volumes, g_strdup("/data"));
  g_ptr_array_add(asked.image.volumes, g_strdup("/workspace"));
  json_object *tmpfs = tmpfs_of(ask(&asked));
  g_assert_true(json_object_object_get_ex(tmpfs, "/data", NULL));
  g_assert_false(json_object_object_get_ex(tmpfs, "/workspace", NULL));
  asked_clear(&asked);
}

static void test_podman(void) {
  Asked asked;
  json_object *how = NULL;
  asked_init(&asked);
  asked.plan.is_podman = TRUE;
  json_object *body = ask(&asked);
  g_assert_null(mount_text(body, "/workspace", "Type"));
  g_assert_true(json_object_object_get_ex(tmpfs_of(body), "/workspace", &how));
  g_assert_cmpstr(json_object_get_string(how), ==,
                  "rw,nosuid,nodev,exec,size=1073741824,mode=1777");
  g_assert_true(json_object_object_get_ex(tmpfs_of(body), "/run", &how));
  g_assert_true(g_str_has_prefix(json_object_get_string(how), "ro,"));
  asked_clear(&asked);
}

static void test_mount_in_place_of_working_dir(void) {
  Asked asked;
  const struct sandhost_mount mount = {.source = {.data = "/srv/x", .length = 6},
                                       .target = {.data = "/workspace", .length = 10}};
  asked_init(&asked);
  asked.request.mounts = &mount;
  asked.request.mount_count = 1;
  json_object *body = ask(&asked);
  g_assert_cmpstr(mount_text(body, "/workspace", "Type"), ==, "bind");
  g_assert_cmpstr(mount_text(body, "/workspace", "BindOptions/Propagation"), ==, "rprivate");
  asked_clear(&asked);
}

static void test_without_guest(void) {
  Asked asked;
  asked_init(&asked);
  asked.plan.guest_volume = NULL;
  json_object *body = ask(&asked);
  g_assert_null(mount_text(body, "/.sandhost", "Type"));
  g_assert_cmpstr(
      json_object_get_string(json_object_array_get_idx(engine_list(body, "Entrypoint"), 0)), ==,
      "/bin/sh");
  asked_clear(&asked);
}

/* ---- Frames ----------------------------------------------------------------------------------- */

/* A raw channel that gives canned bytes, at most piece at once. */
typedef struct {
  ByteChannel channel;
  const char *data;
  size_t length;
  size_t piece;
} Canned;

static ssize_t canned_receive(ByteChannel *channel, void *buffer, size_t length) {
  Canned *canned = (Canned *)channel;
  size_t count = MIN(MIN(length, canned->length), canned->piece);
  memcpy(buffer, canned->data, count);
  canned->data += count;
  canned->length -= count;
  return (ssize_t)count;
}

static void canned_free(ByteChannel *channel) {
  (void)channel;
}

static char *read_all(ByteChannel *channel, ssize_t *ret_end) {
  GString *all = g_string_new(NULL);
  char buffer[64];
  ssize_t count = 0;
  while ((count = channel->receive(channel, buffer, sizeof buffer)) > 0) {
    g_string_append_len(all, buffer, count);
  }
  *ret_end = count;
  return g_string_free(all, FALSE);
}

static void test_frames(void) {
  static const char BYTES[] = "\1\0\0\0\0\0\0\3abc\2\0\0\0\0\0\0\5oops\n\1\0\0\0\0\0\0\0"
                              "\1\0\0\0\0\0\0\2de\2\0\0\0\0\0\0\4more";
  for (size_t piece = 1; piece < sizeof BYTES; piece++) {
    Canned canned = {.channel = {.receive = canned_receive, .free = canned_free},
                     .data = BYTES,
                     .length = sizeof BYTES - 1,
                     .piece = piece};
    ByteChannel *channel = attach_channel_new(&canned.channel);
    ssize_t end = -1;
    g_autofree char *all = read_all(channel, &end);
    g_autofree char *complaint = attach_channel_complaint(channel);
    g_assert_cmpstr(all, ==, "abcde");
    g_assert_cmpint(end, ==, 0);
    g_assert_cmpstr(complaint, ==, "oops");
    channel->free(channel);
  }
}

static void nonsense(const char *bytes, size_t length) {
  Canned canned = {.channel = {.receive = canned_receive, .free = canned_free},
                   .data = bytes,
                   .length = length,
                   .piece = length};
  ByteChannel *channel = attach_channel_new(&canned.channel);
  ssize_t end = 0;
  g_autofree char *all = read_all(channel, &end);
  g_assert_cmpuint(strlen(all), <=, 1);
  g_assert_cmpint(end, ==, -1);
  g_assert_cmpint(errno, ==, EPROTO);
  channel->free(channel);
}

static void test_nonsense(void) {
  nonsense("\3\0\0\0\0\0\0\1x", 9);
  nonsense("\0\0\0\0\0\0\0\1x", 9);
  nonsense("\1\0\1\0\0\0\0\1x", 9);
  nonsense("\1\0\0\0\377\377\377\377x", 9);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/docker-create/walls", test_walls);
  g_test_add_func("/docker-create/wishes", test_wishes);
  g_test_add_func("/docker-create/gvisor", test_gvisor);
  g_test_add_func("/docker-create/switchable", test_switchable);
  g_test_add_func("/docker-create/declared-volumes", test_declared_volumes);
  g_test_add_func("/docker-create/podman", test_podman);
  g_test_add_func("/docker-create/mount-in-place-of-working-dir",
                  test_mount_in_place_of_working_dir);
  g_test_add_func("/docker-create/without-guest", test_without_guest);
  g_test_add_func("/docker-create/frames", test_frames);
  g_test_add_func("/docker-create/nonsense", test_nonsense);
  return g_test_run();
}
