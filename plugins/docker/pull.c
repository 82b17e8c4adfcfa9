/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull.c: POST /images/create, whose answer is a stream of lines of JSON. A failure comes as one of
 * those lines, under status 200, or as an ordinary answer; both end as the same messages, which say
 * what a person can do.
 */
#include "pull.h"

#include "contract.h"
#include "engine-private.h"
#include "failure.h"
#include "image.h"

#include <string.h>
#include <time.h>

#define SECOND ((int64_t)1000000000)
/* While it waits for a registry or unpacks a large layer, an engine may say nothing for long. */
#define PULL_SILENCE (300 * SECOND)
#define MAX_PULL_LINE ((size_t)64 * 1024)

/* One pull. One thread. */
struct pull {
  Engine *engine;
  const struct sandhost_host *host;
  struct sandhost_call *call;
  const char *text;              /* the image's name */
  const struct image_name *name; /* the same, taken apart */
  gboolean logged_in;            /* a login was sent along */
  const char *complaint;         /* why there is none; NULL */
  PullProgress *progress;
  char *line; /* MAX_PULL_LINE + 1 bytes */
  size_t length;
  int32_t status; /* of the failure that a line told; SANDHOST_OK: none yet */
};

/* ---- Failures --------------------------------------------------------------------------------- */

/* What the engine says, as one line for a person. Owned. */
static char *clean_message(const char *message) {
  const char *text = message && message[0] ? message : "no reason was given";
  return engine_clean(text, strlen(text));
}

static gboolean says(const char *message, const char *const *words) {
  g_autofree char *lower = g_ascii_strdown(message, -1);
  for (; *words; words++) {
    if (strstr(lower, *words)) {
      return TRUE;
    }
  }
  return FALSE;
}

/* The words by which engines and registries tell what went wrong; there is no code in a line. */
static const char *const rate_words[] = {"toomanyrequests", "too many requests", "pull rate limit",
                                         NULL};
static const char *const login_words[] = {"unauthorized",
                                          "authentication required",
                                          "no basic auth credentials",
                                          "incorrect username or password",
                                          "403 forbidden",
                                          NULL};
static const char *const private_words[] = {"pull access denied", "may require 'docker login'",
                                            "requested access to the resource is denied",
                                            "denied:", NULL};
static const char *const platform_words[] = {
    "no matching manifest", "no image found in manifest list", "no image found in image index",
    "does not match the specified platform", NULL};
static const char *const missing_words[] = {
    "manifest unknown",     "not found",     "name unknown",     "name_unknown",
    "repository not known", "no such image", "manifest_unknown", NULL};
static const char *const space_words[] = {"no space left on device", "disk quota exceeded", NULL};
static const char *const plain_words[] = {"server gave http response to https client", NULL};
static const char *const trust_words[] = {"x509:", "certificate signed", "certificate is valid",
                                          NULL};
static const char *const reach_words[] = {"no such host",
                                          "connection refused",
                                          "dial tcp",
                                          "i/o timeout",
                                          "no route to host",
                                          "network is unreachable",
                                          "tls handshake timeout",
                                          "client.timeout exceeded",
                                          "request canceled",
                                          "connection reset",
                                          ": eof",
                                          "unexpected eof",
                                          "server misbehaving",
                                          "pinging container registry",
                                          NULL};

static char *login_advice(const struct pull *pull) {
  const char *registry = pull->name->registry;
  return g_strdup_printf("docker login%s%s", registry ? " " : "", registry ? registry : "");
}

/* " (why the stored login was not used)" or "". Owned. */
static char *complaint_suffix(const struct pull *pull) {
  return pull->complaint ? g_strdup_printf(" (%s)", pull->complaint) : g_strdup("");
}

static int32_t fail_for_login(const struct pull *pull, const char *why) {
  g_autofree char *login = login_advice(pull);
  g_autofree char *suffix = complaint_suffix(pull);
  const char *registry = image_name_registry(pull->name);
  if (pull->logged_in) {
    return fail_call(
        pull->host, pull->call, SANDHOST_UNAUTHENTICATED,
        "the registry %s does not let the stored login pull %s: log in again with %s: %s", registry,
        pull->text, login, why);
  }
  return fail_call(pull->host, pull->call, SANDHOST_UNAUTHENTICATED,
                   "the registry %s wants a login to pull %s: log in with %s%s: %s", registry,
                   pull->text, login, suffix, why);
}

