/* SPDX-License-Identifier: Apache-2.0 */
/* output.h: what a command printed, as much of it as is kept (behaviour 7.3). */
#ifndef SANDHOST_RUN_OUTPUT_H
#define SANDHOST_RUN_OUTPUT_H

#include "base/json.h"

typedef struct {
  GByteArray *kept; /* the first max bytes */
  guint64 max;
  guint64 total; /* all bytes that came by */
} Output;

void output_init(Output *output, guint64 max);
void output_clear(Output *output);

void output_add(Output *output, const void *data, gsize length);

/* Whether more was written than is kept; written is what the provider counted, where it delivers no more than
 * the cap. */
gboolean output_truncated(const Output *output, guint64 written);

/* As text: an incomplete last character of a cut stream is dropped, other bad bytes become U+FFFD. Owned. */
JsonObject *output_text(const Output *output, gboolean truncated);

#endif
