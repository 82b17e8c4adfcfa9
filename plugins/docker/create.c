/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create.c: from a request to a container whose guest has greeted, or to one line that says what to do.
 *
 * create, attach, start, greet. Whatever fails in between, the container is removed by its name, which is chosen
 * before the engine hears of it: so it is found even where the engine's answer was lost.
 */
#include "attach-channel.h"
#include "call-relay.h"
#include "create-request.h"
#include "failure.h"
#include "guest-sandbox.h"
#include "guest-volume.h"
#include "verify.h"

#include <string.h>

/* What one create works with; on the stack. */
struct making {
  struct sandhost_instance *instance;
  struct sandhost_call *call;
  const struct sandhost_create *request;
  const struct engine_facts *facts;
  struct image image;
  char *working_dir;
  GPtrArray *environment; /* of char *, "NAME=value" */
  char *session;
  char *run_id;
  char *name;       /* of the container */
  gboolean unheard; /* the engine was asked for the container and has not answered */
  gboolean use_guest;
  gboolean guest_readable;
};

static void making_clear(struct making *making) {
  image_clear(&making->image);
  if (making->environment) {
    g_ptr_array_unref(making->environment);
  }
  g_free(making->working_dir);
  g_free(making->session);
  g_free(making->run_id);
  g_free(making->name);
}

/* ---- Before anything is started --------------------------------------------------------------- */

static int32_t check_request(struct making *making) {
  const struct sandhost_host *host = making->instance->host;
  const struct sandhost_create *request = making->request;
  int32_t status = guest_sandbox_check_request(host, making->call, request);
  if (status != SANDHOST_OK) {
    return status;
  }
  const struct sandhost_network *network = request->network;
  if (network->allowed_count > 0 || network->denied_count > 0 || request->gpu ||
      request->lifetime != 0) {
    return fail_call(host, making->call, SANDHOST_UNSUPPORTED,
                     "a docker sandbox keeps no lists of hosts, no GPU and no lifetime");
  }
  if (request->mount_count > 0 && !engine_is_local(making->instance->engine)) {
    return fail_call(host, making->call, SANDHOST_UNSUPPORTED,
                     "%s may run on another machine, where the folder to mount is not this one",
                     engine_name(making->instance->engine));
  }
  if (request->working_dir.length == 1) {
    return fail_call(host, making->call, SANDHOST_INVALID,
                     "the working directory of a docker sandbox cannot be /");
  }
  return SANDHOST_OK;
}

static int32_t check_machine(struct making *making) {
  const struct sandhost_instance *instance = making->instance;
  const struct engine_facts *facts = making->facts;
  const struct sandhost_create *request = making->request;
  if (instance->runtime && facts->has_runtime_list &&
      !g_strv_contains(facts->runtimes, instance->runtime)) {
    return fail_call(instance->host, making->call, SANDHOST_UNAVAILABLE,
                     "Container runtime '%s' is not available to Docker (for gVisor, install runsc "
                     "and register it with the Docker daemon)",
                     instance->runtime);
  }
  const char *missing = request->memory_bytes > 0 && !facts->memory_limit ? "a memory limit"
                        : request->cpu_millis > 0 && !facts->cpu_limit    ? "a CPU limit"
                        : !facts->pids_limit                              ? "a limit on processes"
                                                                          : NULL;
  if (missing) {
    return fail_call(instance->host, making->call, SANDHOST_UNSUPPORTED,
                     "the machine of %s cannot keep %s: its kernel lacks the control group",
                     engine_name(instance->engine), missing);
  }
  return SANDHOST_OK;
}

static char *text_or(struct sandhost_text text, const char *fallback) {
  return text.length > 0 ? g_strndup(text.data, text.length) : g_strdup(fallback);
}

static int32_t find_snapshot(struct making *making, const char *id) {
  const struct sandhost_instance *instance = making->instance;
  g_auto(CallRelay) relay = {.host = instance->host, .call = making->call, .quiet = TRUE};
  int32_t status = image_get(instance->engine, instance->host, call_relay_call(&relay), id, FALSE,
                             &making->image);
  if (status == SANDHOST_NOT_FOUND) {
    return fail_call(instance->host, making->call, status, "there is no snapshot %s on %s", id,
                     engine_name(instance->engine));
  }
  return status == SANDHOST_OK
             ? status
             : fail_call(instance->host, making->call, status, "%s", relay.failure);
}

