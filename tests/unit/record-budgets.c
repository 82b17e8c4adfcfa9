/* SPDX-License-Identifier: Apache-2.0 */
/* record-budgets.c: counters that many use at once: nothing passes a limit by one, nothing that is refused leaves a trace,
 * and what a dead process held is free again. */
#include <signal.h>
#include <sys/wait.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/millionths.h"
#include "record-fixture.h"
#include "record/approvals.h"
#include "record/budgets.h"
#include "record/record-prune.h"

#define RUN "run_00000000000000000000000000000001"
#define PROCESSES 10
#define TRIES 10
#define ROOM 37 /* less than they all try for */

static void begin(Record *record, const char *run_id) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) header = json_of("{\"agent_name\": \"a\", \"session_id\": \"s\","
                                         " \"application_id\": \"app\"}");
  g_autoptr(JsonObject) request = json_of("{\"surface\": \"exec\"}");
  const RecordLife life = {.owner = "owner_1", .lease_seconds = 60, .request = request};
  record_begin_life(record, run_id, "trace_1", header, &life, &error);
  g_assert_no_error(error);
}

static RecordLimit limit_of(gint64 units) {
  return (RecordLimit){.scope = "application",
                       .key = "app",
                       .meter = "tool_calls",
                       .window = "total",
                       .limit = units * MILLIONTHS,
                       .warn_at = 800000,
                       .pauses = TRUE};
}

/* One charge of one limit, with an event. Returns the error's text, owned; NULL: it is done. */
static char *charge_on(Record *record, const char *run_id, RecordLimit limit, RecordChargeKind kind,
                       gint64 amount, const char *hold, RecordShortage *ret_shortage) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GArray) charges = g_array_new(FALSE, FALSE, sizeof(RecordCharge));
  g_autoptr(JsonObject) events = json_of("[{\"type\": \"step\"}]");
  const RecordCharge charge = {.limit = limit, .kind = kind, .amount = amount, .hold = hold};
  g_array_append_val(charges, charge);
  const RecordStep step = {.charges = charges, .events = events};
  return record_step(record, run_id, "owner_1", &step, ret_shortage, &error)
             ? NULL
             : g_strdup(error->message);
}

static void check_charge(Record *record, gint64 limit, RecordChargeKind kind, gint64 amount,
                         const char *hold, const char *wanted) {
  RecordShortage shortage = {0};
  g_autofree char *got = charge_on(record, RUN, limit_of(limit), kind, amount, hold, &shortage);
  g_assert_cmpstr(got, ==, wanted);
  g_assert_cmpint(shortage.found, ==, wanted != NULL);
}

static void settle(Record *record, const char *hold, gint64 amount) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GArray) settlements = g_array_new(FALSE, FALSE, sizeof(RecordSettlement));
  g_autofree char *name = g_strdup(hold);
  const RecordSettlement settlement = {.hold = name, .amount = amount};
  g_array_append_val(settlements, settlement);
  RecordShortage unused = {0};
  const RecordStep step = {.settlements = settlements};
  record_step(record, RUN, "owner_1", &step, &unused, &error);
  g_assert_no_error(error);
}

/* "limit granted spent reserved remaining" of the one counter. Owned. */
static char *status_of(Record *record, const char *run_id) {
  static const char *const KEYS[] = {"limit", "granted", "spent", "reserved", "remaining"};
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) rows = record_budgets(record, run_id, FALSE, &error);
  g_assert_no_error(error);
  g_assert_cmpuint(json_object_array_length(rows), ==, 1);
  GString *line = g_string_new(NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    JsonObject *row = json_object_array_get_idx(rows, 0);
    g_string_append_printf(line, "%s%s", i ? " " : "",
                           json_object_to_json_string(json_get(row, KEYS[i])));
  }
  return g_string_free(line, FALSE);
}

static void check_status(Record *record, const char *wanted) {
  g_autofree char *line = status_of(record, RUN);
  g_assert_cmpstr(line, ==, wanted);
}

