/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-connection.h: the shared part of a GuestClient: one stream, many requests that wait on it.
 *
 * There is one lock, client->lock; it guards everything but what is marked constant or the caller's
 * own. No function of the host, and no observer, sink or source, is called under it; the functions of
 * the channel are.
 *
 * Of the threads that wait, one is the reader: it polls the stream for all, puts what others wait for
 * into their inboxes and wakes them. It stops being the reader before it leaves the wait, so nobody's
 * callback holds up anybody else's data. Every request has a wake-up descriptor of its own.
 */
#ifndef SANDHOST_SUPPORT_GUEST_CONNECTION_H
#define SANDHOST_SUPPORT_GUEST_CONNECTION_H

#include "contract.h"
#include "guest-client.h"

#include <pthread.h>
#include <sandhost/guest-protocol-private.h>

#define GUEST_RECEIVE_BUFFER ((size_t)128 * 1024)
/* Stretches of own data that one pass over the receive buffer hands out without a copy. */
#define GUEST_PIECES 64
/* Room for the longest results of an operation, those of GUEST_EXECUTE. */
#define GUEST_RESULTS 64u
/* Every frame but DATA is at most this long, so that it fits into the receive buffer. */
#define GUEST_MAX_CONTROL (8 + GUEST_MAX_MESSAGE + GUEST_RESULTS)
/* Above it, no more DATA and no new request are queued for sending. */
#define GUEST_OUT_ROOM GUEST_MAX_FRAME
/* Above it, the guest plainly does not read: room, the largest OPEN, and all else twice over. */
#define GUEST_OUT_LIMIT (GUEST_OUT_ROOM + 2 * (size_t)GUEST_MAX_PARAMETERS)

struct guest_timing {   /* nanoseconds; fields so that tests can shorten them */
  int64_t ping_after;   /* silence after which the guest is asked whether it lives */
  int64_t lost_after;   /* silence after which it is lost; longer than ping_after */
  int64_t cancel_grace; /* for the DONE after a CANCEL */
  int64_t limit_grace;  /* past the limit of a command */
};

struct guest_piece { /* some DATA of one channel, in a receive buffer */
  const unsigned char *data;
  uint32_t length;
  uint32_t channel;
};

struct guest_record { /* the same in an inbox: this, then the bytes */
  uint32_t channel;
  uint32_t length;
};

enum guest_wants { /* what a waiting request could send if it might */
                   GUEST_WANTS_NOTHING,
                   GUEST_WANTS_ROOM,   /* to be opened */
                   GUEST_WANTS_CREDIT, /* room and credit, for DATA */
};

/* One request, on the stack of the thread that runs it. */
struct guest_request {
  struct sandhost_call *call; /* constant, as are the next four */
  uint32_t operation;
  uint32_t id;
  uint32_t slot;
  uint32_t results_expected; /* length of the results of a DONE with SANDHOST_OK */

  gboolean opened;     /* the guest was told of it */
  gboolean never_left; /* or nobody could be told any more */
  gboolean started;    /* STARTED came, at started_at */
  gboolean told;       /* and the caller knows */
  gboolean done;       /* DONE came; the next four are its content */
  int32_t status;
  char *message; /* owned */
  uint32_t results_length;
  unsigned char results[GUEST_RESULTS];
  int64_t started_at;
  uint32_t ended; /* bit per channel: END came */
  gboolean broke; /* its thread read what broke the protocol */

  uint32_t may_receive; /* DATA that the guest may still send */
  uint32_t to_credit;   /* consumed, but not yet given back */
  uint32_t may_send;

  GByteArray *inbox; /* records put there by another reader; owned; NULL: none yet */
  size_t inbox_last; /* where the last record of a filled inbox begins */
  struct guest_piece pieces[GUEST_PIECES]; /* put there by its own thread; older than the inbox */
  size_t piece_count;
  unsigned char *pieces_buffer; /* what they point into, once the reader has left; owned */

  enum guest_wants wants;
  gboolean waiting;  /* its thread polls its wake-up descriptor */
  gboolean notified; /* and was woken */
};

struct GuestClient {
  const struct sandhost_host *host; /* constant, as is working_dir */
  char *working_dir;
  struct guest_timing timing; /* constant once the first call runs */

