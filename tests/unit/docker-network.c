/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a running container moved off and on, and left-over containers, by engines that
 * lie or fail. */
#include "docker-fixture.h"

/* The parts under test, and the one that they remove containers with. */
#include "../../plugins/docker/container.c"
#include "../../plugins/docker/network.c"
#include "../../plugins/docker/sweep.c"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

#define ON_NETWORKS(networks, disabled, mode)                                                      \
  "{\"State\":{\"Running\":true},\"Config\":{\"NetworkDisabled\":" disabled                        \
  "},\"HostConfig\":{\"NetworkMode\":\"" mode "\"},\"NetworkSettings\":{\"Networks\":" networks    \
  "}}"
#define ON_BRIDGE ON_NETWORKS("{\"bridge\":{}}", "false", "bridge")
#define ON_TWO ON_NETWORKS("{\"bridge\":{},\"b/c\":{}}", "false", "bridge")
#define ON_NONE ON_NETWORKS("{\"none\":{}}", "false", "none")
#define OFFLINE ON_NETWORKS("{}", "false", "bridge")

#define LOOK "GET /containers/" ID_A "/json\n"
#define JOIN(network) "POST /networks/" network "/connect\n"
#define LEAVE(network) "POST /networks/" network "/disconnect\n"
#define DONE                                                                                       \
  { .match = NULL, .status = "200 OK", .body = "" }
/* What inspections say first, and from then on. */
#define BEFORE(text)                                                                               \
  { .match = "GET /containers", .status = "200 OK", .body = (text), .times = 1 }
#define AFTER(text)                                                                                \
  { .match = "GET /containers", .status = "200 OK", .body = (text) }
#define REFUSED(what)                                                                              \
  { .match = (what), .status = "500 Internal Server Error", .body = "{\"message\":\"no\"}" }

struct moved {
  struct fake_engine fake;
  struct sandhost_instance instance;
  struct sandhost_sandbox sandbox;
  struct engine_call call;
  int32_t status;
};

static void moved_begin(struct moved *moved, struct canned *answers) {
  fake_engine_start(&moved->fake, answers);
  moved->instance =
      (struct sandhost_instance){.host = &call_relay_host, .engine = moved->fake.engine};
  moved->sandbox = (struct sandhost_sandbox){
      .instance = &moved->instance, .host = &call_relay_host, .id = g_strdup(ID_A)};
}

static void moved_end(struct moved *moved) {
  g_free(moved->sandbox.id);
  engine_call_end(&moved->call);
  fake_engine_end(&moved->fake);
}

/* Moves, and checks everything: the result, its text, what the engine was asked. */
static void check(struct canned *answers, uint32_t mode, int32_t status, const char *message,
                  const char *asked) {
  struct moved moved;
  moved_begin(&moved, answers);
  struct sandhost_network network = {.size = sizeof network, .mode = mode};
  moved.status =
      docker_set_network_policy(engine_call_begin(&moved.call), &moved.sandbox, &network);
  g_autoptr(GString) expected = g_string_new(message);
  g_string_replace(expected, "{engine}", engine_name(moved.fake.engine), 0);
  g_assert_cmpstr(moved.call.call.message, ==, message ? expected->str : NULL);
  g_assert_cmpint(moved.status, ==, status);
  g_assert_cmpstr(moved.fake.asked->str, ==, asked);
  moved_end(&moved);
}

/* ---- Off -------------------------------------------------------------------------------------- */

static void test_off(void) {
  struct canned answers[] = {CANNED_FACTS, BEFORE(ON_TWO), AFTER(OFFLINE), DONE};
  check(answers, SANDHOST_NETWORK_DENY, SANDHOST_OK, NULL,
        LOOK LEAVE("bridge") LEAVE("b%2Fc") LOOK);
}

static void test_off_already(void) {
  struct canned answers[] = {CANNED_FACTS, AFTER(ON_NONE), DONE};
  check(answers, SANDHOST_NETWORK_DENY, SANDHOST_OK, NULL, LOOK LOOK);
}

/* The engine says that it did, and did not. */
static void test_off_in_words_only(void) {
  struct canned answers[] = {CANNED_FACTS, AFTER(ON_BRIDGE), DONE};
  check(answers, SANDHOST_NETWORK_DENY, SANDHOST_UNAVAILABLE,
        "the network of the sandbox was not switched off, and it is on as before: the engine still "
        "has it on the network bridge",
        LOOK LEAVE("bridge") LOOK JOIN("bridge"));
}