static gsize count_events(Record *record, const char *type) {
  g_autoptr(JsonObject) run = read_run(record, RUN);
  JsonObject *events = json_get(run, "events");
  gsize count = 0;
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    count += g_strcmp0(json_get_text(json_object_array_get_idx(events, i), "type"), type) == 0;
  }
  return count;
}

/* ---- Charging ---------------------------------------------------------------------------------------------------- */

static void test_limit(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  check_charge(record, 2, RECORD_SPEND, 1500000, NULL, NULL);
  check_charge(record, 2, RECORD_LOOK, 500000, NULL, NULL);
  check_charge(record, 2, RECORD_LOOK, 500001, NULL,
               "The application budget for tool_calls is exhausted: 1.5 of 2 used, 0.500001 more "
               "needed");
  check_charge(record, 2, RECORD_SPEND, MILLIONTHS, NULL,
               "The application budget for tool_calls is exhausted: 1.5 of 2 used, 1 more needed");
  check_status(record, "2 0 1.5 0 0.5");
  g_assert_cmpuint(count_events(record, "step"), ==, 2); /* refused: no event either */
  check_charge(record, 2, RECORD_SPEND, 500000, NULL, NULL);
  check_status(record, "2 0 2 0 0");
}

static void test_owed(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  check_charge(record, 2, RECORD_OWE, 5 * MILLIONTHS, NULL, NULL);
  check_status(record, "2 0 5 0 0");
  check_charge(record, 2, RECORD_OWE, G_MAXINT64, NULL, NULL); /* counted as far as one can count */
  check_charge(record, 2, RECORD_OWE, G_MAXINT64, NULL, NULL);
}

static void test_holds(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  check_charge(record, 3, RECORD_HOLD, 2 * MILLIONTHS, "hold_1", NULL);
  check_status(record, "3 0 0 2 1");
  check_charge(record, 3, RECORD_HOLD, 2 * MILLIONTHS, "hold_2",
               "The application budget for tool_calls is exhausted: 2 of 3 used, 2 more needed");
  settle(record, "hold_1", 500000);
  check_status(record, "3 0 0.5 0 2.5");
  settle(record, "hold_1", 500000); /* settled is settled */
  check_status(record, "3 0 0.5 0 2.5");
  check_charge(record, 3, RECORD_HOLD, 2 * MILLIONTHS, "hold_2", NULL);
  settle(record, "hold_2", 7 * MILLIONTHS); /* what it really was counts, and is never refused */
  check_status(record, "3 0 7.5 0 0");
}

static void test_end_releases(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  check_charge(record, 3, RECORD_HOLD, MILLIONTHS, "hold_1", NULL);
  record_end_life(record, RUN, "owner_1", "completed", NULL, &error);
  g_assert_no_error(error);
  check_status(record, "3 0 0 0 3");
}

static void test_abandon_releases(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  gboolean changed = FALSE;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  check_charge(record, 3, RECORD_HOLD, MILLIONTHS, "hold_1", NULL);
  record_abandon(record, RUN, "cancelled", "enough", &changed, &error);
  g_assert_no_error(error);
  check_status(record, "3 0 0 0 3");
}

static void test_warns_once(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  check_charge(record, 10, RECORD_SPEND, 7999999, NULL, NULL);
  g_assert_cmpuint(count_events(record, "budget_warning"), ==, 0);
  check_charge(record, 10, RECORD_SPEND, 1, NULL, NULL);
  check_charge(record, 10, RECORD_SPEND, 1, NULL, NULL);
  g_assert_cmpuint(count_events(record, "budget_warning"), ==, 1);
}

/* A limit that ends the run is told before one that only makes it wait. */
static void test_two_limits(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GArray) charges = g_array_new(FALSE, FALSE, sizeof(RecordCharge));
  RecordShortage shortage = {0};
  begin(record, RUN);
  RecordCharge charge = {.limit = limit_of(1), .kind = RECORD_SPEND, .amount = 2 * MILLIONTHS};
  g_array_append_val(charges, charge);
  charge.limit.scope = "request";
  charge.limit.key = RUN;
  charge.limit.pauses = FALSE;
  g_array_append_val(charges, charge);
  const RecordStep step = {.charges = charges};
  g_assert_false(record_step(record, RUN, "owner_1", &step, &shortage, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_BUDGET_EXCEEDED);
  g_assert_cmpstr(shortage.limit.scope, ==, "request");
}

