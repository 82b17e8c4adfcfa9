/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c: requests to an engine, and what becomes of its refusals. */
#include "engine-private.h"

#include "failure.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PATIENCE (10 * ENGINE_SECOND)
#define SILENCE (30 * ENGINE_SECOND)
#define WAY_OUT "start it, or set DOCKER_HOST or the option host"

/* Before a question is asked again. */
static const int64_t PAUSES[] = {ENGINE_SECOND / 20, ENGINE_SECOND / 5, ENGINE_SECOND * 4 / 5};

/* ---- Making one ------------------------------------------------------------------------------ */

static char *explain_unix(int error_number, const char *reason) {
  switch (error_number) {
  case ENOENT:
    return g_strdup("there is no such socket; " WAY_OUT);
  case EACCES:
  case EPERM:
    return g_strdup("permission denied; let this user join the group docker, run as root, or set "
                    "DOCKER_HOST or the option host");
  case ECONNREFUSED:
    return g_strdup("connection refused, nothing listens there; " WAY_OUT);
  default:
    return g_strdup_printf("%s; " WAY_OUT, reason);
  }
}

/* As http_client_settings.explain. */
static char *explain(void *user, enum http_trouble trouble, int error_number, const char *reason) {
  Engine *engine = user;
  g_autofree char *clean = engine_clean(reason, strlen(reason));
  if (engine->ssh) {
    g_autofree char *complaint = engine_ssh_complaint(engine->ssh);
    return g_strdup_printf("%s; check that `ssh` reaches the host without a question and that "
                           "docker runs there, or set DOCKER_HOST or the option host",
                           complaint ? complaint : clean);
  }
  if (trouble == HTTP_NO_TLS) {
    return g_strdup_printf("TLS: %s; check the options tls_ca, tls_cert and tls_key, or the files "
                           "in DOCKER_CERT_PATH",
                           clean);
  }
  if (engine->address.transport == ENGINE_UNIX) {
    return explain_unix(error_number, clean);
  }
  return g_strdup_printf("%s; " WAY_OUT, clean);
}

static int connect_by_ssh(void *user, char **ret_error) {
  return engine_ssh_connect(((Engine *)user)->ssh, ret_error);
}

Engine *engine_new(const struct sandhost_host *host, const struct engine_settings *settings,
                   char **ret_error) {
  struct engine_address address;
  if (!engine_address_read(settings, &address, ret_error)) {
    return NULL;
  }
  int ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (ready_fd < 0) {
    *ret_error = g_strdup_printf("cannot make an event descriptor: %s", g_strerror(errno));
    engine_address_clear(&address);
    return NULL;
  }
  Engine *engine = g_new0(Engine, 1);
  engine->host = host;
  engine->address = address;
  engine->ready_fd = ready_fd;
  engine->name = g_strdup_printf("the Docker engine at %s", address.text);
  engine->ssh = address.transport == ENGINE_SSH ? engine_ssh_new(&address) : NULL;
  pthread_mutex_init(&engine->lock, NULL);
  const struct http_client_settings client = {.unix_socket = address.unix_path,
                                              .ca_file = address.ca,
                                              .cert_file = address.cert,
                                              .key_file = address.key,
                                              .insecure = address.insecure,
                                              .connect = engine->ssh ? connect_by_ssh : NULL,
                                              .explain = explain,
                                              .user = engine,
                                              .connect_patience = PATIENCE,
                                              .silence = SILENCE};
  engine->client = http_client_new(host, &client);
  return engine;
}

void engine_free(Engine *engine) {
  if (!engine) {
    return;
  }
  http_client_free(engine->client);
  engine_ssh_free(engine->ssh);
  engine_known_clear(&engine->known);
  engine_address_clear(&engine->address);
  pthread_mutex_destroy(&engine->lock);
  close(engine->ready_fd);
  g_free(engine->name);
  g_free(engine);
}

const char *engine_name(const Engine *engine) {
  return engine->name;
}

gboolean engine_is_local(const Engine *engine) {
  return engine->address.transport == ENGINE_UNIX;
}

