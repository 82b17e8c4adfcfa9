/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-guest-files.c: bytes as what a host asks of a guest's files, and as what commands do to them meanwhile. Nothing
 * outside the folder changes or is told, no descriptor stays open, every request ends once, and what it says is so.
 *
 * The guest's own code runs, its worker included, but in this thread: where a worker would wait, what it may wait for
 * happens, and a wait for nothing at all is a failure.
 *
 * An input is two bytes, then records of {kind u8, detail u8, length u16, body}; see enum kind. The first byte: in which
 * pieces bodies arrive (low four bits), BIT_*; the second: at which wait a request is cancelled (255: at none). */
#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "guest-files-check.h"
#include "guest.h"
#include "scratch.h"
#include "tar-sums.h"
#include "worker.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's */

static int fuzz_thread(pthread_t *ret_thread, const pthread_attr_t *attributes,
                       void *(*begin)(void *), void *data);
static int fuzz_wait(pthread_cond_t *changed, pthread_mutex_t *mutex);
static long fuzz_syscall(long number, ...);
ssize_t worker_read_all(struct worker *worker, void *bytes, size_t room);

/* So small that inputs pass it; and memory of its true size is slow to come by here. */
#undef GUEST_WINDOW
#define GUEST_WINDOW 2048u

#define pthread_create fuzz_thread
#define pthread_cond_wait fuzz_wait
#define worker_read worker_read_all
#include "../../sdk/guest/worker.c"
#undef pthread_create
#undef pthread_cond_wait
#undef worker_read
#undef PIECE
#define syscall fuzz_syscall
#include "../../sdk/guest/beneath.c"
#undef syscall

#define BITS_PIECE 0x0fu
#define BIT_NO_OPENAT2 0x10u /* as where the kernel, or a filter, has none */
#define BIT_FEW_CREDITS 0x20u
#define BIT_NO_ROOM 0x40u /* the stream is full at first */
#define BIT_COMMANDS 0x80u
#define NO_CANCEL 255u
#define ID 1u
#define READ_ROOM 700u /* of the operations, in place of more than a window */
#define MOST_WAITS 100000u
#define MOST_MEMORY ((size_t)32 << 20) /* of one allocation */
#define ROOT "/work"

enum kind {
  KIND_UPLOAD,    /* body: a tar stream */
  KIND_DOWNLOAD,  /* body: names, each ended by NUL */
  KIND_CHANGES,   /* detail: limits; body: what is known */
  KIND_READ,      /* body: the path */
  KIND_WRITE,     /* detail: the mode; body: the path, NUL, the content */
  KIND_RAW,       /* detail: the operation; body: the parameters behind the root */
  KIND_ACT,       /* body: three bytes for scratch_act, each */
  KIND_MEANWHILE, /* the same, one of them at each wait of the next request */
  KINDS,
};

pthread_mutex_t guest_lock = PTHREAD_MUTEX_INITIALIZER;
int guest_is_init;

/* ---- One request ------------------------------------------------------------------------------- */

struct asked {
  const uint8_t *input;
  size_t left;
  size_t window; /* of it, so much may be sent */
  int sends;     /* its END is still to come */
  GByteArray *output;
  int64_t granted;
  unsigned waits;
  unsigned reads;
  unsigned done;
  int32_t status;
};

static struct asked asked;
static uint8_t bits;
static uint8_t cancel_at;
static size_t piece;
static int has_room;
static int disturbed; /* something else has changed files while a request ran */
static const uint8_t *actions;
static size_t action_bytes;
static void *(*thread_begin)(void *);
static void *thread_data;

static int fuzz_thread(pthread_t *ret_thread, const pthread_attr_t *attributes,
                       void *(*begin)(void *), void *data) {
  (void)ret_thread;
  (void)attributes;
  check(!thread_begin);
  thread_begin = begin;
  thread_data = data;
  return 0;
}

