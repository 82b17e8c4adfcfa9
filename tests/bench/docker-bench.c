/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker-bench.c: the docker provider against the same engine spoken to by hand, and against docker's own command.
 *
 * DOCKER_HOST is a private engine on a unix socket that has the image busybox (tests/engine/run starts one). Ours and
 * the other are measured in turn. By hand means: one kept connection, no checks, nothing recorded.
 * Usage: sandhost-bench-docker [ROUNDS]
 */
#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine-hand.h"
#include "floors.h"
#include "ratio.h"
#include "run/harness.h"

/* The very body that the provider sends. */
#include "../../plugins/docker/create-request.c"
#include "../../plugins/docker/plain-script.c"

#define FILES 500u
#define FILE_BYTES 40000u
#define SESSIONS 50u
#define COMMANDS 10u
#define SETTLE_MICROSECONDS 50000
#define TAR_ROOM ((size_t)64 << 20)

static const char program_path[] = TEST_BUILD_DIR "/bin/sandhost";
static guint rounds = 30;

typedef struct {
  const char *socket; /* of the engine */
  Hand *hand;
  Harness *harness;
  Sandbox *sandbox; /* open all the time */
  char *create;     /* the body for one more like it */
  char *tar;
  size_t tar_length;
  const char **words; /* of a program */
} Bench;

/* ---- A command in an open sandbox --------------------------------------------------------------------------------- */

static int32_t ignore_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)user;
  (void)stream;
  (void)data;
  (void)length;
  return SANDHOST_OK;
}

static void ignore_start(void *user, uint64_t execution) {
  (void)user;
  (void)execution;
}

static gint64 run_line(const Bench *bench, struct sandhost_text line) {
  const struct sandhost_text argv[] = {{"sh", 2}, {"-c", 2}, line};
  const struct sandhost_execute request = {
      .size = sizeof request, .argv = argv, .argc = 3, .limit = 60 * CLOCK_SECOND};
  const struct sandhost_observer observer = {
      .size = sizeof observer, .started = ignore_start, .output = ignore_output};
  struct sandhost_result result = {.size = sizeof result};
  const CallScope scope = {.deadline = G_MAXINT64};
  gint64 from = clock_now();
  gboolean ok = sandbox_execute(bench->sandbox, &scope, &request, &observer, &result, NULL);
  return ok && result.exit_code == 0 ? clock_now() - from : -1;
}

static gint64 one_command(const Bench *bench) {
  return run_line(bench, (struct sandhost_text){"true", 4});
}

/* What the engine still does after an answer is not part of what comes next. */
static void settle(void) {
  g_usleep(SETTLE_MICROSECONDS);
}

/* The mean of a few in a row, as the whole is shorter than what one tick of the machine's other work takes. */
static gint64 our_command(void *user) {
  gint64 sum = 0;
  settle();
  for (guint i = 0; i < COMMANDS; i++) {
    gint64 took = one_command(user);
    if (took < 0) {
      return -1;
    }
    sum += took;
  }
  return sum / COMMANDS;
}

/* Create, start with its output read to the end, inspect. */
static gint64 hand_command(void *user) {
  static const char WANTED[] =
      "{\"AttachStdout\":true,\"AttachStderr\":true,\"Cmd\":[\"sh\",\"-c\",\"true\"]}";
  static const char START[] = "{\"Detach\":false,\"Tty\":false}";
  const Bench *bench = user;
  g_autofree char *path = g_strdup_printf("/containers/%s/exec", sandbox_ref(bench->sandbox));
  g_autofree char *made = NULL;
  g_autofree char *seen = NULL;
  settle();
  gint64 from = clock_now();
  int status = hand_ask(bench->hand, "POST", path, WANTED, strlen(WANTED), &made);
  g_autofree char *id = hand_text(made, "Id");
  if (status != 201 || !id) {
    return -1;
  }
  g_autofree char *start = g_strdup_printf("/exec/%s/start", id);
  g_autofree char *inspect = g_strdup_printf("/exec/%s/json", id);
  int stream = hand_stream(bench->socket, start, START, strlen(START));
  if (stream < 0) {
    return -1;
  }
  char rest[4096];
  while (read(stream, rest, sizeof rest) > 0) {
  }
  close(stream);
  status = hand_ask(bench->hand, "GET", inspect, NULL, 0, &seen);
  return status == 200 && strstr(seen, "\"ExitCode\":0") ? clock_now() - from : -1;
}

