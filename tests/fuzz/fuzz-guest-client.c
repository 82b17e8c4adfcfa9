/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-guest-client.c: any bytes as what a guest says. Every operation returns, with a status that the
 * contract has and with results that keep what the request set.
 *
 * The input is a head of four bytes (flags, first operation, window, how much the host's bytes are
 * taken) and then records, which make it likely that frames are whole and name open requests:
 *   0  length u8, bytes                             as they are
 *   1  kind u8, channel u8, request u8, length u8, payload
 *                                                   a frame; request 255 is the latest OPEN's, 254 the
 *                                                   one before, another is the number itself
 *   2  channel u8, KiB u8                           DATA of so much of one letter, latest request
 *   3                                               receive returns: what follows comes later
 *   4                                               nothing is there now; where the end is silence,
 *                                                   not before the host asks whether the guest lives
 *   5  a whole DONE of status u8 with results u8, results
 * Another tag is one of these modulo 6. After the last record the stream ends, or stays silent. */
#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "guest-client.h"
#include "guest-connection.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FLAG_RAW_GREETING 0x1u /* the records greet; else it is done for them */
#define FLAG_SILENT 0x2u       /* nothing more instead of the end */
#define FLAG_DEAF 0x4u         /* takes nothing of what the host sends once it greeted */
#define FLAG_STOP 0x8u         /* sinks stop after some bytes */
#define FLAG_CANCEL 0x10u      /* the caller cancels at the first output */
#define FLAG_DEADLINE 0x20u    /* the deadline passes soon */
#define FLAG_LIMIT 0x40u       /* the command has a limit, which it soon passes */
#define FLAG_SIGNAL 0x80u      /* the command is sent a signal when it has started */

#define MICROSECOND ((int64_t)1000)
#define MAX_OUTPUT 70000u
#define MAX_ENTRIES 5u
#define MAX_RECEIVED ((size_t)8 << 20)

/* ---- The host -------------------------------------------------------------------------------- */

struct sandhost_call {
  int64_t deadline;
  int32_t cancelled;
  int32_t status;    /* of the first failure */
  gboolean disowned; /* it was said that nothing was begun */
};

static int64_t host_deadline(const struct sandhost_call *call) {
  return call->deadline;
}

static int32_t host_cancelled(const struct sandhost_call *call) {
  return call->cancelled;
}

static int32_t host_cancel_fd(const struct sandhost_call *call) {
  (void)call;
  return -1;
}

static void check_text(struct sandhost_text text) {
  g_assert_true(g_utf8_validate_len(text.data, text.length, NULL));
  for (size_t i = 0; i < text.length; i++) {
    g_assert_false((unsigned char)text.data[i] < 0x20);
  }
}

static int32_t host_fail(struct sandhost_call *call, int32_t status, struct sandhost_text message) {
  check_text(message);
  g_assert_cmpuint(message.length, >, 0);
  if (call->status == 0) {
    call->status = status;
  }
  return status;
}

static void host_fail_details(struct sandhost_call *call, const struct sandhost_failure *details) {
  g_assert_cmpuint(details->size, ==, sizeof *details);
  g_assert_nonnull(details->service_code.data);
  call->disowned = call->disowned || !details->may_have_happened;
}

static void host_report(struct sandhost_call *call, uint32_t kind, struct sandhost_text value) {
  (void)call;
  g_assert_cmpuint(kind, ==, SANDHOST_REPORT_LOST);
  check_text(value);
}

static const struct sandhost_host host = {
    .size = sizeof host,
    .minor = SANDHOST_ABI_MINOR,
    .deadline = host_deadline,
    .cancelled = host_cancelled,
    .cancel_fd = host_cancel_fd,
    .fail = host_fail,
    .fail_details = host_fail_details,
    .report = host_report,
};

/* ---- The guest, in memory -------------------------------------------------------------------- */

typedef struct {
  ByteChannel channel;
  const uint8_t *data; /* the records that are left */
  size_t size;
  uint8_t flags;
  uint8_t window;
  uint8_t taken;     /* at most so many bytes of the host at once; 0: any */
  int ready;         /* an eventfd that is always readable and writable */
  int never;         /* one that is never readable */
  gboolean silent;   /* the stream stays open without a word */
  size_t total;      /* bytes that the host was given */
  GByteArray *chunk; /* bytes that the host has not received yet */
  GByteArray *heard; /* what the host said and is no whole frame yet */
  gboolean greeted;  /* its HELLO came */
  unsigned char nonce[GUEST_NONCE];
  uint32_t request; /* of the latest OPEN */
  uint32_t before;
} Guest;