static long fuzz_syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  int folder = va_arg(arguments, int);
  const char *path = va_arg(arguments, const char *);
  void *how = va_arg(arguments, void *);
  size_t length = va_arg(arguments, size_t);
  va_end(arguments);
  check(number == SYS_openat2);
  if (bits & BIT_NO_OPENAT2) {
    errno = ENOSYS;
    return -1;
  }
  return syscall(number, folder, path, how, length);
}

static int act_next(void) {
  if (action_bytes < 3) {
    return 0;
  }
  scratch_act(actions[0], actions[1], actions[2]);
  actions += 3;
  action_bytes -= 3;
  disturbed = 1;
  return 1;
}

/* 0: there is none, or no window for it. */
static int feed(struct request *request) {
  size_t part = MIN(MIN(asked.left, asked.window), piece);
  if (part > 0) {
    request->data(request, asked.input, part);
    asked.input += part;
    asked.left -= part;
    asked.window -= part;
  }
  return part > 0;
}

/* What the operations call: now and then more has come before they read what is there. */
ssize_t worker_read(struct worker *worker, void *bytes, size_t room) {
  pthread_mutex_lock(&guest_lock);
  struct request *request = request_find(ID);
  if (++asked.reads % 2 == 0 && request) {
    (void)feed(request);
  }
  pthread_mutex_unlock(&guest_lock);
  return worker_read_all(worker, bytes, MIN(room, READ_ROOM));
}

/* Whatever the worker waits for, something of this has to come. */
static int fuzz_wait(pthread_cond_t *changed, pthread_mutex_t *mutex) {
  struct request *request = request_find(ID);
  (void)changed;
  check(mutex == &guest_lock && request && asked.done == 0);
  check(++asked.waits < MOST_WAITS);
  int acted = act_next();
  if (cancel_at != NO_CANCEL && asked.waits > cancel_at) {
    request->cancel(request);
  } else if (!has_room) {
    has_room = 1;
    request_wake_all();
  } else if (feed(request)) {
    (void)feed(request);
  } else if (asked.sends && asked.left == 0) {
    asked.sends = 0;
    request->end(request);
  } else if (request->credit <= 0) {
    asked.granted += 64;
    request->credit += 64;
    request->credited(request);
  } else {
    check(acted);
  }
  return 0;
}

/* ---- What the operations call ------------------------------------------------------------------ */

void stream_send(uint8_t kind, uint8_t channel, uint32_t request, const void *payload,
                 size_t length) {
  check(kind == GUEST_DATA && channel == GUEST_OUT && request == ID && asked.done == 0);
  check(has_room && length > 0 && length <= GUEST_MAX_FRAME);
  asked.granted -= (int64_t)length;
  check(asked.granted >= 0);
  g_byte_array_append(asked.output, payload, (guint)length);
}

void stream_done(uint32_t request, int32_t status, const char *message, const void *results,
                 size_t length) {
  check(request == ID && ++asked.done == 1);
  check(!results && length == 0);
  check(status == SANDHOST_OK || (message && *message));
  check(!message ||
        (strlen(message) <= GUEST_MAX_MESSAGE && !scratch_is_told(message, strlen(message))));
  asked.status = status;
}

void stream_credit(uint32_t request, size_t bytes) {
  check(request == ID && bytes > 0);
  asked.window += bytes;
  check(asked.window <= GUEST_WINDOW);
}

int stream_has_room(void) {
  return has_room;
}

int command_any_alive(void) {
  return (bits & BIT_COMMANDS) != 0;
}

uint64_t command_count(void) {
  return 0;
}

/* Named by the table of operations, never opened. */
void command_open(uint32_t id, struct guest_reader *parameters) {
  (void)id;
  (void)parameters;
  abort();
}

void probe_connect(struct worker *worker, struct guest_reader *parameters) {
  (void)worker;
  (void)parameters;
  abort();
}