static void test_windows(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  RecordShortage shortage = {0};
  gint64 today = calendar_day(clock_wall());
  begin(record, RUN);
  RecordLimit limit = limit_of(1);
  limit.window = "day";
  limit.starts = today - 86400 * CLOCK_SECOND;
  g_assert_null(charge_on(record, RUN, limit, RECORD_SPEND, MILLIONTHS, NULL, &shortage));
  g_free(charge_on(record, RUN, limit, RECORD_SPEND, MILLIONTHS, NULL, &shortage));
  g_assert_true(shortage.found);
  limit.starts = today;
  g_assert_null(charge_on(record, RUN, limit, RECORD_SPEND, MILLIONTHS, NULL, &shortage));
  g_autoptr(JsonObject) now = record_budgets(record, RUN, FALSE, &error);
  g_autoptr(JsonObject) all = record_budgets(record, RUN, TRUE, &error);
  g_assert_cmpuint(json_object_array_length(now), ==, 1);
  g_assert_cmpuint(json_object_array_length(all), ==, 2);
}

/* ---- With approvals ---------------------------------------------------------------------------------------------- */

/* A budget that refuses leaves the approval as it was. */
static void test_approval_stays(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  g_autoptr(JsonObject) approval =
      json_of("{\"approval_id\": \"approval_1\", \"status\": \"pending\","
              " \"expires\": 9000000000000000000}");
  g_autoptr(JsonObject) events = events_asking(approval);
  g_autoptr(GPtrArray) approvals = g_ptr_array_new();
  g_autoptr(GPtrArray) ids = g_ptr_array_new();
  g_ptr_array_add(approvals, approval);
  g_ptr_array_add(ids, (gpointer)(gsize) "approval_1");
  record_suspend(record, RUN, "owner_1", approvals, NULL, events, &error);
  g_assert_no_error(error);
  const RecordDecision yes = {.approve = TRUE, .approver = "alice"};
  record_decide(record, RUN, "approval_1", &yes, NULL, &error);
  g_assert_no_error(error);

  g_autoptr(GArray) charges = g_array_new(FALSE, FALSE, sizeof(RecordCharge));
  RecordCharge charge = {.limit = limit_of(1), .kind = RECORD_SPEND, .amount = 2 * MILLIONTHS};
  g_array_append_val(charges, charge);
  RecordShortage shortage = {0};
  const RecordStep step = {.approval_ids = ids, .charges = charges};
  g_assert_false(record_step(record, RUN, "owner_1", &step, &shortage, NULL));
  g_autoptr(JsonObject) left = record_approvals(record, RUN, TRUE, &error);
  g_assert_cmpstr(json_get_text(json_object_array_get_idx(left, 0), "status"), ==, "approved");
  g_array_index(charges, RecordCharge, 0).amount = MILLIONTHS;
  record_step(record, RUN, "owner_1", &step, &shortage, &error);
  g_assert_no_error(error);
  g_autoptr(JsonObject) used = record_approvals(record, RUN, TRUE, &error);
  g_assert_cmpstr(json_get_text(json_object_array_get_idx(used, 0), "status"), ==, "used");
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

/* The run meets its limit and asks for more. Owned. */
static JsonObject *ask(Record *record, gint64 amount) {
  g_autoptr(GError) error = NULL;
  RecordShortage shortage = {0};
  JsonObject *request = NULL;
  const RecordStep step = {0};
  g_free(charge_on(record, RUN, limit_of(1), RECORD_SPEND, amount, NULL, &shortage));
  g_assert_true(shortage.found);
  const RecordWaiting waiting = {.tool_call_id = "call_1"};
  record_ask_budget(record, RUN, "owner_1", &shortage, &waiting, &step, &request, &error);
  g_assert_no_error(error);
  return request;
}

static void wait_for_budget(Record *record) {
  g_autoptr(GError) error = NULL;
  record_end_life(record, RUN, "owner_1", "awaiting_budget", NULL, &error);
  g_assert_no_error(error);
}

static void decide(Record *record, gboolean grants, gint64 amount, const char *wanted) {
  g_autoptr(GError) error = NULL;
  const RecordBudgetDecision decision = {
      .grants = grants, .approver = "alice", .note = "why", .amount = amount};
  record_decide_budget(record, RUN, NULL, &decision, NULL, &error);
  g_assert_cmpstr(error ? error->message : NULL, ==, wanted);
}

static void check_resume(Record *record, const char *text, const char *cause) {
  g_autoptr(GError) error = NULL;
  gboolean ok = record_take(record, RUN, "owner_2", "trace_2", 60, NULL, &error);
  g_assert_cmpstr(error ? error->message : NULL, ==, text);
  if (ok) {
    g_autoptr(JsonObject) run = read_run(record, RUN);
    JsonObject *events = json_get(run, "events");
    JsonObject *last = event_at(run, json_object_array_length(events) - 1);
    g_assert_cmpstr(json_get_text(json_get(last, "metadata"), "cause"), ==, cause);
  }
}

static void test_grant(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  decide(record, TRUE, 0, "Run " RUN " is not waiting for a budget decision");
  g_autoptr(JsonObject) first = ask(record, 3 * MILLIONTHS);
  assert_json(json_get(first, "shortfall"), "2");
  g_autoptr(JsonObject) grown = ask(record, 2 * MILLIONTHS); /* two calls at once: one request */
  assert_json(json_get(grown, "needed"), "5");
  assert_json(json_get(grown, "shortfall"), "4");
  g_assert_cmpstr(json_get_text(first, "request_id"), ==, json_get_text(grown, "request_id"));
  wait_for_budget(record);
  g_autofree char *text = g_strdup_printf("Run " RUN " is still waiting for a budget decision: %s",
                                          json_get_text(first, "request_id"));
  check_resume(record, text, NULL);
  decide(record, TRUE, 0, NULL);
  decide(record, FALSE, 0, "Run " RUN " is not waiting for a budget decision");
  check_status(record, "1 4 0 0 5");
  check_resume(record, NULL, "budget_grant");
  g_assert_cmpuint(count_events(record, "budget_granted"), ==, 1);
}

static void test_grant_amount(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  json_object_put(ask(record, 3 * MILLIONTHS));
  decide(record, TRUE, 250000, NULL);
  check_status(record, "1 0.25 0 0 1.25");
}

/* A grant makes up for what was used since the run stopped. */
static void test_grant_late(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  json_object_put(ask(record, 3 * MILLIONTHS));
  check_charge(record, 1, RECORD_OWE, 5 * MILLIONTHS, NULL, NULL);
  decide(record, TRUE, 0, NULL);
  check_status(record, "1 7 5 0 3");
}

/* Beyond what can be counted one more does not fit either, and nobody makes room there. */
static void test_saturated(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  json_object_put(ask(record, 3 * MILLIONTHS));
  check_charge(record, 1, RECORD_OWE, G_MAXINT64, NULL, NULL);
  static const char WRONG[] = "The application budget for tool_calls cannot be raised beyond "
                              "9000000000000; a smaller amount may do";
  decide(record, TRUE, MILLIONTHS_MOST, WRONG);
  decide(record, TRUE, 0, WRONG);
  check_status(record, "1 0 9223372036854.775807 0 0");
  decide(record, TRUE, MILLIONTHS_MOST - MILLIONTHS, NULL);
  run_sql(place->path, "UPDATE budget_counters SET granted = 9223372036854775807");
  RecordShortage shortage = {0};
  g_autofree char *refused = charge_on(record, RUN, limit_of(1), RECORD_SPEND, 1, NULL, &shortage);
  g_assert_nonnull(refused);
  g_autofree char *held = charge_on(record, RUN, limit_of(1), RECORD_HOLD, 1, "hold", &shortage);
  g_assert_nonnull(held);
  g_assert_null(charge_on(record, RUN, limit_of(1), RECORD_SPEND, 0, NULL, &shortage));
}

/* A grant that no event tells of is nobody's. */
static void test_forged_grant(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  g_autoptr(JsonObject) asked = ask(record, 3 * MILLIONTHS);
  wait_for_budget(record);
  run_sql(place->path, "UPDATE budget_requests SET status = 'granted',"
                       " content = json_set(content, '$.status', 'granted')");
  g_autofree char *text = g_strdup_printf(
      "the record contradicts itself: budget request %s is granted by its row, granted by its "
      "content and pending by its events; nothing was done. sandhost record verify " RUN
      " tells more, sandhost cancel " RUN " ends the run",
      json_get_text(asked, "request_id"));
  check_resume(record, text, NULL);
  run_sql(place->path, "UPDATE budget_requests SET status = 'denied',"
                       " content = json_set(content, '$.status', 'denied')");
  g_assert_false(record_can_resume(record, RUN, NULL));
  run_sql(place->path, "UPDATE budget_requests SET status = 'pending', needed = 1,"
                       " content = json_set(content, '$.status', 'pending')");
  g_autofree char *needed = g_strdup_printf(
      "the record contradicts itself: budget request %s has another needed in its row than in its "
      "content; nothing was done. sandhost record verify " RUN " tells more, sandhost cancel " RUN
      " ends the run",
      json_get_text(asked, "request_id"));
  decide(record, TRUE, 0, needed);
}

/* And counts for the window that goes on by then. */
static void test_grant_next_day(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) request = NULL;
  RecordShortage shortage = {0};
  const RecordStep step = {0};
  RecordLimit yesterday = limit_of(1);
  yesterday.window = "day";
  yesterday.starts = calendar_day(clock_wall()) - 24 * 3600 * CLOCK_SECOND;
  begin(record, RUN);
  g_free(charge_on(record, RUN, yesterday, RECORD_SPEND, 3 * MILLIONTHS, NULL, &shortage));
  const RecordWaiting waiting = {.tool_call_id = "call_1"};
  record_ask_budget(record, RUN, "owner_1", &shortage, &waiting, &step, &request, &error);
  g_assert_no_error(error);
  decide(record, TRUE, 4 * MILLIONTHS, NULL);
  check_status(record, "1 4 0 0 5");
}

