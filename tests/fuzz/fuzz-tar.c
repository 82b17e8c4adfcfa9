/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-tar.c: any bytes as the stream of a download. Whatever comes, only names that were asked for
 * get through, in order, within the limit. The first byte says how the stream is cut into pieces.
 */
#include <glib.h>
#include <stddef.h>
#include <stdint.h>

#include "tar-sums.h"
#include "workspace/tar-sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's */

#define MAX_FILE_BYTES 4096u
#define MAX_BYTES 1000000u

typedef struct {
  gsize next;
  guint8 sum; /* so that every byte is read */
} Taken;

static gboolean take(void *user, gsize index, const guint8 *data, gsize length, GError **error) {
  (void)error;
  Taken *taken = user;
  g_assert_cmpuint(index, >=, taken->next);
  g_assert_cmpuint(index, <, 4);
  g_assert_cmpuint(length, <=, MAX_FILE_BYTES);
  taken->next = index + 1;
  for (gsize i = 0; i < length; i++) {
    taken->sum ^= data[i];
  }
  return TRUE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const struct sandhost_path names[] = {
      {.data = "a", .length = 1},
      {.data = "b/c", .length = 3},
      {.data = "caf\xc3\xa9", .length = 5},
      {.data = "z", .length = 1},
  };
  const TarSinkRequest request = {
      .names = names,
      .count = G_N_ELEMENTS(names),
      .max_file_bytes = MAX_FILE_BYTES,
      .max_bytes = MAX_BYTES,
  };
  if (size == 0) {
    return 0;
  }
  size_t piece = (size_t)data[0] * 8 + 1;
  Taken taken = {0};
  TarSink *sink = tar_sink_start(&request, take, &taken, NULL);
  if (!sink) {
    return 0;
  }
  const struct sandhost_sink stream = tar_sink_stream(sink);
  gboolean complete = TRUE;
  for (size_t at = 1; complete && at < size; at += piece) {
    complete = stream.write(stream.user, data + at, MIN(piece, size - at)) == SANDHOST_OK;
  }
  g_autoptr(GError) error = NULL;
  gboolean ok = tar_sink_finish(sink, complete, &error);
  g_assert_true(ok == (error == NULL));
  if (error) {
    g_assert_true(g_str_has_prefix(error->message, "could not read the sandbox's files: "));
    g_assert_true(g_utf8_validate(error->message, -1, NULL));
  }
  return 0;
}

/* The sums are put right for three inputs of four. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size > 1 && seed % 4 != 0) {
    tar_sums_mend(data + 1, size - 1);
  }
  return size;
}
