/* SPDX-License-Identifier: Apache-2.0 */
/* run-asks-altered.c: approvals as somebody else has rewritten them: nothing is done because of a row that the run's events
 * contradict, and record verify names it. */
#include "approvals-fixture.h"

#define OUT                                                                                        \
  "; nothing was done. sandhost record verify " RUN " tells more, sandhost cancel " RUN            \
  " ends the run"

/* A word that no event repeats is nobody's. */
static void test_contradictions(Place *place, gconstpointer unused) {
  static const char PENDING[] = "approved by its row, pending by its content and pending by its "
                                "events";
  static const struct {
    gboolean approved; /* by a person, before it is altered */
    const char *sql;
    const char *wrong;
  } CASES[] = {
      {FALSE, "UPDATE approvals SET status = 'approved'", "is %s"},
      {FALSE,
       "UPDATE approvals SET status = 'approved', content = json_set(content, '$.status',"
       " 'approved', '$.decision', 'approve', '$.approver', 'alice')",
       "is approved by its row, approved by its content and pending by its events"},
      {TRUE, "UPDATE approvals SET content = json_set(content, '$.status', 'pending')",
       "is approved by its row, pending by its content and approved by its events"},
      {TRUE, "UPDATE approvals SET content = json_set(content, '$.request_digest', 'x')",
       "is about something else than its event"},
      {TRUE,
       "UPDATE approvals SET expires_at = 9000000000000000000,"
       " content = json_set(content, '$.expires', 9000000000000000000)",
       "expires at another time than its event says"},
      {TRUE, "UPDATE approvals SET content = '[]'", "has the content of another, or none"},
      {TRUE,
       "INSERT INTO approvals SELECT 9, run, 'approval_9', status, expires_at,"
       " json_set(content, '$.approval_id', 'approval_9') FROM approvals",
       "is asked for by no event"},
  };
  (void)unused;
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autofree char *path = g_strdup_printf("%s-%d", place->path, (int)i);
    g_autoptr(Record) record = open_record(path);
    begin_life(record, TRUE);
    suspend(record, APPROVAL, "ls", 100);
    if (CASES[i].approved) {
      decide(record, "approve", NULL);
    }
    end_waiting(record);
    check_verified(record, "[]");
    run_sql(path, CASES[i].sql);
    const char *which = strstr(CASES[i].wrong, "no event") ? "approval_9" : APPROVAL;
    g_autofree char *wrong = i == 0 ? g_strconcat("is ", PENDING, NULL) : g_strdup(CASES[i].wrong);
    g_autofree char *text =
        g_strdup_printf("the record contradicts itself: approval %s %s" OUT, which, wrong);
    g_autoptr(GError) error = NULL;
    if (!strstr(CASES[i].sql, "'[]'")) { /* of that one no status is known either */
      g_assert_false(record_can_resume(record, RUN, &error));
      g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD);
    }
    take(record, "owner_2", text);
    g_assert_cmpuint(count_events(record, "run_resumed"), ==, 0);
    g_autoptr(JsonObject) verdict = record_verify_run(record, RUN, NULL);
    JsonObject *fault = json_object_array_get_idx(json_get(verdict, "faults"), 0);
    g_autofree char *detail = g_strdup_printf("approval %s %s", which, wrong);
    g_assert_cmpstr(json_get_text(fault, "detail"), ==, detail);
  }
}

/* What was denied is not asked about again because a column says so, and what was approved is not used for another. */
static void test_contradicted_decision(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  suspend(record, APPROVAL, "ls", 100);
  decide(record, "deny", NULL);
  run_sql(place->path, "UPDATE approvals SET status = 'pending'");
  refuse_decision(record, RUN, APPROVAL, "approve", "bob", NULL, SANDHOST_ERROR_RECORD,
                  "the record contradicts itself: approval " APPROVAL
                  " is pending by its row, denied by its content and denied by its events" OUT);
  run_sql(place->path, "UPDATE approvals SET status = 'approved'");
  use(record, "owner_1",
      "the record contradicts itself: approval " APPROVAL
      " is approved by its row, denied by its content and denied by its events" OUT);
  g_assert_cmpuint(count_events(record, "sandbox_exec_started"), ==, 0);
}

/* What people read of it before they decide. */
static void test_shown_altered(Place *place, gconstpointer unused) {
  static const struct {
    const char *set;
    const char *wrong;
  } CASES[] = {
      {"'$.arguments.command', 'true'", "shows another call than it is about"},
      {"'$.target.path', '/'", "shows another target than it is about"},
      {"'$.risk_level', 'low'", "has another risk_level than its event"},
      {"'$.expires', 1", "expires at another time than its event says"},
  };
  (void)unused;
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autofree char *path = g_strdup_printf("%s-%d", place->path, (int)i);
    g_autofree char *sql =
        g_strdup_printf("UPDATE approvals SET content = json_set(content, %s)", CASES[i].set);
    g_autofree char *faults = g_strdup_printf(
        "[{\"event\":null,\"what\":\"altered\",\"detail\":\"approval " APPROVAL " %s\"}]",
        CASES[i].wrong);
    g_autoptr(Record) record = open_record(path);
    begin_life(record, TRUE);
    suspend(record, APPROVAL, "ls", 100);
    run_sql(path, sql);
    check_verified(record, faults);
    g_autofree char *refusal = g_strdup_printf(
        "the record contradicts itself: approval " APPROVAL " %s" OUT, CASES[i].wrong);
    if (!strstr(CASES[i].wrong, "expires")) { /* sooner is no more than is granted */
      refuse_decision(record, RUN, APPROVAL, "approve", "bob", NULL, SANDHOST_ERROR_RECORD,
                      refusal);
    }
  }
}

static void test_attempt_altered(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  end_waiting(record);
  take(record, "owner_2", NULL);
  check_verified(record, "[]");
  run_sql(place->path, "UPDATE lives SET attempt = 3");
  check_verified(record,
                 "[{\"event\":null,\"what\":\"altered\",\"detail\":\"the run was taken more "
                 "or less often than its row says\"}]");
}

static void test_row_missing(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  suspend(record, APPROVAL, "ls", 100);
  run_sql(place->path, "DELETE FROM approvals");
  check_verified(record, "[{\"event\":null,\"what\":\"missing\",\"detail\":\"approval " APPROVAL
                         " has no row\"}]");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function)                                                                        \
  g_test_add("/run/asks-altered/" name, Place, NULL, place_make, function, place_remove)
  ADD("contradictions", test_contradictions);
  ADD("contradicted-decision", test_contradicted_decision);
  ADD("shown-altered", test_shown_altered);
  ADD("row-missing", test_row_missing);
  ADD("attempt-altered", test_attempt_altered);
  return g_test_run();
}
