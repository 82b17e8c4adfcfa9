/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h: an event as it goes on record. Every event passes here: credentials are taken out of it whatever the
 * configuration says, then personal data and the values of redact_keys, then what is not to be recorded at all.
 *
 * A payload that is not as it was says so in its member "capture": "redacted", "not_recorded", "truncated" (then only
 * bytes and sha256 are left of it) or "offloaded" (a stream is kept beside it, record-output.h, and read as if it were in it).
 */
#ifndef SANDHOST_RUN_CAPTURE_H
#define SANDHOST_RUN_CAPTURE_H

#include "config/privacy-config.h"
#include "privacy/privacy.h"

typedef struct {
  const Privacy *privacy;      /* borrowed */
  const CaptureConfig *config; /* borrowed */
} Capture;

/* Puts copies that share nothing with them in the place of both, which are given up; either may be NULL. */
void capture_event(const Capture *capture, const char *type, JsonObject **metadata,
                   JsonObject **payload);

/* What begins a run again, as far as it may be kept. Its member "redacted" is true when its command is not as it was, and
 * "withheld" when something else is not. Returns owned. */
JsonObject *capture_request(const Capture *capture, JsonObject *request);

/* The arguments of a call, without credentials. *ret_changed as privacy_json. Returns owned. */
JsonObject *capture_arguments(const Privacy *privacy, PrivacyBorder border, JsonObject *arguments,
                              gboolean *ret_changed);

/* Whether the events of a call with these arguments hold them as they are, so that it could be run again from those. */
gboolean capture_keeps(const Capture *capture, JsonObject *arguments);

#endif
