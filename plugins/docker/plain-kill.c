/* SPDX-License-Identifier: Apache-2.0 */
/* plain-kill.c: signals to what runs in the container, and its end. */
#include "plain.h"

#include "call-relay.h"
#include "failure.h"

#include <signal.h>
#include <string.h>

#define KILL_TICK (50 * PLAIN_MILLISECOND)
#define STOP_PATIENCE (2 * PLAIN_SECOND)
/* Until the engine has heard of a memory failure that we have seen the effect of. */
#define MEMORY_TICK (100 * PLAIN_MILLISECOND)
#define MEMORY_LOOKS 2
/* How exactly the beginning of a command is known by the engine's clock: where it is ours, and where it is not. */
#define NEAR_SLACK (100 * PLAIN_MILLISECOND)
#define FAR_SLACK (2 * PLAIN_SECOND)

static char *mark_bytes(uint64_t number) {
  return g_strdup_printf("%" G_GUINT64_FORMAT, number * 1024);
}

int32_t plain_kill_tree(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                        const struct plain_mark *mark, int64_t patience) {
  g_autofree char *number = mark_bytes(mark->number);
  const char *arguments[] = {number, NULL};
  const int64_t until = contract_now() + patience;
  while (contract_now() < until) {
    g_auto(CallRelay)
        relay = {.host = sandbox->host, .call = call, .quiet = TRUE, .deadline = until};
    struct sandhost_call *relayed = call_relay_call(&relay);
    g_autofree char *said = NULL;
    int32_t status = plain_run_script(sandbox, relayed, plain_script_kill, arguments, &said);
    if (status == SANDHOST_OK && strcmp(said, "clean\n") == 0) {
      return SANDHOST_OK;
    }
    if (status == SANDHOST_OK && strcmp(said, "busy\n") != 0 &&
        !strcasestr(said, "temporarily unavailable")) {
      return SANDHOST_UNSUPPORTED; /* it has no shell, or /proc is not what it is elsewhere */
    }
    if (status == SANDHOST_LOST) {
      return status;
    }
    (void)call_relay_host.wait(relayed, -1, 0, KILL_TICK);
  }
  return SANDHOST_TIMEOUT;
}

static int32_t signal_container(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                                const char *name) {
  g_auto(CallRelay) relay = {.host = sandbox->host,
                             .call = call,
                             .quiet = TRUE,
                             .deadline = contract_now() + STOP_PATIENCE};
  g_autofree char *path = g_strdup_printf("/containers/%s/kill?signal=%s", sandbox->id, name);
  struct engine_request request = {.method = "POST", .path = path};
  return engine_ask(sandbox->instance->engine, call_relay_call(&relay), &request, 404,
                    "cannot signal the container", NULL);
}

void plain_kill_all(struct sandhost_sandbox *sandbox, struct sandhost_call *call) {
  (void)signal_container(sandbox, call, "SIGUSR1");
}

int32_t plain_stop(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                   const char *reason) {
  (void)signal_container(sandbox, call, "SIGKILL");
  pthread_mutex_lock(&sandbox->lock);
  if (!sandbox->lost_reason) {
    sandbox->lost_reason = g_strdup(reason);
  }
  pthread_mutex_unlock(&sandbox->lock);
  return fail_call(sandbox->host, call, SANDHOST_LOST, "%s", reason);
}

int32_t plain_signal(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                     uint64_t execution, int32_t signal) {
  uint32_t pid = 0;
  g_autofree char *number = mark_bytes(plain_execution_mark(execution, &pid));
  if (signal < 1 || signal >= NSIG) {
    return fail_call(sandbox->host, call, SANDHOST_INVALID, "%d is no signal", (int)signal);
  }
  g_autofree char *process = g_strdup_printf("%u", (unsigned)pid);
  g_autofree char *name = g_strdup_printf("%d", (int)signal);
  const char *arguments[] = {number, process, name, NULL};
  g_autofree char *said = NULL;
  int32_t status = pid < 2 ? plain_check_alive(sandbox, call)
                           : plain_run_script(sandbox, call, plain_script_signal, arguments, &said);
  if (status != SANDHOST_OK || g_strcmp0(said, "sent\n") == 0) {
    return status;
  }
  if (pid < 2 || strcmp(said, "gone\n") == 0) {
    return fail_call(sandbox->host, call, SANDHOST_NOT_FOUND, "the command has ended");
  }
  return fail_call(sandbox->host, call, SANDHOST_UNSUPPORTED,
                   "the image has no shell with which a signal could be sent");
}