static int32_t find_image(struct making *making) {
  const struct sandhost_create *request = making->request;
  const struct sandhost_instance *instance = making->instance;
  gboolean from_snapshot = request->snapshot.length > 0;
  g_autofree char *name =
      from_snapshot ? text_or(request->snapshot, "") : text_or(request->image, instance->image);
  int32_t status = from_snapshot ? find_snapshot(making, name)
                                 : image_get(instance->engine, instance->host, making->call, name,
                                             instance->may_pull, &making->image);
  if (status == SANDHOST_OK && strcmp(making->image.os, "linux") != 0) {
    status = fail_call(instance->host, making->call, SANDHOST_UNSUPPORTED,
                       "the image %s is made for another system than linux", name);
  }
  if (status == SANDHOST_OK) {
    report_fact(instance->host, making->call, SANDHOST_REPORT_IMAGE, name);
  }
  return status;
}

/* A name that the engine takes, made of a key that the host chose. */
static char *container_name(const char *key) {
  char *name = g_strdup_printf("sandhost-%s", key);
  for (char *at = name; *at; at++) {
    if (!g_ascii_isalnum(*at) && !strchr("_.-", *at)) {
      *at = '-';
    }
  }
  return name;
}

static GPtrArray *copy_environment(const struct sandhost_create *request) {
  GPtrArray *environment = g_ptr_array_new_with_free_func(g_free);
  for (size_t i = 0; i < request->environment_count; i++) {
    const struct sandhost_pair *pair = &request->environment[i];
    g_ptr_array_add(environment, g_strdup_printf("%.*s=%.*s", (int)pair->name.length,
                                                 pair->name.data, (int)pair->value.length,
                                                 pair->value.length ? pair->value.data : ""));
  }
  return environment;
}

static int32_t prepare(struct making *making) {
  const struct sandhost_create *request = making->request;
  int32_t status = check_request(making);
  if (status != SANDHOST_OK) {
    return status;
  }
  making->environment = copy_environment(request);
  making->working_dir = g_strndup(request->working_dir.data, request->working_dir.length);
  making->session = text_or(request->key, "unknown");
  making->run_id = text_or(request->run_id, "");
  making->name = container_name(making->session);
  status = engine_facts(making->instance->engine, making->call, &making->facts);
  if (status == SANDHOST_OK) {
    status = check_machine(making);
  }
  return status == SANDHOST_OK ? find_image(making) : status;
}

/* The guest's volume, or NULL where the plain path is to serve. */
static int32_t choose_path(struct making *making, gboolean refill, const char **ret_volume) {
  struct sandhost_instance *instance = making->instance;
  *ret_volume = NULL;
  if (instance->path == DOCKER_PATH_PLAIN) {
    return SANDHOST_OK;
  }
  int32_t status = guest_volume_get(instance, making->call, making->image.id, refill, ret_volume);
  if (status == SANDHOST_OK && !*ret_volume && instance->path == DOCKER_PATH_GUEST) {
    status = fail_call(instance->host, making->call, SANDHOST_UNAVAILABLE,
                       "the program sandhost-guest for %s is not installed here",
                       making->facts->architecture);
  }
  return status;
}

/* ---- The container ---------------------------------------------------------------------------- */

/* Docker says it by the code, podman by its text alone. */
static gboolean says_taken(const struct engine_reply *reply) {
  const char *message = engine_text(reply->json, "message");
  return reply->status == 409 ||
         (reply->status == 500 && message && strstr(message, "is already in use by"));
}

static int32_t create_container(struct making *making, const char *volume, char **ret_id) {
  const struct sandhost_instance *instance = making->instance;
  const struct container_plan plan = {.instance = instance,
                                      .request = making->request,
                                      .image = &making->image,
                                      .working_dir = making->working_dir,
                                      .environment = making->environment,
                                      .guest_volume = volume,
                                      .guest_readable = making->guest_readable,
                                      .session = making->session,
                                      .run_id = making->run_id,
                                      .is_podman = making->facts->is_podman};
  json_object *body = create_request_new(&plan);
  g_autofree char *path = g_strdup_printf("/containers/create?name=%s", making->name);
  struct engine_request request = {.method = "POST", .path = path, .json = body};
  struct engine_reply reply = {0};
  making->unheard = !instance->host->cancelled(making->call);
  int32_t status = engine_send(instance->engine, making->call, &request, &reply);
  if (status == SANDHOST_OK && says_taken(&reply)) {
    /* What an earlier try of the same sandbox left: nothing of it can be used. */
    engine_reply_clear(&reply);
    status = container_remove(instance->engine, making->call, making->name);
    if (status == SANDHOST_OK) {
      status = engine_send(instance->engine, making->call, &request, &reply);
    }
  }
  json_object_put(body);
  making->unheard = making->unheard && status != SANDHOST_OK;
  if (status == SANDHOST_OK && (reply.status < 200 || reply.status > 299)) {
    status = engine_refused(instance->engine, making->call, &reply, "cannot create the container");
  }
  const char *id = status == SANDHOST_OK ? engine_text(reply.json, "Id") : NULL;
  if (status == SANDHOST_OK && !container_is_id(id)) {
    status = fail_call(instance->host, making->call, SANDHOST_PROTOCOL,
                       "%s gave a container without an id", engine_name(instance->engine));
  }
  *ret_id = g_strdup(id);
  engine_reply_clear(&reply);
  return status;
}

