/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-frames.c: what the guest says, checked frame by frame. Nothing here is believed.
 *
 * Runs with client->lock held, in the thread of self, which is the reader. DATA is passed on as it
 * comes in, in parts of a frame; every other frame waits in the receive buffer until it is whole.
 */
#include "guest-connection.h"

#include <string.h>

/* The open request of that number, or NULL after having broken the connection. */
static struct guest_request *open_request(GuestClient *client, struct guest_request *self,
                                          struct guest_frame frame) {
  struct guest_request *request = client->slots[frame.request % GUEST_MAX_REQUESTS];
  if (!request || request->id != frame.request || !request->opened) {
    guest_connection_break(client, self, "a frame for a request that is not open");
    return NULL;
  }
  if (request->done) {
    guest_connection_break(client, self,
                           frame.kind == GUEST_DONE ? "a request ended twice"
                                                    : "a frame for a request that has ended");
    return NULL;
  }
  return request;
}

/* Whether the guest may speak on the channel of this request; else the connection is broken. */
static gboolean check_channel(GuestClient *client, struct guest_request *self,
                              const struct guest_request *request, struct guest_frame frame) {
  gboolean known = frame.channel == GUEST_OUT
                       ? request->operation != GUEST_WRITE_FILE &&
                             request->operation != GUEST_UPLOAD && request->operation != GUEST_PROBE
                       : frame.channel == GUEST_ERR && request->operation == GUEST_EXECUTE;
  if (!known) {
    guest_connection_break(client, self, "data on a channel that the request does not have");
    return FALSE;
  }
  if (request->ended & (1u << frame.channel)) {
    guest_connection_break(client, self,
                           frame.kind == GUEST_END ? "a channel ended twice"
                                                   : "data on a channel that has ended");
    return FALSE;
  }
  return TRUE;
}

/* ---- DATA ------------------------------------------------------------------------------------ */

static void begin_data(GuestClient *client, struct guest_request *self, struct guest_frame frame) {
  struct guest_request *request = open_request(client, self, frame);
  if (!request || !check_channel(client, self, request, frame)) {
    return;
  }
  if (frame.length > request->may_receive) {
    guest_connection_break(client, self, "data beyond its window");
    return;
  }
  request->may_receive -= frame.length;
  client->data_request = request;
  client->data_left = frame.length;
  client->data_channel = frame.channel;
}

/* The window bounds what an inbox holds; records that follow each other on one channel are one. */
static void put_into_inbox(struct guest_request *request, const unsigned char *data,
                           uint32_t length, uint32_t channel) {
  if (!request->inbox) {
    request->inbox = g_byte_array_new();
  }
  struct guest_record record = {.channel = channel, .length = length};
  if (request->inbox->len > 0) {
    struct guest_record last;
    memcpy(&last, request->inbox->data + request->inbox_last, sizeof last);
    if (last.channel == channel) {
      last.length += length;
      memcpy(request->inbox->data + request->inbox_last, &last, sizeof last);
      g_byte_array_append(request->inbox, data, length);
      return;
    }
  }
  request->inbox_last = request->inbox->len;
  g_byte_array_append(request->inbox, (const guint8 *)&record, sizeof record);
  g_byte_array_append(request->inbox, data, length);
}

static void take_data(GuestClient *client, struct guest_request *self, const unsigned char *data,
                      uint32_t length) {
  struct guest_request *request = client->data_request;
  client->data_left -= length;
  gboolean direct = request == self && self->piece_count < GUEST_PIECES &&
                    (!self->inbox || self->inbox->len == 0);
  if (direct) {
    self->pieces[self->piece_count++] =
        (struct guest_piece){.data = data, .length = length, .channel = client->data_channel};
  } else {
    put_into_inbox(request, data, length, client->data_channel);
    guest_connection_notify(client, request);
  }
}

/* ---- The others ------------------------------------------------------------------------------ */