static void test_off_half_way(void) {
  struct canned answers[] = {CANNED_FACTS, AFTER(ON_TWO), REFUSED("/networks/b%2Fc/disconnect"),
                             DONE};
  check(
      answers, SANDHOST_NETWORK_DENY, SANDHOST_UNAVAILABLE,
      "the network of the sandbox was not switched off, and it is on as before: cannot disconnect "
      "the sandbox from the network b/c: no",
      LOOK LEAVE("bridge") LEAVE("b%2Fc") LOOK JOIN("bridge"));
}

static void test_off_half_way_for_good(void) {
  struct canned answers[] = {CANNED_FACTS, AFTER(ON_TWO), REFUSED("/networks/b%2Fc/disconnect"),
                             REFUSED("/networks/bridge/connect"), DONE};
  check(
      answers, SANDHOST_NETWORK_DENY, SANDHOST_UNAVAILABLE,
      "the network of the sandbox was not switched off, and it may be on or off, and could not be "
      "put back: cannot disconnect the sandbox from the network b/c: no",
      LOOK LEAVE("bridge") LEAVE("b%2Fc") LOOK JOIN("bridge"));
}

/* A refusal where the network is gone all the same is no failure. */
static void test_off_by_somebody_else(void) {
  struct canned answers[] = {CANNED_FACTS, BEFORE(ON_BRIDGE), AFTER(OFFLINE),
                             REFUSED("/disconnect"), DONE};
  check(answers, SANDHOST_NETWORK_DENY, SANDHOST_OK, NULL, LOOK LEAVE("bridge") LOOK);
}

static void test_off_of_another(void) {
  struct canned answers[] = {CANNED_FACTS, AFTER(ON_NETWORKS("{}", "false", "host")), DONE};
  check(answers, SANDHOST_NETWORK_DENY, SANDHOST_UNSUPPORTED,
        "the sandbox shares the network of another, which cannot be taken from it", LOOK);
}

/* ---- On --------------------------------------------------------------------------------------- */

static void test_on(void) {
  struct canned answers[] = {CANNED_FACTS, BEFORE(ON_NONE), AFTER(ON_BRIDGE), DONE};
  check(answers, SANDHOST_NETWORK_ALLOW, SANDHOST_OK, NULL, LOOK LEAVE("none") JOIN("bridge") LOOK);
}

static void test_on_already(void) {
  struct canned answers[] = {CANNED_FACTS, AFTER(ON_BRIDGE), DONE};
  check(answers, SANDHOST_NETWORK_ALLOW, SANDHOST_OK, NULL, LOOK);
}

static void test_on_of_one_without_any(void) {
  struct canned answers[] = {CANNED_FACTS, AFTER(ON_NETWORKS("{}", "true", "none")), DONE};
  check(
      answers, SANDHOST_NETWORK_ALLOW, SANDHOST_UNSUPPORTED,
      "a sandbox that was made without a network cannot get one later: set network_policy default "
      "to 'allow' in the manifest, or the option network_switchable to true",
      LOOK);
}

static void test_on_with_podman(void) {
  struct canned answers[] = {
      {.match = "GET /version", .status = "200 OK", .body = fake_podman_version},
      {.match = "GET /info", .status = "200 OK", .body = fake_info},
      AFTER(ON_NETWORKS("{}", "false", "none")),
      DONE};
  check(
      answers, SANDHOST_NETWORK_ALLOW, SANDHOST_UNSUPPORTED,
      "a sandbox that was made without a network cannot get one later: set network_policy default "
      "to 'allow' in the manifest",
      LOOK);
}

static void test_on_in_words_only(void) {
  struct canned answers[] = {CANNED_FACTS, AFTER(OFFLINE), DONE};
  check(answers, SANDHOST_NETWORK_ALLOW, SANDHOST_UNAVAILABLE,
        "the network of the sandbox was not switched on: the engine did not put it on the network "
        "bridge",
        LOOK JOIN("bridge") LOOK LEAVE("bridge") LOOK);
}

static void test_on_refused(void) {
  struct canned answers[] = {CANNED_FACTS, AFTER(ON_NONE), REFUSED("/networks/bridge/connect"),
                             DONE};
  check(answers, SANDHOST_NETWORK_ALLOW, SANDHOST_UNAVAILABLE,
        "the network of the sandbox was not switched on: cannot connect the sandbox to the network "
        "bridge: no",
        LOOK LEAVE("none") JOIN("bridge") LEAVE("bridge") LOOK);
}

/* ---- Requests and answers --------------------------------------------------------------------- */

