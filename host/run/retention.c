/* SPDX-License-Identifier: Apache-2.0 */
/* retention.c: for how long runs are kept (behaviour 1.1, run_retention_days). */
#include "base/clock.h"
#include "record/record-retention.h"
#include "run/run-private.h"

#define DEFAULT_DAYS 30
/* Nobody notices that at the end of a run, and some ten runs go in it. */
#define RETENTION_TIME (50 * CLOCK_MILLISECOND)

gint64 retention_days(const Config *config) {
  JsonObject *value = NULL;
  if (!config->agent_config ||
      !json_object_object_get_ex(config->agent_config, "run_retention_days", &value)) {
    return DEFAULT_DAYS;
  }
  return value ? json_object_get_int64(value) : 0;
}

void run_retain(const Harness *harness, Record *record) {
  const RetentionRequest request = {
      .days = retention_days(harness->config), .now = clock_wall(), .most = RETENTION_TIME};
  if (request.days > 0) {
    record_retain(record, &request, NULL);
  }
}