static int32_t fail_for_missing(const struct pull *pull, gboolean perhaps_private,
                                const char *why) {
  g_autofree char *login = login_advice(pull);
  g_autofree char *suffix = complaint_suffix(pull);
  const char *registry = image_name_registry(pull->name);
  if (perhaps_private && !pull->logged_in) {
    return fail_call(pull->host, pull->call, SANDHOST_NOT_FOUND,
                     "the registry %s has no image %s, or a private one: check the name, or log in "
                     "with %s%s: %s",
                     registry, pull->text, login, suffix, why);
  }
  return fail_call(pull->host, pull->call, SANDHOST_NOT_FOUND,
                   "the registry %s has no image %s: check the name and the tag: %s", registry,
                   pull->text, why);
}

static int32_t fail_for_rate(const struct pull *pull, const char *why) {
  g_autofree char *login = login_advice(pull);
  g_autofree char *suffix = complaint_suffix(pull);
  const char *registry = image_name_registry(pull->name);
  if (pull->logged_in) {
    return fail_call(pull->host, pull->call, SANDHOST_RATE_LIMITED,
                     "the registry %s lets this login pull no more for now: wait, or pull %s from "
                     "a mirror: %s",
                     registry, pull->text, why);
  }
  return fail_call(
      pull->host, pull->call, SANDHOST_RATE_LIMITED,
      "the registry %s lets nobody without a login pull more for now: wait, or log in with "
      "%s%s: %s",
      registry, login, suffix, why);
}

static int32_t fail_for_reach(const struct pull *pull, const char *why) {
  const char *registry = image_name_registry(pull->name);
  const char *advice = "check the engine's network and proxy";
  if (says(why, plain_words)) {
    advice = "it speaks plain HTTP, which the engine takes only from registries in its "
             "insecure-registries setting";
  } else if (says(why, trust_words)) {
    advice = "give the engine the registry's CA certificate";
  }
  return fail_call(pull->host, pull->call, SANDHOST_UNAVAILABLE,
                   "%s cannot reach the registry %s for %s: %s: %s", engine_name(pull->engine),
                   registry, pull->text, advice, why);
}

/* Sets the call's error from what the engine said, under an HTTP status (200: in a line). */
static int32_t fail_pull(const struct pull *pull, long http_status, const char *message) {
  g_autofree char *why = clean_message(message);
  if (http_status == 429 || says(why, rate_words)) {
    return fail_for_rate(pull, why);
  }
  if (says(why, platform_words)) {
    return fail_call(pull->host, pull->call, SANDHOST_UNSUPPORTED,
                     "the image %s is not made for the engine's kind of machine: %s", pull->text,
                     why);
  }
  if (says(why, space_words)) {
    return fail_call(pull->host, pull->call, SANDHOST_LIMIT,
                     "the engine has no space left for the image %s: free some, as with docker "
                     "system prune: %s",
                     pull->text, why);
  }
  /* Hub's answer for what does not exist names a login as well: it comes before the login's own
   * words. */
  if (says(why, private_words)) {
    return fail_for_missing(pull, TRUE, why);
  }
  if (http_status == 401 || http_status == 403 || says(why, login_words)) {
    return fail_for_login(pull, why);
  }
  /* "no such host" and its like are of the way there, whatever else the text holds. */
  if (says(why, reach_words) || says(why, plain_words) || says(why, trust_words)) {
    return fail_for_reach(pull, why);
  }
  if (http_status == 404 || says(why, missing_words)) {
    return fail_for_missing(pull, FALSE, why);
  }
  return fail_call(pull->host, pull->call,
                   http_status == 400 ? SANDHOST_INVALID : SANDHOST_UNAVAILABLE,
                   "cannot pull the image %s: %s", pull->text, why);
}

/* ---- The stream ------------------------------------------------------------------------------- */

static void say(const struct pull *pull, char *take_line) {
  if (take_line) {
    pull->host->progress(pull->call, (struct sandhost_text){take_line, strlen(take_line)});
  }
  g_free(take_line);
}