static gint64 program(void *user) {
  settle();
  return floor_spawn(((const Bench *)user)->words);
}

/* ---- A session's start --------------------------------------------------------------------------------------------- */

static Sandbox *open_sandbox(const Bench *bench) {
  static guint number;
  const CallScope scope = {.deadline = G_MAXINT64};
  g_autofree char *key = g_strdup_printf("sandbox_bench%u", number++);
  g_autoptr(GError) error = NULL;
  Sandbox *sandbox = sandbox_create(bench->harness->instance, bench->harness->config->manifest, key,
                                    "run_bench", &scope, &error);
  if (error) {
    fprintf(stderr, "%s\n", error->message);
  }
  return sandbox;
}

static gint64 our_start(void *user) {
  settle();
  gint64 from = clock_now();
  Sandbox *sandbox = open_sandbox(user);
  gint64 took = clock_now() - from;
  if (!sandbox) {
    return -1;
  }
  sandbox_end(sandbox, NULL);
  return took;
}

static gint64 hand_start(void *user) {
  static guint number;
  const Bench *bench = user;
  g_autofree char *path = g_strdup_printf("/containers/create?name=sandhost-by-hand%u", number++);
  settle();
  g_autofree char *made = NULL;
  gint64 from = clock_now();
  int status = hand_ask(bench->hand, "POST", path, bench->create, strlen(bench->create), &made);
  g_autofree char *id = hand_text(made, "Id");
  if (status != 201 || !id) {
    fprintf(stderr, "by hand: %s\n", made);
    return -1;
  }
  g_autofree char *attach =
      g_strdup_printf("/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1", id);
  g_autofree char *start = g_strdup_printf("/containers/%s/start", id);
  g_autofree char *removal = g_strdup_printf("/containers/%s?force=1&v=1", id);
  int stream = hand_stream(bench->socket, attach, NULL, 0);
  status = hand_ask(bench->hand, "POST", start, NULL, 0, NULL);
  gint64 took = clock_now() - from;
  (void)hand_ask(bench->hand, "DELETE", removal, NULL, 0, NULL);
  if (stream >= 0) {
    close(stream);
  }
  return stream >= 0 && status == 204 ? took : -1;
}

/* What the provider asks for with its default options. Owned. */
static char *create_body(const char *image_id, const char *volume) {
  const struct sandhost_instance instance = {.uid = 65534,
                                             .gid = 65534,
                                             .workdir_size = (uint64_t)1 << 30,
                                             .tmp_size = (uint64_t)64 << 20,
                                             .pids_limit = 256};
  const struct sandhost_network network = {.size = sizeof network, .mode = SANDHOST_NETWORK_DENY};
  const struct sandhost_create request = {.size = sizeof request, .network = &network};
  g_autoptr(GPtrArray) volumes = g_ptr_array_new();
  g_autofree char *id = g_strdup(image_id);
  const struct image image = {.id = id, .volumes = volumes};
  g_autoptr(GPtrArray) environment = g_ptr_array_new();
  const struct container_plan plan = {.instance = &instance,
                                      .request = &request,
                                      .image = &image,
                                      .working_dir = "/workspace",
                                      .environment = environment,
                                      .guest_volume = volume,
                                      .session = "by_hand",
                                      .run_id = "run_bench"};
  json_object *body = create_request_new(&plan);
  char *text = g_strdup(json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN));
  json_object_put(body);
  return text;
}

/* ---- Files in ------------------------------------------------------------------------------------------------------- */

