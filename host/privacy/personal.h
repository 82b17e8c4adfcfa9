/* SPDX-License-Identifier: Apache-2.0 */
/*
 * personal.h: personal data in text. Found is what is written as such a thing is written; numbers that stand for
 * something else (identifiers, dates, times, versions, addresses of machines, amounts) are left alone.
 *
 *   email        name@domain, with a domain that ends in letters; not user@host:path
 *   phone        10 to 15 digits: behind a +, or with the area in brackets, or 3-3-4 with one separator
 *   ssn          ddd-dd-dddd that can have been given out
 *   credit_card  13 to 19 digits, at once or in groups, that pass Luhn's test
 */
#ifndef SANDHOST_PRIVACY_PERSONAL_H
#define SANDHOST_PRIVACY_PERSONAL_H

#include "privacy/sink.h"

typedef enum {
  PERSONAL_EMAIL = 1 << 0,
  PERSONAL_PHONE = 1 << 1,
  PERSONAL_SSN = 1 << 2,
  PERSONAL_CREDIT_CARD = 1 << 3,
  PERSONAL_ALL = 15,
} PersonalCategory;

/* By the name that the configuration has for it; 0: unknown. */
guint personal_category(const char *name);

typedef struct {
  gsize start;
  gsize end;
  const char *marker; /* "[REDACTED_EMAIL]" ... */
} PersonalSpan;

/* The first one that begins at from or later. What stands before from is only looked at for what surrounds it. */
gboolean personal_find(guint categories, const guint8 *data, gsize length, gsize from,
                       PersonalSpan *ret_span);

/* How many of the last bytes may belong to something that is not whole yet; at most PERSONAL_MOST_HELD. */
#define PERSONAL_MOST_HELD 512u
gsize personal_open(const guint8 *data, gsize length);

/* The text with markers, owned; NULL: there is nothing in it. */
GString *personal_redact(guint categories, const void *data, gsize length);

#endif
