/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h: a Docker engine (or podman's Docker-compatible service) and its HTTP API.
 *
 * Where it is: the option host, else DOCKER_HOST, else the current context of Docker's own configuration, else
 * unix:///var/run/docker.sock. unix://PATH, tcp://HOST:PORT (TLS with DOCKER_TLS_VERIFY or DOCKER_CERT_PATH or
 * the options), ssh://[USER@]HOST[:PORT] through `ssh ... docker system dial-stdio`.
 *
 * All functions but engine_new and engine_free may be called from any thread.
 */
#ifndef SANDHOST_DOCKER_ENGINE_H
#define SANDHOST_DOCKER_ENGINE_H

#include "http-client.h"

#include <glib.h>
#include <json-c/json.h>
#include <sandhost/provider.h>

typedef struct Engine Engine;

/* Borrowed until engine_new returns. NULL: not given. */
struct engine_settings {
  const char *host;
  const char *tls_ca;
  const char *tls_cert;
  const char *tls_key;
  gboolean tls_verify_set; /* the option was given; else DOCKER_TLS_VERIFY decides */
  gboolean tls_verify;
  const char
      *config_dir; /* Docker's own configuration: DOCKER_CONFIG, else ~/.docker; NULL: as said */
};

/* Reads the address; connects to nothing. NULL with *ret_error (owned, one line that says the way out). */
Engine *engine_new(const struct sandhost_host *host, const struct engine_settings *settings,
                   char **ret_error);
void engine_free(Engine *engine);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Engine, engine_free)

/* For messages: "the Docker engine at unix:///var/run/docker.sock". Borrowed. */
const char *engine_name(const Engine *engine);
/* Whether it runs on this machine (a unix socket): its paths are then this machine's. */
gboolean engine_is_local(const Engine *engine);

/* What the engine says of itself (GET /version, GET /info), asked once when it is first wanted and then constant. */
struct engine_facts {
  const char *
      api_version; /* negotiated: the smaller of the engine's and 1.44; at least 1.40, else the engine is refused */
  const char *version;      /* "20.10.24+dfsg1" */
  const char *architecture; /* as uname -m names it: "x86_64", "aarch64" */
  const char *os;           /* "linux" */
  gboolean is_podman;
  gboolean has_runtime_list;   /* runtimes is known (podman does not tell all of them) */
  const char *const *runtimes; /* NULL-terminated: "runc", "runsc" */
  gboolean memory_limit;       /* what its kernel can keep */
  gboolean cpu_limit;
  gboolean pids_limit;
  gboolean swap_limit;
  int cgroup_version;
};
/* Borrowed until engine_free. A failure is not remembered. Threads that come while it is asked wait for it. */
int32_t engine_facts(Engine *engine, struct sandhost_call *call,
                     const struct engine_facts **ret_facts);

/* One API request. path is without the version: "/containers/create?name=x" (values already escaped, see
 * engine_escape). All borrowed. */
struct engine_request {
  const char *method;
  const char *path;
  json_object *json;                    /* body; or NULL */
  const struct sandhost_source *upload; /* body as a tar; or NULL */
  const char *registry_auth;            /* X-Registry-Auth; or NULL */
  const struct sandhost_sink *sink;     /* gets the body of a 2xx answer; or NULL: collected */
  size_t max_body;                      /* of a collected one; 0: 1 MiB */
  int64_t
      silence; /* ns without a byte before the engine counts as mute; 0: 30 s, -1: only the deadline */
  gboolean
      no_effect; /* what it does is no effect of the call, such as what comes before a container is made: a failure never says may_have_happened */
};

/* An answer. */
struct engine_reply {
  long status;
  char *body; /* owned; NUL-terminated */
  size_t length;
  json_object *json;   /* owned; parsed body when it is JSON, else NULL */
  int64_t retry_after; /* nanoseconds that the engine asks to wait; 0 */
};
void engine_reply_clear(struct engine_reply *reply);

/* Sends with the negotiated version. SANDHOST_OK for an answer of any status; else the call's error is set. */
int32_t engine_send(Engine *engine, struct sandhost_call *call,
                    const struct engine_request *request, struct engine_reply *ret_reply);

/* The same, a GET that is answered by 500 up to three times more within a second, and an answer that is not 2xx becomes the call's error: "{what}: {the engine's message}" with the
 * status that fits (404 NOT_FOUND, 409 CONFLICT, 400 INVALID, 401 UNAUTHENTICATED, 403 DENIED, 429 RATE_LIMITED,
 * 5xx UNAVAILABLE...). accept, where above 0, is one more status that counts as good (404 for a removal). ret_reply
 * may be NULL. what: "cannot create the container". */
int32_t engine_ask(Engine *engine, struct sandhost_call *call, const struct engine_request *request,
                   long accept, const char *what, struct engine_reply *ret_reply);

/* Turns an answer that is not 2xx into the call's error, as engine_ask does. Returns the status. */
int32_t engine_refused(Engine *engine, struct sandhost_call *call, const struct engine_reply *reply,
                       const char *what);

/* Sends and takes the connection over: raw bytes both ways (the engine's 8-byte stream headers are not taken off).
 * An answer that does not switch becomes the call's error. *ret_channel is owned. */
int32_t engine_upgrade(Engine *engine, struct sandhost_call *call,
                       const struct engine_request *request, const char *what,
                       ByteChannel **ret_channel);

/* "%"-escapes text for a path or a query value. Owned. */
char *engine_escape(const char *text);

/* Values of an answer, which is hostile until checked: NULL, or the fallback, where it is missing or of another type.
 * engine_text: the string at a path of keys separated by '/'. Borrowed from json. */
const char *engine_text(json_object *json, const char *keys);
int64_t engine_integer(json_object *json, const char *keys, int64_t fallback);
gboolean engine_boolean(json_object *json, const char *keys, gboolean fallback);
json_object *engine_object(json_object *json, const char *keys);
json_object *engine_list(json_object *json, const char *keys);

#endif