static gboolean make_tar(Bench *bench) {
  g_autofree char *content = g_malloc(FILE_BYTES);
  struct archive *archive = archive_write_new();
  gboolean ok = TRUE;
  bench->tar = g_malloc0(TAR_ROOM);
  memset(content, 'x', FILE_BYTES);
  archive_write_set_format_ustar(archive);
  archive_write_open_memory(archive, bench->tar, TAR_ROOM, &bench->tar_length);
  for (guint i = 0; ok && i < FILES; i++) {
    struct archive_entry *entry = archive_entry_new();
    g_autofree char *name = g_strdup_printf("f%u.txt", i);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_uid(entry, 65534);
    archive_entry_set_gid(entry, 65534);
    archive_entry_set_size(entry, (la_int64_t)FILE_BYTES);
    ok = archive_write_header(archive, entry) == ARCHIVE_OK &&
         archive_write_data(archive, content, FILE_BYTES) == (la_ssize_t)FILE_BYTES;
    archive_entry_free(entry);
  }
  ok = archive_write_close(archive) == ARCHIVE_OK && ok;
  archive_write_free(archive);
  return ok;
}

static void empty_workspace(const Bench *bench) {
  static const char LINE[] = "rm -rf /workspace/*";
  (void)run_line(bench, (struct sandhost_text){LINE, sizeof LINE - 1});
  settle();
}

typedef struct {
  const Bench *bench;
  size_t at;
} Reading;

static int64_t read_tar(void *user, void *buffer, size_t length) {
  Reading *reading = user;
  size_t count = MIN(length, reading->bench->tar_length - reading->at);
  memcpy(buffer, reading->bench->tar + reading->at, count);
  reading->at += count;
  return (int64_t)count;
}

static gint64 our_upload(void *user) {
  Reading reading = {.bench = user};
  const struct sandhost_source tar = {.size = sizeof tar, .user = &reading, .read = read_tar};
  const CallScope scope = {.deadline = G_MAXINT64};
  empty_workspace(user);
  gint64 from = clock_now();
  return sandbox_upload(reading.bench->sandbox, &scope, &tar, NULL) ? clock_now() - from : -1;
}

static gint64 hand_upload(void *user) {
  const Bench *bench = user;
  g_autofree char *path =
      g_strdup_printf("/containers/%s/archive?path=/workspace", sandbox_ref(bench->sandbox));
  empty_workspace(bench);
  gint64 from = clock_now();
  int status = hand_put(bench->hand, path, bench->tar, bench->tar_length);
  return status == 200 ? clock_now() - from : -1;
}

/* ---- Memory ---------------------------------------------------------------------------------------------------------- */

static void bench_memory(const Bench *bench) {
  static const char WHAT[] = "50 sessions of one process: its own memory for each";
  Sandbox *crowd[SESSIONS] = {NULL};
  gint64 before = ratio_own_memory();
  guint count = 0;
  while (count < SESSIONS && (crowd[count] = open_sandbox(bench))) {
    count++;
  }
  gint64 after = ratio_own_memory();
  if (count < SESSIONS) {
    ratio_leave_out(WHAT, "the engine did not make them");
  } else {
    ratio_print_figure(WHAT, (double)(after - before) / 1024 / SESSIONS, "KB", 20);
  }
  while (count > 0) {
    sandbox_end(crowd[--count], NULL);
  }
}

/* ---- The table --------------------------------------------------------------------------------------------------------- */

static void bench_sessions(Bench *bench) {
  static const char SESSION[] = "start a session / the same create, attach, start by hand";
  g_autofree char *image = NULL;
  g_autofree char *volumes = NULL;
  (void)hand_ask(bench->hand, "GET", "/images/busybox/json", NULL, 0, &image);
  (void)hand_ask(bench->hand, "GET", "/volumes", NULL, 0, &volumes);
  g_autofree char *image_id = hand_text(image, "Id");
  const char *found = volumes ? strstr(volumes, "\"Name\":\"sandhost-guest-") : NULL;
  g_autofree char *volume = hand_text(found, "Name");
  if (!image_id || !volume) {
    ratio_leave_out(SESSION, "the engine has no image busybox, or no volume of the guest");
    return;
  }
  bench->create = create_body(image_id, volume);
  ratio_compare(SESSION, (Meter){our_start, bench}, (Meter){hand_start, bench}, 1.05, rounds);
}

