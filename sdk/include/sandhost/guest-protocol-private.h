/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-protocol-private.h: what sandhost-guest and its client say to each other.
 *
 * Never installed and no ABI: guest and client are built together, and the greeting refuses a
 * stranger. Everything is little-endian. The stream is ordered, reliable bytes both ways (the
 * guest's descriptors 0 and 1).
 *
 *   frame   = length u32 (of the payload), kind u8, channel u8, flags u16, request u32, payload
 *   bytes   = length u32, that many bytes
 *
 * A session:
 *   1. host: HELLO   {magic u32, version u32, nonce 16 bytes}
 *      guest: HELLO  {magic u32, version u32, nonce as received, flags u32 (GUEST_IS_INIT), pid u32,
 *                     window u32}
 *      Nothing else before it. A guest of another version answers with its own HELLO and ends.
 *   2. host: OPEN with a request number that is not in use (never 0), channel = operation, payload =
 *      its parameters, in several frames where GUEST_MORE is set on all but the last; together at
 *      most GUEST_MAX_PARAMETERS.
 *      guest, host: DATA and END on a channel of that request.
 *      guest: STARTED (execute only), then DATA, then exactly one DONE, after which the request
 *      number is free and nothing more is said of it. A frame from the host for a request that is
 *      not open is ignored: it crossed DONE on the way.
 *   3. host: CANCEL ends a request: the tree of a command is killed, a transfer stops. DONE follows,
 *      with SANDHOST_CANCELLED unless the end was already on its way.
 *      host: SIGNAL {signal i32} goes to an execute request's process group.
 *   4. host: PING {u64}; guest: PONG with the same payload, whatever else is going on.
 *   5. End of stream: the guest kills all that it started and ends.
 *
 * Flow control, per request and direction: a side may send GUEST_WINDOW bytes of DATA payload (all
 * channels together), then as many more as CREDIT {u32} frames from the other side allow. CANCEL,
 * SIGNAL, PING and CREDIT are never held back, and both sides go on reading while they cannot write:
 * a kill passes a full pipe.
 *
 * The guest believes the host. The host believes nothing: a frame over GUEST_MAX_FRAME, an unknown
 * kind, a request that is not open, data beyond the window, two DONEs are SANDHOST_PROTOCOL, and the
 * session is over.
 */
#ifndef SANDHOST_GUEST_PROTOCOL_PRIVATE_H
#define SANDHOST_GUEST_PROTOCOL_PRIVATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GUEST_MAGIC 0x54534753u /* "SGST" */
#define GUEST_VERSION 1u
#define GUEST_NONCE 16u

#define GUEST_HEADER 12u
#define GUEST_MAX_FRAME (256u * 1024u)   /* payload of one frame */
#define GUEST_MAX_PARAMETERS (16u << 20) /* of one OPEN, all its frames together */
#define GUEST_WINDOW (1u << 20)          /* DATA in flight per request and direction */
#define GUEST_MAX_REQUESTS 256u          /* open at once; one more is SANDHOST_LIMIT */
#define GUEST_MAX_MESSAGE 4096u          /* text of a DONE */

enum guest_kind {
  GUEST_HELLO = 1,
  GUEST_OPEN = 2,
  GUEST_DATA = 3,
  GUEST_END = 4,     /* no more DATA on this channel; no payload */
  GUEST_CREDIT = 5,  /* u32 */
  GUEST_CANCEL = 6,  /* no payload */
  GUEST_SIGNAL = 7,  /* i32 */
  GUEST_STARTED = 8, /* u32 process number inside */
  GUEST_DONE = 9,    /* status i32 (SANDHOST_*), message bytes, then the operation's own results */
  GUEST_PING = 10,
  GUEST_PONG = 11,
};

#define GUEST_MORE 0x1u    /* flag of OPEN: another frame of parameters follows */
#define GUEST_IS_INIT 0x1u /* flag in the guest's HELLO: it is PID 1 */

enum guest_operation {
  /* parameters: flags u32 (SANDHOST_EXECUTE_*), limit u64 ns, max_output u64, cwd bytes,
   *   argc u32, argc x bytes, count u32, count x bytes "NAME=value"
   * DATA: IN is stdin; OUT and ERR are the streams
   * results: ended u32, exit_code i32, signal i32, stdout u64, stderr u64, duration u64, user u64,
   *   system u64, max_rss u64 */
  GUEST_EXECUTE = 1,
  /* parameters: root bytes (absolute; empty: any file), path bytes (below root)
   * DATA: OUT is the content */
  GUEST_READ_FILE = 2,
  /* parameters: root bytes, path bytes, mode u32. DATA: IN is the content */
  GUEST_WRITE_FILE = 3,
  /* parameters: root bytes. DATA: IN is a tar stream. Each file's hash is remembered with its stat, so
   * that a later CHANGES need not read it */
  GUEST_UPLOAD = 4,
  /* parameters: root bytes. DATA: IN is names, each ended by NUL; OUT is a tar stream */
  GUEST_DOWNLOAD = 5,
  /* parameters: root bytes, max_hash_bytes u64, max_entries u64
   * DATA: IN is known files, sorted by path: bytes path, 32 bytes SHA-256, each
   *       OUT is entries: kind u32, flags u32, size u64, mtime i64, mode u32, sha256 32 bytes (zero
   *       where unset), path bytes, each */
  GUEST_CHANGES = 6,
  /* parameters: address bytes, port u32, patience u64. results: verdict u32 (SANDHOST_PROBE_*) */
  GUEST_PROBE = 7,
};

enum guest_channel {
  GUEST_IN = 0,  /* host to guest */
  GUEST_OUT = 1, /* guest to host: stdout, content, tar, entries */
  GUEST_ERR = 2, /* guest to host: stderr */
};

struct guest_frame {
  uint32_t length;
  uint8_t kind;
  uint8_t channel;
  uint16_t flags;
  uint32_t request;
};

/* ---- Reading and writing the fields: bounds are checked here and nowhere else ---------------- */

static inline void guest_put_u32(unsigned char *to, uint32_t value) {
  to[0] = (unsigned char)(value & 0xff);
  to[1] = (unsigned char)((value >> 8) & 0xff);
  to[2] = (unsigned char)((value >> 16) & 0xff);
  to[3] = (unsigned char)((value >> 24) & 0xff);
}

static inline uint32_t guest_get_u32(const unsigned char *from) {
  return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
         (uint32_t)from[3] << 24;
}

static inline void guest_put_u64(unsigned char *to, uint64_t value) {
  guest_put_u32(to, (uint32_t)(value & 0xffffffffu));
  guest_put_u32(to + 4, (uint32_t)(value >> 32));
}

static inline uint64_t guest_get_u64(const unsigned char *from) {
  return (uint64_t)guest_get_u32(from) | (uint64_t)guest_get_u32(from + 4) << 32;
}

static inline void guest_frame_pack(unsigned char to[GUEST_HEADER], struct guest_frame frame) {
  guest_put_u32(to, frame.length);
  to[4] = frame.kind;
  to[5] = frame.channel;
  to[6] = (unsigned char)(frame.flags & 0xff);
  to[7] = (unsigned char)(frame.flags >> 8);
  guest_put_u32(to + 8, frame.request);
}

static inline struct guest_frame guest_frame_unpack(const unsigned char from[GUEST_HEADER]) {
  struct guest_frame frame;
  frame.length = guest_get_u32(from);
  frame.kind = from[4];
  frame.channel = from[5];
  frame.flags = (uint16_t)(from[6] | from[7] << 8);
  frame.request = guest_get_u32(from + 8);
  return frame;
}

/* A cursor over received bytes. Once a field does not fit, bad is 1 and every further field is zero
 * or empty: read all, then look at bad once. */
struct guest_reader {
  const unsigned char *data;
  size_t left;
  int bad;
};

static inline const unsigned char *guest_read_raw(struct guest_reader *reader, size_t length) {
  const unsigned char *at = reader->data;
  if (reader->bad || length > reader->left) {
    reader->bad = 1;
    return NULL;
  }
  reader->data += length;
  reader->left -= length;
  return at;
}

static inline uint32_t guest_read_u32(struct guest_reader *reader) {
  const unsigned char *at = guest_read_raw(reader, 4);
  return at ? guest_get_u32(at) : 0;
}

static inline uint64_t guest_read_u64(struct guest_reader *reader) {
  const unsigned char *at = guest_read_raw(reader, 8);
  return at ? guest_get_u64(at) : 0;
}

/* Borrows from the buffer until that changes. */
static inline const char *guest_read_bytes(struct guest_reader *reader, size_t *ret_length) {
  uint32_t length = guest_read_u32(reader);
  const unsigned char *at = guest_read_raw(reader, length);
  *ret_length = at ? length : 0;
  return at ? (const char *)at : "";
}

#endif
