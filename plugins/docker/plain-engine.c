/* SPDX-License-Identifier: Apache-2.0 */
/* plain-engine.c: the engine's exec calls. */
#include "plain.h"

#include "call-relay.h"
#include "failure.h"

#include <string.h>

/* Of what a script of ours says. */
#define MOST_SAID ((size_t)64 * 1024)
/* How often an exec that has closed its streams is asked whether it has ended. */
#define CODE_TICK (5 * PLAIN_MILLISECOND)
#define CODE_TICK_MOST (100 * PLAIN_MILLISECOND)

static gboolean says_gone(const struct engine_reply *reply) {
  const char *message = engine_text(reply->json, "message");
  if (!message) {
    return FALSE;
  }
  return strstr(message, "No such container") || strstr(message, "no container with") ||
         ((reply->status == 409 || reply->status == 500) &&
          (strstr(message, "is not running") || strstr(message, "container stopped") ||
           strstr(message, "not in the running state") ||
           strstr(message, "can only create exec sessions on running containers")));
}

int32_t plain_refused(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                      const struct engine_reply *reply, const char *what) {
  if (says_gone(reply)) {
    return fail_call(sandbox->host, call, SANDHOST_LOST, "its container is not running");
  }
  return engine_refused(sandbox->instance->engine, call, reply, what);
}

static json_object *new_list(const char *const *texts) {
  json_object *list = json_object_new_array();
  for (size_t i = 0; texts && texts[i]; i++) {
    json_object_array_add(list, json_object_new_string(texts[i]));
  }
  return list;
}

int32_t plain_exec_create(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const struct plain_exec *exec, char **ret_id) {
  g_autofree char *path = g_strdup_printf("/containers/%s/exec", sandbox->id);
  g_autofree char *user =
      g_strdup_printf("%u:%u", (unsigned)sandbox->instance->uid, (unsigned)sandbox->instance->gid);
  json_object *body = json_object_new_object();
  json_object_object_add(body, "AttachStdin", json_object_new_boolean(exec->has_input));
  json_object_object_add(body, "AttachStdout", json_object_new_boolean(TRUE));
  json_object_object_add(body, "AttachStderr", json_object_new_boolean(TRUE));
  json_object_object_add(body, "Tty", json_object_new_boolean(FALSE));
  json_object_object_add(body, "Cmd", new_list(exec->argv));
  json_object_object_add(body, "Env", new_list(exec->environment));
  json_object_object_add(body, "User", json_object_new_string(user));
  if (exec->cwd) {
    json_object_object_add(body, "WorkingDir", json_object_new_string(exec->cwd));
  }
  struct engine_request request = {.method = "POST", .path = path, .json = body};
  struct engine_reply reply = {0};
  int32_t status = engine_send(sandbox->instance->engine, call, &request, &reply);
  json_object_put(body);
  if (status != SANDHOST_OK) {
    return status;
  }
  const char *id = engine_text(reply.json, "Id");
  if (reply.status < 200 || reply.status >= 300) {
    status = plain_refused(sandbox, call, &reply, "cannot run a command");
  } else if (!container_is_id(id)) {
    status = fail_call(sandbox->host, call, SANDHOST_PROTOCOL, "%s gave a command no id",
                       engine_name(sandbox->instance->engine));
  } else {
    *ret_id = g_strdup(id);
  }
  engine_reply_clear(&reply);
  return status;
}

static json_object *start_body(void) {
  json_object *body = json_object_new_object();
  json_object_object_add(body, "Detach", json_object_new_boolean(FALSE));
  json_object_object_add(body, "Tty", json_object_new_boolean(FALSE));
  return body;
}

int32_t plain_exec_start(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *id, ByteChannel **ret_channel) {
  g_autofree char *path = g_strdup_printf("/exec/%s/start", id);
  json_object *body = start_body();
  struct engine_request request = {.method = "POST", .path = path, .json = body};
  int32_t status = engine_upgrade(sandbox->instance->engine, call, &request,
                                  "cannot start the command", ret_channel);
  json_object_put(body);
  return status;
}

