/* SPDX-License-Identifier: Apache-2.0 */
/* output.c: keeps the first bytes of a stream and counts the rest. */
#include "run/output.h"

#include "base/clock.h"

/* A command that has printed for this long is kept as it goes, so that not everything is lost with the host. */
#define KEEP_AFTER (2 * CLOCK_SECOND)
/* What is longer may be too long for an event, once it is JSON. */
#define WHOLE_TEXT_MAX (1u << 20)

void output_init(Output *output, guint64 max) {
  output->kept = g_byte_array_new();
  output->max = max;
  output->total = 0;
  output->full = NULL;
  output->feeding = FALSE;
}

void output_keep(Output *output, RecordOutput *take_full) {
  output->full = take_full;
  output->since = clock_now();
}

void output_clear(Output *output) {
  g_clear_pointer(&output->kept, g_byte_array_unref);
  g_clear_pointer(&output->full, record_output_free);
}

static void start_feeding(Output *output) {
  record_output_add(output->full, output->kept->data, output->kept->len);
  output->feeding = TRUE;
}

static void feed(Output *output, const void *data, gsize length, gsize taken) {
  if (output->feeding) {
    record_output_add(output->full, data, length);
  } else if (taken < length || clock_now() - output->since >= KEEP_AFTER) {
    start_feeding(output);
    record_output_add(output->full, (const guint8 *)data + taken, length - taken);
  }
}

JsonObject *output_seal(Output *output, gboolean truncated) {
  if (!output->full) {
    return NULL;
  }
  const GByteArray *kept = output->kept;
  gboolean whole = !truncated && kept->len <= WHOLE_TEXT_MAX &&
                   g_utf8_validate_len((const char *)kept->data, kept->len, NULL);
  /* A NUL is text to JSON and not to GLib: such a stream is kept, once, though it need not be. */
  if (whole && !record_output_is_stored(output->full)) {
    return NULL;
  }
  if (!output->feeding) {
    start_feeding(output);
  }
  return record_output_finish(output->full);
}

void output_add(Output *output, const void *data, gsize length) {
  output->total += length;
  guint64 room = output->max - output->kept->len;
  gsize take = length < room ? length : (gsize)room;
  if (take > 0) {
    g_byte_array_append(output->kept, data, (guint)take);
  }
  if (output->full) {
    feed(output, data, length, take);
  }
}

gboolean output_truncated(const Output *output, guint64 written) {
  return MAX(output->total, written) > output->kept->len;
}

/* The length without an incomplete UTF-8 sequence at the end. */
static gsize whole_characters(const guint8 *data, gsize length) {
  gsize back = 0;
  while (back < 3 && back < length && (data[length - 1 - back] & 0xc0) == 0x80) {
    back++;
  }
  if (back == length) {
    return length;
  }
  guint8 lead = data[length - 1 - back];
  gsize wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return wanted > back + 1 ? length - 1 - back : length;
}

JsonObject *output_text(const Output *output, gboolean truncated) {
  gsize length = output->kept->len;
  if (truncated) {
    length = whole_characters(output->kept->data, length);
  }
  return json_from_bytes((const char *)output->kept->data, length);
}
