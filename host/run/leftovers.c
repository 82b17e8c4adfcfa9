/* SPDX-License-Identifier: Apache-2.0 */
/* leftovers.c: the sandboxes that a dead process left behind for its run. */
#include "base/clock.h"
#include "run/run.h"

#define SWEEP_SECONDS 120

gboolean run_sweep_leftovers(const Harness *harness, const char *run_id, Cancel *cancel,
                             guint *ret_removed, GError **error) {
  g_autoptr(GPtrArray) orphans = g_ptr_array_new_with_free_func((GDestroyNotify)orphan_free);
  const CallScope scope = {.deadline = clock_deadline(SWEEP_SECONDS * CLOCK_SECOND),
                           .cancel = cancel};
  const SweepRequest request = {.run_id = run_id};
  if (!harness->instance || !*run_id) { /* no run means every run to the contract */
    return TRUE;
  }
  if (!provider_instance_sweep(harness->instance, &request, orphans, &scope, error)) {
    return FALSE;
  }
  guint removed = 0;
  const char *left = NULL;
  for (guint i = 0; i < orphans->len; i++) {
    const Orphan *orphan = g_ptr_array_index(orphans, i);
    removed += orphan->removed ? 1 : 0;
    left = orphan->removed ? left : orphan->ref;
  }
  if (left) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_UNAVAILABLE,
                "the sandbox %s of run %s could not be removed", left, run_id);
    return FALSE;
  }
  if (ret_removed) {
    *ret_removed = removed;
  }
  return TRUE;
}