static void take_hello(GuestClient *client, struct guest_request *self, struct guest_frame frame,
                       const unsigned char *payload) {
  struct guest_reader reader = {.data = payload, .left = frame.length};
  uint32_t magic = guest_read_u32(&reader);
  uint32_t version = guest_read_u32(&reader);
  const unsigned char *nonce = guest_read_raw(&reader, GUEST_NONCE);
  uint32_t flags = guest_read_u32(&reader);
  (void)guest_read_u32(&reader); /* its process number, of no use here */
  uint32_t window = guest_read_u32(&reader);
  if (frame.length < 8 || magic != GUEST_MAGIC) {
    guest_connection_break(client, self, "what answered is not sandhost-guest");
  } else if (version != GUEST_VERSION) {
    g_autofree char *what = g_strdup_printf("the guest speaks version %u, this host version %u",
                                            version, GUEST_VERSION);
    guest_connection_break(client, self, what);
  } else if (reader.bad || reader.left > 0 || window == 0) {
    guest_connection_break(client, self, "a malformed greeting");
  } else if (memcmp(nonce, client->nonce, GUEST_NONCE) != 0) {
    guest_connection_break(client, self, "a greeting that answers another");
  } else {
    client->greeted = TRUE;
    client->guest_flags = flags;
    client->guest_window = MIN(window, GUEST_WINDOW);
    self->done = TRUE;
  }
}

static void take_credit(GuestClient *client, struct guest_request *self,
                        struct guest_request *request, struct guest_frame frame,
                        const unsigned char *payload) {
  if (frame.length != 4) {
    guest_connection_break(client, self, "a malformed credit");
    return;
  }
  uint32_t credit = guest_get_u32(payload);
  if (credit > client->guest_window - request->may_send) {
    guest_connection_break(client, self, "credit for data that was not sent");
    return;
  }
  request->may_send += credit;
  if (request->wants == GUEST_WANTS_CREDIT) {
    guest_connection_notify(client, request);
  }
}

static void take_started(GuestClient *client, struct guest_request *self,
                         struct guest_request *request, struct guest_frame frame) {
  if (request->operation != GUEST_EXECUTE || frame.length != 4) {
    guest_connection_break(client, self, "a malformed start");
    return;
  }
  if (request->started) {
    guest_connection_break(client, self, "a command started twice");
    return;
  }
  request->started = TRUE;
  request->started_at = contract_now();
  guest_connection_notify(client, request);
}

/* The statuses that a guest can know. That the sandbox is lost, or that this side broke a rule, is not
 * for it to say. */
static int32_t checked_status(int32_t status) {
  switch (status) {
  case SANDHOST_OK:
  case SANDHOST_INVALID:
  case SANDHOST_UNSUPPORTED:
  case SANDHOST_DENIED:
  case SANDHOST_NOT_FOUND:
  case SANDHOST_EXISTS:
  case SANDHOST_CONFLICT:
  case SANDHOST_LIMIT:
  case SANDHOST_UNAVAILABLE:
  case SANDHOST_TIMEOUT:
  case SANDHOST_CANCELLED:
  case SANDHOST_NO_MEMORY:
    return status;
  default:
    return SANDHOST_INTERNAL;
  }
}

static void take_done(GuestClient *client, struct guest_request *self,
                      struct guest_request *request, struct guest_frame frame,
                      const unsigned char *payload) {
  struct guest_reader reader = {.data = payload, .left = frame.length};
  int32_t status = (int32_t)guest_read_u32(&reader);
  size_t length;
  const char *message = guest_read_bytes(&reader, &length);
  if (reader.bad || length > GUEST_MAX_MESSAGE || reader.left > GUEST_RESULTS ||
      (status == SANDHOST_OK && reader.left != request->results_expected)) {
    guest_connection_break(client, self, "a malformed end of a request");
    return;
  }
  request->status = checked_status(status);
  if (length > 0) {
    request->message = guest_text_clean(message, length);
  }
  request->results_length = (uint32_t)reader.left;
  memcpy(request->results, reader.data, reader.left);
  request->done = TRUE;
  guest_connection_notify(client, request);
}

