/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c: the network of a running container, taken away and given back by moving it off and
 * onto networks of the engine. What is in force is read back: engines answer 200 to moves that
 * change nothing.
 *
 * Off means on no network, or only on "none". A move that went half-way is undone. A container that
 * was to be off and may still be on is an error that says so; nothing here leaves it on in silence.
 */
#include "call-relay.h"
#include "failure.h"
#include "instance.h"

#include <string.h>
#include <time.h>

#define SECOND ((int64_t)1000000000)
/* To put things back in, also when the call is over: what the contract allows. */
#define UNDO_PATIENCE (2 * SECOND)
#define MAX_NETWORKS 64u
#define MAX_NETWORK_NAME 256u
#define OFF "none"
#define ON "bridge"

/* What an inspection says of a container's networks. */
struct links {
  GPtrArray *names; /* of char *; all but "none" */
  gboolean on_none;
  gboolean disabled; /* made without any network: the engine moves it in its books only */
  char *mode;        /* owned: what it was made with */
};

static void links_clear(struct links *links) {
  if (links->names) {
    g_ptr_array_unref(links->names);
  }
  g_free(links->mode);
  memset(links, 0, sizeof *links);
}
typedef struct links Links;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Links, links_clear)

/* ---- Asking the engine ------------------------------------------------------------------------ */

static gboolean read_links(json_object *container, struct links *links) {
  json_object *networks = engine_object(container, "NetworkSettings/Networks");
  const char *mode = engine_text(container, "HostConfig/NetworkMode");
  *links = (struct links){.names = g_ptr_array_new_with_free_func(g_free),
                          .disabled = engine_boolean(container, "Config/NetworkDisabled", FALSE),
                          .mode = g_strdup(mode ? mode : "")};
  if (!networks) {
    /* podman leaves them out where there are none; anything else is no answer. */
    json_object *settings = engine_object(container, "NetworkSettings");
    json_object *value = NULL;
    return settings && (!json_object_object_get_ex(settings, "Networks", &value) || !value);
  }
  json_object_object_foreach(networks, name, network) {
    (void)network;
    if (strcmp(name, OFF) == 0) {
      links->on_none = TRUE;
    } else if (strlen(name) > MAX_NETWORK_NAME || links->names->len >= MAX_NETWORKS) {
      return FALSE;
    } else {
      g_ptr_array_add(links->names, g_strdup(name));
    }
  }
  return TRUE;
}

static int32_t look_at_links(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                             struct links *ret_links) {
  Engine *engine = sandbox->instance->engine;
  g_autofree char *path = g_strdup_printf("/containers/%s/json", sandbox->id);
  struct engine_request request = {.method = "GET", .path = path};
  struct engine_reply reply = {0};
  struct links links = {0};
  int32_t status =
      engine_ask(engine, call, &request, 404, "cannot look at the sandbox's network", &reply);
  if (status == SANDHOST_OK &&
      (reply.status == 404 || !engine_boolean(reply.json, "State/Running", FALSE))) {
    status = fail_call(sandbox->host, call, SANDHOST_LOST, "the sandbox is gone");
  } else if (status == SANDHOST_OK && !read_links(reply.json, &links)) {
    status = fail_call(sandbox->host, call, SANDHOST_PROTOCOL,
                       "%s does not say which networks the sandbox is on", engine_name(engine));
  }
  engine_reply_clear(&reply);
  if (status != SANDHOST_OK) {
    links_clear(&links);
    return status;
  }
  *ret_links = links;
  return SANDHOST_OK;
}

/* verb: "connect" or "disconnect". */
static int32_t move(struct sandhost_sandbox *sandbox, struct sandhost_call *call, const char *verb,
                    const char *network) {
  g_autofree char *escaped = engine_escape(network);
  g_autofree char *path = g_strdup_printf("/networks/%s/%s", escaped, verb);
  g_autofree char *what = g_strdup_printf("cannot %s the sandbox %s the network %s", verb,
                                          verb[0] == 'c' ? "to" : "from", network);
  json_object *body = json_object_new_object();
  json_object_object_add(body, "Container", json_object_new_string(sandbox->id));
  struct engine_request request = {.method = "POST", .path = path, .json = body};
  int32_t status = engine_ask(sandbox->instance->engine, call, &request, 0, what, NULL);
  json_object_put(body);
  return status;
}

/* ---- Putting back ----------------------------------------------------------------------------- */

static int64_t steady_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

/* A call of its own for what must be tried although the call has failed or is over. */
static struct call_relay quiet_call(struct sandhost_sandbox *sandbox, struct sandhost_call *call) {
  return (struct call_relay){
      .host = sandbox->host, .call = call, .quiet = TRUE, .deadline = steady_now() + UNDO_PATIENCE};
}

/* ---- Off -------------------------------------------------------------------------------------- */

static int32_t leave_all(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const struct links *links, guint *ret_left) {
  for (guint i = 0; i < links->names->len; i++) {
    int32_t status = move(sandbox, call, "disconnect", g_ptr_array_index(links->names, i));
    if (status != SANDHOST_OK) {
      return status;
    }
    *ret_left = i + 1;
  }
  return SANDHOST_OK;
}

/* After a failure: the first of the networks were left already. */
static int32_t undo_off(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                        const struct links *before, guint left, int32_t status, const char *why) {
  g_auto(CallRelay) relay = quiet_call(sandbox, call);
  struct sandhost_call *own = call_relay_call(&relay);
  int32_t undone = SANDHOST_OK;
  for (guint i = 0; i < left && undone == SANDHOST_OK; i++) {
    undone = move(sandbox, own, "connect", g_ptr_array_index(before->names, i));
  }
  const char *state = undone == SANDHOST_OK ? "it is on as before"
                                            : "it may be on or off, and could not be put back";
  return fail_call(sandbox->host, call, status,
                   "the network of the sandbox was not switched off, and %s: %s", state, why);
}

