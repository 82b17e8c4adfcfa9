/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake-guest.h: a host that plugins can be called with, and a guest that does what a test says.
 *
 * The host is a table and a struct sandhost_call that keeps what it is told. The guest is a thread
 * that speaks raw frames over a socketpair: it can therefore break every rule.
 */
#ifndef SANDHOST_TESTS_FAKE_GUEST_H
#define SANDHOST_TESTS_FAKE_GUEST_H

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <sandhost/guest-protocol-private.h>
#include <sandhost/provider.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "guest-client.h"
#include "guest-connection.h"

#define FAKE_UNUSED __attribute__((unused))
#define FAKE_MILLISECOND ((int64_t)1000000)

/* To be called first in main. The thread sanitizer cannot see how GLib's slice allocator hands memory
 * from thread to thread and takes it for races; GLib can do without, but must know from the start. */
FAKE_UNUSED static void fake_main_begin(char **argv) {
#if defined(__SANITIZE_THREAD__)
  if (g_setenv("G_SLICE", "always-malloc", FALSE) && !g_getenv("FAKE_GUEST_AGAIN")) {
    g_setenv("FAKE_GUEST_AGAIN", "1", TRUE);
    execv("/proc/self/exe", argv);
  }
#else
  (void)argv;
#endif
}

/* ---- The host -------------------------------------------------------------------------------- */

struct sandhost_call {
  int64_t deadline;
  int cancel_fd;  /* owned, or -1 */
  int cancelled;  /* atomic */
  int32_t status; /* of the first failure; 0: none */
  char *message;
  char *reports[60];  /* by kind, those below 60 */
  GPtrArray *lowered; /* "kind text" of the others */
  GPtrArray *progress;
  char *service_code;
  int32_t may_have_happened;
};

FAKE_UNUSED static int64_t fake_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

