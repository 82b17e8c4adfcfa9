/* SPDX-License-Identifier: Apache-2.0 */
/* container.c: what became of a container, and its end. */
#include "engine-private.h"
#include "instance.h"

#include "call-relay.h"
#include "contract.h"
#include "failure.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SECOND ((int64_t)1000000000)
#define MILLISECOND ((int64_t)1000000)
#define ID_LENGTH 64u
/* To clean up in when the call itself is over, as the contract gives it, and when it is not. */
#define LAST_PATIENCE (2 * SECOND)
#define CLEAN_UP_PATIENCE (10 * SECOND)
/* For finding out why a container is gone. */
#define REASON_PATIENCE (5 * SECOND)
/* Until the engine must have heard of a container's end, and how often it is asked. */
#define END_PATIENCE SECOND
#define LOOK_TICK (20 * MILLISECOND)
/* For the events of a container that is gone. */
#define EVENT_PATIENCE (3 * SECOND)
/* Its first process kills itself with nothing: whoever may speak to the engine did it. */
#define KILLED "its container was killed"
#define KILLED_CODE 137
/* What a program in Go ends with when the system gives it no thread. The guest never does. */
#define GVISOR_GAVE_UP "2"
#define EVENT_BYTES ((size_t)64 * 1024)
/* How often it is asked whether a removal that somebody else began is over. */
#define REMOVAL_TICK (10 * MILLISECOND)
/* And how often one is asked for again that the container's own end came in the way of. */
#define MOST_REMOVALS 10

gboolean container_is_id(const char *text) {
  return text && strlen(text) == ID_LENGTH && strspn(text, "0123456789abcdef") == ID_LENGTH;
}

/* ---- Why it ended ----------------------------------------------------------------------------- */

/* What the engine's events say of one container. */
struct ending {
  GString *line; /* of the stream, so far */
  size_t bytes;
  gboolean memory;
  gboolean killed;
  gboolean died;
  gboolean removed;
  char *exit_code; /* owned */
};

static void take_event(struct ending *ending, const char *line) {
  json_object *event = engine_parse(line, strlen(line));
  const char *action = engine_text(event, "Action");
  if (!action) {
    action = engine_text(event, "status");
  }
  if (action && strcmp(action, "oom") == 0) {
    ending->memory = TRUE;
  } else if (action && strcmp(action, "kill") == 0) {
    ending->killed = TRUE;
  } else if (action && (strcmp(action, "destroy") == 0 || strcmp(action, "remove") == 0)) {
    ending->removed = TRUE;
  } else if (action && (strcmp(action, "die") == 0 || strcmp(action, "died") == 0)) {
    const char *code = engine_text(event, "Actor/Attributes/exitCode");
    ending->died = TRUE;
    g_free(ending->exit_code);
    ending->exit_code = code && strlen(code) <= 3 && strspn(code, "0123456789") == strlen(code)
                            ? g_strdup(code)
                            : NULL;
  }
  json_object_put(event);
}

static int32_t take_events(void *user, const void *data, size_t length) {
  struct ending *ending = user;
  const char *text = data;
  ending->bytes += length;
  if (ending->bytes > EVENT_BYTES) {
    return SANDHOST_LIMIT;
  }
  for (size_t i = 0; i < length; i++) {
    if (text[i] != '\n') {
      g_string_append_c(ending->line, text[i]);
      continue;
    }
    take_event(ending, ending->line->str);
    g_string_truncate(ending->line, 0);
  }
  /* The engine may wait for more events: what was wanted is there. */
  return ending->removed ? SANDHOST_CANCELLED : SANDHOST_OK;
}

/* The engine's events of this container, up to its removal, which may be told a little later than it happens. No time is
 * named as their end: by whose clock? */
static void read_events(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                        struct ending *ending) {
  g_auto(CallRelay) relay = {.host = sandbox->host,
                             .call = call,
                             .quiet = TRUE,
                             .deadline = contract_now() + EVENT_PATIENCE};
  /* Those of its end only: without a guest each command leaves some, with the whole script in them. */
  g_autofree char *filters =
      g_strdup_printf("{\"container\":[\"%s\"],\"type\":[\"container\"],\"event\":[\"oom\","
                      "\"kill\",\"die\",\"died\",\"destroy\",\"remove\"]}",
                      sandbox->id);
  g_autofree char *escaped = engine_escape(filters);
  g_autofree char *path = g_strdup_printf("/events?since=0&filters=%s", escaped);
  struct sandhost_sink sink = {.size = sizeof sink, .user = ending, .write = take_events};
  struct engine_request request = {.method = "GET", .path = path, .sink = &sink};
  (void)engine_ask(sandbox->instance->engine, call_relay_call(&relay), &request, 0, "events", NULL);
}

