/* SPDX-License-Identifier: Apache-2.0 */
/* privacy-config.h: privacy_config, and what of telemetry_config says what is recorded (behaviour 12). */
#ifndef SANDHOST_CONFIG_PRIVACY_CONFIG_H
#define SANDHOST_CONFIG_PRIVACY_CONFIG_H

#include "base/json.h"

typedef struct {
  gboolean enabled; /* FALSE: personal data passes every border; credentials never do */
  gboolean telemetry;
  gboolean workspace;
  gboolean stream;
  gboolean public_io;
  gboolean model_io;
  gboolean memory;    /* this program has none */
  char **categories;  /* names; never NULL */
  char **redact_keys; /* never NULL */
} PrivacyConfig;

/* The preset with the switches laid over it. */
typedef struct {
  gboolean inputs;           /* arguments and command text */
  gboolean results;          /* what calls gave back, with stdout and stderr */
  guint64 max_payload_bytes; /* 0: as large as an event may be */
  guint64
      offload_bytes; /* a stream that is longer is kept beside its event, where outputs are kept */
} CaptureConfig;

/* The defaults. */
void privacy_config_init(PrivacyConfig *config, CaptureConfig *capture);
/* agent is checked already (settings.h). */
void privacy_config_read(PrivacyConfig *config, CaptureConfig *capture, JsonObject *agent);
void privacy_config_clear(PrivacyConfig *config);

/* What the record says of it: {enabled, redacted: [borders], categories}. Returns owned. */
JsonObject *privacy_config_json(const PrivacyConfig *config);
/* What was recorded so, for a process that does not have the configuration itself; the defaults where nothing is. */
void privacy_config_restore(PrivacyConfig *config, JsonObject *recorded);

#endif