/* What others have granted, or a limit that was raised, is enough: nobody need decide any more. */
static void take_with(Record *record, gint64 units, const char *text) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GArray) limits = g_array_new(FALSE, FALSE, sizeof(RecordCharge));
  const RecordCharge look = {.limit = limit_of(units), .kind = RECORD_LOOK};
  if (units > 0) {
    g_array_append_val(limits, look);
  }
  record_take(record, RUN, "owner_2", "trace_2", 60, limits, &error);
  g_assert_cmpstr(error ? error->message : NULL, ==, text);
}

static void check_closed(Record *record) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) requests = record_budget_requests(record, RUN, TRUE, &error);
  JsonObject *request = json_object_array_get_idx(requests, 0);
  g_assert_cmpstr(json_get_text(request, "status"), ==, "unneeded");
  g_assert_cmpuint(count_events(record, "budget_request_closed"), ==, 1);
  decide(record, TRUE, 0, "Run " RUN " is not waiting for a budget decision");
}

static void test_room_again(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  g_autoptr(JsonObject) asked = ask(record, 3 * MILLIONTHS);
  wait_for_budget(record);
  g_autofree char *text = g_strdup_printf("Run " RUN " is still waiting for a budget decision: %s",
                                          json_get_text(asked, "request_id"));
  take_with(record, 2, text);
  g_assert_cmpuint(count_events(record, "budget_request_closed"), ==, 0);
  g_assert_true(record_can_resume(record, RUN, &error)); /* only the limits of now can tell */
  take_with(record, 3, NULL);
  check_closed(record);
}