  pthread_mutex_t lock; /* not a GMutex: the thread sanitizer cannot see into those */
  ByteChannel *channel;

  gboolean greeted;
  unsigned char nonce[GUEST_NONCE];
  uint32_t guest_flags;
  uint32_t guest_window;

  gboolean lost;
  char *lost_reason; /* set once, with lost */

  struct guest_request *slots[GUEST_MAX_REQUESTS]; /* the low 8 bits of an id are its slot */
  int wake_fds[GUEST_MAX_REQUESTS];                /* made at the first use of the slot; or -1 */
  uint32_t slot_top;                               /* above every slot in use */
  uint32_t open_count;
  uint32_t generation; /* the other bits of the latest id */

  struct guest_request *reader;  /* or NULL */
  struct guest_request *nominee; /* woken to become the reader; or NULL */

  int64_t heard_at;     /* when bytes came last, moved on by the time in which nobody read */
  int64_t unread_since; /* when reader became NULL */
  int64_t pinged_at;    /* 0: heard of it since */
  uint64_t pings;       /* sent; each carries its number */
  uint64_t pongs;

  unsigned char *buffer; /* GUEST_RECEIVE_BUFFER bytes, of which filled are used */
  size_t filled;
  size_t dispatched;                  /* of those; the pieces of the reader lie there */
  unsigned char *spare;               /* another, or NULL */
  struct guest_request *data_request; /* whose DATA the next data_left bytes are */
  uint32_t data_left;
  uint32_t data_channel;

  GByteArray *out; /* not sent yet, from out_start on */
  size_t out_start;
  gboolean send_failed; /* nothing can be sent any more; the end of the stream follows */
};

/* What a wait ends for, besides work of the request itself. */
struct guest_wait {
  int cancel_fd;         /* or -1 */
  int input_fd;          /* or -1 */
  int64_t until;         /* monotonic; INT64_MAX: never */
  gboolean cancel_ready; /* results; FALSE before the wait */
  gboolean input_ready;
};

/* All below are called with the lock held. */

/* Declares the client lost and wakes everybody; does nothing when it is lost already. */
void guest_connection_lose(GuestClient *client, const char *reason);

/* The same for a guest that broke the protocol: what says how. self, which may be NULL, is the request
 * whose thread found it. */
void guest_connection_break(GuestClient *client, struct guest_request *self, const char *what);

/* Gives the request a slot, a number and a wake-up descriptor. Returns 0 or a negative errno; -EBUSY:
 * GUEST_MAX_REQUESTS are in use. */
int guest_connection_enter(GuestClient *client, struct guest_request *request);

/* Takes the slot back. */
void guest_connection_leave(GuestClient *client, struct guest_request *request);

/* Sends or queues bytes that are whole frames or continue one. self as above. */
void guest_connection_send(GuestClient *client, struct guest_request *self, const void *data,
                           size_t length);

/* Sends or queues a frame of at most 8 bytes of payload. */
void guest_connection_send_small(GuestClient *client, struct guest_request *self, uint8_t kind,
                                 uint8_t channel, uint32_t request, const void *payload,
                                 uint32_t length);

gboolean guest_connection_has_room(const GuestClient *client);

/* Waits until the request has something to do or the wait's own reasons come. Gives the lock up
 * meanwhile. */
void guest_connection_wait(GuestClient *client, struct guest_request *request,
                           struct guest_wait *wait);

/* Takes what is there to read, without a wait: the end of the stream, too. self is not opened yet. */
void guest_connection_look(GuestClient *client, struct guest_request *self);

/* Finds another reader where there is none. To be called before the lock is given up for anything but
 * a wait. */
void guest_connection_pass_on(GuestClient *client);

/* Keeps a receive buffer for the next use, or frees it. */
void guest_connection_recycle(GuestClient *client, unsigned char *take_buffer);

/* Wakes the thread of a request, if that waits. */
void guest_connection_notify(GuestClient *client, struct guest_request *request);

/* Dispatches the frames in the receive buffer, as the thread of self. Implemented in guest-frames.c. */
void guest_frames_dispatch(GuestClient *client, struct guest_request *self);

/* Hostile bytes as a text fit for a person: valid UTF-8, no control characters. Returns owned. */
char *guest_text_clean(const void *data, size_t length);

#endif
