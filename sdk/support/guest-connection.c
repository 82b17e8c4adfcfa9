/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-connection.c: who reads, who waits, and what waits to be sent.
 *
 * Everything here runs with client->lock held, except the poll itself.
 */
#include "guest-connection.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define NANOSECONDS 1000000000

char *guest_text_clean(const void *data, size_t length) {
  char *text = g_utf8_make_valid(data, (gssize)length);
  for (char *at = text; *at; at++) {
    if ((unsigned char)*at < 0x20 || *at == 0x7f) {
      *at = ' ';
    }
  }
  return text;
}

/* ---- Lost ------------------------------------------------------------------------------------ */

void guest_connection_lose(GuestClient *client, const char *reason) {
  if (client->lost) {
    return;
  }
  client->lost = TRUE;
  client->lost_reason = guest_text_clean(reason, strlen(reason));
  for (uint32_t slot = 0; slot < client->slot_top; slot++) {
    if (client->slots[slot]) {
      guest_connection_notify(client, client->slots[slot]);
    }
  }
}

void guest_connection_break(GuestClient *client, struct guest_request *self, const char *what) {
  if (client->lost) {
    return;
  }
  g_autofree char *reason = g_strdup_printf("it broke the protocol: %s", what);
  if (self) {
    self->broke = TRUE;
  }
  guest_connection_lose(client, reason);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

int guest_connection_enter(GuestClient *client, struct guest_request *request) {
  uint32_t slot = 0;
  while (slot < GUEST_MAX_REQUESTS && client->slots[slot]) {
    slot++;
  }
  if (slot == GUEST_MAX_REQUESTS) {
    return -EBUSY;
  }
  if (client->wake_fds[slot] < 0) {
    client->wake_fds[slot] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (client->wake_fds[slot] < 0) {
      return -errno;
    }
  }
  /* 24 bits that are never 0: a number comes again after 16 million requests. */
  client->generation = client->generation >= 0xffffff ? 1 : client->generation + 1;
  request->slot = slot;
  request->id = client->generation * GUEST_MAX_REQUESTS + slot;
  request->may_receive = GUEST_WINDOW;
  request->may_send = client->guest_window;
  client->slots[slot] = request;
  client->open_count++;
  client->slot_top = MAX(client->slot_top, slot + 1);
  return 0;
}

void guest_connection_leave(GuestClient *client, struct guest_request *request) {
  client->slots[request->slot] = NULL;
  client->open_count--;
  while (client->slot_top > 0 && !client->slots[client->slot_top - 1]) {
    client->slot_top--;
  }
  if (client->nominee == request) {
    client->nominee = NULL;
  }
  if (client->data_request == request) { /* only when lost: nobody reads any more */
    client->data_request = NULL;
  }
  guest_connection_pass_on(client);
}

void guest_connection_notify(GuestClient *client, struct guest_request *request) {
  if (request->waiting && !request->notified) {
    const uint64_t one = 1;
    request->notified = TRUE;
    /* Cannot fail: the counter was drained by the thread that waits on it. */
    ssize_t count = write(client->wake_fds[request->slot], &one, sizeof one);
    (void)count;
  }
}

void guest_connection_pass_on(GuestClient *client) {
  if (client->reader || client->nominee || client->open_count == 0) {
    return;
  }
  for (uint32_t slot = 0; slot < client->slot_top; slot++) {
    if (client->slots[slot] && client->slots[slot]->waiting) {
      client->nominee = client->slots[slot];
      guest_connection_notify(client, client->nominee);
      return;
    }
  }
}

void guest_connection_recycle(GuestClient *client, unsigned char *take_buffer) {
  if (client->spare) {
    g_free(take_buffer);
  } else {
    client->spare = take_buffer;
  }
}

/* ---- Sending --------------------------------------------------------------------------------- */

static size_t unsent(const GuestClient *client) {
  return client->out->len - client->out_start;
}

gboolean guest_connection_has_room(const GuestClient *client) {
  return unsent(client) < GUEST_OUT_ROOM;
}

/* Sends until the channel is full. Returns what it took. */
static size_t send_now(GuestClient *client, const unsigned char *data, size_t length) {
  size_t sent = 0;
  while (sent < length && !client->send_failed) {
    ssize_t count = client->channel->send(client->channel, data + sent, length - sent);
    if (count > 0) {
      sent += MIN((size_t)count, length - sent);
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count == 0 || errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else {
      /* Its last words may still be there to read, and then the end; so this is not yet the loss. */
      client->send_failed = TRUE;
    }
  }
  return client->send_failed ? length : sent;
}

void guest_connection_send(GuestClient *client, struct guest_request *self, const void *data,
                           size_t length) {
  const unsigned char *bytes = data;
  if (client->lost || client->send_failed) {
    return;
  }
  if (unsent(client) == 0) {
    size_t sent = send_now(client, bytes, length);
    bytes += sent;
    length -= sent;
  }
  if (length == 0) {
    return;
  }
  if (length > GUEST_OUT_LIMIT - MIN(unsent(client), GUEST_OUT_LIMIT)) {
    guest_connection_lose(client, "it does not read what is sent to it");
    return;
  }
  g_byte_array_append(client->out, bytes, (guint)length);
  if (client->reader && client->reader != self) {
    guest_connection_notify(client, client->reader); /* so that it polls for sending, too */
  }
}

void guest_connection_send_small(GuestClient *client, struct guest_request *self, uint8_t kind,
                                 uint8_t channel, uint32_t request, const void *payload,
                                 uint32_t length) {
  unsigned char frame[GUEST_HEADER + 8];
  g_assert(length <= 8);
  guest_frame_pack(
      frame,
      (struct guest_frame){.length = length, .kind = kind, .channel = channel, .request = request});
  if (length > 0) {
    memcpy(frame + GUEST_HEADER, payload, length);
  }
  guest_connection_send(client, self, frame, GUEST_HEADER + length);
}

static void flush(GuestClient *client) {
  client->out_start += send_now(client, client->out->data + client->out_start, unsent(client));
  if (client->send_failed || unsent(client) == 0) {
    /* A large queue was an exception; its memory is not kept. */
    if (client->out->len > GUEST_OUT_ROOM) {
      g_byte_array_unref(client->out);
      client->out = g_byte_array_new();
    }
    g_byte_array_set_size(client->out, 0);
    client->out_start = 0;
  } else if (client->out_start > client->out->len / 2) {
    g_byte_array_remove_range(client->out, 0, (guint)client->out_start);
    client->out_start = 0;
  }
  if (guest_connection_has_room(client)) {
    for (uint32_t slot = 0; slot < client->slot_top; slot++) {
      struct guest_request *request = client->slots[slot];
      if (request && request->wants != GUEST_WANTS_NOTHING && request != client->reader) {
        guest_connection_notify(client, request);
      }
    }
  }
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static gboolean has_work(const GuestClient *client, const struct guest_request *request) {
  if (client->lost || request->done || (request->started && !request->told) ||
      request->piece_count > 0 || (request->inbox && request->inbox->len > 0)) {
    return TRUE;
  }
  return request->wants != GUEST_WANTS_NOTHING && guest_connection_has_room(client) &&
         (request->wants == GUEST_WANTS_ROOM || request->may_send > 0);
}

enum { POLL_WAKE, POLL_CANCEL, POLL_INPUT, POLL_RECEIVE, POLL_SEND, POLL_COUNT };

/* Polls without the lock. fds holds the stream's descriptors for a reader, -1 for others. */
static void poll_unlocked(GuestClient *client, struct guest_request *request,
                          struct guest_wait *wait, struct pollfd fds[POLL_COUNT], int64_t until,
                          int64_t now) {
  fds[POLL_WAKE] = (struct pollfd){.fd = client->wake_fds[request->slot], .events = POLLIN};
  fds[POLL_CANCEL] = (struct pollfd){.fd = wait->cancel_fd, .events = POLLIN};
  fds[POLL_INPUT] = (struct pollfd){.fd = wait->input_fd, .events = POLLIN};
  int64_t left = MAX(until - now, 0);
  const struct timespec patience = {.tv_sec = (time_t)(left / NANOSECONDS),
                                    .tv_nsec = (long)(left % NANOSECONDS)};
  request->waiting = TRUE;
  request->notified = FALSE;
  pthread_mutex_unlock(&client->lock);
  int ready = ppoll(fds, POLL_COUNT, until == INT64_MAX ? NULL : &patience, NULL);
  pthread_mutex_lock(&client->lock);
  request->waiting = FALSE;
  if (request->notified) {
    uint64_t count;
    ssize_t length = read(fds[POLL_WAKE].fd, &count, sizeof count);
    (void)length; /* it is there: whoever set notified wrote it before */
  }
  if (ready <= 0) { /* a signal handler ran, or the time is over */
    for (int i = 0; i < POLL_COUNT; i++) {
      fds[i].revents = 0;
    }
  }
  wait->cancel_ready = fds[POLL_CANCEL].revents != 0;
  wait->input_ready = fds[POLL_INPUT].revents != 0;
}

static void follow(GuestClient *client, struct guest_request *request, struct guest_wait *wait) {
  struct pollfd fds[POLL_COUNT] = {[POLL_RECEIVE] = {.fd = -1}, [POLL_SEND] = {.fd = -1}};
  int64_t now = contract_now();
  while (client->reader && !has_work(client, request) && !wait->cancel_ready &&
         !wait->input_ready && now < wait->until) {
    poll_unlocked(client, request, wait, fds, wait->until, now);
    now = contract_now();
    if (client->nominee == request) {
      client->nominee = NULL;
    }
  }
}

static void receive(GuestClient *client, struct guest_request *self) {
  size_t room = GUEST_RECEIVE_BUFFER - client->filled;
  ssize_t count = client->channel->receive(client->channel, client->buffer + client->filled, room);
  if (count > 0 && (size_t)count <= room) {
    client->heard_at = contract_now();
    client->pinged_at = 0;
    client->filled += (size_t)count;
    guest_frames_dispatch(client, self);
    if (self->piece_count == 0) {
      client->filled -= client->dispatched;
      memmove(client->buffer, client->buffer + client->dispatched, client->filled);
      client->dispatched = 0;
    }
  } else if (count == 0 || (count < 0 && (errno == ECONNRESET || errno == EPIPE))) {
    guest_connection_lose(client, "it stopped");
  } else if (count > 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
    g_autofree char *reason = g_strdup_printf("its stream failed: %s", g_strerror(errno));
    guest_connection_lose(client, reason);
  }
}

/* Asks a guest that is silent whether it lives. Returns when to look again. */
static int64_t ask_when_silent(GuestClient *client, struct guest_request *self, int64_t now) {
  if (!client->greeted) {
    return client->heard_at + client->timing.lost_after;
  }
  if (client->pinged_at == 0) {
    int64_t due = client->heard_at + client->timing.ping_after;
    if (now < due) {
      return due;
    }
    unsigned char number[8];
    client->pings++;
    client->pinged_at = now;
    guest_put_u64(number, client->pings);
    guest_connection_send_small(client, self, GUEST_PING, 0, 0, number, sizeof number);
  }
  /* Counted from the question, in case that this process itself stood still before it. */
  return client->pinged_at + (client->timing.lost_after - client->timing.ping_after);
}

static gboolean is_silent(const GuestClient *client, int64_t now) {
  if (!client->greeted) {
    return now >= client->heard_at + client->timing.lost_after;
  }
  return client->pinged_at != 0 &&
         now >= client->pinged_at + (client->timing.lost_after - client->timing.ping_after);
}

static void lead_once(GuestClient *client, struct guest_request *self, struct guest_wait *wait,
                      int64_t now) {
  ByteChannel *channel = client->channel;
  int64_t until = MIN(ask_when_silent(client, self, now), wait->until);
  if (client->lost) {
    return;
  }
  struct pollfd fds[POLL_COUNT] = {
      [POLL_RECEIVE] = {.fd = channel->receive_fd(channel), .events = POLLIN},
      [POLL_SEND] = {.fd = unsent(client) > 0 ? channel->send_fd(channel) : -1, .events = POLLOUT}};
  gboolean pending = channel->pending && channel->pending(channel);
  poll_unlocked(client, self, wait, fds, pending ? now : until, now);
  if (client->lost) {
    return;
  }
  if (fds[POLL_SEND].revents != 0) {
    flush(client);
  }
  if (fds[POLL_RECEIVE].revents != 0 || pending) {
    receive(client, self);
  } else if (is_silent(client, contract_now())) {
    guest_connection_lose(client, "it did not answer");
  }
}

/* Lets the request take the receive buffer along, into which its pieces point. The frame that is not
 * complete yet, never long, moves to the buffer that takes its place. */
static void detach_buffer(GuestClient *client, struct guest_request *request) {
  unsigned char *fresh = g_steal_pointer(&client->spare);
  if (!fresh) {
    fresh = g_malloc(GUEST_RECEIVE_BUFFER);
  }
  client->filled -= client->dispatched;
  memcpy(fresh, client->buffer + client->dispatched, client->filled);
  client->dispatched = 0;
  request->pieces_buffer = client->buffer;
  client->buffer = fresh;
}

static void lead(GuestClient *client, struct guest_request *self, struct guest_wait *wait) {
  int64_t now = contract_now();
  client->heard_at += now - client->unread_since;
  client->reader = self;
  while (!has_work(client, self) && !wait->cancel_ready && !wait->input_ready &&
         now < wait->until) {
    lead_once(client, self, wait, now);
    now = contract_now();
  }
  client->reader = NULL;
  client->unread_since = now;
  if (self->piece_count > 0) {
    detach_buffer(client, self);
  }
}

void guest_connection_look(GuestClient *client, struct guest_request *self) {
  struct guest_wait wait = {.cancel_fd = -1, .input_fd = -1};
  int64_t now = contract_now();
  if (client->reader || client->lost) {
    return; /* whoever reads finds it */
  }
  client->heard_at += now - client->unread_since;
  client->reader = self;
  lead_once(client, self, &wait, now); /* which is until when it waits */
  client->reader = NULL;
  client->unread_since = contract_now();
}

void guest_connection_wait(GuestClient *client, struct guest_request *request,
                           struct guest_wait *wait) {
  if (client->nominee == request) {
    client->nominee = NULL;
  }
  if (client->reader) {
    follow(client, request, wait);
  } else {
    lead(client, request, wait);
  }
}