static int32_t attach(struct making *making, const char *id, ByteChannel **ret_channel) {
  ByteChannel *raw = NULL;
  g_autofree char *path =
      g_strdup_printf("/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1", id);
  struct engine_request request = {.method = "POST", .path = path};
  int32_t status = engine_upgrade(making->instance->engine, making->call, &request,
                                  "cannot attach to the container", &raw);
  *ret_channel = status == SANDHOST_OK ? attach_channel_new(raw) : NULL;
  return status;
}

/* Why a container with a guest did not start, where there is something to be done about it. */
enum start_trouble {
  TROUBLE_NONE,
  TROUBLE_NO_GUEST,   /* its volume is there and empty */
  TROUBLE_UNREADABLE, /* the runtime must be able to read it */
};

static enum start_trouble trouble_of(const struct engine_reply *reply) {
  const char *message = engine_text(reply->json, "message");
  if (!message || !strstr(message, GUEST_FOLDER)) {
    return TROUBLE_NONE;
  }
  if (strstr(message, "no such file") || strstr(message, "not found")) {
    return TROUBLE_NO_GUEST;
  }
  return strstr(message, "permission denied") ? TROUBLE_UNREADABLE : TROUBLE_NONE;
}

/* With a trouble nothing has been told. */
static int32_t start(struct making *making, const char *id, enum start_trouble *ret_trouble) {
  const struct sandhost_instance *instance = making->instance;
  g_autofree char *path = g_strdup_printf("/containers/%s/start", id);
  struct engine_request request = {.method = "POST", .path = path};
  struct engine_reply reply = {0};
  int32_t status = engine_send(instance->engine, making->call, &request, &reply);
  if (status == SANDHOST_OK && (reply.status < 200 || reply.status > 299)) {
    *ret_trouble = making->use_guest ? trouble_of(&reply) : TROUBLE_NONE;
    status = *ret_trouble ? SANDHOST_UNAVAILABLE
                          : engine_refused(instance->engine, making->call, &reply,
                                           "cannot start the container");
  }
  engine_reply_clear(&reply);
  return status;
}

static int32_t greet(struct making *making, struct sandhost_sandbox *sandbox,
                     ByteChannel *channel) {
  const struct sandhost_instance *instance = making->instance;
  gboolean is_init = FALSE;
  g_auto(CallRelay) relay = {.host = instance->host, .call = making->call, .quiet = TRUE};
  int32_t status = guest_client_greet(sandbox->client, call_relay_call(&relay), &is_init);
  if (status == SANDHOST_OK && !is_init) {
    return fail_call(instance->host, making->call, SANDHOST_UNSUPPORTED,
                     "the sandbox's guest is not the first process of its container");
  }
  if (status != SANDHOST_OK) {
    g_autofree char *complaint = attach_channel_complaint(channel);
    g_autofree char *reason = complaint[0] ? NULL : container_end_reason(sandbox, making->call);
    status = status == SANDHOST_LOST ? SANDHOST_UNAVAILABLE : status;
    return fail_call(instance->host, making->call, status, "the sandbox's guest did not greet: %s",
                     complaint[0]    ? complaint
                     : reason        ? reason
                     : relay.failure ? relay.failure
                                     : "unknown");
  }
  return SANDHOST_OK;
}

/* The container runs: a sandbox with its client, or with its lifeline. Takes the channel. */
static struct sandhost_sandbox *new_sandbox(const struct making *making, const char *id,
                                            ByteChannel *take_channel) {
  struct sandhost_sandbox *sandbox = g_new0(struct sandhost_sandbox, 1);
  sandbox->instance = making->instance;
  sandbox->host = making->instance->host;
  sandbox->id = g_strdup(id);
  sandbox->key = g_strdup(making->session);
  sandbox->run_id = g_strdup(making->run_id);
  sandbox->working_dir = g_strdup(making->working_dir);
  sandbox->environment = g_ptr_array_ref(making->environment);
  pthread_mutex_init(&sandbox->lock, NULL);
  if (making->use_guest) {
    sandbox->stream_fd = take_channel->receive_fd(take_channel);
    sandbox->client = guest_client_new(sandbox->host, take_channel, sandbox->working_dir);
  } else {
    sandbox->lifeline = take_channel;
  }
  return sandbox;
}