/* A limit that is there no more keeps nobody waiting. */
static void test_limit_gone(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  json_object_put(ask(record, 3 * MILLIONTHS));
  wait_for_budget(record);
  take_with(record, 0, NULL);
  check_closed(record);
}

/* A hold takes what there is where less than all of it will do. */
static void test_least(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GArray) charges = g_array_new(FALSE, FALSE, sizeof(RecordCharge));
  const RecordCharge hold = {
      .limit = limit_of(1), .kind = RECORD_HOLD, .amount = 700000, .least = 1, .hold = "hold_1"};
  const RecordStep step = {.charges = charges};
  RecordShortage shortage = {0};
  begin(record, RUN);
  g_array_append_val(charges, hold);
  g_array_append_val(charges, hold);
  record_step(record, RUN, "owner_1", &step, &shortage, &error);
  g_assert_no_error(error);
  check_status(record, "1 0 0 1 0");
  g_assert_false(record_step(record, RUN, "owner_1", &step, &shortage, &error));
  g_assert_cmpstr(
      error->message, ==,
      "The application budget for tool_calls is exhausted: 1 of 1 used, 0.7 more needed");
}

static void test_deny(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  json_object_put(ask(record, 3 * MILLIONTHS));
  wait_for_budget(record);
  decide(record, FALSE, 0, NULL);
  check_status(record, "1 0 0 0 1");
  g_autoptr(JsonObject) requests = record_budget_requests(record, RUN, TRUE, &error);
  JsonObject *request = json_object_array_get_idx(requests, 0);
  g_assert_cmpstr(json_get_text(request, "status"), ==, "denied");
  g_assert_cmpstr(json_get_text(request, "approver"), ==, "alice");
  g_assert_cmpstr(json_get_text(request, "message"), ==,
                  "The application budget for tool_calls is exhausted: 0 of 1 used, 3 more needed");
  check_resume(record, NULL, "budget_denied");
}