static void take_pong(GuestClient *client, struct guest_request *self, struct guest_frame frame,
                      const unsigned char *payload) {
  uint64_t number = frame.length == 8 ? (uint64_t)guest_get_u32(payload) |
                                            (uint64_t)guest_get_u32(payload + 4) << 32
                                      : 0;
  if (client->pongs == client->pings || number != client->pongs + 1) {
    guest_connection_break(client, self, "an answer to a ping that was not sent");
    return;
  }
  client->pongs++;
}

static void take_control(GuestClient *client, struct guest_request *self, struct guest_frame frame,
                         const unsigned char *payload) {
  if (!client->greeted) {
    take_hello(client, self, frame, payload);
    return;
  }
  if (frame.kind == GUEST_PONG) {
    take_pong(client, self, frame, payload);
    return;
  }
  struct guest_request *request = open_request(client, self, frame);
  if (!request) {
    return;
  }
  switch (frame.kind) {
  case GUEST_CREDIT:
    take_credit(client, self, request, frame, payload);
    break;
  case GUEST_STARTED:
    take_started(client, self, request, frame);
    break;
  case GUEST_DONE:
    take_done(client, self, request, frame, payload);
    break;
  case GUEST_END:
    if (frame.length != 0) {
      guest_connection_break(client, self, "a malformed end of a channel");
    } else if (check_channel(client, self, request, frame)) {
      request->ended |= 1u << frame.channel;
    }
    break;
  default:
    g_assert_not_reached(); /* check_header let it through */
  }
}

/* What the header alone tells. FALSE: broken. */
static gboolean check_header(GuestClient *client, struct guest_request *self,
                             struct guest_frame frame) {
  if (!client->greeted) {
    if (frame.kind != GUEST_HELLO || frame.length > GUEST_MAX_CONTROL) {
      guest_connection_break(client, self, "what answered is not sandhost-guest");
      return FALSE;
    }
    return TRUE;
  }
  switch (frame.kind) {
  case GUEST_DATA:
    if (frame.length > GUEST_MAX_FRAME) {
      guest_connection_break(client, self, "a frame that is too long");
      return FALSE;
    }
    return TRUE;
  case GUEST_END:
  case GUEST_CREDIT:
  case GUEST_STARTED:
  case GUEST_DONE:
  case GUEST_PONG:
    if (frame.length > GUEST_MAX_CONTROL) {
      guest_connection_break(client, self, "a frame that is too long");
      return FALSE;
    }
    return TRUE;
  default:
    guest_connection_break(client, self, "a frame of an unknown kind");
    return FALSE;
  }
}

void guest_frames_dispatch(GuestClient *client, struct guest_request *self) {
  while (!client->lost) {
    const unsigned char *at = client->buffer + client->dispatched;
    size_t left = client->filled - client->dispatched;
    if (client->data_left > 0) {
      uint32_t length = (uint32_t)MIN(left, (size_t)client->data_left);
      if (length == 0) {
        return;
      }
      take_data(client, self, at, length);
      client->dispatched += length;
      continue;
    }
    if (left < GUEST_HEADER) {
      return;
    }
    struct guest_frame frame = guest_frame_unpack(at);
    if (!check_header(client, self, frame)) {
      return;
    }
    if (frame.kind == GUEST_DATA && client->greeted) {
      client->dispatched += GUEST_HEADER;
      begin_data(client, self, frame);
      continue;
    }
    if (left < GUEST_HEADER + (size_t)frame.length) {
      return;
    }
    client->dispatched += GUEST_HEADER + (size_t)frame.length;
    take_control(client, self, frame, at + GUEST_HEADER);
  }
}
