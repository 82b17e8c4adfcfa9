/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine-frames.h: the stream in which an engine sends both outputs of a process.
 *
 * Before each piece it puts 8 bytes: the stream's number, three zeroes, the length as a big-endian number.
 */
#ifndef SANDHOST_DOCKER_ENGINE_FRAMES_H
#define SANDHOST_DOCKER_ENGINE_FRAMES_H

#include <glib.h>
#include <sandhost/provider.h>

/* No engine makes longer frames than its copy buffer; this only tells nonsense apart. */
#define ENGINE_MOST_FRAME (16u << 20)

/* All zero at first. */
struct engine_frames {
  unsigned char header[8];
  size_t header_length;
  uint32_t left; /* of the frame */
  uint32_t stream;
  gboolean bad;
};

/* Gets a piece of SANDHOST_STDOUT or SANDHOST_STDERR, which lies in what was fed. Not SANDHOST_OK: stop. */
typedef int32_t (*engine_frames_output)(void *user, uint32_t stream, const void *data,
                                        size_t length);

/* Takes bytes as they come. SANDHOST_OK, what output said, or SANDHOST_PROTOCOL, then and from then on. */
int32_t engine_frames_feed(struct engine_frames *frames, engine_frames_output output, void *user,
                           const void *data, size_t length);

#endif