static void test_gone(void) {
  struct canned answers[] = {CANNED_FACTS,
                             {.match = NULL, .status = "404 Not Found", .body = "{}"}};
  struct moved moved;
  moved_begin(&moved, answers);
  struct sandhost_network network = {.size = sizeof network, .mode = SANDHOST_NETWORK_DENY};
  moved.status =
      docker_set_network_policy(engine_call_begin(&moved.call), &moved.sandbox, &network);
  g_assert_cmpint(moved.status, ==, SANDHOST_LOST);
  g_assert_cmpstr(moved.call.relay.failure, ==, "the sandbox is gone");
  moved_end(&moved);
}

static void test_nonsense(void) {
  static const char *const bodies[] = {
      "{\"State\":{\"Running\":true}}", "{\"State\":{\"Running\":true},\"NetworkSettings\":[]}",
      ON_NETWORKS("[\"bridge\"]", "false", "none"), ON_NETWORKS("\"none\"", "false", "none")};
  for (size_t i = 0; i < G_N_ELEMENTS(bodies); i++) {
    struct canned answers[] = {CANNED_FACTS, AFTER(bodies[i]), DONE};
    check(answers, SANDHOST_NETWORK_DENY, SANDHOST_PROTOCOL,
          "{engine} does not say which networks the sandbox is on", LOOK);
  }
}

static void test_hosts(void) {
  struct canned answers[] = {CANNED_FACTS, DONE};
  struct sandhost_text host = fake_to_text("example.org");
  for (int i = 0; i < 2; i++) {
    struct moved moved;
    moved_begin(&moved, answers);
    struct sandhost_network network = {.size = sizeof network,
                                       .mode = SANDHOST_NETWORK_ALLOW,
                                       .allowed_hosts = &host,
                                       .allowed_count = i == 0,
                                       .denied_hosts = &host,
                                       .denied_count = i == 1};
    moved.status =
        docker_set_network_policy(engine_call_begin(&moved.call), &moved.sandbox, &network);
    g_assert_cmpint(moved.status, ==, SANDHOST_UNSUPPORTED);
    g_assert_cmpstr(moved.call.call.message, ==,
                    "docker does not keep lists of hosts: use network_policy default 'deny' or "
                    "'allow', or a provider that enforces them");
    g_assert_cmpstr(moved.fake.asked->str, ==, "");
    moved_end(&moved);
  }
}

/* ---- Sweeping --------------------------------------------------------------------------------- */

static int32_t keep_orphan(void *user, const struct sandhost_orphan *orphan) {
  g_autofree char *run =
      g_strndup(orphan->run_id.data ? orphan->run_id.data : "", orphan->run_id.length);
  g_string_append_printf(user, "%.1s %s %s%s\n", orphan->ref.data, run,
                         orphan->age < 0               ? "unknown"
                         : orphan->age < 3600 * SECOND ? "young"
                                                       : "old",
                         orphan->removed ? " removed" : "");
  return SANDHOST_OK;
}

static void check_sweep(const char *list, struct sandhost_sweep request, int32_t status,
                        const char *message, const char *orphans) {
  struct canned answers[] = {CANNED_FACTS,
                             {.match = "/containers/json", .status = "200 OK", .body = list},
                             REFUSED("DELETE /containers/" ID_C),
                             {.match = NULL, .status = "204 No Content", .body = ""}};
  struct moved moved;
  moved_begin(&moved, answers);
  g_autoptr(GString) seen = g_string_new(NULL);
  struct sandhost_orphan_sink sink = {.size = sizeof sink, .user = seen, .orphan = keep_orphan};
  request.size = sizeof request;
  moved.status = docker_sweep(engine_call_begin(&moved.call), &moved.instance, &request, &sink);
  g_autoptr(GString) expected = g_string_new(message);
  g_string_replace(expected, "{engine}", engine_name(moved.fake.engine), 0);
  g_assert_cmpstr(moved.call.call.message, ==, message ? expected->str : NULL);
  g_assert_cmpint(moved.status, ==, status);
  g_assert_cmpstr(seen->str, ==, orphans);
  moved_end(&moved);
}

#define ENTRY(id, created, labels)                                                                 \
  "{\"Id\":\"" id "\",\"Created\":" created ",\"Labels\":{" labels "}}"
#define OURS "\"omnicoreagent.sandbox\":\"1\""
#define RUN(id) OURS ",\"omnicoreagent.run\":\"" id "\""

