/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c: containers that were left behind. A container counts as one of sandhost only where it
 * carries sandhost's own label, whatever the engine makes of the filter that it is asked with. The
 * never-started containers by which volumes and snapshots are filled carry it as well and are swept
 * alike.
 */
#include "failure.h"
#include "instance.h"

#include <string.h>

#define SECOND ((int64_t)1000000000)
/* About ten thousand containers. */
#define MAX_LIST ((size_t)32 * 1024 * 1024)
#define MAX_RUN_ID 256u

/* One sweep. */
struct sweep {
  const struct sandhost_host *host;
  struct sandhost_instance *instance;
  struct sandhost_call *call;
  const struct sandhost_sweep *request;
  const struct sandhost_orphan_sink *sink;
  GHashTable *keep; /* of char *, owned */
  char *run_id;     /* owned; NULL: any */
  int64_t now;      /* seconds since 1970, by the engine's clock where that is another machine's */
};

static void sweep_clear(struct sweep *sweep) {
  g_hash_table_unref(sweep->keep);
  g_free(sweep->run_id);
}

/* Containers are as old as the engine's clock says. That of another machine may be far from
 * ours. */
static int32_t ask_time(struct sweep *sweep) {
  Engine *engine = sweep->instance->engine;
  sweep->now = g_get_real_time() / G_USEC_PER_SEC;
  if (engine_is_local(engine)) {
    return SANDHOST_OK;
  }
  struct engine_request request = {.method = "GET", .path = "/info"};
  struct engine_reply reply = {0};
  int32_t status =
      engine_ask(engine, sweep->call, &request, 0, "cannot ask for the engine's time", &reply);
  if (status == SANDHOST_OK) {
    const char *text = engine_text(reply.json, "SystemTime");
    g_autoptr(GDateTime) time = text ? g_date_time_new_from_iso8601(text, NULL) : NULL;
    sweep->now = time ? g_date_time_to_unix(time) : sweep->now;
  }
  engine_reply_clear(&reply);
  return status;
}

/* ---- The list --------------------------------------------------------------------------------- */

static char *list_path(const struct sweep *sweep) {
  json_object *filters = json_object_new_object();
  json_object *labels = json_object_new_array();
  json_object_array_add(labels, json_object_new_string(DOCKER_LABEL_SANDBOX "=1"));
  if (sweep->run_id) {
    g_autofree char *label = g_strdup_printf("%s=%s", DOCKER_LABEL_RUN, sweep->run_id);
    json_object_array_add(labels, json_object_new_string(label));
  }
  json_object_object_add(filters, "label", labels);
  g_autofree char *escaped =
      engine_escape(json_object_to_json_string_ext(filters, JSON_C_TO_STRING_PLAIN));
  json_object_put(filters);
  return g_strdup_printf("/containers/json?all=1&filters=%s", escaped);
}

/* A label's value; NULL: it has none. The keys hold dots, no slashes. */
static const char *label_of(json_object *container, const char *key) {
  json_object *labels = engine_object(container, "Labels");
  return labels ? engine_text(labels, key) : NULL;
}

/* Nanoseconds; -1: unknown. */
static int64_t age_of(const struct sweep *sweep, json_object *container) {
  int64_t created = engine_integer(container, "Created", -1);
  if (created < 0 || created > INT64_MAX / SECOND) {
    return -1;
  }
  return created < sweep->now ? (sweep->now - created) * SECOND : 0;
}

static gboolean is_wanted(const struct sweep *sweep, json_object *container, const char *id,
                          int64_t age) {
  const char *ours = label_of(container, DOCKER_LABEL_SANDBOX);
  const char *run = label_of(container, DOCKER_LABEL_RUN);
  if (!ours || strcmp(ours, "1") != 0 || g_hash_table_contains(sweep->keep, id)) {
    return FALSE;
  }
  if (sweep->run_id && g_strcmp0(run, sweep->run_id) != 0) {
    return FALSE;
  }
  /* What has no age may be a minute old. */
  return sweep->request->min_age <= 0 || age >= sweep->request->min_age;
}

/* ---- One container ---------------------------------------------------------------------------- */

static struct sandhost_text text_of(const char *text) {
  return (struct sandhost_text){.data = text, .length = text ? strlen(text) : 0};
}

/* Removes and tells. One that cannot be removed is told as such, and the others still get their
 * turn. */
static int32_t sweep_one(const struct sweep *sweep, json_object *container) {
  const char *id = engine_text(container, "Id");
  int64_t age = age_of(sweep, container);
  if (!container_is_id(id) || !is_wanted(sweep, container, id, age)) {
    return SANDHOST_OK;
  }
  const char *run = label_of(container, DOCKER_LABEL_RUN);
  struct sandhost_orphan orphan = {.size = sizeof orphan,
                                   .ref = text_of(id),
                                   .run_id = text_of(run && strlen(run) <= MAX_RUN_ID ? run : NULL),
                                   .age = age};
  if (!sweep->request->dry_run) {
    orphan.removed = container_clean_up(sweep->instance, sweep->call, id) == SANDHOST_OK;
  }
  if (sweep->sink->orphan(sweep->sink->user, &orphan) != SANDHOST_OK) {
    return fail_call(sweep->host, sweep->call, SANDHOST_CANCELLED, "the sweep was stopped");
  }
  if (sweep->host->cancelled(sweep->call)) {
    return fail_call(sweep->host, sweep->call, SANDHOST_CANCELLED,
                     "the sweep was cancelled before its end");
  }
  return SANDHOST_OK;
}

static int32_t sweep_list(const struct sweep *sweep, json_object *list) {
  if (!json_object_is_type(list, json_type_array)) {
    return fail_call(sweep->host, sweep->call, SANDHOST_PROTOCOL,
                     "%s lists its containers as something else than a list",
                     engine_name(sweep->instance->engine));
  }
  int32_t status = SANDHOST_OK;
  for (size_t i = 0; status == SANDHOST_OK && i < json_object_array_length(list); i++) {
    status = sweep_one(sweep, json_object_array_get_idx(list, i));
  }
  return status;
}

int32_t docker_sweep(struct sandhost_call *call, struct sandhost_instance *instance,
                     const struct sandhost_sweep *request,
                     const struct sandhost_orphan_sink *sink) {
  struct sweep sweep = {.host = instance->host,
                        .instance = instance,
                        .call = call,
                        .request = request,
                        .sink = sink,
                        .keep = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                        .run_id = request->run_id.length > 0
                                      ? g_strndup(request->run_id.data, request->run_id.length)
                                      : NULL};
  for (size_t i = 0; i < request->keep_count; i++) {
    g_hash_table_add(sweep.keep, g_strndup(request->keep[i].data, request->keep[i].length));
  }
  g_autofree char *path = list_path(&sweep);
  struct engine_request ask = {.method = "GET", .path = path, .max_body = MAX_LIST};
  struct engine_reply reply = {0};
  int32_t status = ask_time(&sweep);
  if (status == SANDHOST_OK) {
    status = engine_ask(instance->engine, call, &ask, 0, "cannot list the containers", &reply);
  }
  if (status == SANDHOST_OK) {
    status = sweep_list(&sweep, reply.json);
  }
  engine_reply_clear(&reply);
  sweep_clear(&sweep);
  return status;
}
