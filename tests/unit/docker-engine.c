/* SPDX-License-Identifier: Apache-2.0 */
/* docker-engine.c: where an engine is, what it says of itself, and what becomes of its refusals and lies. */
#include "fake-http.h"

/* The part under test. */
#include "../../plugins/docker/engine-address.c"
#include "../../plugins/docker/engine-context.c"
#include "../../plugins/docker/engine-facts.c"
#include "../../plugins/docker/engine-json.c"
#include "../../plugins/docker/engine-ssh.c"
#include "../../plugins/docker/engine.c"

#define VERSION                                                                                    \
  "{\"Version\":\"20.10.24+dfsg1\",\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.12\","            \
  "\"Os\":\"linux\",\"Arch\":\"amd64\",\"Components\":[{\"Name\":\"Engine\"}]}"
#define INFO                                                                                       \
  "{\"MemoryLimit\":true,\"SwapLimit\":false,\"CpuCfsQuota\":true,\"PidsLimit\":true,"             \
  "\"CgroupVersion\":\"2\",\"Runtimes\":{\"runc\":{\"path\":\"runc\"},\"runsc\":{}}}"

/* ---- A fake engine --------------------------------------------------------------------------- */

/* What it says; NULL: what a good one does. */
struct answers {
  const char *version_status;
  const char *version;
  const char *info;
  const char *thing_status; /* of every other request */
  const char *thing;
  const char *more_headers;
  int unsteady;     /* so many of the first ones are answered by 500 */
  int refused;      /* atomic: how many were */
  GPtrArray *lines; /* owned: of the requests; with lock */
  GMutex lock;
  int versions; /* atomic: how often it was asked */
};

static void answer_thing(int fd, struct answers *answers) {
  if (answers->unsteady > 0) {
    answers->unsteady--;
    __atomic_fetch_add(&answers->refused, 1, __ATOMIC_SEQ_CST);
    fake_http_answer(fd, "500 Oops", "{\"message\":\"a layer is being removed\"}");
    return;
  }
  const char *body = answers->thing ? answers->thing : "{}";
  g_autofree char *text =
      g_strdup_printf("HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s",
                      answers->thing_status ? answers->thing_status : "200 OK",
                      answers->more_headers ? answers->more_headers : "", strlen(body), body);
  fake_http_say(fd, text);
}

static void script_engine(FakeHttp *http, int fd, int number) {
  struct answers *answers = http->data;
  (void)number;
  for (;;) {
    g_autofree char *request = fake_http_read(http, fd);
    if (!request) {
      return;
    }
    g_mutex_lock(&answers->lock);
    g_ptr_array_add(answers->lines, g_strndup(request, strcspn(request, "\r")));
    g_mutex_unlock(&answers->lock);
    if (g_str_has_prefix(request, "GET /version ")) {
      __atomic_fetch_add(&answers->versions, 1, __ATOMIC_SEQ_CST);
      fake_http_answer(fd, answers->version_status ? answers->version_status : "200 OK",
                       answers->version ? answers->version : VERSION);
    } else if (strstr(request, "/info HTTP")) {
      fake_http_answer(fd, "200 OK", answers->info ? answers->info : INFO);
    } else if (strstr(request, "/attach HTTP")) {
      fake_http_say(fd, "HTTP/1.1 101 UPGRADED\r\n\r\nhello");
      fake_http_keep_still(http, fd);
      return;
    } else {
      answer_thing(fd, answers);
    }
  }
}

struct fixture {
  struct answers answers;
  FakeHttp *http;
  Engine *engine;
  struct sandhost_call call;
  char *host;
};

static void fixture_begin(struct fixture *self, struct answers answers) {
  char *error = NULL;
  self->answers = answers;
  self->answers.lines = g_ptr_array_new_with_free_func(g_free);
  g_mutex_init(&self->answers.lock);
  self->http = fake_http_start(script_engine, &self->answers);
  self->host = g_strdup_printf("unix://%s", self->http->path);
  const struct engine_settings settings = {.host = self->host};
  self->engine = engine_new(&fake_host, &settings, &error);
  g_assert_null(error);
  fake_call_init(&self->call);
  self->call.deadline = fake_now() + 60 * FAKE_SECOND;
}

