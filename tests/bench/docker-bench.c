/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker-bench.c: the docker provider against the same engine spoken to by hand, and against docker's own command.
 *
 * DOCKER_HOST is a private engine on a unix socket that has the image busybox (tests/engine/run starts one). Ours and
 * the other are measured in turn. By hand means: one kept connection, no checks, nothing recorded.
 * Usage: sandhost-bench-docker [ROUNDS]
 */
#include "docker-bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "floors.h"
#include "ratio.h"

/* The very body that the provider sends. */
#include "../../plugins/docker/create-request.c"
#include "../../plugins/docker/plain-script.c"

#define COMMANDS 10u
#define SETTLE_MICROSECONDS 50000

static guint rounds = 30;

void docker_settle(void) {
  g_usleep(SETTLE_MICROSECONDS);
}

/* ---- A command in an open sandbox --------------------------------------------------------------------------------- */

/* The mean of a few in a row, as the whole is shorter than what one tick of the machine's other work takes. */
static gint64 our_command(void *user) {
  const Bench *bench = user;
  gint64 sum = 0;
  docker_settle();
  for (guint i = 0; i < COMMANDS; i++) {
    gint64 took = sandbox_line(bench->sandbox, "true");
    if (took < 0) {
      return -1;
    }
    sum += took;
  }
  return sum / COMMANDS;
}

static gint64 hand_command(void *user) {
  const Bench *bench = user;
  docker_settle();
  return by_hand_exec(bench->socket, bench->hand, sandbox_ref(bench->sandbox), "true", -1);
}

static gint64 docker_exec(void *user) {
  docker_settle();
  return floor_spawn(user);
}

static void bench_commands(Bench *bench) {
  static const char CLIENT[] = "a command in an open sandbox, faster than docker exec";
  g_autofree char *docker = g_find_program_in_path("docker");
  const char *words[] = {"docker", "exec", sandbox_ref(bench->sandbox), "sh", "-c", "true", NULL};
  ratio_compare_faster("a command in an open sandbox, faster than the engine's exec",
                       (Meter){our_command, bench}, (Meter){hand_command, bench}, 40, rounds);
  if (docker) {
    ratio_compare_faster(CLIENT, (Meter){our_command, bench}, (Meter){docker_exec, words}, 50,
                         rounds);
  } else {
    ratio_leave_out(CLIENT, "docker is not installed");
  }
}

/* ---- A session's start and end --------------------------------------------------------------------------------------- */

Sandbox *docker_open(const Bench *bench) {
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
  docker_settle();
  gint64 from = clock_now();
  Sandbox *sandbox = docker_open(user);
  gint64 took = clock_now() - from;
  return sandbox && sandbox_end(sandbox, NULL) ? took : -1;
}

static gint64 our_end(void *user) {
  Sandbox *sandbox = docker_open(user);
  docker_settle();
  gint64 from = clock_now();
  return sandbox && sandbox_end(sandbox, NULL) ? clock_now() - from : -1;
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

static void bench_sessions(Bench *bench) {
  static const char START[] = "start a session / the same create, attach, start by hand";
  static const char END[] = "end a session / the same removal by hand";
  g_autofree char *image = NULL;
  g_autofree char *volumes = NULL;
  (void)hand_ask(bench->hand, "GET", "/images/busybox/json", NULL, 0, &image);
  (void)hand_ask(bench->hand, "GET", "/volumes", NULL, 0, &volumes);
  g_autofree char *image_id = hand_text(image, "Id");
  const char *found = volumes ? strstr(volumes, "\"Name\":\"sandhost-guest-") : NULL;
  g_autofree char *volume = hand_text(found, "Name");
  if (!image_id || !volume) {
    ratio_leave_out(START, "the engine has no image busybox, or no volume of the guest");
    ratio_leave_out(END, "the engine has no image busybox, or no volume of the guest");
    return;
  }
  bench->create = create_body(image_id, volume);
  ratio_compare(START, (Meter){our_start, bench}, (Meter){by_hand_start, bench}, 1.05, rounds);
  ratio_compare(END, (Meter){our_end, bench}, (Meter){by_hand_end, bench}, 0, rounds);
}

/* ---- The table --------------------------------------------------------------------------------------------------------- */

static int bench_all(Bench *bench) {
  bench->sandbox = docker_open(bench);
  if (!bench->sandbox) {
    return 1;
  }
  ratio_print_head("docker", "other ms");
  bench_commands(bench);
  bench_sessions(bench);
  docker_file_rows(bench, rounds);
  docker_crowd_rows(bench, rounds);
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
  g_autofree char *clean = g_strdup_printf("rm -rf '%s'", scratch);
  return system(clean) == 0 ? code : 1;
}
