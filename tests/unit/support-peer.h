/* SPDX-License-Identifier: Apache-2.0 */
/* support-peer.h: a guest that takes what it is given and gives what it was told, with credit. */
#ifndef SANDHOST_TESTS_SUPPORT_PEER_H
#define SANDHOST_TESTS_SUPPORT_PEER_H

#include "fake-guest.h"

/* ---- Sinks and sources ----------------------------------------------------------------------- */

struct bytes {
  GByteArray *data;
  size_t at;   /* of a source */
  size_t stop; /* a sink stops when it has so many, a source when it gave them; 0: never */
};

FAKE_UNUSED static int32_t keep(void *user, const void *data, size_t length) {
  struct bytes *bytes = user;
  g_byte_array_append(bytes->data, data, (guint)length);
  return bytes->stop > 0 && bytes->data->len >= bytes->stop ? SANDHOST_LIMIT : SANDHOST_OK;
}

FAKE_UNUSED static int64_t give(void *user, void *buffer, size_t length) {
  struct bytes *bytes = user;
  if (bytes->stop > 0 && bytes->at >= bytes->stop) {
    return -1;
  }
  size_t part = MIN(MIN(length, bytes->data->len - bytes->at), (size_t)100001);
  memcpy(buffer, bytes->data->data + bytes->at, part);
  bytes->at += part;
  return (int64_t)part;
}

FAKE_UNUSED static GByteArray *pattern(size_t length) {
  GByteArray *data = g_byte_array_set_size(g_byte_array_new(), (guint)length);
  for (size_t i = 0; i < length; i++) {
    data->data[i] = (guint8)(i * 31 >> 3);
  }
  return data;
}

FAKE_UNUSED static void assert_same(const GByteArray *left, const GByteArray *right) {
  g_assert_cmpuint(left->len, ==, right->len);
  g_assert_true(memcmp(left->data, right->data, left->len) == 0);
}

FAKE_UNUSED static struct sandhost_sink sink_of(struct bytes *bytes) {
  return (struct sandhost_sink){.size = sizeof(struct sandhost_sink), .user = bytes, .write = keep};
}

FAKE_UNUSED static struct sandhost_source source_of(struct bytes *bytes) {
  return (struct sandhost_source){
      .size = sizeof(struct sandhost_source), .user = bytes, .read = give};
}

/* ---- A guest that takes and gives ------------------------------------------------------------- */

struct peer {
  uint8_t operation;      /* what must be asked */
  GByteArray *parameters; /* of the OPEN */
  GByteArray *got;        /* DATA of the host, to its END */
  const GByteArray *give; /* what it then sends */
  size_t piece;           /* in so many bytes a frame; 0: as large as may be */
  int32_t status;         /* and how it ends */
  const char *message;
  uint32_t results;
  gboolean has_results;
  gboolean cancelled;  /* a CANCEL came */
  uint32_t stop_after; /* ends the request after so much DATA of the host */
};

/* FALSE: the host cancelled. */
FAKE_UNUSED static gboolean peer_take(int fd, struct peer *peer, uint32_t request) {
  size_t unpaid = 0;
  for (;;) {
    struct fake_frame frame;
    g_assert_true(fake_receive(fd, &frame));
    uint8_t kind = frame.header.kind;
    g_assert_cmpuint(frame.header.request, ==, request);
    if (kind == GUEST_DATA) {
      g_byte_array_append(peer->got, frame.payload->data, frame.payload->len);
      unpaid += frame.payload->len;
      g_assert_cmpuint(unpaid, <=, GUEST_WINDOW);
    }
    fake_frame_clear(&frame);
    if (kind != GUEST_DATA || (peer->stop_after > 0 && peer->got->len >= peer->stop_after)) {
      g_assert_true(kind == GUEST_DATA || kind == GUEST_END || kind == GUEST_CANCEL);
      peer->cancelled = kind == GUEST_CANCEL;
      return !peer->cancelled;
    }
    if (unpaid > GUEST_WINDOW / 3) {
      fake_send_u32(fd, GUEST_CREDIT, request, (uint32_t)unpaid);
      unpaid = 0;
    }
  }
}

/* FALSE: the host cancelled. */
FAKE_UNUSED static gboolean peer_give(int fd, struct peer *peer, uint32_t request) {
  size_t allowed = GUEST_WINDOW;
  for (size_t at = 0; at < peer->give->len;) {
    size_t part = MIN(MIN(peer->give->len - at, allowed), (size_t)GUEST_MAX_FRAME);
    if (part > 0) {
      part = peer->piece > 0 ? MIN(part, peer->piece) : part;
      fake_send(fd, GUEST_DATA, GUEST_OUT, request, peer->give->data + at, part);
      at += part;
      allowed -= part;
      continue;
    }
    struct fake_frame frame;
    if (!fake_receive(fd, &frame)) {
      return FALSE;
    }
    if (frame.header.kind == GUEST_CANCEL) {
      peer->cancelled = TRUE;
      fake_frame_clear(&frame);
      return FALSE;
    }
    g_assert_cmpuint(frame.header.kind, ==, GUEST_CREDIT);
    allowed += guest_get_u32(frame.payload->data);
    fake_frame_clear(&frame);
  }
  return TRUE;
}

FAKE_UNUSED static void script_peer(int fd, void *data) {
  struct peer *peer = data;
  if (!fake_greet(fd)) {
    return;
  }
  struct guest_frame open = fake_expect_open(fd, peer->parameters);
  g_assert_cmpuint(open.channel, ==, peer->operation);
  gboolean on = !peer->got || peer_take(fd, peer, open.request);
  on = on && (!peer->give || peer_give(fd, peer, open.request));
  if (on) {
    unsigned char results[4];
    guest_put_u32(results, peer->results);
    fake_send_done(fd, open.request, peer->status, peer->message ? peer->message : "", results,
                   peer->has_results ? 4 : 0);
  } else {
    fake_send_done(fd, open.request, SANDHOST_CANCELLED, "", NULL, 0);
  }
  fake_wait_for_end(fd);
}

struct fixture {
  struct fake_session session;
  struct sandhost_call call;
  struct peer peer;
};

FAKE_UNUSED static void fixture_begin(struct fixture *fixture, struct peer peer) {
  fixture->peer = peer;
  fixture->peer.parameters = g_byte_array_new();
  fake_session_start(&fixture->session, script_peer, &fixture->peer);
  fake_call_init(&fixture->call);
}

/* The thread of the guest has ended behind it; parameters and got stay. */
FAKE_UNUSED static void fixture_end(struct fixture *fixture) {
  fake_session_end(&fixture->session);
  fake_call_clear(&fixture->call);
}

FAKE_UNUSED static void fixture_free(struct fixture *fixture) {
  g_byte_array_unref(fixture->peer.parameters);
  if (fixture->peer.got) {
    g_byte_array_unref(fixture->peer.got);
  }
}

FAKE_UNUSED static void assert_field(struct guest_reader *reader, const char *expected) {
  size_t length;
  const char *bytes = guest_read_bytes(reader, &length);
  g_autofree char *text = g_strndup(bytes, length);
  g_assert_cmpstr(text, ==, expected);
}

#endif
