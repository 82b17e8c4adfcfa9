/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain-archive.c: the engine's tar streams of a path in a container.
 *
 * The engine follows links in all but the last component of a path, inside the container's own tree. Whoever must not be
 * led elsewhere looks at each component first (plain_resolve). A command that swaps a folder for a link in between gains
 * the sight of files of its own image, which it has anyway.
 */
#include "plain.h"

#include "call-relay.h"
#include "failure.h"

#include <string.h>

#define CLEAN_UP_PATIENCE (2 * PLAIN_SECOND)

struct get {
  TarReader *reader;
  int32_t status; /* of the reader */
};

static int32_t take(void *user, const void *data, size_t length) {
  struct get *get = user;
  if (get->status == SANDHOST_OK) {
    get->status = tar_reader_feed(get->reader, data, length);
  }
  return get->status;
}

static char *archive_path(const struct sandhost_sandbox *sandbox, const char *path,
                          const char *more) {
  g_autofree char *escaped = engine_escape(path);
  return g_strdup_printf("/containers/%s/archive?path=%s%s", sandbox->id, escaped, more);
}

/* Nothing is there, as against: there is no such container. Other engines have other words for a path through a file. */
static gboolean says_missing(const struct engine_reply *reply) {
  const char *message = engine_text(reply->json, "message");
  if (!message || strstr(message, "No such container") || strstr(message, "no container with")) {
    return FALSE;
  }
  return reply->status == 404 || strstr(message, "not a directory") ||
         strstr(message, "no such file or directory");
}

/* Links lead round in a circle. */
static gboolean says_tangled(const struct engine_reply *reply) {
  const char *message = engine_text(reply->json, "message");
  return message && (strstr(message, "too many links") || strstr(message, "too many levels"));
}

/*
 * An engine packs and unpacks files of a container that has ended as well: of its image, without the working directory,
 * which went with it. So whatever was done counts only when the container still runs behind it.
 */
int32_t plain_check_alive(struct sandhost_sandbox *sandbox, struct sandhost_call *call) {
  g_autofree char *path = g_strdup_printf("/containers/%s/json", sandbox->id);
  struct engine_request request = {.method = "GET", .path = path};
  struct engine_reply reply = {0};
  int32_t status = engine_send(sandbox->instance->engine, call, &request, &reply);
  if (status == SANDHOST_OK && reply.status != 200) {
    status = plain_refused(sandbox, call, &reply, "cannot see whether the sandbox lives");
  } else if (status == SANDHOST_OK && !engine_boolean(reply.json, "State/Running", FALSE)) {
    status = fail_call(sandbox->host, call, SANDHOST_LOST, "its container is not running");
  }
  engine_reply_clear(&reply);
  return status;
}

int32_t plain_archive_get(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const char *path, const struct tar_events *events, void *user,
                          enum archive_end *ret_end) {
  g_autoptr(TarReader) reader = tar_reader_new(events, user);
  g_autofree char *request_path = archive_path(sandbox, path, "");
  /* That we stop it is no failure of the call. */
  g_auto(CallRelay) relay = {.host = sandbox->host, .call = call, .quiet = TRUE};
  struct get get = {.reader = reader};
  struct sandhost_sink sink = {.size = sizeof sink, .user = &get, .write = take};
  struct engine_request request = {.method = "GET", .path = request_path, .sink = &sink};
  struct engine_reply reply = {0};
  int32_t status =
      engine_send(sandbox->instance->engine, call_relay_call(&relay), &request, &reply);
  if (tar_reader_complaint(reader)) {
    status = fail_call(sandbox->host, call, SANDHOST_PROTOCOL, "%s sent a tar stream with %s",
                       engine_name(sandbox->instance->engine), tar_reader_complaint(reader));
  } else if (get.status != SANDHOST_OK) {
    *ret_end = ARCHIVE_STOPPED;
    status = SANDHOST_OK;
  } else if (status != SANDHOST_OK) {
    status = fail_call(sandbox->host, call, status, "%s", relay.failure ? relay.failure : path);
  } else if (reply.status >= 200 && reply.status < 300) {
    *ret_end = tar_reader_at_end(reader) ? ARCHIVE_WHOLE : ARCHIVE_CUT;
    status = plain_check_alive(sandbox, call);
  } else if (says_tangled(&reply)) {
    *ret_end = ARCHIVE_TANGLED;
  } else if (says_missing(&reply)) {
    *ret_end = ARCHIVE_MISSING;
    status = plain_check_alive(sandbox, call);
  } else {
    status = plain_refused(sandbox, call, &reply, "cannot read files of the sandbox");
  }
  engine_reply_clear(&reply);
  return status;
}

/* "...: write /workspace/x: no space left on device": the path. */
static char *cut_file(const char *message) {
  const char *end = strstr(message, ": no space left");
  const char *write = NULL;
  for (const char *at = message; end && (at = strstr(at, "write /")) != NULL && at < end; at++) {
    write = at + strlen("write ");
  }
  return write ? g_strndup(write, (gsize)(end - write)) : NULL;
}

static int32_t put_refused(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                           const char *path, const struct engine_reply *reply, char **ret_partial) {
  const char *message = engine_text(reply->json, "message");
  if (message && (strstr(message, "no space left") || strstr(message, "quota exceeded"))) {
    if (ret_partial) {
      *ret_partial = cut_file(message);
    }
    return fail_call(sandbox->host, call, SANDHOST_LIMIT, "%s: No space left on device", path);
  }
  if (message && (strstr(message, "cannot overwrite") || strstr(message, "is a directory") ||
                  strstr(message, "not a directory"))) {
    g_autofree char *clean = plain_clean(message, strlen(message));
    return fail_call(sandbox->host, call, SANDHOST_INVALID, "cannot write files of the sandbox: %s",
                     clean);
  }
  return plain_refused(sandbox, call, reply, "cannot write files of the sandbox");
}

int32_t plain_archive_put(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const char *path, const struct sandhost_source *tar, char **ret_partial) {
  /* A folder where a file is to be, or the other way round, is refused in place of removed. */
  g_autofree char *request_path = archive_path(sandbox, path, "&noOverwriteDirNonDir=1");
  struct engine_request request = {.method = "PUT", .path = request_path, .upload = tar};
  struct engine_reply reply = {0};
  int32_t status = engine_send(sandbox->instance->engine, call, &request, &reply);
  if (status == SANDHOST_OK && (reply.status < 200 || reply.status >= 300)) {
    status = put_refused(sandbox, call, path, &reply, ret_partial);
  } else if (status == SANDHOST_OK) {
    status = plain_check_alive(sandbox, call);
  }
  engine_reply_clear(&reply);
  return status;
}

void plain_drop_file(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                     const char *folder, const char *below) {
  static const char DROP[] = "d=$(printf '%b.' \"$1\") n=$(printf '%b.' \"$2\")\n"
                             "cd \"${d%.}\" && rm -f \"./${n%.}\"";
  g_auto(CallRelay) relay = {.host = sandbox->host,
                             .call = call,
                             .quiet = TRUE,
                             .deadline = contract_now() + CLEAN_UP_PATIENCE};
  g_autofree char *encoded_folder = plain_encode(folder, strlen(folder));
  g_autofree char *encoded_name = plain_encode(below, strlen(below));
  const char *arguments[] = {encoded_folder, encoded_name, NULL};
  g_autofree char *said = NULL;
  (void)plain_run_script(sandbox, call_relay_call(&relay), DROP, arguments, &said);
}