void engine_reply_clear(struct engine_reply *reply) {
  g_free(reply->body);
  json_object_put(reply->json);
  *reply = (struct engine_reply){0};
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* An engine_request as the HTTP client wants it. */
struct wire_request {
  struct http_request http;
  char *url;           /* owned */
  char *authorization; /* owned; NULL */
  const char *headers[4];
};

static void wire_request_clear(struct wire_request *wire) {
  g_free(wire->url);
  g_free(wire->authorization);
}

static void wire_request_init(struct wire_request *wire, const Engine *engine, const char *version,
                              const struct engine_request *request) {
  size_t count = 0;
  *wire = (struct wire_request){0};
  wire->url = g_strdup_printf("%s%s%s%s", engine->address.base, version ? "/v" : "",
                              version ? version : "", request->path);
  wire->http = (struct http_request){.method = request->method,
                                     .url = wire->url,
                                     .headers = wire->headers,
                                     .upload = request->upload,
                                     .sink = request->sink,
                                     .max_body = request->max_body,
                                     .silence = request->silence ? request->silence : SILENCE,
                                     .no_effect = request->no_effect};
  if (request->json) {
    wire->http.body = json_object_to_json_string_length(request->json, JSON_C_TO_STRING_PLAIN,
                                                        &wire->http.body_length);
    wire->headers[count++] = "Content-Type: application/json";
  } else if (request->upload) {
    wire->headers[count++] = "Content-Type: application/x-tar";
  }
  if (request->registry_auth) {
    wire->authorization = g_strdup_printf("X-Registry-Auth: %s", request->registry_auth);
    wire->headers[count] = wire->authorization;
  }
}

static struct engine_reply reply_of(struct http_reply *take_reply) {
  struct engine_reply reply = {.status = take_reply->status,
                               .body = g_steal_pointer(&take_reply->body),
                               .length = take_reply->length,
                               .retry_after = take_reply->retry_after};
  reply.json = engine_parse(reply.body, reply.length);
  http_reply_clear(take_reply);
  return reply;
}

int32_t engine_send_version(Engine *engine, struct sandhost_call *call, const char *version,
                            const struct engine_request *request, struct engine_reply *ret_reply) {
  struct wire_request wire;
  struct http_reply reply;
  wire_request_init(&wire, engine, version, request);
  int32_t status = http_client_send(engine->client, call, engine->name, &wire.http, &reply);
  wire_request_clear(&wire);
  if (status == SANDHOST_OK) {
    *ret_reply = reply_of(&reply);
  }
  return status;
}

int32_t engine_send(Engine *engine, struct sandhost_call *call,
                    const struct engine_request *request, struct engine_reply *ret_reply) {
  const struct engine_facts *facts = NULL;
  int32_t status = engine_facts(engine, call, &facts);
  if (status != SANDHOST_OK) {
    return status;
  }
  return engine_send_version(engine, call, facts->api_version, request, ret_reply);
}

static gboolean is_good(long status, long accept) {
  return (status >= 200 && status < 300) || (accept > 0 && status == accept);
}

/* Whether the answer may be another one in a moment. Podman gives 500 to whoever comes while it
 * clears away what a commit that was given up had begun, and nothing is changed by a question. */
static gboolean is_worth_asking_again(const struct engine_request *request, long status) {
  return status == 500 && strcmp(request->method, "GET") == 0;
}

/* engine_send, and some more of them where that may help. */
static int32_t send_patiently(Engine *engine, struct sandhost_call *call,
                              const struct engine_request *request,
                              struct engine_reply *ret_reply) {
  int32_t status = engine_send(engine, call, request, ret_reply);
  for (size_t i = 0; i < G_N_ELEMENTS(PAUSES) && status == SANDHOST_OK &&
                     is_worth_asking_again(request, ret_reply->status);
       i++) {
    engine_reply_clear(ret_reply);
    (void)engine->host->wait(call, -1, 0, PAUSES[i]); /* what ended it, the next request tells */
    status = engine_send(engine, call, request, ret_reply);
  }
  return status;
}

int32_t engine_ask(Engine *engine, struct sandhost_call *call, const struct engine_request *request,
                   long accept, const char *what, struct engine_reply *ret_reply) {
  struct engine_reply reply;
  int32_t status = send_patiently(engine, call, request, &reply);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (!is_good(reply.status, accept)) {
    status = engine_refused_by(engine, call, &reply, what, request->no_effect);
  }
  if (status == SANDHOST_OK && ret_reply) {
    *ret_reply = reply;
  } else {
    engine_reply_clear(&reply);
  }
  return status;
}

int32_t engine_upgrade(Engine *engine, struct sandhost_call *call,
                       const struct engine_request *request, const char *what,
                       ByteChannel **ret_channel) {
  const struct engine_facts *facts = NULL;
  struct wire_request wire;
  struct http_reply reply = {0};
  ByteChannel *channel = NULL;
  int32_t status = engine_facts(engine, call, &facts);
  if (status != SANDHOST_OK) {
    return status;
  }
  wire_request_init(&wire, engine, facts->api_version, request);
  status = http_client_upgrade(engine->client, call, engine->name, &wire.http, &reply, &channel);
  wire_request_clear(&wire);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (channel) {
    http_reply_clear(&reply);
    *ret_channel = channel;
    return SANDHOST_OK;
  }
  struct engine_reply refusal = reply_of(&reply);
  status = engine_refused(engine, call, &refusal, what);
  engine_reply_clear(&refusal);
  return status;
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static int32_t status_of(long status) {
  switch (status) {
  case 400:
    return SANDHOST_INVALID;
  case 401:
    return SANDHOST_UNAUTHENTICATED;
  case 403:
    return SANDHOST_DENIED;
  case 404:
    return SANDHOST_NOT_FOUND;
  case 304:
  case 409:
    return SANDHOST_CONFLICT;
  case 429:
    return SANDHOST_RATE_LIMITED;
  case 501:
    return SANDHOST_UNSUPPORTED;
  default:
    return status >= 500 && status < 600 ? SANDHOST_UNAVAILABLE : SANDHOST_PROTOCOL;
  }
}

int32_t engine_refused_by(Engine *engine, struct sandhost_call *call,
                          const struct engine_reply *reply, const char *what, gboolean no_effect) {
  const char *message = engine_text(reply->json, "message");
  if (!message && !reply->json) {
    message = reply->body; /* a proxy's or a very old engine's plain text */
  }
  g_autofree char *clean = engine_clean(message ? message : "", message ? strlen(message) : 0);
  /* A gateway that gave up does not know what the engine behind it still did. */
  gboolean may_have_happened = !no_effect && (reply->status == 502 || reply->status == 504);
  if (reply->retry_after > 0 || may_have_happened) {
    const struct sandhost_failure details = {.size = sizeof details,
                                             .service_code = {.data = ""},
                                             .retry_after = reply->retry_after,
                                             .may_have_happened = may_have_happened};
    engine->host->fail_details(call, &details);
  }
  if (clean[0]) {
    return fail_call(engine->host, call, status_of(reply->status), "%s: %s", what, clean);
  }
  return fail_call(engine->host, call, status_of(reply->status),
                   "%s: HTTP status %ld without a reason", what, reply->status);
}

int32_t engine_refused(Engine *engine, struct sandhost_call *call, const struct engine_reply *reply,
                       const char *what) {
  return engine_refused_by(engine, call, reply, what, FALSE);
}