/* ---- The end ---------------------------------------------------------------------------------- */

int32_t plain_exec_code(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                        const char *id, int *ret_code) {
  g_autofree char *path = g_strdup_printf("/exec/%s/json", id);
  struct engine_request request = {.method = "GET", .path = path};
  for (int64_t tick = CODE_TICK;; tick = MIN(2 * tick, CODE_TICK_MOST)) {
    struct engine_reply reply = {0};
    int32_t status = engine_send(sandbox->instance->engine, call, &request, &reply);
    if (status != SANDHOST_OK) {
      return status;
    }
    if (reply.status < 200 || reply.status >= 300) {
      status = reply.status == 404
                   ? fail_call(sandbox->host, call, SANDHOST_LOST, "its container is not running")
                   : plain_refused(sandbox, call, &reply, "cannot learn how the command ended");
      engine_reply_clear(&reply);
      return status;
    }
    gboolean runs = engine_boolean(reply.json, "Running", TRUE);
    int64_t code = engine_integer(reply.json, "ExitCode", -1);
    engine_reply_clear(&reply);
    if (!runs && code >= 0 && code <= 255) {
      *ret_code = (int)code;
      return SANDHOST_OK;
    }
    status = sandbox->host->wait(call, -1, 0, tick);
    if (status == SANDHOST_CANCELLED || sandbox->host->cancelled(call)) {
      status = status == SANDHOST_CANCELLED ? status : SANDHOST_TIMEOUT;
      return fail_call(sandbox->host, call, status, "%s has not told how the command ended",
                       engine_name(sandbox->instance->engine));
    }
  }
}

/* ---- Scripts of ours -------------------------------------------------------------------------- */

static int32_t keep_output(void *user, uint32_t stream, const void *data, size_t length) {
  GString *said = user;
  (void)stream;
  if (said->len + length > MOST_SAID) {
    return SANDHOST_LIMIT;
  }
  g_string_append_len(said, data, (gssize)length);
  return SANDHOST_OK;
}

struct listening {
  struct engine_frames frames;
  GString *said;
};

static int32_t listen_to(void *user, const void *data, size_t length) {
  struct listening *listening = user;
  return engine_frames_feed(&listening->frames, keep_output, listening->said, data, length);
}

/* Starts it without taking the connection over: the answer's body is its output. */
static int32_t start_and_listen(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                                const char *id, GString *said) {
  g_autofree char *path = g_strdup_printf("/exec/%s/start", id);
  struct listening listening = {.said = said};
  struct sandhost_sink sink = {.size = sizeof sink, .user = &listening, .write = listen_to};
  json_object *body = start_body();
  struct engine_request request = {.method = "POST", .path = path, .json = body, .sink = &sink};
  struct engine_reply reply = {0};
  int32_t status = engine_send(sandbox->instance->engine, call, &request, &reply);
  json_object_put(body);
  if (status == SANDHOST_OK && (reply.status < 200 || reply.status >= 300)) {
    status = plain_refused(sandbox, call, &reply, "cannot run a command");
  }
  engine_reply_clear(&reply);
  return status;
}

int32_t plain_run_script(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *script, const char *const *arguments, char **ret_said) {
  g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
  g_autofree char *id = NULL;
  g_ptr_array_add(argv, g_strdup(PLAIN_SHELL));
  g_ptr_array_add(argv, g_strdup("-c"));
  g_ptr_array_add(argv, g_strdup(script));
  g_ptr_array_add(argv, g_strdup("sandhost"));
  for (size_t i = 0; arguments[i]; i++) {
    g_ptr_array_add(argv, g_strdup(arguments[i]));
  }
  g_ptr_array_add(argv, NULL);
  struct plain_exec exec = {.argv = (const char *const *)(void *)argv->pdata, .cwd = "/"};
  int32_t status = plain_exec_create(sandbox, call, &exec, &id);
  if (status != SANDHOST_OK) {
    return status;
  }
  GString *said = g_string_new(NULL);
  status = start_and_listen(sandbox, call, id, said);
  *ret_said = g_string_free(said, status != SANDHOST_OK);
  return status;
}
