/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c: frames in and out of the control stream. Reading never stops for writing: what cannot
 * be written waits in the queue, and data is only added to it while there is room. */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct chunk {
  struct chunk *next;
  size_t length;
  size_t done;
  unsigned char bytes[];
};

static int in_fd = -1;
static int out_fd = -1;

static struct chunk *head;
static struct chunk **tail = &head;
static size_t queued;

static unsigned char buffer[GUEST_HEADER + GUEST_MAX_FRAME];
static size_t filled;
static int greeted;

/* An OPEN that has more parameters to come. */
struct partial {
  struct partial *next;
  uint32_t id;
  uint8_t operation;
  unsigned char *bytes;
  size_t length;
};

static struct partial *partials;
static size_t partial_count;

int stream_init(int in, int out) {
  in_fd = in;
  /* A container engine's copier that finds no room is put to sleep for each few kilobytes. Where it is no pipe, or may
   * not be as large, nothing changes. */
  (void)fcntl(in, F_SETPIPE_SZ, GUEST_WINDOW);
  out_fd = out;
  return fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK) |
         fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

int stream_in_fd(void) {
  return in_fd;
}

int stream_out_fd(void) {
  return out_fd;
}

int stream_is_pending(void) {
  return head != NULL;
}

int stream_has_room(void) {
  return queued < STREAM_ROOM;
}

/* ---- Out ------------------------------------------------------------------------------------- */

static void enqueue(const unsigned char *header, size_t header_length, const unsigned char *payload,
                    size_t length) {
  struct chunk *chunk = malloc(sizeof *chunk + header_length + length);
  if (!chunk) {
    _exit(1); /* nothing can be promised any more; the host sees the stream end */
  }
  chunk->next = NULL;
  chunk->length = header_length + length;
  chunk->done = 0;
  if (header_length > 0) {
    memcpy(chunk->bytes, header, header_length);
  }
  if (length > 0) {
    memcpy(chunk->bytes + header_length, payload, length);
  }
  *tail = chunk;
  tail = &chunk->next;
  queued += chunk->length;
}

void stream_send(uint8_t kind, uint8_t channel, uint32_t request, const void *payload,
                 size_t length) {
  unsigned char header[GUEST_HEADER];
  const struct guest_frame frame = {
      .length = (uint32_t)length, .kind = kind, .channel = channel, .request = request};
  size_t written = 0;
  int was_empty = !head;
  guest_frame_pack(header, frame);
  if (was_empty) {
    union {
      const void *from;
      void *to;
    } borrowed = {.from = payload}; /* writev does not write to it */
    struct iovec parts[] = {{header, sizeof header}, {borrowed.to, length}};
    ssize_t count = writev(out_fd, parts, length ? 2 : 1);
    written = count > 0 ? (size_t)count : 0;
    if (written == sizeof header + length) {
      return;
    }
  }
  if (written < sizeof header) {
    enqueue(header + written, sizeof header - written, payload, length);
  } else {
    enqueue(NULL, 0, (const unsigned char *)payload + (written - sizeof header),
            length - (written - sizeof header));
  }
  if (was_empty) {
    loop_wake(); /* it does not watch for room to write yet */
  }
}

void stream_done(uint32_t request, int32_t status, const char *message, const void *results,
                 size_t length) {
  unsigned char payload[8 + GUEST_MAX_MESSAGE + 128];
  size_t text = message ? strlen(message) : 0;
  if (text > GUEST_MAX_MESSAGE) {
    text = GUEST_MAX_MESSAGE;
  }
  guest_put_u32(payload, (uint32_t)status);
  guest_put_u32(payload + 4, (uint32_t)text);
  if (text > 0) {
    memcpy(payload + 8, message, text);
  }
  if (length > 0) {
    memcpy(payload + 8 + text, results, length);
  }
  stream_send(GUEST_DONE, 0, request, payload, 8 + text + length);
}

void stream_credit(uint32_t request, size_t bytes) {
  unsigned char payload[4];
  guest_put_u32(payload, (uint32_t)bytes);
  stream_send(GUEST_CREDIT, 0, request, payload, sizeof payload);
}

