/* SPDX-License-Identifier: Apache-2.0 */
/* recorded.c: what the record tells: a segment, a run, all runs, and whether it is what was written. */
#include "api/api-private.h"
#include "base/clock.h"
#include "config/check.h"
#include "record/record-verify.h"
#include "run/story.h"

#define DEFAULT_LIMIT 100
#define MOST_RUNS 100000

/* ---- Trajectories ------------------------------------------------------------------------------------------------ */

typedef JsonObject *(*Telling)(Record *record, const char *id, const char *wanted, GError **error);

static JsonObject *tell_segment(Record *record, const char *id, const char *wanted,
                                GError **error) {
  return story_of_segment(record, id, story_names_trace(wanted) ? wanted : NULL, error);
}

static JsonObject *tell_run(Record *record, const char *id, const char *wanted, GError **error) {
  (void)wanted;
  return story_of_run(record, id, error);
}

static int tell(sandhost *host, const char *wanted, Telling telling, char **ret_json,
                char **ret_error) {
  g_autoptr(GError) error = NULL;
  Record *record = NULL;
  if (!host || !wanted || !ret_json) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host, run_id and ret_json must not be NULL",
                      ret_error);
  }
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  g_autofree char *id = host_find_run(host, wanted, &record, &error);
  g_autoptr(JsonObject) told = id ? telling(record, id, wanted, &error) : NULL;
  if (!told) {
    return api_fail(error, ret_error);
  }
  api_give(told, ret_json);
  return SANDHOST_STATUS_OK;
}

int sandhost_trajectory(sandhost *host, const char *id, char **ret_json, char **ret_error) {
  return tell(host, id, tell_segment, ret_json, ret_error);
}

int sandhost_run_trajectory(sandhost *host, const char *run_id, char **ret_json, char **ret_error) {
  return tell(host, run_id, tell_run, ret_json, ret_error);
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static gboolean read_since(const char *text, gint64 *ret_wall, GError **error) {
  g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
  g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(text, utc);
  gint64 seconds = time ? g_date_time_to_unix(time) : -1;
  if (seconds < 0 || seconds > G_MAXINT64 / CLOCK_SECOND - 1) {
    return check_refuse(error, "filter.since must be a time such as 2026-01-31T12:00:00Z");
  }
  *ret_wall =
      seconds * CLOCK_SECOND + (gint64)g_date_time_get_microsecond(time) * (CLOCK_SECOND / 1000000);
  return TRUE;
}

/* The texts of *ret_filter are owned by texts. */
static gboolean read_filter(JsonObject *object, char *texts[3], RecordFilter *ret_filter,
                            GError **error) {
  static const char *const KEYS[] = {"limit", "provider", "since", "status", NULL};
  gint64 limit = DEFAULT_LIMIT;
  if (object &&
      (!check_keys(object, "filter", KEYS, error) ||
       !check_choice(object, "filter", "status", record_status_names(), &texts[0], error) ||
       !check_text(object, "filter", "provider", &texts[1], error) ||
       !check_text(object, "filter", "since", &texts[2], error) ||
       !check_int(object, "filter", "limit", 1, MOST_RUNS, &limit, error))) {
    return FALSE;
  }
  *ret_filter = (RecordFilter){.status = texts[0], .provider = texts[1], .limit = (guint)limit};
  return !texts[2] || read_since(texts[2], &ret_filter->since, error);
}

int sandhost_runs(sandhost *host, const char *filter, char **ret_json, char **ret_error) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = NULL;
  char *texts[3] = {0};
  RecordFilter wanted = {0};
  if (!host || !ret_json) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host and ret_json must not be NULL", ret_error);
  }
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  if (!api_take_object("filter", filter, &object, &error) ||
      !read_filter(object, texts, &wanted, &error)) {
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
      g_free(texts[i]);
    }
    return api_fail_argument(error, ret_error);
  }
  Record *record = host_record(host, &error);
  g_autoptr(JsonObject) runs = record ? record_runs_matching(record, &wanted, &error) : NULL;
  for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
    g_free(texts[i]);
  }
  if (!runs) {
    return api_fail(error, ret_error);
  }
  api_give(runs, ret_json);
  return SANDHOST_STATUS_OK;
}

/* ---- Whether it is what was written ------------------------------------------------------------------------------- */

static gboolean is_whole(JsonObject *verdict) {
  JsonObject *faults = json_get(verdict, "faults");
  return !faults || json_object_array_length(faults) == 0;
}

static gboolean verify_one(Record *record, const char *id, JsonObject *verdicts, gboolean *whole,
                           GError **error) {
  JsonObject *verdict = record_verify_run(record, id, error);
  if (!verdict) {
    return FALSE;
  }
  *whole = *whole && is_whole(verdict);
  json_object_array_add(verdicts, verdict);
  return TRUE;
}

static JsonObject *verify(sandhost *host, const char *wanted, GError **error) {
  Record *record = NULL;
  g_autofree char *id = wanted ? host_find_run(host, wanted, &record, error) : NULL;
  g_autoptr(JsonObject) all = NULL;
  g_autoptr(JsonObject) verdicts = json_object_new_array();
  gboolean whole = TRUE;
  if (!wanted && (record = host_record(host, error))) {
    all = record_verify_runs(record, error);
  }
  if (!id && !all) {
    return NULL;
  }
  if (id && !verify_one(record, id, verdicts, &whole, error)) {
    return NULL;
  }
  g_auto(GStrv) ids = all ? json_get_strv(json_get(all, "runs")) : NULL;
  for (gsize i = 0; ids && ids[i]; i++) {
    if (!verify_one(record, ids[i], verdicts, &whole, error)) {
      return NULL;
    }
  }
  JsonObject *result = json_object_new_object();
  json_add_bool(result, "whole", whole && is_whole(all));
  json_add_take(result, "runs", g_steal_pointer(&verdicts));
  json_add_take(result, "head", json_object_get(json_get(all, "head")));
  json_add_take(result, "pruned", json_object_get(json_get(all, "pruned")));
  json_add_take(result, "faults", json_object_get(json_get(all, "faults")));
  return result;
}

int sandhost_record_verify(sandhost *host, const char *run_id, char **ret_json, char **ret_error) {
  g_autoptr(GError) error = NULL;
  if (!host || !ret_json) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host and ret_json must not be NULL", ret_error);
  }
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  g_autoptr(JsonObject) verdict = verify(host, run_id, &error);
  if (!verdict) {
    return api_fail(error, ret_error);
  }
  api_give(verdict, ret_json);
  return SANDHOST_STATUS_OK;
}
