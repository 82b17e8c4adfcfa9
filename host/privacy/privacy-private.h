/* SPDX-License-Identifier: Apache-2.0 */
/* privacy-private.h: what the files of the room share. */
#ifndef SANDHOST_PRIVACY_PRIVACY_PRIVATE_H
#define SANDHOST_PRIVACY_PRIVACY_PRIVATE_H

#include "privacy/privacy.h"

struct Privacy {
  Needles *needles; /* NULL: none */
  guint categories[PRIVACY_RESULT + 1];
  GHashTable *keys; /* redact_keys as privacy_fold_key has them */
};

/* As redact_keys are compared: in small letters, - as _. Returns owned. */
char *privacy_fold_key(const char *key);
/* privacy_text with just these categories. */
GString *privacy_text_of(const Privacy *privacy, guint categories, const void *data, gsize length);

#endif