/* Runs one to its end. The output is asked.output until the next one. */
static int32_t ask(uint8_t operation, GByteArray *parameters, const uint8_t *input, size_t length) {
  g_byte_array_set_size(asked.output, 0);
  asked = (struct asked){.input = input,
                         .window = GUEST_WINDOW,
                         .sends = takes_input(operation),
                         .output = asked.output,
                         .granted = bits & BIT_FEW_CREDITS ? 64 : GUEST_WINDOW};
  asked.left = asked.sends ? length : 0;
  has_room = !(bits & BIT_NO_ROOM);
  disturbed = 0;
  thread_begin = NULL;
  pthread_mutex_lock(&guest_lock);
  guest_open(ID, operation, parameters->data, parameters->len);
  struct request *request = request_find(ID);
  check(request && thread_begin);
  request->credit = asked.granted;
  pthread_mutex_unlock(&guest_lock);
  thread_begin(thread_data);
  check(asked.done == 1 && !request_find(ID));
  check(!scratch_is_told(asked.output->data, asked.output->len));
  return asked.status;
}

/* ---- Records ----------------------------------------------------------------------------------- */

static void put_bytes(GByteArray *to, const void *bytes, size_t length) {
  unsigned char count[4];
  guest_put_u32(count, (uint32_t)length);
  g_byte_array_append(to, count, sizeof count);
  g_byte_array_append(to, bytes, (guint)length);
}

static void put_u64(GByteArray *to, uint64_t value) {
  unsigned char bytes[8];
  guest_put_u64(bytes, value);
  g_byte_array_append(to, bytes, sizeof bytes);
}

static GByteArray *parameters_new(void) {
  GByteArray *parameters = g_byte_array_new();
  put_bytes(parameters, ROOT, strlen(ROOT));
  return parameters;
}

static void do_read(const uint8_t *body, size_t length) {
  g_autoptr(GByteArray) parameters = parameters_new();
  put_bytes(parameters, body, length);
  (void)ask(GUEST_READ_FILE, parameters, NULL, 0);
}

/* What was written is what is read. */
static void do_write(uint8_t detail, const uint8_t *body, size_t length) {
  const uint8_t *end = memchr(body, '\0', length);
  size_t path_length = end ? (size_t)(end - body) : length;
  const uint8_t *content = end ? end + 1 : body;
  size_t content_length = end ? length - path_length - 1 : length;
  unsigned char mode[4];
  g_autoptr(GByteArray) parameters = parameters_new();
  put_bytes(parameters, body, path_length);
  g_autoptr(GByteArray) again = g_byte_array_new();
  g_byte_array_append(again, parameters->data, parameters->len);
  guest_put_u32(mode, detail ? detail * 2u : 0644);
  g_byte_array_append(parameters, mode, sizeof mode);
  if (ask(GUEST_WRITE_FILE, parameters, content, content_length) == SANDHOST_OK && !disturbed) {
    const uint8_t cancels = cancel_at;
    cancel_at = NO_CANCEL;
    check(ask(GUEST_READ_FILE, again, NULL, 0) == SANDHOST_OK);
    check(asked.output->len == content_length &&
          (content_length == 0 || memcmp(asked.output->data, content, content_length) == 0));
    cancel_at = cancels;
  }
}

static void do_upload(const uint8_t *body, size_t length) {
  g_autoptr(GByteArray) parameters = parameters_new();
  if (ask(GUEST_UPLOAD, parameters, body, length) == SANDHOST_OK && !disturbed) {
    check_unpacked(body, length);
  }
}

static void do_download(const uint8_t *body, size_t length) {
  g_autoptr(GByteArray) parameters = parameters_new();
  if (ask(GUEST_DOWNLOAD, parameters, body, length) == SANDHOST_OK) {
    check_packed(asked.output, body, length, disturbed);
  }
}