/* ---- Memory ----------------------------------------------------------------------------------- */

/* The engine's own time, nanoseconds since 1970; 0: it does not say. */
static int64_t engine_time(struct sandhost_sandbox *sandbox, struct sandhost_call *call) {
  if (engine_is_local(sandbox->instance->engine)) {
    return g_get_real_time() * 1000;
  }
  struct engine_request request = {.method = "GET", .path = "/info"};
  struct engine_reply reply = {0};
  if (engine_ask(sandbox->instance->engine, call, &request, 0, "its time", &reply) != SANDHOST_OK) {
    return 0;
  }
  const char *text = engine_text(reply.json, "SystemTime");
  g_autoptr(GDateTime) time = text ? g_date_time_new_from_iso8601(text, NULL) : NULL;
  engine_reply_clear(&reply);
  return time ? g_date_time_to_unix(time) * PLAIN_SECOND : 0;
}

static int32_t find_text(void *user, const void *data, size_t length) {
  gboolean *found = user;
  *found = *found || memmem(data, length, "\"oom\"", 5) != NULL;
  return SANDHOST_OK;
}

static gboolean has_event(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          int64_t duration) {
  int64_t now = engine_time(sandbox, call);
  gboolean found = FALSE;
  if (now == 0) {
    return FALSE; /* what cannot be dated is not taken for this command's */
  }
  int64_t began = now - duration;
  int64_t since = began - (engine_is_local(sandbox->instance->engine) ? NEAR_SLACK : FAR_SLACK);
  /* What an earlier command was told is not told again to one that began after it. */
  pthread_mutex_lock(&sandbox->lock);
  since = sandbox->memory_told <= began ? MAX(since, sandbox->memory_told) : since;
  pthread_mutex_unlock(&sandbox->lock);
  g_autofree char *filters = g_strdup_printf(
      "{\"container\":[\"%s\"],\"type\":[\"container\"],\"event\":[\"oom\"]}", sandbox->id);
  g_autofree char *escaped = engine_escape(filters);
  g_autofree char *path = g_strdup_printf("/events?since=%" G_GINT64_FORMAT
                                          ".%09d&until=%" G_GINT64_FORMAT ".%09d&filters=%s",
                                          since / PLAIN_SECOND, (int)(since % PLAIN_SECOND),
                                          now / PLAIN_SECOND, (int)(now % PLAIN_SECOND), escaped);
  struct sandhost_sink sink = {.size = sizeof sink, .user = &found, .write = find_text};
  struct engine_request request = {.method = "GET", .path = path, .sink = &sink};
  (void)engine_ask(sandbox->instance->engine, call, &request, 0, "events", NULL);
  if (found) {
    pthread_mutex_lock(&sandbox->lock);
    sandbox->memory_told = MAX(sandbox->memory_told, now);
    pthread_mutex_unlock(&sandbox->lock);
  }
  return found;
}

gboolean plain_out_of_memory(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                             int64_t duration) {
  g_auto(CallRelay) relay = {.host = sandbox->host,
                             .call = call,
                             .quiet = TRUE,
                             .deadline = contract_now() + STOP_PATIENCE};
  struct sandhost_call *relayed = call_relay_call(&relay);
  g_autofree char *path = g_strdup_printf("/containers/%s/json", sandbox->id);
  struct engine_request request = {.method = "GET", .path = path};
  struct engine_reply reply = {0};
  /* State.OOMKilled is of no use: engines set it when the container itself has ended. */
  gboolean bounded = engine_ask(sandbox->instance->engine, relayed, &request, 0, "its state",
                                &reply) == SANDHOST_OK &&
                     engine_integer(reply.json, "HostConfig/Memory", 0) > 0;
  engine_reply_clear(&reply);
  for (int look = 0; bounded && look < MEMORY_LOOKS; look++) {
    if (has_event(sandbox, relayed, duration)) {
      return TRUE;
    }
    (void)call_relay_host.wait(relayed, -1, 0, MEMORY_TICK);
    duration += MEMORY_TICK;
  }
  return FALSE;
}
