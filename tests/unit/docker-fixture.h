/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker-fixture.h: an engine that answers as a table says, for the parts of the docker provider
 * that ask one.
 *
 * The parts use the call relay's table, as in the provider: a test's call is a relay over a fake
 * one.
 */
#ifndef SANDHOST_TESTS_DOCKER_FIXTURE_H
#define SANDHOST_TESTS_DOCKER_FIXTURE_H

#include "fake-http.h"

#include "call-relay.h"

/* Of what every test of these parts has: an engine and all it consists of. */
#include "../../plugins/docker/engine-address.c"
#include "../../plugins/docker/engine-context.c"
#include "../../plugins/docker/engine-facts.c"
#include "../../plugins/docker/engine-json.c"
#include "../../plugins/docker/engine-ssh.c"
#include "../../plugins/docker/engine.c"

/* An answer to requests whose first line contains match. The table ends with match NULL, whose
 * answer is for the rest. */
struct canned {
  const char *match;
  const char *status; /* "200 OK"; NULL: body is sent as it is, and the connection is then closed */
  const char *body;
  int times; /* above 0: counts for this many requests only */
};

struct fake_engine {
  FakeHttp *http;
  Engine *engine;
  struct canned *answers;
  GMutex lock;
  GString *asked; /* the first lines of all requests but those for facts, without versions */
  GString *last;  /* the last of these requests as a whole */
};

static const char fake_version[] = "{\"Version\":\"20.10.24\",\"ApiVersion\":\"1.41\","
                                   "\"MinAPIVersion\":\"1.12\",\"Arch\":\"amd64\","
                                   "\"Os\":\"linux\"}";
static const char fake_podman_version[] =
    "{\"Version\":\"4.3.1\",\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.24\",\"Arch\":\"amd64\","
    "\"Os\":\"linux\",\"Components\":[{\"Name\":\"Podman Engine\",\"Version\":\"4.3.1\"}]}";
static const char fake_info[] =
    "{\"Architecture\":\"x86_64\",\"OSType\":\"linux\",\"Runtimes\":{}}";

/* "POST /v1.41/x HTTP/1.1" -> "POST /x". Owned. */
FAKE_UNUSED static char *fake_engine_line(const char *text) {
  g_auto(GStrv) words = g_strsplit(text, " ", 3);
  g_assert_cmpuint(g_strv_length(words), ==, 3);
  const char *path = words[1];
  if (g_str_has_prefix(path, "/v1.")) {
    path = strchr(path + 1, '/');
  }
  return g_strdup_printf("%s %s", words[0], path);
}

FAKE_UNUSED static void fake_engine_script(FakeHttp *http, int fd, int number) {
  struct fake_engine *fake = http->data;
  (void)number;
  for (;;) {
    g_autofree char *text = fake_http_read(http, fd);
    if (!text) {
      return;
    }
    g_autofree char *line = fake_engine_line(text);
    struct canned *answer = fake->answers;
    g_mutex_lock(&fake->lock);
    while (answer->match && (answer->times < 0 || !strstr(line, answer->match))) {
      answer++;
    }
    if (answer->times > 0 && --answer->times == 0) {
      answer->times = -1;
    }
    if (!strstr(line, "GET /version") && !strstr(line, "GET /info")) {
      g_string_append_printf(fake->asked, "%s\n", line);
      g_string_assign(fake->last, text);
    }
    g_mutex_unlock(&fake->lock);
    if (!answer->status) {
      fake_http_say(fd, answer->body);
      return;
    }
    fake_http_answer(fd, answer->status, answer->body);
  }
}

FAKE_UNUSED static void fake_engine_start(struct fake_engine *fake, struct canned *answers) {
  *fake = (struct fake_engine){
      .answers = answers, .asked = g_string_new(NULL), .last = g_string_new(NULL)};
  g_mutex_init(&fake->lock);
  fake->http = fake_http_start(fake_engine_script, fake);
  g_autofree char *address = g_strdup_printf("unix://%s", fake->http->path);
  char *error = NULL;
  struct engine_settings settings = {.host = address};
  fake->engine = engine_new(&call_relay_host, &settings, &error);
  g_assert_cmpstr(error, ==, NULL);
}

FAKE_UNUSED static void fake_engine_end(struct fake_engine *fake) {
  engine_free(fake->engine);
  fake_http_end(fake->http);
  g_string_free(fake->asked, TRUE);
  g_string_free(fake->last, TRUE);
  g_mutex_clear(&fake->lock);
}

/* ---- Calls ------------------------------------------------------------------------------------ */

struct engine_call {
  struct sandhost_call call;
  struct call_relay relay;
};

FAKE_UNUSED static struct sandhost_call *engine_call_begin(struct engine_call *call) {
  fake_call_init(&call->call);
  call->call.deadline = fake_now() + 60 * FAKE_SECOND;
  call->relay = (struct call_relay){.host = &fake_host, .call = &call->call};
  return call_relay_call(&call->relay);
}

FAKE_UNUSED static void engine_call_end(struct engine_call *call) {
  call_relay_clear(&call->relay);
  fake_call_clear(&call->call);
}

/* The facts of an ordinary engine, for a table of answers. */
#define CANNED_FACTS                                                                               \
  {.match = "GET /version", .status = "200 OK", .body = fake_version}, {                           \
    .match = "GET /info", .status = "200 OK", .body = fake_info                                    \
  }

#endif
