/* SPDX-License-Identifier: Apache-2.0 */
/* engine-private.h: between the files that make an Engine. */
#ifndef SANDHOST_DOCKER_ENGINE_PRIVATE_H
#define SANDHOST_DOCKER_ENGINE_PRIVATE_H

#include "engine.h"

#include <pthread.h>

#define ENGINE_SECOND ((int64_t)1000000000)
#define ENGINE_MAX_MESSAGE 2048 /* bytes of what an engine, or ssh, says of a failure */

enum engine_transport { ENGINE_UNIX, ENGINE_TCP, ENGINE_SSH };

/* ---- engine-address.c: where an engine is ---- */

struct engine_address {
  enum engine_transport transport;
  char *text; /* as it was given: "unix:///var/run/docker.sock" */
  char *base; /* of URLs: "http://docker", "https://10.0.0.1:2376" */
  char *unix_path;
  gboolean tls;
  gboolean insecure;
  char *ca;
  char *cert;
  char *key;
  char *ssh_host;
  char *ssh_user; /* NULL: ssh decides */
  char *ssh_port; /* NULL: ssh decides */
  char *ssh_path; /* of the engine's socket over there; NULL: docker decides */
};

/* FALSE with *ret_error (owned). */
gboolean engine_address_read(const struct engine_settings *settings,
                             struct engine_address *ret_address, char **ret_error);
void engine_address_clear(struct engine_address *address);

/* ---- engine-context.c: Docker's own configuration ---- */

/* What the current context says. */
struct engine_context {
  char *host;    /* owned; NULL: no context is chosen */
  char *tls_dir; /* owned; NULL: it has no TLS files */
  gboolean skip_verify;
};
/* config_dir: NULL as engine_settings says. FALSE with *ret_error (owned). */
gboolean engine_context_read(const char *config_dir, struct engine_context *ret_context,
                             char **ret_error);
void engine_context_clear(struct engine_context *context);

/* ---- engine-ssh.c: connections through ssh ---- */

typedef struct EngineSsh EngineSsh;
/* Borrows nothing. Returns owned. */
EngineSsh *engine_ssh_new(const struct engine_address *address);
void engine_ssh_free(EngineSsh *ssh); /* ends what still runs; NULL is allowed */
/* As http_client_settings.connect. */
int engine_ssh_connect(EngineSsh *ssh, char **ret_error);
/* Why ssh ended: its last line, cleaned. Owned; NULL: it did not say. */
char *engine_ssh_complaint(EngineSsh *ssh);

/* ---- engine-facts.c ---- */

struct engine_known { /* what engine_facts hands out, with all that it points to */
  struct engine_facts facts;
  GPtrArray *texts;    /* of char *: owns every string of facts */
  GPtrArray *runtimes; /* of const char *, NULL-terminated; borrowed from texts */
};
int32_t engine_ask_facts(Engine *engine, struct sandhost_call *call, struct engine_known *known);
void engine_known_clear(struct engine_known *known);

/* ---- engine.c ---- */

struct Engine {
  const struct sandhost_host *host; /* constant, as is all down to ready_fd */
  struct engine_address address;
  char *name;
  EngineSsh *ssh; /* NULL: reached without it */
  HttpClient *client;
  int ready_fd; /* an eventfd: readable once a question for the facts has ended */

  pthread_mutex_t lock; /* guards what follows; nothing is called under it */
  gboolean asking;
  gboolean is_known;
  struct engine_known known;
};

/* Sends to version ("v1.41"; NULL: unversioned). */
int32_t engine_send_version(Engine *engine, struct sandhost_call *call, const char *version,
                            const struct engine_request *request, struct engine_reply *ret_reply);

/* engine_refused, of a request that counts as in engine_request. */
int32_t engine_refused_by(Engine *engine, struct sandhost_call *call,
                          const struct engine_reply *reply, const char *what, gboolean no_effect);

/* ---- engine-json.c ---- */

/* NULL: it is not one whole JSON text. Owned. */
json_object *engine_parse(const char *text, size_t length);
/* One line of at most ENGINE_MAX_MESSAGE bytes without control or formatting characters. Owned. */
char *engine_clean(const char *text, size_t length);

#endif