FAKE_UNUSED static void fake_call_init(struct sandhost_call *call) {
  *call = (struct sandhost_call){.deadline = INT64_MAX,
                                 .cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  g_assert_cmpint(call->cancel_fd, >=, 0);
  call->lowered = g_ptr_array_new_with_free_func(g_free);
  call->progress = g_ptr_array_new_with_free_func(g_free);
}

FAKE_UNUSED static void fake_call_clear(struct sandhost_call *call) {
  if (call->cancel_fd >= 0) {
    close(call->cancel_fd);
  }
  for (size_t i = 0; i < G_N_ELEMENTS(call->reports); i++) {
    g_free(call->reports[i]);
  }
  g_free(call->message);
  g_free(call->service_code);
  g_ptr_array_unref(call->lowered);
  g_ptr_array_unref(call->progress);
}

/* From any thread. */
FAKE_UNUSED static void fake_call_cancel(struct sandhost_call *call) {
  const uint64_t one = 1;
  __atomic_store_n(&call->cancelled, 1, __ATOMIC_SEQ_CST);
  if (call->cancel_fd >= 0) {
    g_assert_cmpint(write(call->cancel_fd, &one, sizeof one), ==, sizeof one);
  }
}

FAKE_UNUSED static char *fake_text(struct sandhost_text text) {
  g_assert_true(g_utf8_validate_len(text.data, text.length, NULL));
  return g_strndup(text.data, text.length);
}

FAKE_UNUSED static int64_t fake_host_deadline(const struct sandhost_call *call) {
  return call->deadline;
}

FAKE_UNUSED static int32_t fake_host_cancelled(const struct sandhost_call *call) {
  return __atomic_load_n(&call->cancelled, __ATOMIC_SEQ_CST) || fake_now() >= call->deadline;
}

FAKE_UNUSED static int32_t fake_host_cancel_fd(const struct sandhost_call *call) {
  return call->cancel_fd;
}

FAKE_UNUSED static int32_t fake_host_wait(const struct sandhost_call *call, int32_t fd,
                                          int32_t events, int64_t duration) {
  int64_t now = fake_now();
  int64_t until = duration < 0 || duration > INT64_MAX - now ? INT64_MAX : now + duration;
  until = MIN(until, call->deadline);
  for (;;) {
    struct pollfd fds[] = {{.fd = fd, .events = (short)events},
                           {.fd = call->cancel_fd, .events = POLLIN}};
    now = fake_now();
    int64_t left = MAX(until - now, 0);
    struct timespec patience = {.tv_sec = (time_t)(left / 1000000000),
                                .tv_nsec = (long)(left % 1000000000)};
    int ready = ppoll(fds, 2, until == INT64_MAX ? NULL : &patience, NULL);
    if (fds[1].revents || __atomic_load_n(&call->cancelled, __ATOMIC_SEQ_CST)) {
      return SANDHOST_CANCELLED;
    }
    if (ready > 0 && fds[0].revents) {
      return SANDHOST_OK;
    }
    if (ready == 0) {
      return SANDHOST_TIMEOUT;
    }
  }
}

FAKE_UNUSED static int32_t fake_host_fail(struct sandhost_call *call, int32_t status,
                                          struct sandhost_text message) {
  if (call->status == 0) {
    call->status = status;
    call->message = fake_text(message);
  }
  return status;
}

FAKE_UNUSED static void fake_host_fail_details(struct sandhost_call *call,
                                               const struct sandhost_failure *details) {
  g_free(call->service_code);
  call->service_code = fake_text(details->service_code);
  call->may_have_happened = details->may_have_happened;
}

FAKE_UNUSED static void fake_host_report(struct sandhost_call *call, uint32_t kind,
                                         struct sandhost_text value) {
  char *text = fake_text(value);
  if (kind < G_N_ELEMENTS(call->reports)) {
    g_free(call->reports[kind]);
    call->reports[kind] = text;
  } else {
    g_ptr_array_add(call->lowered, g_strdup_printf("%u %s", kind, text));
    g_free(text);
  }
}

FAKE_UNUSED static void fake_host_progress(struct sandhost_call *call, struct sandhost_text line) {
  g_ptr_array_add(call->progress, fake_text(line));
}

FAKE_UNUSED static const struct sandhost_host fake_host = {
    .size = sizeof(struct sandhost_host),
    .minor = SANDHOST_ABI_MINOR,
    .version = {.data = "0.0.0-test", .length = 10},
    .deadline = fake_host_deadline,
    .cancelled = fake_host_cancelled,
    .cancel_fd = fake_host_cancel_fd,
    .wait = fake_host_wait,
    .fail = fake_host_fail,
    .fail_details = fake_host_fail_details,
    .report = fake_host_report,
    .progress = fake_host_progress,
};

/* ---- What a command did ---------------------------------------------------------------------- */

struct fake_observed {
  GString *out;
  GString *err;
  uint64_t execution;
  int started;
  int outputs; /* calls of output */
};

FAKE_UNUSED static void fake_observed_init(struct fake_observed *seen) {
  *seen = (struct fake_observed){.out = g_string_new(NULL), .err = g_string_new(NULL)};
}

FAKE_UNUSED static void fake_observed_clear(struct fake_observed *seen) {
  g_string_free(seen->out, TRUE);
  g_string_free(seen->err, TRUE);
}

FAKE_UNUSED static void fake_observe_started(void *user, uint64_t execution) {
  struct fake_observed *seen = user;
  seen->execution = execution;
  seen->started++;
}

FAKE_UNUSED static int32_t fake_observe_output(void *user, uint32_t stream, const void *data,
                                               size_t length) {
  struct fake_observed *seen = user;
  g_assert_cmpuint(length, >, 0);
  seen->outputs++;
  g_string_append_len(stream == SANDHOST_STDOUT ? seen->out : seen->err, data, (gssize)length);
  return SANDHOST_OK;
}

FAKE_UNUSED static struct sandhost_observer fake_observer(struct fake_observed *seen) {
  return (struct sandhost_observer){.size = sizeof(struct sandhost_observer),
                                    .user = seen,
                                    .started = fake_observe_started,
                                    .output = fake_observe_output};
}

FAKE_UNUSED static struct sandhost_text fake_to_text(const char *string) {
  return (struct sandhost_text){.data = string, .length = strlen(string)};
}

FAKE_UNUSED static struct sandhost_path fake_to_path(const char *string) {
  return (struct sandhost_path){.data = string, .length = strlen(string)};
}

/* ---- Raw frames ------------------------------------------------------------------------------ */

struct fake_frame {
  struct guest_frame header;
  GByteArray *payload; /* owned */
};

FAKE_UNUSED static void fake_frame_clear(struct fake_frame *frame) {
  g_clear_pointer(&frame->payload, g_byte_array_unref);
}

/* FALSE: the other side has closed. */
FAKE_UNUSED static gboolean fake_read_all(int fd, void *buffer, size_t length) {
  unsigned char *to = buffer;
  while (length > 0) {
    ssize_t count = recv(fd, to, length, MSG_WAITALL);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return FALSE;
    }
    to += count;
    length -= (size_t)count;
  }
  return TRUE;
}