int stream_flush(void) {
  while (head) {
    ssize_t count = write(out_fd, head->bytes + head->done, head->length - head->done);
    if (count < 0) {
      return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
    head->done += (size_t)count;
    queued -= (size_t)count;
    if (head->done == head->length) {
      struct chunk *gone = head;
      head = gone->next;
      if (!head) {
        tail = &head;
      }
      free(gone);
    }
  }
  return 0;
}

/* ---- In -------------------------------------------------------------------------------------- */

static int greet(const struct guest_frame *frame, const unsigned char *payload) {
  unsigned char answer[8 + GUEST_NONCE + 12];
  struct guest_reader reader = {.data = payload, .left = frame->length};
  uint32_t magic = guest_read_u32(&reader);
  uint32_t version = guest_read_u32(&reader);
  const unsigned char *nonce = guest_read_raw(&reader, GUEST_NONCE);
  if (frame->kind != GUEST_HELLO || reader.bad || magic != GUEST_MAGIC) {
    return -1;
  }
  guest_put_u32(answer, GUEST_MAGIC);
  guest_put_u32(answer + 4, GUEST_VERSION);
  memcpy(answer + 8, nonce, GUEST_NONCE);
  guest_put_u32(answer + 8 + GUEST_NONCE, guest_is_init ? GUEST_IS_INIT : 0);
  guest_put_u32(answer + 12 + GUEST_NONCE, (uint32_t)getpid());
  guest_put_u32(answer + 16 + GUEST_NONCE, GUEST_WINDOW);
  stream_send(GUEST_HELLO, 0, 0, answer, sizeof answer);
  greeted = 1;
  return version == GUEST_VERSION ? 0 : -1;
}

static struct partial **partial_find(uint32_t id) {
  struct partial **at = &partials;
  while (*at && (*at)->id != id) {
    at = &(*at)->next;
  }
  return at;
}

static struct partial **partial_begin(uint32_t id, uint8_t operation) {
  struct partial *partial = partial_count < GUEST_MAX_REQUESTS ? calloc(1, sizeof *partial) : NULL;
  if (!partial) {
    return NULL;
  }
  partial->id = id;
  partial->operation = operation;
  partial->next = partials;
  partials = partial;
  partial_count++;
  return &partials;
}

static void partial_drop(struct partial **at) {
  struct partial *gone = *at;
  *at = gone->next;
  partial_count--;
  free(gone->bytes);
  free(gone);
}

/* Puts the pieces of an OPEN together; hands it on with the last one. -1: more than may be. */
static int open_request(const struct guest_frame *frame, const unsigned char *payload) {
  struct partial **at = partial_find(frame->request);
  if (!*at && !(frame->flags & GUEST_MORE)) {
    guest_open(frame->request, frame->channel, payload, frame->length);
    return 0;
  }
  if (!*at) {
    at = partial_begin(frame->request, frame->channel);
  }
  if (!at || (*at)->length + frame->length > GUEST_MAX_PARAMETERS) {
    return -1;
  }
  struct partial *partial = *at;
  unsigned char *grown = realloc(partial->bytes, partial->length + frame->length + 1);
  if (!grown) {
    return -1;
  }
  memcpy(grown + partial->length, payload, frame->length);
  partial->bytes = grown;
  partial->length += frame->length;
  if (!(frame->flags & GUEST_MORE)) {
    guest_open(partial->id, partial->operation, grown, partial->length);
    partial_drop(at);
  }
  return 0;
}

/* A request that is not wholly there yet has nothing to stop. */
static void cancel_partial(uint32_t id) {
  struct partial **at = partial_find(id);
  if (*at) {
    partial_drop(at);
    stream_done(id, SANDHOST_CANCELLED, "cancelled", NULL, 0);
  }
}

static int dispatch(const struct guest_frame *frame, const unsigned char *payload) {
  if (!greeted) {
    return greet(frame, payload);
  }
  struct request *request = frame->kind == GUEST_OPEN ? NULL : request_find(frame->request);
  switch (frame->kind) {
  case GUEST_OPEN:
    return frame->request && !request_find(frame->request) ? open_request(frame, payload) : -1;
  case GUEST_PING:
    stream_send(GUEST_PONG, 0, 0, payload, frame->length);
    return 0;
  case GUEST_DATA:
    if (request) {
      request->data(request, payload, frame->length);
    }
    return 0;
  case GUEST_END:
    if (request) {
      request->end(request);
    }
    return 0;
  case GUEST_CREDIT:
    if (request && frame->length == 4) {
      request->credit += guest_get_u32(payload);
      request->credited(request);
    }
    return 0;
  case GUEST_CANCEL:
    if (request) {
      request->cancel(request);
    } else {
      cancel_partial(frame->request);
    }
    return 0;
  case GUEST_SIGNAL:
    if (request && frame->length == 4) {
      command_signal(request, (int)guest_get_u32(payload));
    }
    return 0;
  default:
    return -1;
  }
}

int stream_receive(void) {
  ssize_t count = read(in_fd, buffer + filled, sizeof buffer - filled);
  if (count <= 0) {
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
  }
  filled += (size_t)count;
  size_t at = 0;
  while (filled - at >= GUEST_HEADER) {
    struct guest_frame frame = guest_frame_unpack(buffer + at);
    if (frame.length > GUEST_MAX_FRAME) {
      return -1;
    }
    if (filled - at < GUEST_HEADER + frame.length) {
      break;
    }
    if (dispatch(&frame, buffer + at + GUEST_HEADER) < 0) {
      return -1;
    }
    at += GUEST_HEADER + frame.length;
  }
  memmove(buffer, buffer + at, filled - at);
  filled -= at;
  return 0;
}