static void fixture_end(struct fixture *self) {
  engine_free(self->engine);
  fake_http_end(self->http);
  fake_call_clear(&self->call);
  g_ptr_array_unref(self->answers.lines);
  g_mutex_clear(&self->answers.lock);
  g_free(self->host);
}

/* message after "the Docker engine at unix:///..." */
static void assert_message(struct fixture *self, int32_t status, const char *message) {
  g_autofree char *whole = g_strdup_printf("the Docker engine at %s %s", self->host, message);
  g_assert_cmpstr(self->call.message, ==, whole);
  g_assert_cmpint(self->call.status, ==, status);
}

static const struct engine_request thing = {.method = "GET", .path = "/thing"};
static const struct engine_request deed = {.method = "POST", .path = "/deed"};

/* ---- Facts ----------------------------------------------------------------------------------- */

static void test_facts(void) {
  struct fixture self;
  const struct engine_facts *facts = NULL;
  fixture_begin(&self, (struct answers){0});
  g_assert_cmpint(engine_facts(self.engine, &self.call, &facts), ==, SANDHOST_OK);
  g_assert_cmpstr(facts->api_version, ==, "1.41");
  g_assert_cmpstr(facts->version, ==, "20.10.24+dfsg1");
  g_assert_cmpstr(facts->architecture, ==, "x86_64");
  g_assert_cmpstr(facts->os, ==, "linux");
  g_assert_false(facts->is_podman);
  g_assert_true(facts->has_runtime_list);
  g_assert_cmpstr(facts->runtimes[0], ==, "runc");
  g_assert_cmpstr(facts->runtimes[1], ==, "runsc");
  g_assert_null(facts->runtimes[2]);
  g_assert_true(facts->memory_limit && facts->cpu_limit && facts->pids_limit);
  g_assert_false(facts->swap_limit);
  g_assert_cmpint(facts->cgroup_version, ==, 2);
  g_assert_cmpint(engine_facts(self.engine, &self.call, &facts), ==, SANDHOST_OK);
  g_assert_cmpuint(self.answers.lines->len, ==, 2);
  g_assert_cmpstr(g_ptr_array_index(self.answers.lines, 0), ==, "GET /version HTTP/1.1");
  g_assert_cmpstr(g_ptr_array_index(self.answers.lines, 1), ==, "GET /v1.41/info HTTP/1.1");
  fixture_end(&self);
}

static void test_podman(void) {
  struct fixture self;
  const struct engine_facts *facts = NULL;
  fixture_begin(&self, (struct answers){
                           .version = "{\"Version\":\"4.3.1\",\"ApiVersion\":\"1.41\",\"Arch\":"
                                      "\"arm64\",\"Components\":[{\"Name\":\"Podman Engine\"}]}"});
  g_assert_cmpint(engine_facts(self.engine, &self.call, &facts), ==, SANDHOST_OK);
  g_assert_true(facts->is_podman);
  g_assert_false(facts->has_runtime_list);
  g_assert_cmpstr(facts->architecture, ==, "aarch64");
  g_assert_cmpstr(facts->os, ==, "unknown");
  fixture_end(&self);
}

static void test_versions(void) {
  static const struct {
    const char *newest;
    const char *oldest;
    const char *chosen; /* NULL: refused */
  } cases[] = {{"1.40", "1.12", "1.40"}, {"1.44", "1.24", "1.44"}, {"1.52", "1.44", "1.44"},
               {"1.60", "1.50", "1.50"}, {"1.60", "x", "1.44"},    {"1.41", "1.90", "1.41"},
               {"1.39", "1.12", NULL},   {"2.0", "2.0", NULL}};
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    struct fixture self;
    const struct engine_facts *facts = NULL;
    g_autofree char *version = g_strdup_printf("{\"ApiVersion\":\"%s\",\"MinAPIVersion\":\"%s\"}",
                                               cases[i].newest, cases[i].oldest);
    fixture_begin(&self, (struct answers){.version = version});
    int32_t status = engine_facts(self.engine, &self.call, &facts);
    g_assert_cmpint(status, ==, cases[i].chosen ? SANDHOST_OK : SANDHOST_UNSUPPORTED);
    if (cases[i].chosen) {
      g_assert_cmpstr(facts->api_version, ==, cases[i].chosen);
    }
    fixture_end(&self);
  }
}