static gboolean is_gvisor(struct sandhost_instance *instance) {
  pthread_mutex_lock(&instance->lock);
  gboolean is_readable = instance->guest_readable;
  pthread_mutex_unlock(&instance->lock);
  return is_readable || runtime_is_gvisor(instance->runtime);
}

static char *describe_exit(const struct sandhost_sandbox *sandbox, const char *code) {
  if (strcmp(code, GVISOR_GAVE_UP) == 0 && is_gvisor(sandbox->instance)) {
    return g_strdup("gVisor ended, as it does when pids_limit leaves it no more threads");
  }
  return g_strdup_printf("its first process ended with exit code %s", code);
}

static char *describe(const struct sandhost_sandbox *sandbox, const struct ending *ending) {
  if (ending->memory) {
    return g_strdup("its memory was used up");
  }
  if (ending->killed) {
    return g_strdup(KILLED);
  }
  if (ending->exit_code) {
    return describe_exit(sandbox, ending->exit_code);
  }
  return g_strdup("its container was removed");
}

static char *reason_from_events(struct sandhost_sandbox *sandbox, struct sandhost_call *call) {
  struct ending ending = {.line = g_string_new(NULL)};
  read_events(sandbox, call, &ending);
  char *reason = describe(sandbox, &ending);
  g_string_free(ending.line, TRUE);
  g_free(ending.exit_code);
  return reason;
}

/* What an inspection says. NULL: it runs. */
static char *reason_from_state(const struct sandhost_sandbox *sandbox, json_object *container) {
  if (engine_boolean(container, "State/Running", FALSE)) {
    return NULL;
  }
  if (engine_boolean(container, "State/OOMKilled", FALSE)) {
    return g_strdup("its memory was used up");
  }
  int code = (int)engine_integer(container, "State/ExitCode", 0);
  g_autofree char *text = g_strdup_printf("%d", code);
  return code == KILLED_CODE ? g_strdup(KILLED) : describe_exit(sandbox, text);
}

/* One look at the container. TRUE: it is known what became of it; *ret_reason is owned, or NULL while it runs. */
static gboolean look(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                     char **ret_reason) {
  Engine *engine = sandbox->instance->engine;
  g_autofree char *path = g_strdup_printf("/containers/%s/json", sandbox->id);
  struct engine_request request = {.method = "GET", .path = path};
  struct engine_reply reply = {0};
  if (engine_send(engine, call, &request, &reply) != SANDHOST_OK) {
    *ret_reason = g_strdup_printf("%s does not answer", engine_name(engine));
    return TRUE;
  }
  gboolean runs = FALSE;
  if (reply.status == 404) {
    *ret_reason = reason_from_events(sandbox, call);
  } else {
    *ret_reason = reply.status == 200 ? reason_from_state(sandbox, reply.json) : NULL;
    runs = !*ret_reason;
  }
  engine_reply_clear(&reply);
  return !runs;
}

char *container_end_reason(struct sandhost_sandbox *sandbox, struct sandhost_call *call) {
  g_auto(CallRelay) relay = {.host = sandbox->host,
                             .call = call,
                             .quiet = TRUE,
                             .deadline = contract_now() + REASON_PATIENCE};
  struct sandhost_call *relayed = call_relay_call(&relay);
  const int64_t until = contract_now() + END_PATIENCE;
  char *reason = NULL;
  /* The engine hears of the end a little later than whoever had the stream. */
  while (!look(sandbox, relayed, &reason) && contract_now() < until) {
    (void)call_relay_host.wait(relayed, -1, 0, LOOK_TICK);
  }
  return reason;
}

/* ---- Removal ---------------------------------------------------------------------------------- */

/* Until the removal that is under way is over. */
static int32_t wait_until_gone(const struct sandhost_host *host, Engine *engine,
                               struct sandhost_call *call, const char *id) {
  g_autofree char *path = g_strdup_printf("/containers/%s/json", id);
  for (;;) {
    struct engine_reply reply = {0};
    struct engine_request request = {.method = "GET", .path = path};
    int32_t status = engine_send(engine, call, &request, &reply);
    long code = reply.status;
    engine_reply_clear(&reply);
    if (status != SANDHOST_OK || code == 404) {
      return status;
    }
    status = host->wait(call, -1, 0, REMOVAL_TICK);
    if (status == SANDHOST_CANCELLED) {
      return fail_call(host, call, status, "cancelled while a container was being removed");
    }
    if (host->cancelled(call)) {
      return fail_call(host, call, SANDHOST_TIMEOUT, "the container is still being removed");
    }
  }
}