static int32_t switch_off(struct sandhost_sandbox *sandbox, struct sandhost_call *call) {
  g_auto(Links) before = {0};
  int32_t status = look_at_links(sandbox, call, &before);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (strcmp(before.mode, "host") == 0 || g_str_has_prefix(before.mode, "container:")) {
    return fail_call(sandbox->host, call, SANDHOST_UNSUPPORTED,
                     "the sandbox shares the network of another, which cannot be taken from it");
  }
  /* Failures are held back until it is known what they left behind. */
  g_auto(CallRelay) relay = {.host = sandbox->host, .call = call, .quiet = TRUE};
  struct sandhost_call *held = call_relay_call(&relay);
  g_auto(Links) after = {0};
  guint left = 0;
  status = leave_all(sandbox, held, &before, &left);
  /* What counts is what is in force: a network that was left meanwhile is no failure. */
  int32_t looked = look_at_links(sandbox, held, &after);
  if (looked == SANDHOST_OK && after.names->len == 0) {
    return SANDHOST_OK;
  }
  if (looked == SANDHOST_LOST) {
    return fail_call(sandbox->host, call, looked, "the sandbox is gone");
  }
  status = status == SANDHOST_OK ? looked : status;
  if (status == SANDHOST_OK) {
    status = fail_call(&call_relay_host, held, SANDHOST_UNAVAILABLE,
                       "the engine still has it on the network %s",
                       (const char *)g_ptr_array_index(after.names, 0));
  }
  return undo_off(sandbox, call, &before, left, status, relay.failure ? relay.failure : "unknown");
}

/* ---- On --------------------------------------------------------------------------------------- */

static int32_t refuse_late(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                           gboolean is_podman) {
  return fail_call(sandbox->host, call, SANDHOST_UNSUPPORTED,
                   "a sandbox that was made without a network cannot get one later: set "
                   "network_policy default to 'allow' in the manifest%s",
                   is_podman ? "" : ", or the option network_switchable to true");
}

/* Whether this engine can put the container on a network at all. */
static int32_t check_late(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const struct links *links) {
  const struct engine_facts *facts = NULL;
  int32_t status = engine_facts(sandbox->instance->engine, call, &facts);
  if (status != SANDHOST_OK) {
    return status;
  }
  /* Docker answers 200, lists an address, and makes no interface; podman refuses in words of its
   * own. */
  gboolean never = links->disabled || (facts->is_podman && strcmp(links->mode, OFF) == 0);
  return never ? refuse_late(sandbox, call, facts->is_podman) : SANDHOST_OK;
}

static int32_t join(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                    gboolean on_none) {
  /* No container is on "none" and another network at once. */
  int32_t status = on_none ? move(sandbox, call, "disconnect", OFF) : SANDHOST_OK;
  if (status == SANDHOST_OK) {
    status = move(sandbox, call, "connect", ON);
  }
  g_auto(Links) after = {0};
  if (status == SANDHOST_OK) {
    status = look_at_links(sandbox, call, &after);
  }
  if (status == SANDHOST_OK && (after.names->len == 0 || after.on_none)) {
    status = fail_call(&call_relay_host, call, SANDHOST_UNAVAILABLE,
                       "the engine did not put it on the network " ON);
  }
  return status;
}

static int32_t switch_on(struct sandhost_sandbox *sandbox, struct sandhost_call *call) {
  g_auto(Links) before = {0};
  int32_t status = look_at_links(sandbox, call, &before);
  if (status == SANDHOST_OK) {
    status = check_late(sandbox, call, &before);
  }
  if (status != SANDHOST_OK || before.names->len > 0) {
    return status;
  }
  g_auto(CallRelay) relay = {.host = sandbox->host, .call = call, .quiet = TRUE};
  status = join(sandbox, call_relay_call(&relay), before.on_none);
  if (status == SANDHOST_OK) {
    return status;
  }
  if (status == SANDHOST_LOST) {
    return fail_call(sandbox->host, call, status, "the sandbox is gone");
  }
  /* Back to no network, whatever of it was done. */
  g_auto(CallRelay) undo = quiet_call(sandbox, call);
  struct sandhost_call *own = call_relay_call(&undo);
  g_auto(Links) now = {0};
  (void)move(sandbox, own, "disconnect", ON);
  gboolean is_off = look_at_links(sandbox, own, &now) == SANDHOST_OK && now.names->len == 0;
  return fail_call(
      sandbox->host, call, status, "the network of the sandbox was not switched on%s: %s",
      is_off ? "" : ", and it may be on all the same", relay.failure ? relay.failure : "unknown");
}

/* ---- The operation ---------------------------------------------------------------------------- */

int32_t docker_set_network_policy(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                  const struct sandhost_network *network) {
  if (network->allowed_count > 0 || network->denied_count > 0) {
    return fail_call(sandbox->host, call, SANDHOST_UNSUPPORTED,
                     "docker does not keep lists of hosts: use network_policy default 'deny' or "
                     "'allow', or a provider that enforces them");
  }
  switch (network->mode) {
  case SANDHOST_NETWORK_DENY:
    return switch_off(sandbox, call);
  case SANDHOST_NETWORK_ALLOW:
    return switch_on(sandbox, call);
  default:
    return fail_call(sandbox->host, call, SANDHOST_INVALID, "unknown network mode %u",
                     network->mode);
  }
}