static void do_changes(uint8_t detail, const uint8_t *body, size_t length) {
  const uint64_t max_hash = detail & 0x0fu;
  const uint64_t max_entries = detail >> 4;
  g_autoptr(GByteArray) parameters = parameters_new();
  put_u64(parameters, max_hash);
  put_u64(parameters, max_entries);
  int32_t status = ask(GUEST_CHANGES, parameters, body, length);
  check_listed(&(struct listed){.output = asked.output,
                                .known = body,
                                .known_length = length,
                                .max_hash = max_hash,
                                .max_entries = max_entries,
                                .is_whole = status == SANDHOST_OK,
                                .is_disturbed = disturbed});
}

static void do_raw(uint8_t detail, const uint8_t *body, size_t length) {
  static const uint8_t OPERATIONS[] = {GUEST_READ_FILE, GUEST_WRITE_FILE, GUEST_UPLOAD,
                                       GUEST_DOWNLOAD, GUEST_CHANGES};
  g_autoptr(GByteArray) parameters = parameters_new();
  g_byte_array_append(parameters, body, (guint)length);
  if (detail & 0x80u) { /* cut short, but never to an empty root, which means any file at all */
    g_byte_array_set_size(parameters, MIN(parameters->len, (guint)(detail & 7u) + 1));
  }
  (void)ask(OPERATIONS[detail % G_N_ELEMENTS(OPERATIONS)], parameters, body, length);
}

static void do_record(uint8_t kind, uint8_t detail, const uint8_t *body, size_t length) {
  switch (kind % KINDS) {
  case KIND_UPLOAD:
    do_upload(body, length);
    break;
  case KIND_DOWNLOAD:
    do_download(body, length);
    break;
  case KIND_CHANGES:
    do_changes(detail, body, length);
    break;
  case KIND_READ:
    do_read(body, length);
    break;
  case KIND_WRITE:
    do_write(detail, body, length);
    break;
  case KIND_RAW:
    do_raw(detail, body, length);
    break;
  case KIND_ACT:
    for (; length >= 3; body += 3, length -= 3) {
      scratch_act(body[0], body[1], body[2]);
    }
    break;
  default:
    actions = body;
    action_bytes = length;
  }
}

/* ---- One input --------------------------------------------------------------------------------- */

/* Called by the sanitizer for each allocation. */
extern int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *,
                                                                         size_t),
                                                     void (*free_hook)(const volatile void *));

static void hear_malloc(const volatile void *memory, size_t size) {
  (void)memory;
  check(size <= MOST_MEMORY);
}

static void hear_free(const volatile void *memory) {
  (void)memory;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  asked.output = g_byte_array_new();
  scratch_make();
  __sanitizer_install_malloc_and_free_hooks(hear_malloc, hear_free);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const size_t PIECES[] = {1,   2,   3,   7,   16,  31,   64,   100,
                                  255, 256, 511, 512, 513, 1000, 4096, SIZE_MAX};
  if (size < 2) {
    return 0;
  }
  bits = data[0];
  piece = PIECES[bits & BITS_PIECE];
  cancel_at = data[1];
  action_bytes = 0;
  scratch_enter();
  for (size_t at = 2; at + 4 <= size;) {
    size_t length = data[at + 2] | (size_t)data[at + 3] << 8;
    length = MIN(length, size - at - 4);
    /* In memory of its own, so that reading behind its end is seen. */
    g_autofree uint8_t *body = g_memdup2(data + at + 4, length);
    g_autofree uint8_t *none = body ? NULL : g_malloc(1);
    do_record(data[at], data[at + 1], body ? body : none, length);
    if (data[at] % KINDS == KIND_MEANWHILE) {
      actions = data + at + 4; /* they outlive the body */
    }
    at += 4 + length;
  }
  check_no_temporary(data, size);
  scratch_end();
  return 0;
}

/* The sums of what is uploaded are put right for three inputs of four. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  for (size_t at = 2; seed % 4 != 0 && at + 4 <= size;) {
    size_t length = data[at + 2] | (size_t)data[at + 3] << 8;
    length = MIN(length, size - at - 4);
    if (data[at] % KINDS == KIND_UPLOAD) {
      tar_sums_mend(data + at + 4, length);
    }
    at += 4 + length;
  }
  return size;
}