/* What must be true of a sandbox before it is given away. */
static int32_t settle(struct making *making, struct sandhost_sandbox *sandbox,
                      ByteChannel *channel) {
  int32_t status = making->use_guest ? greet(making, sandbox, channel) : SANDHOST_OK;
  if (status == SANDHOST_OK) {
    status = verify_container(sandbox, making->call, making->request);
  }
  if (status == SANDHOST_OK && making->request->snapshot.length > 0) {
    status = snapshot_restore(sandbox, making->call, making->image.id);
  }
  return status;
}

/* One try. On a failure nothing of it is left; with a trouble nothing has been told either. */
static int32_t try_to_make(struct making *making, const char *volume,
                           enum start_trouble *ret_trouble, struct sandhost_sandbox **ret_sandbox) {
  g_autofree char *id = NULL;
  ByteChannel *channel = NULL;
  struct sandhost_sandbox *sandbox = NULL;
  making->use_guest = volume != NULL;
  *ret_trouble = TROUBLE_NONE;
  int32_t status = create_container(making, volume, &id);
  if (status == SANDHOST_OK) {
    status = attach(making, id, &channel);
  }
  if (status == SANDHOST_OK) {
    status = start(making, id, ret_trouble);
  }
  if (status == SANDHOST_OK) {
    sandbox = new_sandbox(making, id, channel);
    status = settle(making, sandbox, g_steal_pointer(&channel));
  }
  if (status == SANDHOST_OK) {
    *ret_sandbox = sandbox;
    return status;
  }
  if (channel) {
    channel->free(channel);
  }
  /* By its name: the engine may have made one whose id never came. */
  if (making->unheard) {
    (void)container_clean_up_unheard(making->instance, making->call, making->name);
  } else {
    (void)container_clean_up(making->instance, making->call, making->name);
  }
  if (sandbox) {
    docker_release(sandbox);
  }
  return status;
}

/* What can be done about it. FALSE: nothing, or it has been done before. */
static gboolean mend(struct making *making, enum start_trouble trouble, gboolean *refilled) {
  struct sandhost_instance *instance = making->instance;
  gboolean mended = FALSE;
  if (trouble == TROUBLE_NO_GUEST) { /* whoever filled the volume was stopped half way */
    mended = !*refilled;
    *refilled = TRUE;
  } else if (trouble == TROUBLE_UNREADABLE) {
    pthread_mutex_lock(&instance->lock);
    instance->guest_readable = TRUE;
    pthread_mutex_unlock(&instance->lock);
    mended = !making->guest_readable;
    making->guest_readable = TRUE;
  }
  return mended;
}

static int32_t make(struct making *making, struct sandhost_sandbox **ret_sandbox) {
  struct sandhost_instance *instance = making->instance;
  const char *volume = NULL;
  enum start_trouble trouble = TROUBLE_NONE;
  gboolean refilled = FALSE;
  int32_t status = prepare(making);
  pthread_mutex_lock(&instance->lock);
  making->guest_readable = instance->guest_readable;
  pthread_mutex_unlock(&instance->lock);
  if (status != SANDHOST_OK) {
    return status;
  }
  do {
    status = choose_path(making, trouble == TROUBLE_NO_GUEST, &volume);
    if (status != SANDHOST_OK) {
      return status;
    }
    status = try_to_make(making, volume, &trouble, ret_sandbox);
  } while (mend(making, trouble, &refilled));
  return trouble ? fail_call(instance->host, making->call, SANDHOST_UNAVAILABLE,
                             "cannot start the container: it %s the guest in the volume %s; remove "
                             "that volume",
                             trouble == TROUBLE_NO_GUEST ? "does not find" : "may not run", volume)
                 : status;
}

int32_t docker_create(struct sandhost_call *call, struct sandhost_instance *instance,
                      const struct sandhost_create *request,
                      struct sandhost_sandbox **ret_sandbox) {
  struct making making = {.instance = instance, .call = call, .request = request};
  int32_t status = make(&making, ret_sandbox);
  making_clear(&making);
  if (status == SANDHOST_OK) {
    report_fact(instance->host, call, SANDHOST_REPORT_REF, (*ret_sandbox)->id);
  }
  return status;
}