static void bench_programs(Bench *bench, const char *docker) {
  static const char OPEN[] = "a command in an open sandbox, faster than docker exec";
  static const char WHOLE[] = "sandhost exec -- true, whole process / docker run --rm";
  g_autofree char *config = g_build_filename(g_get_tmp_dir(), "sandhost-bench-XXXXXX", NULL);
  int fd = g_mkstemp(config);
  if (!docker || fd < 0) {
    ratio_leave_out(OPEN, "docker's own command is not installed");
    ratio_leave_out(WHOLE, "docker's own command is not installed");
    return;
  }
  static const char CONFIG[] = "{\"governance_config\": {\"sandbox_config\": {\"provider\": "
                               "\"docker\", \"options\": {\"image\": \"busybox\"}}}}";
  dprintf(fd, "%s", CONFIG);
  close(fd);
  const char *in_open[] = {docker, "exec", sandbox_ref(bench->sandbox), "sh", "-c", "true", NULL};
  const char *fresh[] = {docker, "run",  "--rm", "--network=none", "busybox", "sh",
                         "-c",   "true", NULL};
  const char *ours[] = {program_path, "exec", "-q", "-y", "-c", config, "--", "true", NULL};
  Bench whole = {.words = ours};
  Bench run = {.words = fresh};
  bench->words = in_open;
  ratio_compare_faster(OPEN, (Meter){our_command, bench}, (Meter){program, bench}, 50, rounds);
  ratio_compare(WHOLE, (Meter){program, &whole}, (Meter){program, &run}, 0, MAX(rounds / 3, 3));
  (void)unlink(config);
}

static int bench_all(Bench *bench) {
  g_autofree char *docker = g_find_program_in_path("docker");
  bench->sandbox = open_sandbox(bench);
  if (!bench->sandbox || !make_tar(bench)) {
    return 1;
  }
  ratio_print_head("docker", "other ms");
  ratio_compare_faster("a command in an open sandbox, faster than the engine's exec",
                       (Meter){our_command, bench}, (Meter){hand_command, bench}, 40, rounds);
  bench_sessions(bench);
  ratio_compare_faster("500 files, 20 MB in, faster than archive PUT", (Meter){our_upload, bench},
                       (Meter){hand_upload, bench}, 2, rounds);
  bench_programs(bench, docker);
  bench_memory(bench);
  sandbox_end(bench->sandbox, NULL);
  return 0;
}

static Config *config_for_docker(void) {
  Config *config = config_new_default();
  g_free(config->provider);
  config->provider = g_strdup("docker");
  config->provider_options = json_object_new_object();
  json_object_object_add(config->provider_options, "image", json_object_new_string("busybox"));
  return config;
}

int main(int argc, char **argv) {
  if (argc > 1) {
    rounds = (guint)g_ascii_strtoull(argv[1], NULL, 10);
    rounds = CLAMP(rounds, 3, 1000);
  }
  const char *address = g_getenv("DOCKER_HOST");
  if (!address || !g_str_has_prefix(address, "unix://")) {
    fprintf(stderr, "sandhost-bench-docker: DOCKER_HOST names no engine on a unix socket\n");
    return 2;
  }
  g_autoptr(GError) error = NULL;
  Bench bench = {.socket = address + strlen("unix://")};
  g_autofree char *scratch = g_dir_make_tmp("sandhost-bench-XXXXXX", NULL);
  g_setenv("SANDHOST_STATE_DIR", scratch, TRUE);
  ProviderRegistry *registry = provider_registry_new();
  bench.hand = hand_new(bench.socket);
  bench.harness = harness_new(config_for_docker(), registry, &error);
  if (!bench.hand || !bench.harness) {
    fprintf(stderr, "sandhost-bench-docker: %s\n", error ? error->message : "the engine is mute");
    return 2;
  }
  int code = bench_all(&bench);
  harness_free(bench.harness);
  provider_registry_free(registry);
  hand_free(bench.hand);
  g_free(bench.create);
  g_free(bench.tar);
  g_autofree char *clean = g_strdup_printf("rm -rf '%s'", scratch);
  return system(clean) == 0 ? code : 1;
}
