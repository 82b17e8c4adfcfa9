/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-guest.c: any bytes as what comes in on the guest's control stream. What goes out is whole frames,
 * and of every opened request exactly one end is told.
 *
 * The stream's source is included, with its system calls put aside, so that every input begins with a
 * stream that has heard nothing. Nothing is started: an opened request only reads its parameters.
 *
 * The first byte says in which pieces the stream is read, the second how much of what the guest writes
 * is taken at once (0: nothing, as long as bytes come in). With the third byte odd it has greeted. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "guest.h"
#include "worker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ssize_t fuzz_read(int fd, void *to, size_t room);
static ssize_t fuzz_write(int fd, const void *from, size_t length);
static ssize_t fuzz_writev(int fd, const struct iovec *parts, int count);

#define read fuzz_read
#define write fuzz_write
#define writev fuzz_writev
#include "../../sdk/guest/stream.c"
#undef read
#undef write
#undef writev

#define check(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                              \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

pthread_mutex_t guest_lock = PTHREAD_MUTEX_INITIALIZER;
int guest_is_init;

/* ---- The control stream ---------------------------------------------------------------------- */

static const uint8_t *input;
static size_t input_left;
static size_t input_piece;
static size_t output_piece;

static unsigned char output[GUEST_HEADER + GUEST_MAX_FRAME];
static size_t output_filled;
static unsigned hellos;
static unsigned opened; /* requests that the guest was asked to open */
static unsigned done;   /* ends that it told */

static ssize_t fuzz_read(int fd, void *to, size_t room) {
  (void)fd;
  check(room > 0);
  size_t part = room < input_piece ? room : input_piece;
  part = part < input_left ? part : input_left;
  memcpy(to, input, part);
  input += part;
  input_left -= part;
  return (ssize_t)part;
}

static void hear(struct guest_frame frame) {
  switch (frame.kind) {
  case GUEST_HELLO:
    check(++hellos == 1);
    break;
  case GUEST_DONE:
    done++;
    break;
  case GUEST_CREDIT:
    check(frame.length == 4);
    break;
  default:
    check(frame.kind == GUEST_PONG || frame.kind == GUEST_DATA);
  }
}

static void hear_bytes(const unsigned char *from, size_t length) {
  while (length > 0) {
    size_t part = sizeof output - output_filled < length ? sizeof output - output_filled : length;
    memcpy(output + output_filled, from, part);
    output_filled += part;
    from += part;
    length -= part;
    size_t at = 0;
    while (output_filled - at >= GUEST_HEADER) {
      struct guest_frame frame = guest_frame_unpack(output + at);
      check(frame.length <= GUEST_MAX_FRAME);
      if (output_filled - at < GUEST_HEADER + frame.length) {
        break;
      }
      hear(frame);
      at += GUEST_HEADER + frame.length;
    }
    memmove(output, output + at, output_filled - at);
    output_filled -= at;
  }
}

static ssize_t fuzz_write(int fd, const void *from, size_t length) {
  (void)fd;
  if (output_piece == 0) {
    errno = EAGAIN;
    return -1;
  }
  size_t part = length < output_piece ? length : output_piece;
  hear_bytes(from, part);
  return (ssize_t)part;
}

static ssize_t fuzz_writev(int fd, const struct iovec *parts, int count) {
  ssize_t first = fuzz_write(fd, parts[0].iov_base, parts[0].iov_len);
  if (count == 1 || first < (ssize_t)parts[0].iov_len) {
    return first;
  }
  ssize_t second = fuzz_write(fd, parts[1].iov_base, parts[1].iov_len);
  return second < 0 ? first : first + second;
}

/* ---- What the stream calls ------------------------------------------------------------------- */

struct opened {
  struct request request; /* the first member */
  struct opened *next;
  int over;
  uint8_t *parameters; /* owned; of their exact length */
};

static struct opened *all;

static void finish(struct request *request, int32_t status) {
  struct opened *it = (struct opened *)request;
  check(!it->over);
  it->over = 1;
  request_remove(request);
  stream_done(request->id, status, "that was it", NULL, 0);
}