static uint8_t take_u8(Guest *guest) {
  if (guest->size == 0) {
    return 0;
  }
  guest->size--;
  return *guest->data++;
}

static void put_frame(Guest *guest, struct guest_frame frame, const void *payload) {
  unsigned char header[GUEST_HEADER];
  guest_frame_pack(header, frame);
  g_byte_array_append(guest->chunk, header, sizeof header);
  if (frame.length > 0 && payload) {
    g_byte_array_append(guest->chunk, payload, frame.length);
  }
}

/* Takes up to length bytes of the records. */
static const uint8_t *take_bytes(Guest *guest, size_t length, size_t *ret_length) {
  const uint8_t *at = guest->data;
  *ret_length = MIN(length, guest->size);
  guest->data += *ret_length;
  guest->size -= *ret_length;
  return at;
}

static void put_record_frame(Guest *guest) {
  struct guest_frame frame = {.kind = take_u8(guest), .channel = take_u8(guest)};
  uint8_t request = take_u8(guest);
  size_t length;
  const uint8_t *payload = take_bytes(guest, take_u8(guest), &length);
  frame.request = request == 255 ? guest->request : request == 254 ? guest->before : request;
  frame.length = (uint32_t)length;
  put_frame(guest, frame, payload);
}

static void put_much_data(Guest *guest) {
  struct guest_frame frame = {
      .kind = GUEST_DATA, .channel = take_u8(guest), .request = guest->request};
  frame.length = (uint32_t)take_u8(guest) * 1024;
  put_frame(guest, frame, NULL);
  guint filled = guest->chunk->len;
  g_byte_array_set_size(guest->chunk, filled + frame.length);
  memset(guest->chunk->data + filled, 'x', frame.length);
}

static void put_done(Guest *guest) {
  unsigned char payload[8 + 255] = {take_u8(guest)};
  size_t length;
  const uint8_t *results = take_bytes(guest, take_u8(guest), &length);
  memcpy(payload + 8, results, length);
  put_frame(guest,
            (struct guest_frame){
                .kind = GUEST_DONE, .request = guest->request, .length = (uint32_t)(8 + length)},
            payload);
}

/* Makes the chunk that receive gives next. FALSE: there is nothing now. */
static gboolean next_chunk(Guest *guest) {
  g_byte_array_set_size(guest->chunk, 0);
  while (guest->size > 0 && guest->chunk->len < GUEST_RECEIVE_BUFFER) {
    size_t length;
    const uint8_t *bytes;
    switch (take_u8(guest) % 6) {
    case 0:
      bytes = take_bytes(guest, take_u8(guest), &length);
      g_byte_array_append(guest->chunk, bytes, (guint)length);
      break;
    case 1:
      put_record_frame(guest);
      break;
    case 2:
      put_much_data(guest);
      break;
    case 3:
      if (guest->chunk->len > 0) {
        return TRUE;
      }
      break;
    case 4:
      return guest->chunk->len > 0;
    default:
      put_done(guest);
    }
  }
  return TRUE;
}

static void put_greeting(Guest *guest) {
  unsigned char hello[8 + GUEST_NONCE + 12];
  guest_put_u32(hello, GUEST_MAGIC);
  guest_put_u32(hello + 4, GUEST_VERSION);
  memcpy(hello + 8, guest->nonce, GUEST_NONCE);
  guest_put_u32(hello + 8 + GUEST_NONCE, GUEST_IS_INIT);
  guest_put_u32(hello + 12 + GUEST_NONCE, 1);
  guest_put_u32(hello + 16 + GUEST_NONCE, guest->window == 255 ? ~0u : guest->window * 64u + 1u);
  put_frame(guest, (struct guest_frame){.kind = GUEST_HELLO, .length = sizeof hello}, hello);
}

static ssize_t channel_receive(ByteChannel *channel, void *buffer, size_t length) {
  Guest *guest = (Guest *)channel;
  g_assert_cmpuint(length, >, 0);
  gboolean something = TRUE;
  if (guest->chunk->len == 0) {
    something = next_chunk(guest);
  }
  if (guest->chunk->len == 0 && (!something || (guest->flags & FLAG_SILENT))) {
    guest->silent = (guest->flags & FLAG_SILENT) != 0;
    errno = EAGAIN;
    return -1;
  }
  size_t part = MIN(length, (size_t)guest->chunk->len);
  guest->total += part;
  if (part == 0 || guest->total > MAX_RECEIVED) {
    return 0;
  }
  memcpy(buffer, guest->chunk->data, part);
  g_byte_array_remove_range(guest->chunk, 0, (guint)part);
  return (ssize_t)part;
}

