/* SPDX-License-Identifier: Apache-2.0 */
/* engine-facts.c: what an engine is and can do, asked once. */
#include "engine-private.h"

#include "failure.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

/* The newest version whose requests this provider knows, and the oldest that has what it needs. */
#define NEWEST 44
#define OLDEST 40
#define MAX_RUNTIMES 256
/* How long a thread sleeps at most while another asks. */
#define PAUSE (ENGINE_SECOND / 10)

/* ---- Versions -------------------------------------------------------------------------------- */

/* The minor of "1.41"; -1: it is no version; 1000: a later major. */
static int minor_of(const char *version) {
  if (!version || strlen(version) > 7 || strspn(version, "0123456789.") != strlen(version)) {
    return -1;
  }
  g_auto(GStrv) parts = g_strsplit(version, ".", 3);
  guint64 major;
  guint64 minor;
  if (g_strv_length(parts) != 2 ||
      !g_ascii_string_to_unsigned(parts[0], 10, 1, 999, &major, NULL) ||
      !g_ascii_string_to_unsigned(parts[1], 10, 0, 999, &minor, NULL)) {
    return -1;
  }
  return major > 1 ? 1000 : (int)minor;
}

static const char *keep(struct engine_known *known, char *take_text) {
  g_ptr_array_add(known->texts, take_text);
  return take_text;
}

static int32_t negotiate(Engine *engine, struct sandhost_call *call, json_object *version,
                         struct engine_known *known) {
  int newest = minor_of(engine_text(version, "ApiVersion"));
  int oldest = minor_of(engine_text(version, "MinAPIVersion"));
  if (newest < 0) {
    return fail_call(engine->host, call, SANDHOST_PROTOCOL,
                     "%s does not say which API it speaks: is it a Docker engine?", engine->name);
  }
  if (newest < OLDEST) {
    return fail_call(
        engine->host, call, SANDHOST_UNSUPPORTED,
        "%s speaks version 1.%d of its API, but 1.%d (Docker 19.03) or newer is needed; "
        "update it",
        engine->name, newest, OLDEST);
  }
  /* An engine that has dropped NEWEST is asked in the oldest version that it still speaks. */
  int chosen = MAX(MIN(newest, NEWEST), MIN(oldest, newest));
  if (chosen >= 1000) {
    return fail_call(engine->host, call, SANDHOST_UNSUPPORTED,
                     "%s no longer speaks version 1 of its API; update sandhost", engine->name);
  }
  known->facts.api_version = keep(known, g_strdup_printf("1.%d", chosen));
  return SANDHOST_OK;
}

/* ---- Facts ----------------------------------------------------------------------------------- */

/* Go's name of an architecture, or uname's, as uname names it. */
static const char *machine_of(const char *architecture) {
  static const char *const names[][2] = {
      {"amd64", "x86_64"}, {"arm64", "aarch64"}, {"arm", "armv7l"}, {"386", "i686"}};
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
    if (strcmp(architecture, names[i][0]) == 0) {
      return names[i][1];
    }
  }
  return architecture;
}

/* A text of the engine that may go into messages and comparisons. */
static const char *keep_clean(struct engine_known *known, const char *text, const char *fallback) {
  text = text ? text : fallback;
  return keep(known, engine_clean(text, MIN(strlen(text), (size_t)128)));
}

static gboolean has_component(json_object *version, const char *name) {
  json_object *components = NULL;
  if (!json_object_object_get_ex(version, "Components", &components) ||
      !json_object_is_type(components, json_type_array)) {
    return FALSE;
  }
  for (size_t i = 0; i < json_object_array_length(components); i++) {
    const char *text = engine_text(json_object_array_get_idx(components, i), "Name");
    if (text && strstr(text, name)) {
      return TRUE;
    }
  }
  return FALSE;
}

static void read_version(struct engine_known *known, json_object *version) {
  struct engine_facts *facts = &known->facts;
  const char *architecture = engine_text(version, "Arch");
  facts->version = keep_clean(known, engine_text(version, "Version"), "unknown");
  facts->os = keep_clean(known, engine_text(version, "Os"), "unknown");
  facts->architecture =
      keep_clean(known, machine_of(architecture ? architecture : "unknown"), "unknown");
  facts->is_podman = has_component(version, "Podman");
}

static void read_runtimes(struct engine_known *known, json_object *info) {
  json_object *runtimes = engine_object(info, "Runtimes");
  if (runtimes) {
    json_object_object_foreach(runtimes, name, value) {
      (void)value;
      if (known->runtimes->len < MAX_RUNTIMES) {
        g_ptr_array_add(known->runtimes, (gpointer)(gsize)keep(known, g_strdup(name)));
      }
    }
  }
  g_ptr_array_add(known->runtimes, NULL);
  known->facts.runtimes = (const char *const *)known->runtimes->pdata;
  known->facts.has_runtime_list = runtimes && !known->facts.is_podman;
}