/* Writes all, unless the other side has closed. */
FAKE_UNUSED static void fake_write_all(int fd, const void *data, size_t length) {
  const unsigned char *from = data;
  while (length > 0) {
    ssize_t count = send(fd, from, length, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return;
    }
    from += count;
    length -= (size_t)count;
  }
}

FAKE_UNUSED static gboolean fake_receive(int fd, struct fake_frame *ret_frame) {
  unsigned char header[GUEST_HEADER];
  if (!fake_read_all(fd, header, sizeof header)) {
    return FALSE;
  }
  ret_frame->header = guest_frame_unpack(header);
  g_assert_cmpuint(ret_frame->header.length, <=, GUEST_MAX_FRAME);
  ret_frame->payload = g_byte_array_set_size(g_byte_array_new(), ret_frame->header.length);
  if (!fake_read_all(fd, ret_frame->payload->data, ret_frame->header.length)) {
    fake_frame_clear(ret_frame);
    return FALSE;
  }
  return TRUE;
}

/* Receives a frame that must be of this kind; its payload is only checked for its length. */
FAKE_UNUSED static struct guest_frame fake_expect(int fd, uint8_t kind) {
  struct fake_frame frame;
  g_assert_true(fake_receive(fd, &frame));
  g_assert_cmpuint(frame.header.kind, ==, kind);
  fake_frame_clear(&frame);
  return frame.header;
}

/* Receives an OPEN in all its frames. */
FAKE_UNUSED static struct guest_frame fake_expect_open(int fd, GByteArray *parameters) {
  struct fake_frame frame;
  do {
    g_assert_true(fake_receive(fd, &frame));
    g_assert_cmpuint(frame.header.kind, ==, GUEST_OPEN);
    g_assert_cmpuint(frame.header.request, !=, 0);
    if (parameters) {
      g_byte_array_append(parameters, frame.payload->data, frame.payload->len);
    }
    fake_frame_clear(&frame);
  } while (frame.header.flags & GUEST_MORE);
  return frame.header;
}

/* Waits until the other side closes; what it says until then does not matter. */
FAKE_UNUSED static void fake_wait_for_end(int fd) {
  char buffer[65536];
  ssize_t count;
  do {
    count = recv(fd, buffer, sizeof buffer, 0);
  } while (count > 0 || (count < 0 && errno == EINTR));
}

FAKE_UNUSED static void fake_send(int fd, uint8_t kind, uint8_t channel, uint32_t request,
                                  const void *payload, size_t length) {
  g_autofree unsigned char *frame = g_malloc(GUEST_HEADER + length);
  guest_frame_pack(
      frame, (struct guest_frame){
                 .length = (uint32_t)length, .kind = kind, .channel = channel, .request = request});
  if (length > 0) {
    memcpy(frame + GUEST_HEADER, payload, length);
  }
  fake_write_all(fd, frame, GUEST_HEADER + length);
}

FAKE_UNUSED static void fake_send_u32(int fd, uint8_t kind, uint32_t request, uint32_t value) {
  unsigned char bytes[4];
  guest_put_u32(bytes, value);
  fake_send(fd, kind, 0, request, bytes, sizeof bytes);
}

FAKE_UNUSED static void fake_send_data(int fd, uint8_t channel, uint32_t request,
                                       const char *text) {
  fake_send(fd, GUEST_DATA, channel, request, text, strlen(text));
}

FAKE_UNUSED static void fake_send_done(int fd, uint32_t request, int32_t status,
                                       const char *message, const void *results, size_t length) {
  GByteArray *payload = g_byte_array_new();
  unsigned char number[4];
  guest_put_u32(number, (uint32_t)status);
  g_byte_array_append(payload, number, 4);
  guest_put_u32(number, (uint32_t)strlen(message));
  g_byte_array_append(payload, number, 4);
  g_byte_array_append(payload, (const guint8 *)message, (guint)strlen(message));
  if (length > 0) {
    g_byte_array_append(payload, results, (guint)length);
  }
  fake_send(fd, GUEST_DONE, 0, request, payload->data, payload->len);
  g_byte_array_unref(payload);
}

