/* SPDX-License-Identifier: Apache-2.0 */
/* output.c: keeps the first bytes of a stream and counts the rest. */
#include "run/output.h"

#include "base/clock.h"

/* A command that has run for this long is kept as it goes, so that not everything is lost with the host. */
#define KEEP_AFTER CLOCK_SECOND
/* What is longer may be too long for an event, once it is JSON. */
#define WHOLE_TEXT_MAX (1u << 20)

void output_init(Output *output, guint64 max) {
  *output = (Output){.kept = g_byte_array_new(),
                     .max = max,
                     .text_max = WHOLE_TEXT_MAX,
                     .keeping = PTHREAD_MUTEX_INITIALIZER};
}

void output_clear(Output *output) {
  g_clear_pointer(&output->kept, g_byte_array_unref);
  g_clear_pointer(&output->full, record_output_free);
  g_clear_pointer(&output->guard, credential_stream_free);
  g_clear_pointer(&output->full_filter, personal_stream_free);
  g_clear_pointer(&output->follow_filter, personal_stream_free);
}

/* ---- The record -------------------------------------------------------------------------------------------------- */

static void put_full(void *user, const void *data, gsize length) {
  const Output *output = user;
  record_output_add(output->full, data, length);
}

/* What is beyond the record's limit need not be looked through. */
static void fill(Output *output, const void *data, gsize length) {
  if (output->full_filter && !record_output_is_full(output->full)) {
    personal_stream_add(output->full_filter, data, length);
  } else if (!output->full_filter) {
    record_output_add(output->full, data, length);
  }
}

static PersonalStream *filter_for(const Output *output, PrivacyBorder border,
                                  void (*put)(void *user, const void *data, gsize length)) {
  guint categories = output->privacy ? privacy_categories(output->privacy, border) : 0;
  const TextSink sink = {.put = put, .user = (void *)(gsize)output};
  return categories ? personal_stream_new(categories, sink) : NULL;
}

void output_keep(Output *output, RecordOutput *take_full, guint64 text_max) {
  output->full = take_full;
  output->full_filter = filter_for(output, PRIVACY_TELEMETRY, put_full);
  output->text_max = text_max > 0 && text_max < WHOLE_TEXT_MAX ? text_max : WHOLE_TEXT_MAX;
  output->since = clock_now();
  record_output_set_head(take_full, output->max);
}

static void start_feeding(Output *output) {
  fill(output, output->kept->data, output->kept->len);
  output->feeding = TRUE;
}

static void feed(Output *output, const void *data, gsize length, gsize taken) {
  if (output->feeding) {
    fill(output, data, length);
  } else if (taken < length || clock_now() - output->since >= KEEP_AFTER) {
    start_feeding(output);
    fill(output, (const guint8 *)data + taken, length - taken);
  }
}

void output_keep_now(Output *output) {
  pthread_mutex_lock(&output->keeping);
  if (output->full && clock_now() - output->since >= KEEP_AFTER) {
    if (!output->feeding && output->kept->len > 0) {
      start_feeding(output);
    }
    record_output_flush(output->full);
  }
  pthread_mutex_unlock(&output->keeping);
}

JsonObject *output_seal(Output *output, gboolean truncated) {
  if (!output->full) {
    return NULL;
  }
  const GByteArray *kept = output->kept;
  gboolean whole = !truncated && kept->len <= output->text_max &&
                   g_utf8_validate_len((const char *)kept->data, kept->len, NULL);
  /* A NUL is text to JSON and not to GLib: such a stream is kept, once, though it need not be. */
  if (whole && !record_output_is_stored(output->full)) {
    return NULL;
  }
  if (!output->feeding) {
    start_feeding(output);
  }
  if (output->full_filter) {
    personal_stream_finish(output->full_filter);
  }
  gboolean all = !record_output_is_full(output->full);
  JsonObject *facts = record_output_finish(output->full);
  json_add_bool(facts, "all", all);
  return facts;
}

JsonObject *output_offload(const Output *output, gboolean truncated) {
  gboolean long_text = output->full && output->kept->len > output->text_max;
  return long_text ? record_output_head(output->full, truncated) : NULL;
}

/* ---- The follower ------------------------------------------------------------------------------------------------ */

static void put_follower(void *user, const void *data, gsize length) {
  Output *output = user;
  const OutputFollower *follower = &output->follower;
  if (!output->stopped && !follower->put(follower->user, follower->stream, data, length)) {
    output->stopped = TRUE;
  }
}

void output_follow(Output *output, const OutputFollower *follower) {
  output->follower = *follower;
  output->follow_filter = follower->put ? filter_for(output, PRIVACY_STREAM, put_follower) : NULL;
}

static void tell_follower(Output *output, const void *data, gsize length) {
  if (output->follow_filter) {
    personal_stream_add(output->follow_filter, data, length);
  } else if (output->follower.put) {
    put_follower(output, data, length);
  }
}

/* ---- The stream -------------------------------------------------------------------------------------------------- */

/* Without credentials from here on. */
static void pass(void *user, const void *data, gsize length) {
  Output *output = user;
  output->passed += length;
  pthread_mutex_lock(&output->keeping);
  guint64 room = output->max - output->kept->len;
  gsize take = length < room ? length : (gsize)room;
  if (take > 0) {
    g_byte_array_append(output->kept, data, (guint)take);
  }
  if (output->full) {
    feed(output, data, length, take);
  }
  pthread_mutex_unlock(&output->keeping);
  tell_follower(output, data, length);
}

void output_guard(Output *output, const Privacy *privacy) {
  const Needles *needles = privacy_needles(privacy);
  const TextSink sink = {.put = pass, .user = output};
  output->privacy = privacy;
  output->guard = needles ? credential_stream_new(needles, sink) : NULL;
}

void output_add(Output *output, const void *data, gsize length) {
  output->total += length;
  if (output->guard) {
    credential_stream_add(output->guard, data, length);
  } else {
    pass(output, data, length);
  }
}

void output_finish(Output *output, guint64 written) {
  if (output->guard) {
    credential_stream_finish(output->guard, written > output->total);
  }
  if (output->follow_filter) {
    personal_stream_finish(output->follow_filter);
  }
}

gboolean output_truncated(const Output *output, guint64 written) {
  return output->passed > output->kept->len || written > output->total;
}

gboolean output_is_redacted(const Output *output, gboolean offloaded) {
  return (output->guard && credential_stream_count(output->guard) > 0) ||
         (offloaded && output->full_filter && personal_stream_count(output->full_filter) > 0);
}

JsonObject *output_text(const Output *output, gboolean truncated) {
  const char *bytes = (const char *)output->kept->data;
  return truncated ? json_from_cut_bytes(bytes, output->kept->len)
                   : json_from_bytes(bytes, output->kept->len);
}