static void test_ended_run(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  gboolean changed = FALSE;
  g_autoptr(Record) record = open_record(place->path);
  begin(record, RUN);
  json_object_put(ask(record, 3 * MILLIONTHS));
  wait_for_budget(record);
  record_abandon(record, RUN, "cancelled", "enough", &changed, &error);
  g_assert_no_error(error);
  decide(record, TRUE, 0, "Run " RUN " is not waiting for a budget decision");
}

/* What was counted for a run alone goes with it; what it has used of the rest stays used. */
static void test_pruned(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  RecordShortage shortage = {0};
  begin(record, RUN);
  RecordLimit own = limit_of(3);
  own.scope = "request";
  own.key = RUN;
  g_assert_null(charge_on(record, RUN, own, RECORD_SPEND, MILLIONTHS, NULL, &shortage));
  check_charge(record, 1, RECORD_SPEND, MILLIONTHS, NULL, NULL);
  json_object_put(ask(record, MILLIONTHS));
  record_end_life(record, RUN, "owner_1", "completed", NULL, &error);
  g_assert_no_error(error);
  const PruneRequest everything = {.keep = 0};
  json_object_put(record_prune(record, &everything, &error));
  g_assert_no_error(error);
  g_autofree char *line = status_of(record, NULL);
  g_assert_cmpstr(line, ==, "1 0 1 0 0");
  g_autoptr(JsonObject) requests = record_budget_requests(record, NULL, TRUE, &error);
  assert_json(requests, "[]");
}

/* ---- Processes --------------------------------------------------------------------------------------------------- */

/* Waits until the other end of the pipe is closed. */
static void wait_at(int gate) {
  char byte = 0;
  while (read(gate, &byte, 1) > 0) {
  }
}