/* The DONE of a command. */
FAKE_UNUSED static void fake_send_ended(int fd, uint32_t request, uint32_t ended, int32_t exit_code,
                                        int32_t signal, uint64_t out, uint64_t err) {
  unsigned char results[60] = {0};
  guest_put_u32(results, ended);
  guest_put_u32(results + 4, (uint32_t)exit_code);
  guest_put_u32(results + 8, (uint32_t)signal);
  guest_put_u64(results + 12, out);
  guest_put_u64(results + 20, err);
  guest_put_u64(results + 28, 1000);
  guest_put_u64(results + 36, 200);
  guest_put_u64(results + 44, 100);
  guest_put_u64(results + 52, 4096);
  fake_send_done(fd, request, SANDHOST_OK, "", results, sizeof results);
}

/* Answers the greeting with these values. FALSE: there was none. */
FAKE_UNUSED static gboolean fake_greet_as(int fd, uint32_t magic, uint32_t version, uint8_t spoil,
                                          uint32_t flags) {
  struct fake_frame frame;
  if (!fake_receive(fd, &frame)) {
    return FALSE;
  }
  g_assert_cmpuint(frame.header.kind, ==, GUEST_HELLO);
  g_assert_cmpuint(frame.payload->len, ==, 8 + GUEST_NONCE);
  g_assert_cmpuint(guest_get_u32(frame.payload->data), ==, GUEST_MAGIC);
  g_assert_cmpuint(guest_get_u32(frame.payload->data + 4), ==, GUEST_VERSION);
  unsigned char hello[8 + GUEST_NONCE + 12];
  guest_put_u32(hello, magic);
  guest_put_u32(hello + 4, version);
  memcpy(hello + 8, frame.payload->data + 8, GUEST_NONCE);
  hello[8] ^= spoil;
  guest_put_u32(hello + 24, flags);
  guest_put_u32(hello + 28, 1);
  guest_put_u32(hello + 32, GUEST_WINDOW);
  fake_frame_clear(&frame);
  fake_send(fd, GUEST_HELLO, 0, 0, hello, sizeof hello);
  return TRUE;
}

FAKE_UNUSED static gboolean fake_greet(int fd) {
  return fake_greet_as(fd, GUEST_MAGIC, GUEST_VERSION, 0, GUEST_IS_INIT);
}

/* ---- A client with a scripted guest ---------------------------------------------------------- */

/* What the guest does; its descriptor is closed behind it. */
typedef void (*fake_script)(int fd, void *data);

struct fake_session {
  GuestClient *client;
  GThread *thread;
  fake_script script;
  void *data;
  int fd;
};

FAKE_UNUSED static gpointer fake_session_main(gpointer data) {
  struct fake_session *session = data;
  session->script(session->fd, session->data);
  close(session->fd);
  return NULL;
}

/* Starts both; not greeted yet. The working directory is /workspace. */
FAKE_UNUSED static void fake_session_begin(struct fake_session *session, fake_script script,
                                           void *data) {
  int fds[2];
  g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
  *session = (struct fake_session){.script = script, .data = data, .fd = fds[1]};
  session->client =
      guest_client_new(&fake_host, byte_channel_for_fds(fds[0], fds[0]), "/workspace");
  session->thread = g_thread_new("guest", fake_session_main, session);
}

/* And greets. */
FAKE_UNUSED static void fake_session_start(struct fake_session *session, fake_script script,
                                           void *data) {
  struct sandhost_call call;
  fake_session_begin(session, script, data);
  fake_call_init(&call);
  g_assert_cmpint(guest_client_greet(session->client, &call, NULL), ==, SANDHOST_OK);
  fake_call_clear(&call);
}

FAKE_UNUSED static void fake_session_end(struct fake_session *session) {
  guest_client_free(session->client);
  g_thread_join(session->thread);
}

/* Runs argv, a NULL-terminated list. *ret_result is zeroed before. */
FAKE_UNUSED static int32_t fake_execute(GuestClient *client, struct sandhost_call *call,
                                        const char *const argv[], struct fake_observed *seen,
                                        struct sandhost_result *ret_result) {
  struct sandhost_text arguments[16];
  size_t count = 0;
  for (; argv[count]; count++) {
    g_assert_cmpuint(count, <, G_N_ELEMENTS(arguments));
    arguments[count] = fake_to_text(argv[count]);
  }
  struct sandhost_execute request = {.size = sizeof request, .argv = arguments, .argc = count};
  struct sandhost_observer observer = fake_observer(seen);
  *ret_result = (struct sandhost_result){.size = sizeof *ret_result};
  return guest_client_execute(client, call, &request, &observer, ret_result);
}

#endif