static void test_too_old(void) {
  struct fixture self;
  const struct engine_facts *facts = NULL;
  fixture_begin(&self, (struct answers){.version = "{\"ApiVersion\":\"1.39\"}"});
  g_assert_cmpint(engine_facts(self.engine, &self.call, &facts), ==, SANDHOST_UNSUPPORTED);
  assert_message(&self, SANDHOST_UNSUPPORTED,
                 "speaks version 1.39 of its API, but 1.40 (Docker 19.03) or newer is needed; "
                 "update it");
  fixture_end(&self);
}

static void test_no_engine(void) {
  static const char *const versions[] = {"[]",
                                         "\"1.41\"",
                                         "nonsense",
                                         "",
                                         "{\"ApiVersion\":\"1.41\"} x",
                                         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["};
  for (gsize i = 0; i < G_N_ELEMENTS(versions); i++) {
    struct fixture self;
    const struct engine_facts *facts = NULL;
    fixture_begin(&self, (struct answers){.version = versions[i]});
    g_assert_cmpint(engine_facts(self.engine, &self.call, &facts), ==, SANDHOST_PROTOCOL);
    assert_message(&self, SANDHOST_PROTOCOL, "answers what no Docker engine would: is it one?");
    fixture_end(&self);
  }
}

static void test_wrong_types(void) {
  static const char *const versions[] = {"{}",
                                         "{\"ApiVersion\":141}",
                                         "{\"ApiVersion\":null}",
                                         "{\"ApiVersion\":[\"1.41\"]}",
                                         "{\"ApiVersion\":\"1.41\\u0000.\"}",
                                         "{\"ApiVersion\":\"../../x\"}",
                                         "{\"ApiVersion\":\"1\"}",
                                         "{\"ApiVersion\":\"1.41.2\"}",
                                         "{\"ApiVersion\":\"0.9\"}"};
  for (gsize i = 0; i < G_N_ELEMENTS(versions); i++) {
    struct fixture self;
    const struct engine_facts *facts = NULL;
    fixture_begin(&self, (struct answers){.version = versions[i]});
    g_assert_cmpint(engine_facts(self.engine, &self.call, &facts), ==, SANDHOST_PROTOCOL);
    assert_message(&self, SANDHOST_PROTOCOL,
                   "does not say which API it speaks: is it a Docker engine?");
    fixture_end(&self);
  }
}

static void test_wrong_types_in_info(void) {
  struct fixture self;
  const struct engine_facts *facts = NULL;
  fixture_begin(&self, (struct answers){.version = "{\"ApiVersion\":\"1.41\",\"Arch\":7,\"Os\":{},"
                                                   "\"Version\":\"a\\u001b[31m\\nb\","
                                                   "\"Components\":{\"Name\":\"Podman\"}}",
                                        .info = "{\"MemoryLimit\":\"yes\",\"Runtimes\":[\"runc\"],"
                                                "\"CgroupVersion\":2}"});
  g_assert_cmpint(engine_facts(self.engine, &self.call, &facts), ==, SANDHOST_OK);
  g_assert_cmpstr(facts->version, ==, "a [31m b");
  g_assert_cmpstr(facts->architecture, ==, "unknown");
  g_assert_false(facts->memory_limit);
  g_assert_false(facts->is_podman);
  g_assert_false(facts->has_runtime_list);
  g_assert_null(facts->runtimes[0]);
  fixture_end(&self);
}

/* A failure is not remembered. */
static void test_facts_again(void) {
  struct fixture self;
  const struct engine_facts *facts = NULL;
  fixture_begin(&self, (struct answers){.version_status = "503 Busy",
                                        .version = "{\"message\":\"starting\"}"});
  g_assert_cmpint(engine_facts(self.engine, &self.call, &facts), ==, SANDHOST_UNAVAILABLE);
  assert_message(&self, SANDHOST_UNAVAILABLE, "does not say what it is: starting");
  self.answers.version_status = NULL;
  self.answers.version = NULL;
  g_assert_cmpint(engine_facts(self.engine, &self.call, &facts), ==, SANDHOST_OK);
  fixture_end(&self);
}

static gpointer want_facts(gpointer data) {
  struct fixture *self = data;
  struct sandhost_call call;
  const struct engine_facts *facts = NULL;
  fake_call_init(&call);
  g_assert_cmpint(engine_facts(self->engine, &call, &facts), ==, SANDHOST_OK);
  g_assert_cmpstr(facts->api_version, ==, "1.41");
  fake_call_clear(&call);
  return NULL;
}

static void test_facts_once_for_all_threads(void) {
  struct fixture self;
  GThread *threads[16];
  fixture_begin(&self, (struct answers){0});
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    threads[i] = g_thread_new("facts", want_facts, &self);
  }
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    g_thread_join(threads[i]);
  }
  g_assert_cmpint(fake_http_count(&self.answers.versions), ==, 1);
  fixture_end(&self);
}