static void test_sweep_lists(void) {
  check_sweep("[" ENTRY(ID_A, "1000", RUN("r1")) "," ENTRY(ID_B, "1000", OURS) "]",
              (struct sandhost_sweep){.dry_run = 1}, SANDHOST_OK, NULL, "a r1 old\nb  old\n");
}

/* One that cannot be removed is told as such, and the rest is removed. */
static void test_sweep_removes(void) {
  check_sweep("[" ENTRY(ID_C, "1000", RUN("r1")) "," ENTRY(ID_A, "1000", RUN("r1")) "]",
              (struct sandhost_sweep){0}, SANDHOST_OK, NULL, "c r1 old\na r1 old removed\n");
}

/* Whatever the engine lists: without the label, or of another run, it is nobody's here. */
static void test_sweep_checks_labels(void) {
  check_sweep(
      "[" ENTRY(ID_A, "1000", "") "," ENTRY(ID_B, "1000", "\"omnicoreagent.sandbox\":\"0\"") "]",
      (struct sandhost_sweep){0}, SANDHOST_OK, NULL, "");
  check_sweep("[" ENTRY(ID_A, "1000", RUN("r1")) "," ENTRY(ID_B, "1000", RUN("r2")) "," ENTRY(
                  ID_C, "1000", OURS) "]",
              (struct sandhost_sweep){.run_id = fake_to_text("r2")}, SANDHOST_OK, NULL,
              "b r2 old removed\n");
}

static void test_sweep_keeps(void) {
  struct sandhost_text keep = fake_to_text(ID_A);
  check_sweep("[" ENTRY(ID_A, "1000", OURS) "," ENTRY(ID_B, "1000", OURS) "]",
              (struct sandhost_sweep){.keep = &keep, .keep_count = 1}, SANDHOST_OK, NULL,
              "b  old removed\n");
}

/* The young stay, and what has no age counts as young. */
static void test_sweep_of_the_old(void) {
  check_sweep("[" ENTRY(ID_A, "9000000000", OURS) "," ENTRY(ID_B, "\"x\"",
                                                            OURS) "," ENTRY(ID_C, "-7", OURS) "]",
              (struct sandhost_sweep){.min_age = SECOND}, SANDHOST_OK, NULL, "");
  check_sweep("[" ENTRY(ID_A, "9000000000", OURS) "," ENTRY(ID_B, "9223372036854775807", OURS) "]",
              (struct sandhost_sweep){.dry_run = 1}, SANDHOST_OK, NULL, "a  young\nb  unknown\n");
}

static void test_sweep_of_nonsense(void) {
  check_sweep("{}", (struct sandhost_sweep){0}, SANDHOST_PROTOCOL,
              "{engine} lists its containers as something else than a list", "");
  check_sweep("[7,null,[],{\"Id\":\"../x\",\"Labels\":{" OURS "}},{\"Id\":7,\"Labels\":{" OURS
              "}}]",
              (struct sandhost_sweep){0}, SANDHOST_OK, NULL, "");
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/docker/network/off", test_off);
  g_test_add_func("/docker/network/off-already", test_off_already);
  g_test_add_func("/docker/network/off-in-words", test_off_in_words_only);
  g_test_add_func("/docker/network/off-half-way", test_off_half_way);
  g_test_add_func("/docker/network/off-half-way-for-good", test_off_half_way_for_good);
  g_test_add_func("/docker/network/off-by-another", test_off_by_somebody_else);
  g_test_add_func("/docker/network/off-of-another", test_off_of_another);
  g_test_add_func("/docker/network/on", test_on);
  g_test_add_func("/docker/network/on-already", test_on_already);
  g_test_add_func("/docker/network/on-without-any", test_on_of_one_without_any);
  g_test_add_func("/docker/network/on-podman", test_on_with_podman);
  g_test_add_func("/docker/network/on-in-words", test_on_in_words_only);
  g_test_add_func("/docker/network/on-refused", test_on_refused);
  g_test_add_func("/docker/network/gone", test_gone);
  g_test_add_func("/docker/network/nonsense", test_nonsense);
  g_test_add_func("/docker/network/hosts", test_hosts);
  g_test_add_func("/docker/sweep/lists", test_sweep_lists);
  g_test_add_func("/docker/sweep/removes", test_sweep_removes);
  g_test_add_func("/docker/sweep/labels", test_sweep_checks_labels);
  g_test_add_func("/docker/sweep/keeps", test_sweep_keeps);
  g_test_add_func("/docker/sweep/old", test_sweep_of_the_old);
  g_test_add_func("/docker/sweep/nonsense", test_sweep_of_nonsense);
  return g_test_run();
}
