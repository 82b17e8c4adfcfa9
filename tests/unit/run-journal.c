/* SPDX-License-Identifier: Apache-2.0 */
/* run-journal.c: what waits in the journal belongs to the journal alone. */
#include "run/journal.h"

/* json-c counts references without atomics, and whoever flushes lets go of everybody's events: a value that a caller
 * still holds must not be in the list. */
static void test_nothing_is_shared(void) {
  g_autoptr(Journal) journal = journal_new(NULL, "run_test");
  JsonObject *shared = json_object_new_string("held by the caller too");
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "stdout", json_object_get(shared));
  journal_add(journal, "sandbox_exec_completed", NULL, payload);
  g_assert_cmpint(json_object_put(shared), ==, 1); /* the last reference was the caller's */
  g_assert_true(journal_flush(journal, NULL));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/run/journal/nothing-is-shared", test_nothing_is_shared);
  return g_test_run();
}
