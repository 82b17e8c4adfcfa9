/* SPDX-License-Identifier: Apache-2.0 */
/* observation.h: what the model and the record are told of a call (behaviour 7.2). Pure. */
#ifndef SANDHOST_RUN_OBSERVATION_H
#define SANDHOST_RUN_OBSERVATION_H

#include <sandhost/provider.h>

#include "base/json.h"
#include "workspace/bridge.h"

/* The observation of a call that never got to a result: {tool_name, args, status, data, message}. code is the
 * governance_error_code or NULL. args is borrowed. Returns owned. */
JsonObject *observation_error(JsonObject *args, const char *message, const char *code);

typedef struct {
  const struct sandhost_result *result;
  JsonObject *stdout_text; /* borrowed: what is kept of the streams, as text */
  JsonObject *stderr_text;
  gboolean stdout_cut;
  gboolean stderr_cut;
  gint64 limit; /* seconds that the command had */
  gboolean isolated;
  const char *lost; /* why the sandbox is gone; NULL: it is not */
  gboolean timed_out;
  const BridgeReport *report;
} ObservationFacts;

/* The observation of a command that ended. Returns owned. */
JsonObject *observation_result(JsonObject *args, const ObservationFacts *facts);

/* [{path, reason}] and {copied_in, written, skipped}. Return owned. */
JsonObject *observation_skips(const BridgeReport *report);
JsonObject *observation_sync(const BridgeReport *report);

#endif
