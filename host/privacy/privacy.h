/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privacy.h: what nobody is to read, taken out of text (behaviour 12). Text in, text out: it knows neither commands nor
 * the record. Immutable once made, so used by any number of threads.
 *
 * Credentials are taken out at every border. Personal data is taken out at the borders that the configuration names.
 */
#ifndef SANDHOST_PRIVACY_PRIVACY_H
#define SANDHOST_PRIVACY_PRIVACY_H

#include "base/json.h"
#include "config/privacy-config.h"
#include "privacy/credential-stream.h"
#include "privacy/personal-stream.h"

typedef struct Privacy Privacy;

/* config is copied. declared and environment: as credentials_new has them. Returns owned. */
Privacy *privacy_new(const PrivacyConfig *config, const char *const *declared,
                     const char *const *environment);
void privacy_free(Privacy *privacy);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Privacy, privacy_free)

/* Where text goes: what is taken out of it beside credentials. */
typedef enum {
  PRIVACY_NOWHERE,   /* nothing beside them */
  PRIVACY_TELEMETRY, /* the record; also the values of redact_keys, in JSON */
  PRIVACY_WORKSPACE,
  PRIVACY_STREAM, /* output as it appears */
  PRIVACY_RESULT, /* what the caller, and by it the model, is told: redact_model_io or redact_public */
} PrivacyBorder;

/* The categories of personal data that are taken out there; 0: none. */
guint privacy_categories(const Privacy *privacy, PrivacyBorder border);
/* NULL: there are no credentials, so nothing to do. Borrowed. */
const Needles *privacy_needles(const Privacy *privacy);
/* Whether text on its way there is left as it is. */
gboolean privacy_is_idle(const Privacy *privacy, PrivacyBorder border);

/* The text as it may pass, owned; NULL: as it is. */
GString *privacy_text(const Privacy *privacy, PrivacyBorder border, const void *data, gsize length);
/* The same for a command line: also what command-forms.h finds, whether or not it is registered. */
char *privacy_command(const Privacy *privacy, PrivacyBorder border, const char *command);

/* A copy that shares nothing with value, with every text and every key as it may pass. *ret_changed (may be NULL) is set
 * when something was taken out, and left alone otherwise. keep_names: the members of value itself are the caller's own,
 * whatever redact_keys says. Returns owned. */
JsonObject *privacy_json(const Privacy *privacy, PrivacyBorder border, JsonObject *value,
                         gboolean keep_names, gboolean *ret_changed);

#endif
