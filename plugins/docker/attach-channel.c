/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach-channel.c: takes the engine's frames off an attached stream.
 *
 * The engine puts 8 bytes before each piece of output: the stream's number, three zeroes, the length as a
 * big-endian number. What goes in has none. A whole buffer is read at once and the frames are taken out in
 * place, so that a byte is copied once.
 */
#include "attach-channel.h"

#include <errno.h>
#include <string.h>

#define HEADER 8u
#define COMPLAINT_BYTES 2048u
#define STREAM_STDOUT 1
#define STREAM_STDERR 2
/* No engine makes longer frames than its copy buffer; this only tells nonsense apart. */
#define MOST_FRAME ((uint32_t)16 * 1024 * 1024)

typedef struct {
  ByteChannel channel;
  ByteChannel *raw; /* owned */
  unsigned char header[HEADER];
  size_t header_length; /* bytes of it so far */
  uint32_t left;        /* bytes of the present frame that are still to come */
  gboolean is_stderr;   /* of the present frame */
  char complaint[COMPLAINT_BYTES];
  size_t complaint_length;
} AttachChannel;

static void keep_complaint(AttachChannel *self, const char *data, size_t length) {
  size_t room = COMPLAINT_BYTES - self->complaint_length;
  memcpy(self->complaint + self->complaint_length, data, MIN(room, length));
  self->complaint_length += MIN(room, length);
}

/* A whole header: FALSE where it makes no sense. */
static gboolean begin_frame(AttachChannel *self) {
  const unsigned char *header = self->header;
  self->header_length = 0;
  self->left = (uint32_t)header[4] << 24 | (uint32_t)header[5] << 16 | (uint32_t)header[6] << 8 |
               (uint32_t)header[7];
  self->is_stderr = header[0] == STREAM_STDERR;
  return (header[0] == STREAM_STDOUT || header[0] == STREAM_STDERR) && header[1] == 0 &&
         header[2] == 0 && header[3] == 0 && self->left <= MOST_FRAME;
}

/* Takes the frames out of length bytes of data. The bytes of stdout that stay, at its beginning; -1: nonsense. */
static ssize_t take_frames(AttachChannel *self, char *data, size_t length) {
  size_t kept = 0;
  for (size_t at = 0; at < length;) {
    if (self->left == 0) {
      size_t count = MIN(HEADER - self->header_length, length - at);
      memcpy(self->header + self->header_length, data + at, count);
      self->header_length += count;
      at += count;
      if (self->header_length == HEADER && !begin_frame(self)) {
        return -1;
      }
      continue;
    }
    size_t count = MIN(self->left, length - at);
    if (self->is_stderr) {
      keep_complaint(self, data + at, count);
    } else {
      memmove(data + kept, data + at, count);
      kept += count;
    }
    self->left -= (uint32_t)count;
    at += count;
  }
  return (ssize_t)kept;
}

static ssize_t attach_receive(ByteChannel *channel, void *buffer, size_t length) {
  AttachChannel *self = (AttachChannel *)channel;
  for (;;) {
    ssize_t count = self->raw->receive(self->raw, buffer, length);
    if (count <= 0) {
      return count;
    }
    ssize_t kept = take_frames(self, buffer, (size_t)count);
    if (kept < 0) {
      errno = EPROTO;
      return -1;
    }
    if (kept > 0) {
      return kept;
    }
  }
}

static ssize_t attach_send(ByteChannel *channel, const void *data, size_t length) {
  ByteChannel *raw = ((AttachChannel *)channel)->raw;
  return raw->send(raw, data, length);
}

static int attach_receive_fd(ByteChannel *channel) {
  ByteChannel *raw = ((AttachChannel *)channel)->raw;
  return raw->receive_fd(raw);
}

static int attach_send_fd(ByteChannel *channel) {
  ByteChannel *raw = ((AttachChannel *)channel)->raw;
  return raw->send_fd(raw);
}

static int attach_pending(ByteChannel *channel) {
  ByteChannel *raw = ((AttachChannel *)channel)->raw;
  return raw->pending ? raw->pending(raw) : 0;
}

static void attach_free(ByteChannel *channel) {
  ByteChannel *raw = ((AttachChannel *)channel)->raw;
  raw->free(raw);
  g_free(channel);
}

ByteChannel *attach_channel_new(ByteChannel *take_raw) {
  AttachChannel *self = g_new0(AttachChannel, 1);
  self->channel = (ByteChannel){.receive = attach_receive,
                                .send = attach_send,
                                .receive_fd = attach_receive_fd,
                                .send_fd = attach_send_fd,
                                .free = attach_free,
                                .pending = attach_pending};
  self->raw = take_raw;
  return &self->channel;
}

char *attach_channel_complaint(ByteChannel *channel) {
  const AttachChannel *self = (const AttachChannel *)channel;
  GString *line = g_string_new(NULL);
  for (size_t i = 0; i < self->complaint_length && self->complaint[i] != '\n'; i++) {
    unsigned char byte = (unsigned char)self->complaint[i];
    g_string_append_c(line, byte < 0x20 || byte >= 0x7f ? ' ' : (char)byte);
  }
  return g_string_free(line, FALSE);
}
