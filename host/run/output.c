/* SPDX-License-Identifier: Apache-2.0 */
/* output.c: keeps the first bytes of a stream and counts the rest. */
#include "run/output.h"

void output_init(Output *output, guint64 max) {
  output->kept = g_byte_array_new();
  output->max = max;
  output->total = 0;
}

void output_clear(Output *output) {
  g_clear_pointer(&output->kept, g_byte_array_unref);
}

void output_add(Output *output, const void *data, gsize length) {
  output->total += length;
  guint64 room = output->max - output->kept->len;
  gsize take = length < room ? length : (gsize)room;
  if (take > 0) {
    g_byte_array_append(output->kept, data, (guint)take);
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