/* What the host says keeps the protocol, whatever it heard. */
static void hear_frame(Guest *guest, struct guest_frame frame, const unsigned char *payload) {
  switch (frame.kind) {
  case GUEST_HELLO:
    g_assert_false(guest->greeted);
    g_assert_cmpuint(frame.length, ==, 8 + GUEST_NONCE);
    guest->greeted = TRUE;
    memcpy(guest->nonce, payload + 8, GUEST_NONCE);
    if (!(guest->flags & FLAG_RAW_GREETING)) {
      put_greeting(guest);
    }
    break;
  case GUEST_OPEN:
    g_assert_cmpuint(frame.request, !=, 0);
    guest->before = guest->request;
    guest->request = frame.request;
    break;
  case GUEST_CREDIT:
    g_assert_cmpuint(frame.length, ==, 4);
    g_assert_cmpuint(guest_get_u32(payload), <=, GUEST_WINDOW);
    break;
  case GUEST_PING:
    guest->silent = guest->size == 0;
    break;
  default:
    g_assert_true(frame.kind == GUEST_DATA || frame.kind == GUEST_END ||
                  frame.kind == GUEST_CANCEL || frame.kind == GUEST_SIGNAL);
  }
}

static ssize_t channel_send(ByteChannel *channel, const void *data, size_t length) {
  Guest *guest = (Guest *)channel;
  if (guest->greeted && (guest->flags & FLAG_DEAF)) {
    errno = EAGAIN;
    return -1;
  }
  size_t part = guest->taken > 0 ? MIN(length, (size_t)guest->taken) : length;
  g_byte_array_append(guest->heard, data, (guint)part);
  while (guest->heard->len >= GUEST_HEADER) {
    struct guest_frame frame = guest_frame_unpack(guest->heard->data);
    g_assert_cmpuint(frame.length, <=, GUEST_MAX_FRAME);
    if (guest->heard->len < GUEST_HEADER + frame.length) {
      break;
    }
    hear_frame(guest, frame, guest->heard->data + GUEST_HEADER);
    g_byte_array_remove_range(guest->heard, 0, GUEST_HEADER + frame.length);
  }
  return (ssize_t)part;
}

static int channel_receive_fd(ByteChannel *channel) {
  Guest *guest = (Guest *)channel;
  return guest->silent ? guest->never : guest->ready;
}

static int channel_send_fd(ByteChannel *channel) {
  Guest *guest = (Guest *)channel;
  return guest->flags & FLAG_DEAF ? guest->never : guest->ready;
}

static void channel_free(ByteChannel *channel) {
  (void)channel; /* it is on the stack */
}

/* ---- The caller ------------------------------------------------------------------------------ */

typedef struct {
  struct sandhost_call call;
  GuestClient *client; /* borrowed */
  int ready;           /* of the guest */
  uint8_t flags;
  unsigned asked;    /* for input */
  uint64_t bytes[3]; /* by stream; [0] of a file or tar */
  uint64_t entries;
  int started;
  size_t given;
  unsigned char sum; /* so that every byte is read */
} Caller;

static int32_t got(Caller *caller, uint32_t stream, const void *data, size_t length) {
  const unsigned char *bytes = data;
  g_assert_cmpuint(length, >, 0);
  for (size_t i = 0; i < length; i++) {
    caller->sum ^= bytes[i];
  }
  caller->bytes[stream] += length;
  caller->call.cancelled |= (caller->flags & FLAG_CANCEL) != 0;
  return caller->flags & FLAG_STOP && caller->bytes[stream] > 3 ? SANDHOST_LIMIT : SANDHOST_OK;
}

static int32_t sink_write(void *user, const void *data, size_t length) {
  return got(user, 0, data, length);
}

static int32_t observe_output(void *user, uint32_t stream, const void *data, size_t length) {
  g_assert_true(stream == SANDHOST_STDOUT || stream == SANDHOST_STDERR);
  return got(user, stream, data, length);
}

