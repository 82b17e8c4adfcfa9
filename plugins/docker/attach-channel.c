/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach-channel.c: a process's stdout as a channel, out of an attached stream.
 *
 * A whole buffer is read at once and the frames are taken out in place, so that a byte is copied once.
 */
#include "attach-channel.h"

#include "engine-frames.h"

#include <errno.h>
#include <string.h>

#define COMPLAINT_BYTES 2048u

typedef struct {
  ByteChannel channel;
  ByteChannel *raw; /* owned */
  struct engine_frames frames;
  char complaint[COMPLAINT_BYTES];
  size_t complaint_length;
} AttachChannel;

/* The buffer that is being read: what stays of it moves to its beginning. */
struct reading {
  AttachChannel *self;
  char *data;
  size_t kept;
};

static int32_t keep_output(void *user, uint32_t stream, const void *data, size_t length) {
  struct reading *reading = user;
  AttachChannel *self = reading->self;
  if (stream == SANDHOST_STDOUT) {
    memmove(reading->data + reading->kept, data, length);
    reading->kept += length;
  } else {
    size_t room = MIN(COMPLAINT_BYTES - self->complaint_length, length);
    memcpy(self->complaint + self->complaint_length, data, room);
    self->complaint_length += room;
  }
  return SANDHOST_OK;
}

static ssize_t attach_receive(ByteChannel *channel, void *buffer, size_t length) {
  AttachChannel *self = (AttachChannel *)channel;
  struct reading reading = {.self = self, .data = buffer};
  while (reading.kept == 0) {
    ssize_t count = self->raw->receive(self->raw, buffer, length);
    if (count <= 0) {
      return count;
    }
    if (engine_frames_feed(&self->frames, keep_output, &reading, buffer, (size_t)count) !=
        SANDHOST_OK) {
      errno = EPROTO;
      return -1;
    }
  }
  return (ssize_t)reading.kept;
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