static void read_info(struct engine_known *known, json_object *info) {
  struct engine_facts *facts = &known->facts;
  const char *cgroup = engine_text(info, "CgroupVersion");
  facts->memory_limit = engine_boolean(info, "MemoryLimit", FALSE);
  facts->cpu_limit =
      engine_boolean(info, "CpuCfsQuota", engine_boolean(info, "CPUCfsQuota", FALSE));
  facts->pids_limit = engine_boolean(info, "PidsLimit", FALSE);
  facts->swap_limit = engine_boolean(info, "SwapLimit", FALSE);
  /* Engines older than 20.10 do not say it: they know only the first. */
  facts->cgroup_version = cgroup && (strcmp(cgroup, "2") == 0 || strcmp(cgroup, "v2") == 0) ? 2 : 1;
  read_runtimes(known, info);
}

/* One of the two questions. */
static int32_t ask(Engine *engine, struct sandhost_call *call, const char *version,
                   const char *path, struct engine_reply *ret_reply) {
  const struct engine_request request = {.method = "GET", .path = path, .no_effect = TRUE};
  struct engine_reply reply;
  int32_t status = engine_send_version(engine, call, version, &request, &reply);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (reply.status != 200) {
    g_autofree char *what = g_strdup_printf("%s does not say what it is", engine->name);
    status = engine_refused_by(engine, call, &reply, what, TRUE);
  } else if (!json_object_is_type(reply.json, json_type_object)) {
    status = fail_call(engine->host, call, SANDHOST_PROTOCOL,
                       "%s answers what no Docker engine would: is it one?", engine->name);
  }
  if (status == SANDHOST_OK) {
    *ret_reply = reply;
  } else {
    engine_reply_clear(&reply);
  }
  return status;
}

int32_t engine_ask_facts(Engine *engine, struct sandhost_call *call, struct engine_known *known) {
  struct engine_reply version = {0};
  struct engine_reply info = {0};
  known->texts = g_ptr_array_new_with_free_func(g_free);
  known->runtimes = g_ptr_array_new();
  int32_t status = ask(engine, call, NULL, "/version", &version);
  if (status == SANDHOST_OK) {
    read_version(known, version.json);
    status = negotiate(engine, call, version.json, known);
  }
  if (status == SANDHOST_OK) {
    status = ask(engine, call, known->facts.api_version, "/info", &info);
  }
  if (status == SANDHOST_OK) {
    read_info(known, info.json);
  } else {
    engine_known_clear(known);
  }
  engine_reply_clear(&version);
  engine_reply_clear(&info);
  return status;
}

void engine_known_clear(struct engine_known *known) {
  g_clear_pointer(&known->texts, g_ptr_array_unref);
  g_clear_pointer(&known->runtimes, g_ptr_array_unref);
  known->facts = (struct engine_facts){0};
}

/* ---- Once for all threads -------------------------------------------------------------------- */

/* TRUE: the facts are known, or this thread is the one to ask (*ret_mine). */
static gboolean know_or_begin(Engine *engine, gboolean *ret_mine) {
  pthread_mutex_lock(&engine->lock);
  *ret_mine = !engine->is_known && !engine->asking;
  gboolean go = engine->is_known || *ret_mine;
  if (*ret_mine) {
    uint64_t count;
    engine->asking = TRUE;
    (void)!read(engine->ready_fd, &count, sizeof count);
  }
  pthread_mutex_unlock(&engine->lock);
  return go;
}

static int32_t ask_for_all(Engine *engine, struct sandhost_call *call) {
  struct engine_known known = {0};
  const uint64_t one = 1;
  int32_t status = engine_ask_facts(engine, call, &known);
  pthread_mutex_lock(&engine->lock);
  engine->asking = FALSE;
  if (status == SANDHOST_OK) {
    engine->known = known;
    engine->is_known = TRUE;
  }
  (void)!write(engine->ready_fd, &one, sizeof one);
  pthread_mutex_unlock(&engine->lock);
  return status;
}

int32_t engine_facts(Engine *engine, struct sandhost_call *call,
                     const struct engine_facts **ret_facts) {
  gboolean mine = FALSE;
  while (!know_or_begin(engine, &mine)) {
    (void)engine->host->wait(call, engine->ready_fd, POLLIN, PAUSE);
    if (engine->host->cancelled(call)) {
      struct timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      gboolean late =
          (int64_t)now.tv_sec * ENGINE_SECOND + now.tv_nsec >= engine->host->deadline(call);
      return fail_call(engine->host, call, late ? SANDHOST_TIMEOUT : SANDHOST_CANCELLED, "%s",
                       late ? "the deadline passed" : "cancelled");
    }
  }
  int32_t status = mine ? ask_for_all(engine, call) : SANDHOST_OK;
  if (status == SANDHOST_OK) {
    *ret_facts = &engine->known.facts;
  }
  return status;
}