static void observe_started(void *user, uint64_t execution) {
  Caller *caller = user;
  g_assert_cmpuint(execution, !=, 0);
  g_assert_cmpint(caller->started++, ==, 0);
  if (caller->flags & FLAG_SIGNAL) {
    struct sandhost_call call = {.deadline = INT64_MAX};
    g_assert_cmpint(guest_client_signal(caller->client, &call, execution, 15), ==, call.status);
    g_assert_cmpint(guest_client_signal(caller->client, &call, execution + 1, 15), !=, SANDHOST_OK);
  }
}

static int64_t source_read(void *user, void *buffer, size_t length) {
  Caller *caller = user;
  size_t part = MIN(length, 5000 - caller->given);
  memset(buffer, 'y', part);
  caller->given += part;
  return (int64_t)part;
}

/* There is input every other time. */
static int64_t observe_input(void *user, void *buffer, size_t length) {
  Caller *caller = user;
  return caller->asked++ % 2 ? source_read(user, buffer, MIN(length, (size_t)999)) : -1;
}

static int32_t observe_input_fd(void *user) {
  return ((Caller *)user)->ready;
}

/* A path below the root: no component is empty, . or .. */
static void check_path(const char *path) {
  g_auto(GStrv) components = g_strsplit(path, "/", -1);
  for (char **component = components; *component; component++) {
    g_assert_cmpstr(*component, !=, "");
    g_assert_cmpstr(*component, !=, ".");
    g_assert_cmpstr(*component, !=, "..");
  }
}

static int32_t sink_entry(void *user, const struct sandhost_entry *entry) {
  Caller *caller = user;
  g_assert_cmpuint(++caller->entries, <=, MAX_ENTRIES);
  g_assert_cmpuint(strlen(entry->path.data), ==, entry->path.length);
  g_assert_true(entry->path.length > 0 && entry->path.length < PATH_MAX);
  check_path(entry->path.data);
  g_assert_true(entry->kind == SANDHOST_KIND_FILE || entry->kind == SANDHOST_KIND_CHECKOUT);
  g_assert_cmpuint(entry->mode & ~07777u, ==, 0);
  return caller->flags & FLAG_STOP ? SANDHOST_LIMIT : SANDHOST_OK;
}

static int32_t do_execute(GuestClient *client, Caller *caller) {
  const struct sandhost_text argv = {.data = "true", .length = 4};
  const struct sandhost_execute request = {
      .size = sizeof request,
      .argv = &argv,
      .argc = 1,
      .limit = caller->flags & FLAG_LIMIT ? MICROSECOND : 0,
      .max_output_bytes = MAX_OUTPUT,
      .flags = SANDHOST_EXECUTE_STDIN,
  };
  const struct sandhost_observer observer = {.size = sizeof observer,
                                             .user = caller,
                                             .started = observe_started,
                                             .output = observe_output,
                                             .input = observe_input,
                                             .input_fd = observe_input_fd};
  struct sandhost_result result = {.size = sizeof result};
  int32_t status = guest_client_execute(client, &caller->call, &request, &observer, &result);
  g_assert_cmpuint(caller->bytes[SANDHOST_STDOUT], <=, MAX_OUTPUT);
  g_assert_cmpuint(caller->bytes[SANDHOST_STDERR], <=, MAX_OUTPUT);
  g_assert_true(!caller->call.disowned ||
                (caller->bytes[SANDHOST_STDOUT] == 0 && caller->bytes[SANDHOST_STDERR] == 0));
  if (status == SANDHOST_OK) {
    g_assert_true(result.exit_code >= 0 && result.exit_code <= 255);
    g_assert_cmpuint(result.stdout_bytes, >=, caller->bytes[SANDHOST_STDOUT]);
    g_assert_cmpuint(result.stderr_bytes, >=, caller->bytes[SANDHOST_STDERR]);
    g_assert_true(result.duration >= 0 && result.user_time >= 0 && result.system_time >= 0);
  }
  return status;
}

static int32_t do_changes(GuestClient *client, Caller *caller) {
  static const struct sandhost_known known[] = {{.path = {.data = "a", .length = 1}},
                                                {.path = {.data = "b/c", .length = 3}}};
  const struct sandhost_changes request = {.size = sizeof request,
                                           .root = {.data = "/work", .length = 5},
                                           .known = known,
                                           .known_count = G_N_ELEMENTS(known),
                                           .max_entries = MAX_ENTRIES};
  const struct sandhost_entry_sink sink = {
      .size = sizeof sink, .user = caller, .entry = sink_entry};
  return guest_client_changes(client, &caller->call, &request, &sink);
}

