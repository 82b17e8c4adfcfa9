/* SPDX-License-Identifier: Apache-2.0 */
/* millionths.h: exact amounts. A cost has fractions, and sums of binary fractions drift; an amount is a whole number of
 * millionths of its unit. */
#ifndef SANDHOST_BASE_MILLIONTHS_H
#define SANDHOST_BASE_MILLIONTHS_H

#include "base/json.h"

#define MILLIONTHS G_GINT64_CONSTANT(1000000) /* in one unit */
/* What anybody may ask for, grant or charge at once, at every door. */
#define MILLIONTHS_MOST (G_GINT64_CONSTANT(9000000000000) * MILLIONTHS)
#define MILLIONTHS_MOST_TEXT "9000000000000" /* in units */

/* From a JSON number, rounded to the nearest millionth. FALSE when it is none, or more than can be counted. */
gboolean millionths_read(JsonObject *number, gint64 *ret_amount);
/* Whether a JSON number has no more than six digits behind the point, as far as it can tell. */
gboolean millionths_is_exact(JsonObject *number);
/* From decimal digits, at most MILLIONTHS_MOST, with at most six behind a point; no sign. */
gboolean millionths_parse(const char *text, gint64 *ret_amount);

/* "12", "0.25". Owned. */
char *millionths_text(gint64 amount);
/* The same as a JSON number. Owned. */
JsonObject *millionths_json(gint64 amount);

/* A sum that stays within bounds: what is too much to count is the most there is. */
gint64 millionths_add(gint64 a, gint64 b);

#endif
