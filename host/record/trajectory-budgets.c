/* SPDX-License-Identifier: Apache-2.0 */
/* trajectory-budgets.c: the budget requests of a run, as its events tell them. */
#include <string.h>

#include "record/trajectory-private.h"

/* The one with this id; NULL: none. Borrowed. */
static JsonObject *find(JsonObject *requests, const char *id) {
  for (gsize i = 0; id && i < json_object_array_length(requests); i++) {
    JsonObject *request = json_object_array_get_idx(requests, i);
    if (g_strcmp0(json_get_text(request, "request_id"), id) == 0) {
      return request;
    }
  }
  return NULL;
}

/* A request may be told again when it has grown: the last word about its amounts counts. */
static void ask(JsonObject *requests, JsonObject *event) {
  static const char *const KEYS[] = {"scope", "meter", "window", "key",
                                     "limit", "used",  "needed", "shortfall"};
  JsonObject *facts = json_get(event, "metadata");
  const char *id = json_get_text(facts, "request_id");
  JsonObject *request = find(requests, id);
  if (!id) {
    return;
  }
  if (!request) {
    request = json_object_new_object();
    json_add_text(request, "request_id", id);
    json_add_text(request, "status", "pending");
    json_object_array_add(requests, request);
    build_copy(request, event, "at");
  }
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    build_copy(request, facts, KEYS[i]);
  }
}

static void decide(JsonObject *requests, JsonObject *event) {
  static const char *const KEYS[] = {"status", "approver", "note", "amount"};
  JsonObject *facts = json_get(event, "metadata");
  JsonObject *request = find(requests, json_get_text(facts, "request_id"));
  for (gsize i = 0; request && i < G_N_ELEMENTS(KEYS); i++) {
    build_copy(request, facts, KEYS[i]);
  }
}

JsonObject *build_budget_requests(JsonObject *events) {
  JsonObject *requests = json_object_new_array();
  gsize count = json_object_is_type(events, json_type_array) ? json_object_array_length(events) : 0;
  for (gsize i = 0; i < count; i++) {
    JsonObject *event = json_object_array_get_idx(events, i);
    const char *type = json_get_text(event, "type");
    if (g_strcmp0(type, "budget_exhausted") == 0) {
      ask(requests, event);
    } else if (g_strcmp0(type, "budget_granted") == 0 || g_strcmp0(type, "budget_denied") == 0 ||
               g_strcmp0(type, "budget_request_closed") == 0) {
      decide(requests, event);
    }
  }
  return requests;
}