static int32_t do_operation(GuestClient *client, Caller *caller, unsigned operation) {
  static const struct sandhost_path dir = {.data = "/work", .length = 5};
  static const struct sandhost_path path = {.data = "/work/a", .length = 7};
  static const struct sandhost_path names[] = {{.data = "a", .length = 1},
                                               {.data = "b/c", .length = 3}};
  const struct sandhost_sink sink = {.size = sizeof sink, .user = caller, .write = sink_write};
  const struct sandhost_source source = {
      .size = sizeof source, .user = caller, .read = source_read};
  const struct sandhost_probe probe = {
      .size = sizeof probe, .address = {.data = "127.0.0.1", .length = 9}, .port = 1};
  uint32_t verdict = SANDHOST_PROBE_REACHED;
  int32_t status;
  switch (operation % 7) {
  case 0:
    return do_execute(client, caller);
  case 1:
    return do_changes(client, caller);
  case 2:
    return guest_client_download(client, &caller->call, dir, names, G_N_ELEMENTS(names), &sink);
  case 3:
    return guest_client_read_file(client, &caller->call, path, &sink);
  case 4:
    return guest_client_write_file(client, &caller->call, path, 0644, &source);
  case 5:
    return guest_client_upload(client, &caller->call, dir, &source);
  default:
    status = guest_client_probe(client, &caller->call, &probe, &verdict);
    g_assert_true(verdict == SANDHOST_PROBE_REACHED || verdict == SANDHOST_PROBE_BLOCKED);
    return status;
  }
}

static Caller caller_new(const Guest *guest, GuestClient *client) {
  Caller caller = {.flags = guest->flags,
                   .call = {.deadline = INT64_MAX},
                   .client = client,
                   .ready = guest->ready};
  if (guest->flags & FLAG_DEADLINE) {
    caller.call.deadline = contract_now() + 300 * MICROSECOND;
  }
  return caller;
}

/* The status and the error of the call agree, and a lost client stays lost. */
static void check_call(GuestClient *client, const Caller *caller, int32_t status) {
  g_assert_cmpint(status, ==, caller->call.status);
  g_assert_true(status != SANDHOST_LOST || guest_client_lost_reason(client) != NULL);
  g_assert_true(status != SANDHOST_PROTOCOL || guest_client_lost_reason(client) != NULL);
  g_assert_true(!caller->call.disowned || status == SANDHOST_LOST);
}

static void run(Guest *guest, unsigned first) {
  g_autoptr(GuestClient) client = guest_client_new(&host, &guest->channel, "/work");
  client->timing = (struct guest_timing){.ping_after = 50 * MICROSECOND,
                                         .lost_after = 150 * MICROSECOND,
                                         .cancel_grace = 100 * MICROSECOND,
                                         .limit_grace = 100 * MICROSECOND};
  if (!(guest->flags & FLAG_SILENT)) {
    /* Then the end comes by itself, and a slow machine must not change what an input does. */
    client->timing.ping_after = 100000 * MICROSECOND;
    client->timing.lost_after = 3 * client->timing.ping_after;
    client->timing.cancel_grace = client->timing.lost_after;
  }
  Caller greeter = caller_new(guest, client);
  gboolean is_init;
  int32_t status = guest_client_greet(client, &greeter.call, &is_init);
  check_call(client, &greeter, status);
  /* No input can know the random bytes that a greeting has to give back. */
  g_assert_false((guest->flags & FLAG_RAW_GREETING) && status == SANDHOST_OK);
  for (unsigned i = 0; i < 7 && status == SANDHOST_OK; i++) {
    Caller caller = caller_new(guest, client);
    int32_t ended = do_operation(client, &caller, first + i);
    check_call(client, &caller, ended);
    if (guest_client_lost_reason(client)) {
      break;
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 4) {
    return 0;
  }
  Guest guest = {
      .channel = {.receive = channel_receive,
                  .send = channel_send,
                  .receive_fd = channel_receive_fd,
                  .send_fd = channel_send_fd,
                  .free = channel_free},
      .data = data + 4,
      .size = size - 4,
      .flags = data[0],
      .window = data[2],
      .taken = data[3],
      .ready = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK),
      .never = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
      .chunk = g_byte_array_new(),
      .heard = g_byte_array_new(),
  };
  g_assert_true(guest.ready >= 0 && guest.never >= 0);
  run(&guest, data[1]);
  close(guest.ready);
  close(guest.never);
  g_byte_array_unref(guest.chunk);
  g_byte_array_unref(guest.heard);
  return 0;
}
