/* SPDX-License-Identifier: Apache-2.0 */
/* output.h: what a command printed, as much of it as is kept (behaviour 7.3). */
#ifndef SANDHOST_RUN_OUTPUT_H
#define SANDHOST_RUN_OUTPUT_H

#include "base/json.h"
#include "record/record-output.h"

typedef struct {
  GByteArray *kept; /* the first max bytes */
  guint64 max;
  guint64 total; /* all bytes that came by */

  RecordOutput *full; /* where everything is kept that the result does not hold; NULL: nowhere */
  gint64 since;       /* when full was set; clock_now */
  gboolean feeding;   /* full is given what comes by */
} Output;

void output_init(Output *output, guint64 max);
void output_clear(Output *output);

/* From here on more than is kept here goes to take_full. */
void output_keep(Output *output, RecordOutput *take_full);
/* After the last byte: what full holds, for the record; NULL: nothing, since the text is the whole stream or there is
 * no full. Owned. */
JsonObject *output_seal(Output *output, gboolean truncated);

void output_add(Output *output, const void *data, gsize length);

/* Whether more was written than is kept; written is what the provider counted, where it delivers no more than
 * the cap. */
gboolean output_truncated(const Output *output, guint64 written);

/* As text: an incomplete last character of a cut stream is dropped, other bad bytes become U+FFFD. Owned. */
JsonObject *output_text(const Output *output, gboolean truncated);

#endif
