/* SPDX-License-Identifier: Apache-2.0 */
/* output.h: what a command printed, as much of it as is kept (behaviour 7.3). Credentials are taken out of it before
 * anybody sees it; a cut leaves none of one. */
#ifndef SANDHOST_RUN_OUTPUT_H
#define SANDHOST_RUN_OUTPUT_H

#include <pthread.h>

#include "base/json.h"
#include "privacy/privacy.h"
#include "record/record-output.h"

/* Somebody who sees the stream as it appears. FALSE: no more. */
typedef struct {
  gboolean (*put)(void *user, guint32 stream, const void *data, gsize length);
  void *user;
  guint32 stream;
} OutputFollower;

typedef struct {
  GByteArray *kept; /* the first max bytes, without credentials */
  guint64 max;
  guint64 total;  /* all bytes that came by */
  guint64 passed; /* what they became without credentials */

  const Privacy *privacy;  /* borrowed; NULL: nothing is taken out */
  CredentialStream *guard; /* NULL: there is nothing to take out */

  pthread_mutex_t
      keeping; /* guards kept and what follows up to feeding, while output_keep_now may come */
  RecordOutput *full; /* where everything is kept that the result does not hold; NULL: nowhere */
  PersonalStream *full_filter; /* on the way there; NULL */
  gsize text_max;              /* bytes of text that an event holds; longer text is left to full */
  gint64 since;                /* when full was set; clock_now */
  gboolean feeding;            /* full is given what comes by */

  OutputFollower follower;       /* put NULL: nobody */
  PersonalStream *follow_filter; /* on the way there; NULL */
  gboolean stopped;              /* the follower said so */
} Output;

void output_init(Output *output, guint64 max);
void output_clear(Output *output);

/* From here on what privacy says is taken out. Borrowed; before the next two. */
void output_guard(Output *output, const Privacy *privacy);
/* From here on more than is kept here goes to take_full. text_max: no longer text is held by an event; 0: the default. */
void output_keep(Output *output, RecordOutput *take_full, guint64 text_max);
/* From here on the follower gets what comes by; one without put is nobody. Copied. */
void output_follow(Output *output, const OutputFollower *follower);

/* After the last byte, before what follows: gives out what was held back. written: as for output_truncated. */
void output_finish(Output *output, guint64 written);
/* What full holds, for the record; NULL: nothing, since the text is the whole stream or there is no full. Owned. */
JsonObject *output_seal(Output *output, gboolean truncated);

/* Writes to the record what the command has printed, once that has run for a while; any thread. A command that is silent
 * for long would keep it to itself else, and it would be gone with the host. */
void output_keep_now(Output *output);

void output_add(Output *output, const void *data, gsize length);

/* Whether more was written than is kept; written is what the provider counted, where it delivers no more than
 * the cap. */
gboolean output_truncated(const Output *output, guint64 written);

/* Sealed: what stands in the event in place of the text, as record_output_head has it. NULL: the text does. Owned. */
JsonObject *output_offload(const Output *output, gboolean truncated);

/* Whether a credential was taken out; offloaded, also personal data, which else is taken out of the event. */
gboolean output_is_redacted(const Output *output, gboolean offloaded);

/* As text: an incomplete last character of a cut stream is dropped, other bad bytes become U+FFFD. Owned. */
JsonObject *output_text(const Output *output, gboolean truncated);

#endif