static void take_data(struct request *request, const unsigned char *data, size_t length) {
  unsigned char sum = 0;
  for (size_t i = 0; i < length; i++) {
    sum ^= data[i];
  }
  stream_credit(request->id, length);
  if (request->credit > 0 && stream_has_room()) {
    stream_send(GUEST_DATA, GUEST_OUT, request->id, &sum, 1);
    request->credit--;
  }
}

static void take_end(struct request *request) {
  finish(request, SANDHOST_OK);
}

static void take_credited(struct request *request) {
  check(request->credit >= 0);
}

static void take_cancel(struct request *request) {
  finish(request, SANDHOST_CANCELLED);
}

static void open_one(uint32_t id, const unsigned char *parameters, size_t length) {
  check(id != 0 && !request_find(id));
  opened++;
  struct opened *it = calloc(1, sizeof *it);
  check(it);
  it->request = (struct request){.id = id,
                                 .credit = GUEST_WINDOW,
                                 .data = take_data,
                                 .end = take_end,
                                 .credited = take_credited,
                                 .cancel = take_cancel};
  it->parameters = malloc(length + 1);
  check(it->parameters);
  memcpy(it->parameters, parameters, length);
  it->next = all;
  all = it;
  if (request_add(&it->request) < 0) {
    it->over = 1;
    stream_done(id, SANDHOST_LIMIT, "too many at once", NULL, 0);
  }
}

void command_open(uint32_t id, struct guest_reader *parameters) {
  struct guest_reader reader = *parameters;
  uint32_t fields = 0;
  while (!reader.bad && reader.left > 0) {
    size_t length;
    const char *bytes = guest_read_bytes(&reader, &length);
    check(length <= parameters->left && bytes);
    fields++;
  }
  check(fields <= parameters->left);
  open_one(id, parameters->data, parameters->left);
}

void worker_open(uint32_t id, uint8_t operation, const unsigned char *parameters, size_t length,
                 worker_function function) {
  check(function && operation != GUEST_EXECUTE);
  open_one(id, parameters, length);
}

void command_signal(struct request *request, int number) {
  (void)number;
  check(request_find(request->id) == request);
}

void loop_wake(void) {
}

/* Named by the table of operations, never called. */
static void never(struct worker *worker, struct guest_reader *parameters) {
  (void)worker;
  (void)parameters;
  abort();
}

void file_read(struct worker *worker, struct guest_reader *parameters) {
  never(worker, parameters);
}

void file_write(struct worker *worker, struct guest_reader *parameters) {
  never(worker, parameters);
}

void tar_in(struct worker *worker, struct guest_reader *parameters) {
  never(worker, parameters);
}

void tar_out(struct worker *worker, struct guest_reader *parameters) {
  never(worker, parameters);
}

void changes_list(struct worker *worker, struct guest_reader *parameters) {
  never(worker, parameters);
}

void probe_connect(struct worker *worker, struct guest_reader *parameters) {
  never(worker, parameters);
}

/* ---- One input ------------------------------------------------------------------------------- */

/* Ends what is open, reads the rest of what was written, and forgets all. */
static void forget(void) {
  for (struct opened *it = all; it; it = it->next) {
    if (!it->over) {
      take_end(&it->request);
    }
  }
  output_piece = sizeof output;
  check(stream_flush() == 0);
  check(!stream_is_pending() && queued == 0 && stream_has_room());
  check(output_filled == 0);
  check(done >= opened);
  while (all) {
    struct opened *gone = all;
    all = gone->next;
    free(gone->parameters);
    free(gone);
  }
  while (partials) {
    partial_drop(&partials);
  }
  check(partial_count == 0);
  filled = 0;
  greeted = 0;
  hellos = opened = done = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 3) {
    return 0;
  }
  input = data + 3;
  input_left = size - 3;
  input_piece = data[0] == 255 ? sizeof output : (size_t)data[0] + 1;
  output_piece = data[1] == 255 ? sizeof output : data[1];
  greeted = data[2] & 1;
  hellos = (unsigned)greeted;
  while (stream_receive() == 0) {
    check(filled <= sizeof buffer);
    check(partial_count <= GUEST_MAX_REQUESTS);
    if (stream_is_pending()) {
      check(stream_flush() == 0);
    }
  }
  forget();
  return 0;
}