/* In a child: spends and holds one, as often as it may, and keeps what it holds until the second gate. Says how often. */
static void take_in_child(const char *path, int number, const int *gates, int results) {
  g_autofree char *id = g_strdup_printf("run_%d", number);
  Record *record = record_open(path, NULL);
  unsigned char done = 0;
  begin(record, id);
  wait_at(gates[0]);
  for (int i = 0; i < TRIES; i++) {
    RecordShortage shortage = {0};
    g_autofree char *hold = g_strdup_printf("hold_%d_%d", number, i);
    g_autofree char *refused =
        charge_on(record, id, limit_of(ROOM), i % 2 ? RECORD_HOLD : RECORD_SPEND, MILLIONTHS, hold,
                  &shortage);
    if (refused && !shortage.found) {
      _exit(1);
    }
    done = (unsigned char)(done + (refused ? 0 : 1));
  }
  if (write(results, &done, 1) != 1) {
    _exit(1);
  }
  wait_at(gates[1]);
  _exit(0);
}

static void test_ten_processes(Place *place, gconstpointer unused) {
  (void)unused;
  pid_t children[PROCESSES];
  int first[2];
  int second[2];
  int results[2];
  int total = 0;
  record_close(open_record(place->path));
  g_assert_cmpint(pipe(first) | pipe(second) | pipe(results), ==, 0);
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      close(first[1]);
      close(second[1]);
      take_in_child(place->path, i, (int[]){first[0], second[0]}, results[1]);
    }
  }
  close(first[1]);
  for (int i = 0; i < PROCESSES; i++) {
    unsigned char done = 0;
    g_assert_cmpint(read(results[0], &done, 1), ==, 1);
    total += done;
  }
  g_assert_cmpint(total, ==, ROOM);
  Record *record = open_record(place->path);
  g_autofree char *full = status_of(record, NULL);
  g_assert_true(g_str_has_suffix(full, " 0")); /* nothing remains while they hold */
  record_close(record);
  close(second[1]);
  for (int i = 0; i < PROCESSES; i++) {
    int status = 0;
    waitpid(children[i], &status, 0);
    g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  record = open_record(place->path); /* which tells them as interrupted */
  g_autofree char *line = status_of(record, NULL);
  g_auto(GStrv) words = g_strsplit(line, " ", -1);
  g_assert_cmpstr(words[3], ==, "0");
  record_close(record);
  close(first[0]);
  close(second[0]);
  close(results[0]);
  close(results[1]);
}

/* Killed between hold and settle: whoever opens the record next tells the run as interrupted, and frees what it held. */
static void test_killed(Place *place, gconstpointer unused) {
  (void)unused;
  record_close(open_record(place->path));
  pid_t child = fork();
  if (child == 0) {
    Record *record = record_open(place->path, NULL);
    RecordShortage shortage = {0};
    begin(record, RUN);
    g_free(charge_on(record, RUN, limit_of(3), RECORD_HOLD, MILLIONTHS, "hold_1", &shortage));
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  g_assert_true(WIFSIGNALED(status));
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) run = read_run(record, RUN);
  g_assert_cmpstr(json_get_text(run, "status"), ==, "interrupted");
  check_status(record, "3 0 0 0 3");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function)                                                                        \
  g_test_add("/record/budgets/" name, Place, NULL, place_make, function, place_remove)
  ADD("limit", test_limit);
  ADD("owed", test_owed);
  ADD("holds", test_holds);
  ADD("end-releases", test_end_releases);
  ADD("abandon-releases", test_abandon_releases);
  ADD("warns-once", test_warns_once);
  ADD("two-limits", test_two_limits);
  ADD("windows", test_windows);
  ADD("approval-stays", test_approval_stays);
  ADD("grant", test_grant);
  ADD("grant-amount", test_grant_amount);
  ADD("grant-late", test_grant_late);
  ADD("requests/saturated", test_saturated);
  ADD("requests/forged", test_forged_grant);
  ADD("grant-next-day", test_grant_next_day);
  ADD("room-again", test_room_again);
  ADD("limit-gone", test_limit_gone);
  ADD("least", test_least);
  ADD("deny", test_deny);
  ADD("ended-run", test_ended_run);
  ADD("pruned", test_pruned);
  ADD("ten-processes", test_ten_processes);
  ADD("killed", test_killed);
  return g_test_run();
}