/* Podman was about to kill it when it ended by itself. */
static gboolean ended_meanwhile(const struct engine_reply *reply) {
  const char *message = reply->status == 500 ? engine_text(reply->json, "message") : NULL;
  return message && strstr(message, "container state improper");
}

/* *ret_was_there: the engine knew it. */
static int32_t remove_once(Engine *engine, struct sandhost_call *call, const char *id,
                           gboolean *ret_was_there) {
  g_autofree char *escaped = engine_escape(id);
  g_autofree char *path = g_strdup_printf("/containers/%s?force=1&v=1", escaped);
  struct engine_request request = {.method = "DELETE", .path = path};
  struct engine_reply reply = {0};
  int32_t status = engine_send(engine, call, &request, &reply);
  for (int i = 0; i < MOST_REMOVALS && status == SANDHOST_OK && ended_meanwhile(&reply); i++) {
    engine_reply_clear(&reply);
    (void)call_relay_host.wait(call, -1, 0, REMOVAL_TICK);
    status = engine_send(engine, call, &request, &reply);
  }
  long code = reply.status;
  if (status == SANDHOST_OK && code == 409) { /* it ended, and the engine is removing it already */
    status = wait_until_gone(&call_relay_host, engine, call, id);
  } else if (status == SANDHOST_OK && code != 404 && (code < 200 || code > 299)) {
    status = engine_refused(engine, call, &reply, "cannot remove the container");
  }
  *ret_was_there = status == SANDHOST_OK && code != 404;
  engine_reply_clear(&reply);
  return status;
}

int32_t container_remove(Engine *engine, struct sandhost_call *call, const char *id) {
  gboolean was_there = FALSE;
  return remove_once(engine, call, id, &was_there);
}

int32_t container_clean_up(struct sandhost_instance *instance, struct sandhost_call *call,
                           const char *id) {
  const struct sandhost_host *host = instance->host;
  int64_t patience = host->cancelled(call) ? LAST_PATIENCE : CLEAN_UP_PATIENCE;
  g_auto(CallRelay)
      relay = {.host = host, .call = call, .quiet = TRUE, .deadline = contract_now() + patience};
  return container_remove(instance->engine, call_relay_call(&relay), id);
}

int32_t container_clean_up_unheard(struct sandhost_instance *instance, struct sandhost_call *call,
                                   const char *name) {
  g_auto(CallRelay) relay = {.host = instance->host,
                             .call = call,
                             .quiet = TRUE,
                             .deadline = contract_now() + LAST_PATIENCE};
  struct sandhost_call *relayed = call_relay_call(&relay);
  gboolean was_there = FALSE;
  int32_t status = SANDHOST_OK;
  do {
    status = remove_once(instance->engine, relayed, name, &was_there);
  } while (status == SANDHOST_OK && !was_there && !call_relay_host.cancelled(relayed) &&
           call_relay_host.wait(relayed, -1, 0, REMOVAL_TICK) == SANDHOST_TIMEOUT);
  if (!was_there) { /* a busy engine may make it later still: a sweep's */
    const struct sandhost_failure details = {
        .size = sizeof details, .service_code = {.data = ""}, .may_have_happened = 1};
    instance->host->fail_details(call, &details);
  }
  return status;
}

int32_t docker_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  if (sandbox->client && guest_client_lose(sandbox->client, "it was ended")) {
    /* Nobody takes any more of what the calls were sent: podman cannot end a container whose output nobody takes. */
    (void)shutdown(sandbox->stream_fd, SHUT_RDWR);
  }
  int32_t status = container_remove(sandbox->instance->engine, call, sandbox->id);
  if (status == SANDHOST_OK) {
    pthread_mutex_lock(&sandbox->lock);
    sandbox->gone = TRUE;
    pthread_mutex_unlock(&sandbox->lock);
  }
  return status;
}

void docker_release(struct sandhost_sandbox *sandbox) {
  guest_client_free(sandbox->client); /* its channel closes: what still runs ends with it */
  if (sandbox->lifeline) {
    sandbox->lifeline->free(sandbox->lifeline);
  }
  pthread_mutex_destroy(&sandbox->lock);
  if (sandbox->environment) {
    g_ptr_array_unref(sandbox->environment);
  }
  g_free(sandbox->id);
  g_free(sandbox->key);
  g_free(sandbox->run_id);
  g_free(sandbox->working_dir);
  g_free(sandbox->lost_reason);
  g_free(sandbox);
}