/* Who waits for another's question can be cancelled. */
static void test_waiting_for_facts_is_cancelled(void) {
  struct fixture self;
  const struct engine_facts *facts = NULL;
  fixture_begin(&self, (struct answers){0});
  self.engine->asking = TRUE;
  fake_call_cancel(&self.call);
  g_assert_cmpint(engine_facts(self.engine, &self.call, &facts), ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(self.call.message, ==, "cancelled");
  fixture_end(&self);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void test_ask(void) {
  struct fixture self;
  struct engine_reply reply;
  fixture_begin(&self, (struct answers){.thing = "{\"Id\":\"abc\",\"State\":{\"Pid\":7}}"});
  g_assert_cmpint(engine_ask(self.engine, &self.call, &thing, 0, "cannot do it", &reply), ==,
                  SANDHOST_OK);
  g_assert_cmpstr(engine_text(reply.json, "Id"), ==, "abc");
  g_assert_cmpint(engine_integer(reply.json, "State/Pid", -1), ==, 7);
  g_assert_cmpint(engine_integer(reply.json, "State/Pid/x", -1), ==, -1);
  g_assert_cmpint(engine_integer(reply.json, "Id", -1), ==, -1);
  g_assert_null(engine_text(reply.json, "State"));
  g_assert_nonnull(engine_object(reply.json, "State"));
  g_assert_true(engine_boolean(reply.json, "State", TRUE));
  g_assert_cmpstr(g_ptr_array_index(self.answers.lines, 2), ==, "GET /v1.41/thing HTTP/1.1");
  engine_reply_clear(&reply);
  fixture_end(&self);
}

static void test_refusals(void) {
  static const struct {
    const char *line;
    int32_t status;
  } cases[] = {{"400 Bad", SANDHOST_INVALID},       {"401 No", SANDHOST_UNAUTHENTICATED},
               {"403 No", SANDHOST_DENIED},         {"404 Not Found", SANDHOST_NOT_FOUND},
               {"409 Conflict", SANDHOST_CONFLICT}, {"429 Slow", SANDHOST_RATE_LIMITED},
               {"500 Oops", SANDHOST_UNAVAILABLE},  {"501 No", SANDHOST_UNSUPPORTED},
               {"304 Same", SANDHOST_CONFLICT},     {"302 Go", SANDHOST_PROTOCOL},
               {"418 Tea", SANDHOST_PROTOCOL}};
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    struct fixture self;
    fixture_begin(&self, (struct answers){.thing_status = cases[i].line,
                                          .thing = i == 8 ? "" : "{\"message\":\"no such x\"}"});
    g_assert_cmpint(engine_ask(self.engine, &self.call, &thing, 0, "cannot do it", NULL), ==,
                    cases[i].status);
    g_assert_cmpstr(self.call.message, ==,
                    i == 8 ? "cannot do it: HTTP status 304 without a reason"
                           : "cannot do it: no such x");
    fixture_end(&self);
  }
}

static void test_accepted_refusal(void) {
  struct fixture self;
  struct engine_reply reply;
  fixture_begin(
      &self, (struct answers){.thing_status = "404 Not Found", .thing = "{\"message\":\"gone\"}"});
  g_assert_cmpint(engine_ask(self.engine, &self.call, &thing, 404, "cannot do it", &reply), ==,
                  SANDHOST_OK);
  g_assert_cmpint(reply.status, ==, 404);
  engine_reply_clear(&reply);
  fixture_end(&self);
}

/* How often it was asked, and that it ended so. */
static void check_unsteady(const struct engine_request *request, int unsteady, guint asked,
                           int32_t wanted) {
  struct fixture self;
  fixture_begin(&self, (struct answers){.unsteady = unsteady});
  g_assert_cmpint(engine_ask(self.engine, &self.call, request, 0, "cannot do it", NULL), ==,
                  wanted);
  g_assert_cmpuint(self.answers.lines->len, ==, 2 + asked); /* the facts come first */
  g_assert_cmpstr(self.call.message, ==,
                  wanted == SANDHOST_OK ? NULL : "cannot do it: a layer is being removed");
  fixture_end(&self);
}

static void test_unsteady_answers(void) {
  check_unsteady(&thing, 1, 2, SANDHOST_OK);
  check_unsteady(&thing, 3, 4, SANDHOST_OK);
  check_unsteady(&thing, 4, 4, SANDHOST_UNAVAILABLE);
  check_unsteady(&deed, 1, 1, SANDHOST_UNAVAILABLE); /* it may have been done */
}

static void test_cancelled_before_it_is_asked_again(void) {
  struct fixture self;
  fixture_begin(&self, (struct answers){.unsteady = G_MAXINT});
  struct fake_canceller canceller = {.call = &self.call, .flag = &self.answers.refused};
  GThread *thread = g_thread_new("cancel", fake_cancel_when, &canceller);
  g_assert_cmpint(engine_ask(self.engine, &self.call, &thing, 0, "cannot do it", NULL), ==,
                  SANDHOST_CANCELLED);
  g_thread_join(thread);
  fixture_end(&self);
}

static void test_messages_are_cleaned(void) {
  static const struct {
    const char *body;
    const char *message;
  } cases[] = {
      {"{\"message\":\"a\\r\\nb\\u001b[2J\\u202ec\\u0007\"}", "x: a b [2J c"},
      {"{\"message\":7}", "x: HTTP status 500 without a reason"},
      {"{\"message\":\"a\\u0000b\"}", "x: HTTP status 500 without a reason"},
      {"[1,2]", "x: HTTP status 500 without a reason"},
      {"plain  text\n\n", "x: plain text"},
      {"", "x: HTTP status 500 without a reason"},
      {"bad \xff\xfe bytes", "x: bad \357\277\275\357\277\275 bytes"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    struct fixture self;
    fixture_begin(&self, (struct answers){.thing_status = "500 Oops", .thing = cases[i].body});
    g_assert_cmpint(engine_ask(self.engine, &self.call, &deed, 0, "x", NULL), ==,
                    SANDHOST_UNAVAILABLE);
    g_assert_cmpstr(self.call.message, ==, cases[i].message);
    fixture_end(&self);
  }
}

static void test_long_message(void) {
  struct fixture self;
  g_autofree char *many = g_strnfill(100000, 'a');
  g_autofree char *body = g_strdup_printf("{\"message\":\"%s\"}", many);
  fixture_begin(&self, (struct answers){.thing_status = "400 Bad", .thing = body});
  g_assert_cmpint(engine_ask(self.engine, &self.call, &thing, 0, "x", NULL), ==, SANDHOST_INVALID);
  g_assert_cmpuint(strlen(self.call.message), <=, ENGINE_MAX_MESSAGE + 3);
  g_assert_cmpuint(strlen(self.call.message), >, 0);
  fixture_end(&self);
}

static void test_upgrade(void) {
  struct fixture self;
  ByteChannel *channel = NULL;
  char buffer[6] = "";
  const struct engine_request attach = {.method = "POST", .path = "/containers/x/attach"};
  fixture_begin(&self, (struct answers){0});
  g_assert_cmpint(engine_upgrade(self.engine, &self.call, &attach, "cannot attach", &channel), ==,
                  SANDHOST_OK);
  for (gsize got = 0; got < 5;) {
    struct pollfd fd = {.fd = channel->receive_fd(channel), .events = POLLIN};
    if (!channel->pending || !channel->pending(channel)) {
      g_assert_cmpint(poll(&fd, 1, 60000), ==, 1);
    }
    ssize_t count = channel->receive(channel, buffer + got, 5 - got);
    g_assert_cmpint(count, >, 0);
    got += (gsize)count;
  }
  g_assert_cmpstr(buffer, ==, "hello");
  channel->free(channel);
  fixture_end(&self);
}

static void test_upgrade_refused(void) {
  struct fixture self;
  ByteChannel *channel = NULL;
  fixture_begin(&self, (struct answers){.thing_status = "409 Conflict",
                                        .thing = "{\"message\":\"it is not running\"}"});
  g_assert_cmpint(engine_upgrade(self.engine, &self.call, &thing, "cannot attach", &channel), ==,
                  SANDHOST_CONFLICT);
  g_assert_cmpstr(self.call.message, ==, "cannot attach: it is not running");
  fixture_end(&self);
}

static void test_escape(void) {
  g_autofree char *text = engine_escape("a/b c?&=%\xc3\xa9");
  g_assert_cmpstr(text, ==, "a%2Fb%20c%3F%26%3D%25%C3%A9");
}

/* ---- No engine there ------------------------------------------------------------------------- */

/* The error of a request to host, after the engine's name. Owned. */
static char *unreachable(const char *host) {
  struct sandhost_call call;
  char *error = NULL;
  const struct engine_settings settings = {.host = host};
  const struct engine_facts *facts = NULL;
  g_autoptr(Engine) engine = engine_new(&fake_host, &settings, &error);
  g_assert_null(error);
  fake_call_init(&call);
  call.deadline = fake_now() + 60 * FAKE_SECOND;
  g_assert_cmpint(engine_facts(engine, &call, &facts), ==, SANDHOST_UNAVAILABLE);
  g_autofree char *start = g_strdup_printf("%s is not reachable: ", engine_name(engine));
  g_assert_true(g_str_has_prefix(call.message, start));
  char *rest = g_strdup(call.message + strlen(start));
  fake_call_clear(&call);
  return rest;
}

static void test_no_socket(void) {
  g_autofree char *text = unreachable("unix:///nonexistent/docker.sock");
  g_assert_cmpstr(text, ==,
                  "there is no such socket; start it, or set DOCKER_HOST or the option host");
}

static void test_nobody_listens(void) {
  g_autofree char *folder = g_dir_make_tmp("sandhost-engine-XXXXXX", NULL);
  g_autofree char *path = g_build_filename(folder, "docker.sock", NULL);
  g_autofree char *host = g_strdup_printf("unix://%s", path);
  close(fake_http_listen(path, 1));
  g_autofree char *text = unreachable(host);
  g_assert_cmpstr(text, ==,
                  "connection refused, nothing listens there; start it, or set DOCKER_HOST or the "
                  "option host");
  g_unlink(path);
  g_rmdir(folder);
}

static void test_refused_port(void) {
  g_autofree char *text = unreachable("tcp://127.0.0.1:1");
  g_assert_cmpstr(text, ==, "Connection refused; start it, or set DOCKER_HOST or the option host");
}

static void test_advice_for_permission(void) {
  g_autofree char *text = explain_unix(EACCES, "x");
  g_assert_cmpstr(text, ==,
                  "permission denied; let this user join the group docker, run as root, or set "
                  "DOCKER_HOST or the option host");
}

/* ---- ssh ------------------------------------------------------------------------------------- */

/* Puts a program ssh with this shell text into the front of PATH. Returns the folder; the old PATH in *ret_path. */
static char *ssh_new(const char *script, char **ret_path) {
  char *folder = g_dir_make_tmp("sandhost-ssh-XXXXXX", NULL);
  g_autofree char *program = g_build_filename(folder, "ssh", NULL);
  g_autofree char *text = g_strdup_printf("#!/bin/sh\n%s\n", script);
  g_autofree char *path = g_strdup_printf("%s:%s", folder, g_getenv("PATH"));
  g_assert_true(g_file_set_contents(program, text, -1, NULL));
  g_assert_cmpint(g_chmod(program, 0755), ==, 0);
  *ret_path = g_strdup(g_getenv("PATH"));
  g_setenv("PATH", path, TRUE);
  return folder;
}

static void ssh_end(char *take_folder, char *take_path) {
  g_setenv("PATH", take_path, TRUE);
  g_free(take_path);
  fake_folder_remove(take_folder);
}

#define SSH_ADVICE                                                                                 \
  "; check that `ssh` reaches the host without a question and that docker runs there, or set "     \
  "DOCKER_HOST or the option host"

static void check_ssh_fails(const char *script, const char *message) {
  char *path;
  char *folder = ssh_new(script, &path);
  g_autofree char *text = unreachable("ssh://me@there");
  g_assert_cmpstr(text, ==, message);
  ssh_end(folder, path);
}

static void test_ssh_refused(void) {
  check_ssh_fails("echo 'Warning: a\nme@there: Permission denied (publickey).' >&2; exit 255",
                  "me@there: Permission denied (publickey)." SSH_ADVICE);
}

static void test_ssh_says_rubbish(void) {
  check_ssh_fails("printf '\\033]0;x\\007no\\ttty\\r\\n' >&2; exit 1", "]0;x no tty" SSH_ADVICE);
}

static void test_ssh_says_nothing(void) {
  check_ssh_fails("exit 1", "the connection ended" SSH_ADVICE);
}

static void test_ssh_is_missing(void) {
  g_autofree char *path = g_strdup(g_getenv("PATH"));
  g_setenv("PATH", "/nonexistent", TRUE);
  g_autofree char *text = unreachable("ssh://there");
  g_assert_cmpstr(text, ==, "there is no program ssh in PATH" SSH_ADVICE);
  g_setenv("PATH", path, TRUE);
}

/* An ssh that notes its arguments and relays to the fake engine's socket. */
static void test_ssh(void) {
  struct fixture self;
  char *path;
  char *error = NULL;
  g_autofree char *python = g_find_program_in_path("python3");
  if (!python) {
    g_test_skip("the relay of this test needs python3");
    return;
  }
  fixture_begin(&self, (struct answers){0});
  g_autofree char *script =
      g_strdup_printf("echo \"$@\" >\"$(dirname \"$0\")/arguments\"\n"
                      "exec python3 -c '\n"
                      "import os, select, socket\n"
                      "s = socket.socket(socket.AF_UNIX); s.connect(\"%s\")\n"
                      "while True:\n"
                      "  for f in select.select([0, s], [], [])[0]:\n"
                      "    data = os.read(0, 65536) if f == 0 else s.recv(65536)\n"
                      "    if not data: os._exit(0)\n"
                      "    s.sendall(data) if f == 0 else os.write(1, data)\n"
                      "'",
                      self.http->path);
  char *folder = ssh_new(script, &path);
  const struct engine_settings settings = {.host = "ssh://me@there:2222/run/d.sock"};
  Engine *engine = engine_new(&fake_host, &settings, &error);
  g_assert_null(error);
  g_assert_false(engine_is_local(engine));
  for (int i = 0; i < 3; i++) {
    g_assert_cmpint(engine_ask(engine, &self.call, &thing, 0, "cannot do it", NULL), ==,
                    SANDHOST_OK);
  }
  /* One ssh serves all of them. */
  g_assert_cmpint(fake_http_count(&self.http->connections), ==, 1);
  ByteChannel *channel = NULL;
  const struct engine_request attach = {.method = "POST", .path = "/containers/x/attach"};
  g_assert_cmpint(engine_upgrade(engine, &self.call, &attach, "cannot attach", &channel), ==,
                  SANDHOST_OK);
  channel->free(channel);
  g_autofree char *file = g_build_filename(folder, "arguments", NULL);
  g_autofree char *arguments = NULL;
  g_assert_true(g_file_get_contents(file, &arguments, NULL, NULL));
  g_assert_cmpstr(arguments, ==,
                  "-o BatchMode=yes -o ConnectTimeout=10 -T -l me -p 2222 -- there docker "
                  "--host=unix:///run/d.sock system dial-stdio\n");
  engine_free(engine);
  ssh_end(folder, path);
  fixture_end(&self);
}

/* An ssh that hangs is ended with the engine, and a request to it with its call. */
static void test_ssh_hangs(void) {
  struct sandhost_call call;
  char *path;
  char *error = NULL;
  const struct engine_facts *facts = NULL;
  char *folder = ssh_new("trap '' HUP TERM; exec sleep 1000", &path);
  const struct engine_settings settings = {.host = "ssh://there"};
  Engine *engine = engine_new(&fake_host, &settings, &error);
  fake_call_init(&call);
  call.deadline = fake_now() + 300 * FAKE_MILLISECOND;
  g_assert_cmpint(engine_facts(engine, &call, &facts), ==, SANDHOST_TIMEOUT);
  g_assert_cmpstr(call.message, ==, "the deadline passed");
  g_assert_cmpuint(engine->ssh->processes->len, ==, 1);
  pid_t pid = ((struct ssh_process *)g_ptr_array_index(engine->ssh->processes, 0))->pid;
  engine_free(engine);
  g_assert_cmpint(kill(pid, 0), ==, -1);
  fake_call_clear(&call);
  ssh_end(folder, path);
}

int main(int argc, char **argv) {
  static const char *const variables[] = {"DOCKER_HOST",       "DOCKER_CONTEXT",   "DOCKER_CONFIG",
                                          "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "http_proxy"};
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(variables); i++) {
    g_unsetenv(variables[i]);
  }
  g_test_add_func("/docker-engine/facts", test_facts);
  g_test_add_func("/docker-engine/podman", test_podman);
  g_test_add_func("/docker-engine/versions", test_versions);
  g_test_add_func("/docker-engine/too-old", test_too_old);
  g_test_add_func("/docker-engine/no-engine", test_no_engine);
  g_test_add_func("/docker-engine/wrong-types", test_wrong_types);
  g_test_add_func("/docker-engine/wrong-types-in-info", test_wrong_types_in_info);
  g_test_add_func("/docker-engine/facts-again", test_facts_again);
  g_test_add_func("/docker-engine/facts-once", test_facts_once_for_all_threads);
  g_test_add_func("/docker-engine/facts-cancelled", test_waiting_for_facts_is_cancelled);
  g_test_add_func("/docker-engine/ask", test_ask);
  g_test_add_func("/docker-engine/refusals", test_refusals);
  g_test_add_func("/docker-engine/accepted", test_accepted_refusal);
  g_test_add_func("/docker-engine/unsteady", test_unsteady_answers);
  g_test_add_func("/docker-engine/unsteady-cancelled", test_cancelled_before_it_is_asked_again);
  g_test_add_func("/docker-engine/cleaned", test_messages_are_cleaned);
  g_test_add_func("/docker-engine/long-message", test_long_message);
  g_test_add_func("/docker-engine/upgrade", test_upgrade);
  g_test_add_func("/docker-engine/upgrade-refused", test_upgrade_refused);
  g_test_add_func("/docker-engine/escape", test_escape);
  g_test_add_func("/docker-engine/no-socket", test_no_socket);
  g_test_add_func("/docker-engine/nobody-listens", test_nobody_listens);
  g_test_add_func("/docker-engine/refused-port", test_refused_port);
  g_test_add_func("/docker-engine/permission", test_advice_for_permission);
  g_test_add_func("/docker-engine/ssh", test_ssh);
  g_test_add_func("/docker-engine/ssh-refused", test_ssh_refused);
  g_test_add_func("/docker-engine/ssh-rubbish", test_ssh_says_rubbish);
  g_test_add_func("/docker-engine/ssh-silent", test_ssh_says_nothing);
  g_test_add_func("/docker-engine/ssh-missing", test_ssh_is_missing);
  g_test_add_func("/docker-engine/ssh-hangs", test_ssh_hangs);
  return g_test_run();
}
