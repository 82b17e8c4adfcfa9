/* SPDX-License-Identifier: Apache-2.0 */
/* engine-frames.c: takes an engine's stream of both outputs apart. */
#include "engine-frames.h"

int32_t engine_frames_feed(struct engine_frames *frames, engine_frames_output output, void *user,
                           const void *data, size_t length) {
  const unsigned char *at = data;
  int32_t status = frames->bad ? SANDHOST_PROTOCOL : SANDHOST_OK;
  while (length > 0 && status == SANDHOST_OK) {
    if (frames->left > 0) {
      size_t part = MIN(length, (size_t)frames->left);
      frames->left -= (uint32_t)part;
      status = output(user, frames->stream, at, part);
      at += part;
      length -= part;
      continue;
    }
    frames->header[frames->header_length++] = *at++;
    length--;
    if (frames->header_length < sizeof frames->header) {
      continue;
    }
    frames->header_length = 0;
    frames->stream = frames->header[0];
    frames->left = (uint32_t)frames->header[4] << 24 | (uint32_t)frames->header[5] << 16 |
                   (uint32_t)frames->header[6] << 8 | frames->header[7];
    if ((frames->stream != SANDHOST_STDOUT && frames->stream != SANDHOST_STDERR) ||
        frames->header[1] || frames->header[2] || frames->header[3] ||
        frames->left > ENGINE_MOST_FRAME) {
      frames->bad = TRUE;
      status = SANDHOST_PROTOCOL;
    }
  }
  return status;
}