static int32_t take_line(struct pull *pull) {
  size_t length = pull->length;
  pull->length = 0;
  while (length > 0 && g_ascii_isspace(pull->line[length - 1])) {
    length--;
  }
  pull->line[length] = '\0';
  if (length == 0) {
    return SANDHOST_OK;
  }
  json_object *value = engine_parse(pull->line, length);
  if (!json_object_is_type(value, json_type_object)) {
    json_object_put(value);
    return fail_call(pull->host, pull->call, SANDHOST_PROTOCOL,
                     "%s says what is no JSON while it pulls %s", engine_name(pull->engine),
                     pull->text);
  }
  int32_t status = SANDHOST_OK;
  const char *error = engine_text(value, "error");
  if (!error) {
    error = engine_text(value, "errorDetail/message");
  }
  if (error || engine_object(value, "errorDetail")) {
    status = fail_pull(pull, 200, error);
  } else {
    pull_progress_take(pull->progress, engine_text(value, "id"), engine_text(value, "status"),
                       engine_integer(value, "progressDetail/current", -1),
                       engine_integer(value, "progressDetail/total", -1));
    say(pull, pull_progress_line(pull->progress, contract_now()));
  }
  json_object_put(value);
  return status;
}

/* The sink of the answer. What it returns is also the call's error by then. */
static int32_t take_bytes(void *user, const void *data, size_t length) {
  struct pull *pull = user;
  const char *at = data;
  while (length > 0 && pull->status == SANDHOST_OK) {
    const char *end = memchr(at, '\n', length);
    size_t part = end ? (size_t)(end - at) : length;
    if (part > MAX_PULL_LINE - pull->length) {
      pull->status = fail_call(pull->host, pull->call, SANDHOST_PROTOCOL,
                               "%s says a line of more than 64 KiB while it pulls %s",
                               engine_name(pull->engine), pull->text);
      break;
    }
    memcpy(pull->line + pull->length, at, part);
    pull->length += part;
    if (end) {
      pull->status = take_line(pull);
      part++;
    }
    at += part;
    length -= part;
  }
  return pull->status;
}

/* ---- The request ------------------------------------------------------------------------------ */

static int32_t send_pull(struct pull *pull, const char *auth) {
  g_autofree char *from = engine_escape(pull->name->repository);
  g_autofree char *tag = engine_escape(pull->name->digest ? pull->name->digest : pull->name->tag);
  g_autofree char *path = g_strdup_printf("/images/create?fromImage=%s&tag=%s", from, tag);
  struct sandhost_sink sink = {.size = sizeof sink, .user = pull, .write = take_bytes};
  struct engine_request request = {.method = "POST",
                                   .path = path,
                                   .registry_auth = auth,
                                   .sink = &sink,
                                   .silence = PULL_SILENCE,
                                   .no_effect = TRUE /* an image is no sandbox */};
  struct engine_reply reply = {0};
  int32_t status = engine_send(pull->engine, pull->call, &request, &reply);
  if (pull->status != SANDHOST_OK) {
    status = pull->status; /* the stream told it, and it is the call's error */
  } else if (status == SANDHOST_OK && (reply.status < 200 || reply.status > 299)) {
    const char *message = engine_text(reply.json, "message");
    g_autofree char *other = g_strdup_printf("it answered with status %ld", reply.status);
    status = fail_pull(pull, reply.status, message ? message : other);
  } else if (status == SANDHOST_OK && pull->length > 0) {
    status = take_line(pull); /* a last line without its end */
  }
  engine_reply_clear(&reply);
  return status;
}

int32_t image_pull(Engine *engine, const struct sandhost_host *host, struct sandhost_call *call,
                   const char *text, const struct image_name *name) {
  g_autofree char *registry = registry_of_image(text);
  g_autofree char *complaint = NULL;
  g_autoptr(PullProgress) progress = pull_progress_new(text);
  g_autofree char *line = g_malloc(MAX_PULL_LINE + 1);
  char *auth = registry_auth(NULL, registry, host->cancel_fd(call), &complaint);
  struct pull pull = {.engine = engine,
                      .host = host,
                      .call = call,
                      .text = text,
                      .name = name,
                      .logged_in = auth != NULL,
                      .complaint = complaint,
                      .progress = progress,
                      .line = line};
  say(&pull, pull_progress_line(progress, contract_now()));
  int32_t status = send_pull(&pull, auth);
  if (auth) {
    explicit_bzero(auth, strlen(auth));
    g_free(auth);
  }
  if (status == SANDHOST_OK) {
    say(&pull, pull_progress_last_line(progress));
  }
  return status;
}
