/* SPDX-License-Identifier: Apache-2.0 */
/* personal-private.h: personal data that is made of digits. */
#ifndef SANDHOST_PRIVACY_PERSONAL_PRIVATE_H
#define SANDHOST_PRIVACY_PERSONAL_PRIVATE_H

#include "privacy/personal.h"

/* Whether one begins with the number whose first digit is at at; as personal_find. */
gboolean personal_find_number(guint categories, const guint8 *data, gsize length, gsize from,
                              gsize at, PersonalSpan *ret_span);

#endif
