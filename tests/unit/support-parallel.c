/* SPDX-License-Identifier: Apache-2.0 */
/* support-parallel.c: many requests of many threads over one stream, none of which holds up another. */
#include "fake-guest.h"

#define THREADS 8

/* ---- A guest that serves many at once --------------------------------------------------------- */

/* What it does with "say TEXT COUNT": TEXT, COUNT times, a little for everybody in turn. With "hang":
 * nothing until it is cancelled. With an upload: takes all. */
struct served {
  uint32_t request; /* 0: free */
  char *text;
  size_t left; /* times */
  size_t allowed;
  size_t sent;
  gboolean hangs;
};

struct server {
  int fd;
  struct served served[GUEST_MAX_REQUESTS];
};

static struct served *server_find(struct server *server, uint32_t request) {
  for (size_t i = 0; i < G_N_ELEMENTS(server->served); i++) {
    if (server->served[i].request == request) {
      return &server->served[i];
    }
  }
  return NULL;
}

static void server_open(struct server *server, const struct fake_frame *frame) {
  struct served *served = server_find(server, 0);
  g_assert_nonnull(served);
  g_assert_null(server_find(server, frame->header.request));
  g_assert_false(frame->header.flags & GUEST_MORE);
  *served =
      (struct served){.request = frame->header.request, .allowed = GUEST_WINDOW, .hangs = TRUE};
  if (frame->header.channel != GUEST_EXECUTE) {
    return;
  }
  struct guest_reader reader = {.data = frame->payload->data, .left = frame->payload->len};
  size_t length;
  (void)guest_read_raw(&reader, 20);
  (void)guest_read_bytes(&reader, &length);
  uint32_t argc = guest_read_u32(&reader);
  (void)guest_read_bytes(&reader, &length);
  if (argc == 3) {
    const char *text = guest_read_bytes(&reader, &length);
    served->text = g_strndup(text, length);
    const char *count = guest_read_bytes(&reader, &length);
    g_autofree char *number = g_strndup(count, length);
    served->left = (size_t)g_ascii_strtoull(number, NULL, 10);
    served->hangs = FALSE;
  }
  fake_send_u32(server->fd, GUEST_STARTED, served->request, 1);
}

static void server_finish(struct server *server, struct served *served, int32_t status) {
  if (status == SANDHOST_OK) {
    fake_send_ended(server->fd, served->request, SANDHOST_ENDED_EXIT, 0, 0, served->sent, 0);
  } else {
    fake_send_done(server->fd, served->request, status, "", NULL, 0);
  }
  g_free(served->text);
  *served = (struct served){0};
}

static void server_hear(struct server *server, const struct fake_frame *frame) {
  if (frame->header.kind == GUEST_OPEN) {
    server_open(server, frame);
    return;
  }
  struct served *served = server_find(server, frame->header.request);
  if (!served) {
    return; /* it crossed the DONE */
  }
  if (frame->header.kind == GUEST_CANCEL) {
    server_finish(server, served, SANDHOST_CANCELLED);
  } else if (frame->header.kind == GUEST_CREDIT) {
    served->allowed += guest_get_u32(frame->payload->data);
    g_assert_cmpuint(served->allowed, <=, GUEST_WINDOW);
  } else if (frame->header.kind == GUEST_DATA) {
    fake_send_u32(server->fd, GUEST_CREDIT, served->request, frame->header.length);
  } else if (frame->header.kind == GUEST_END) {
    fake_send_done(server->fd, served->request, SANDHOST_OK, "", NULL, 0);
    *served = (struct served){0};
  }
}

/* Says a little for each. TRUE: more could be said at once. */
static gboolean server_speak(struct server *server) {
  gboolean more = FALSE;
  for (size_t i = 0; i < G_N_ELEMENTS(server->served); i++) {
    struct served *served = &server->served[i];
    if (served->request == 0 || served->hangs) {
      continue;
    }
    g_autoptr(GString) said = g_string_new(NULL);
    size_t length = strlen(served->text);
    while (served->left > 0 && said->len + length <= MIN(served->allowed, (size_t)20000)) {
      g_string_append_len(said, served->text, (gssize)length);
      served->left--;
    }
    if (said->len > 0) {
      fake_send_data(server->fd, GUEST_OUT, served->request, said->str);
      served->allowed -= said->len;
      served->sent += said->len;
      more = TRUE;
    }
    if (served->left == 0) {
      server_finish(server, served, SANDHOST_OK);
    }
  }
  return more;
}

static void script_server(int fd, void *data) {
  (void)data;
  g_autofree struct server *server = g_new0(struct server, 1);
  server->fd = fd;
  gboolean more = FALSE;
  if (!fake_greet(fd)) {
    return;
  }
  for (;;) {
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    if (poll(&readable, 1, more ? 0 : -1) > 0) {
      struct fake_frame frame;
      if (!fake_receive(fd, &frame)) {
        break;
      }
      server_hear(server, &frame);
      fake_frame_clear(&frame);
    }
    more = server_speak(server);
  }
  for (size_t i = 0; i < G_N_ELEMENTS(server->served); i++) {
    g_free(server->served[i].text);
  }
}

/* ---- Helpers --------------------------------------------------------------------------------- */

/* Runs "say text count" and checks all of what comes back. */
static void say(GuestClient *client, const char *text, size_t count) {
  g_autofree char *number = g_strdup_printf("%zu", count);
  const char *const argv[] = {"say", text, number, NULL};
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_result result;
  fake_call_init(&call);
  fake_observed_init(&seen);
  g_assert_cmpint(fake_execute(client, &call, argv, &seen, &result), ==, SANDHOST_OK);
  g_assert_cmpint(seen.started, ==, 1);
  g_assert_cmpuint(seen.out->len, ==, strlen(text) * count);
  for (size_t i = 0; i < count; i++) {
    g_assert_true(memcmp(seen.out->str + i * strlen(text), text, strlen(text)) == 0);
  }
  g_assert_cmpuint(result.stdout_bytes, ==, seen.out->len);
  fake_observed_clear(&seen);
  fake_call_clear(&call);
}

struct worker {
  GuestClient *client;
  unsigned number;
  int repeats;
  size_t count;
};

static gpointer worker_main(gpointer data) {
  const struct worker *worker = data;
  for (int i = 0; i < worker->repeats; i++) {
    g_autofree char *text = g_strdup_printf("<%u:%d>", worker->number, i);
    say(worker->client, text, worker->count);
  }
  return NULL;
}

static void run_workers(GuestClient *client, int repeats, size_t count) {
  GThread *threads[THREADS];
  struct worker workers[THREADS];
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){client, i, repeats, count};
    threads[i] = g_thread_new("worker", worker_main, &workers[i]);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    g_thread_join(threads[i]);
  }
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void test_many_small(void) {
  struct fake_session session;
  fake_session_start(&session, script_server, NULL);
  run_workers(session.client, 200, 3);
  g_assert_null(guest_client_lost_reason(session.client));
  fake_session_end(&session);
}

static void test_many_large(void) {
  struct fake_session session;
  fake_session_start(&session, script_server, NULL);
  run_workers(session.client, 2, 500000);
  g_assert_null(guest_client_lost_reason(session.client));
  fake_session_end(&session);
}

static void wait_for_event(int fd) {
  uint64_t count;
  g_assert_cmpint(read(fd, &count, sizeof count), ==, sizeof count);
}

static void raise_event(int fd) {
  const uint64_t one = 1;
  g_assert_cmpint(write(fd, &one, sizeof one), ==, sizeof one);
}

struct blocked {
  GuestClient *client;
  int entered; /* eventfds */
  int release;
  gboolean held;
  size_t length;
};

static void blocked_init(struct blocked *blocked, GuestClient *client) {
  *blocked = (struct blocked){
      .client = client, .entered = eventfd(0, EFD_CLOEXEC), .release = eventfd(0, EFD_CLOEXEC)};
}

static void blocked_clear(struct blocked *blocked) {
  close(blocked->entered);
  close(blocked->release);
}

static void blocked_hold(struct blocked *blocked) {
  if (!blocked->held) {
    blocked->held = TRUE;
    raise_event(blocked->entered);
    wait_for_event(blocked->release);
  }
}

static int32_t blocked_output(void *user, uint32_t stream, const void *data, size_t length) {
  struct blocked *blocked = user;
  (void)stream;
  (void)data;
  blocked_hold(blocked);
  blocked->length += length;
  return SANDHOST_OK;
}

static gpointer blocked_execute(gpointer data) {
  struct blocked *blocked = data;
  struct sandhost_text argv[] = {fake_to_text("say"), fake_to_text("0123456789"),
                                 fake_to_text("400000")};
  struct sandhost_execute request = {.size = sizeof request, .argv = argv, .argc = 3};
  struct sandhost_observer observer = {
      .size = sizeof observer, .user = blocked, .output = blocked_output};
  struct sandhost_result result = {.size = sizeof result};
  struct sandhost_call call;
  fake_call_init(&call);
  g_assert_cmpint(guest_client_execute(blocked->client, &call, &request, &observer, &result), ==,
                  SANDHOST_OK);
  fake_call_clear(&call);
  return NULL;
}

/* A thread whose observer stands still leaves the stream to others, and has lost nothing after. */
static void test_blocked_observer(void) {
  struct fake_session session;
  struct blocked blocked;
  fake_session_start(&session, script_server, NULL);
  blocked_init(&blocked, session.client);
  GThread *thread = g_thread_new("blocked", blocked_execute, &blocked);
  wait_for_event(blocked.entered);
  run_workers(session.client, 5, 100000);
  raise_event(blocked.release);
  g_thread_join(thread);
  g_assert_cmpuint(blocked.length, ==, 4000000);
  blocked_clear(&blocked);
  fake_session_end(&session);
}

static int64_t blocked_read(void *user, void *buffer, size_t length) {
  struct blocked *blocked = user;
  blocked_hold(blocked);
  if (blocked->length >= 3000000) {
    return 0;
  }
  memset(buffer, 'u', length);
  blocked->length += length;
  return (int64_t)length;
}

static gpointer blocked_upload(gpointer data) {
  struct blocked *blocked = data;
  struct sandhost_source source = {.size = sizeof source, .user = blocked, .read = blocked_read};
  struct sandhost_call call;
  fake_call_init(&call);
  g_assert_cmpint(guest_client_upload(blocked->client, &call, fake_to_path("/workspace"), &source),
                  ==, SANDHOST_OK);
  fake_call_clear(&call);
  return NULL;
}

static void test_blocked_source(void) {
  struct fake_session session;
  struct blocked blocked;
  fake_session_start(&session, script_server, NULL);
  blocked_init(&blocked, session.client);
  GThread *thread = g_thread_new("blocked", blocked_upload, &blocked);
  wait_for_event(blocked.entered);
  run_workers(session.client, 20, 10);
  raise_event(blocked.release);
  run_workers(session.client, 20, 10);
  g_thread_join(thread);
  blocked_clear(&blocked);
  fake_session_end(&session);
}

struct hanging {
  GuestClient *client;
  struct sandhost_call call;
  int started; /* eventfd */
};

static void hanging_started(void *user, uint64_t execution) {
  struct hanging *hanging = user;
  (void)execution;
  raise_event(hanging->started);
}

static int32_t no_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)user;
  (void)stream;
  (void)data;
  (void)length;
  g_assert_not_reached();
}

static gpointer hang(gpointer data) {
  struct hanging *hanging = data;
  struct sandhost_text argument = fake_to_text("hang");
  struct sandhost_execute request = {.size = sizeof request, .argv = &argument, .argc = 1};
  struct sandhost_observer observer = {
      .size = sizeof observer, .user = hanging, .started = hanging_started, .output = no_output};
  struct sandhost_result result = {.size = sizeof result};
  return GINT_TO_POINTER(
      guest_client_execute(hanging->client, &hanging->call, &request, &observer, &result));
}

/* One thread reads, the other three wait for it; each is cancelled in turn, the reader among them. */
static void test_cancel_in_any_order(void) {
  for (unsigned first = 0; first < 4; first++) {
    struct fake_session session;
    struct hanging hanging[4];
    GThread *threads[4];
    fake_session_start(&session, script_server, NULL);
    for (unsigned i = 0; i < 4; i++) {
      hanging[i].client = session.client;
      hanging[i].started = eventfd(0, EFD_CLOEXEC);
      fake_call_init(&hanging[i].call);
      threads[i] = g_thread_new("hang", hang, &hanging[i]);
      wait_for_event(hanging[i].started);
    }
    for (unsigned i = 0; i < 4; i++) {
      unsigned next = (first + i) % 4;
      fake_call_cancel(&hanging[next].call);
      g_assert_cmpint(GPOINTER_TO_INT(g_thread_join(threads[next])), ==, SANDHOST_CANCELLED);
      fake_call_clear(&hanging[next].call);
      close(hanging[next].started);
      say(session.client, "still there", 2);
    }
    fake_session_end(&session);
  }
}

/* Losing the client wakes all that wait. */
static void test_lose_wakes_all(void) {
  struct fake_session session;
  struct hanging hanging[4];
  GThread *threads[4];
  fake_session_start(&session, script_server, NULL);
  for (unsigned i = 0; i < 4; i++) {
    hanging[i].client = session.client;
    hanging[i].started = eventfd(0, EFD_CLOEXEC);
    fake_call_init(&hanging[i].call);
    threads[i] = g_thread_new("hang", hang, &hanging[i]);
    wait_for_event(hanging[i].started);
  }
  guest_client_lose(session.client, "it was killed by signal 9");
  for (unsigned i = 0; i < 4; i++) {
    g_assert_cmpint(GPOINTER_TO_INT(g_thread_join(threads[i])), ==, SANDHOST_LOST);
    g_assert_cmpstr(hanging[i].call.message, ==, "it was killed by signal 9");
    g_assert_cmpstr(hanging[i].call.reports[SANDHOST_REPORT_LOST], ==, "it was killed by signal 9");
    fake_call_clear(&hanging[i].call);
    close(hanging[i].started);
  }
  fake_session_end(&session);
}

/* Each level starts the next from its observer, until the guest may not be asked for more. */
struct level {
  GuestClient *client;
  struct sandhost_call call;
  unsigned depth;
  unsigned *deepest;
};

static void run_level(GuestClient *client, unsigned depth, unsigned *deepest);

static void level_started(void *user, uint64_t execution) {
  struct level *level = user;
  (void)execution;
  run_level(level->client, level->depth + 1, level->deepest);
  fake_call_cancel(&level->call);
}

static void run_level(GuestClient *client, unsigned depth, unsigned *deepest) {
  struct level level = {.client = client, .depth = depth, .deepest = deepest};
  struct sandhost_text argument = fake_to_text("hang");
  struct sandhost_execute request = {.size = sizeof request, .argv = &argument, .argc = 1};
  struct sandhost_observer observer = {
      .size = sizeof observer, .user = &level, .started = level_started, .output = no_output};
  struct sandhost_result result = {.size = sizeof result};
  fake_call_init(&level.call);
  int32_t status = guest_client_execute(client, &level.call, &request, &observer, &result);
  if (depth == GUEST_MAX_REQUESTS) {
    g_assert_cmpint(status, ==, SANDHOST_LIMIT);
    g_assert_cmpstr(level.call.message, ==, "more than 256 operations at once in one sandbox");
    *deepest = depth;
  } else {
    g_assert_cmpint(status, ==, SANDHOST_CANCELLED);
  }
  fake_call_clear(&level.call);
}

static void test_too_many(void) {
  unsigned deepest = 0;
  struct fake_session session;
  fake_session_start(&session, script_server, NULL);
  run_level(session.client, 0, &deepest);
  g_assert_cmpuint(deepest, ==, GUEST_MAX_REQUESTS);
  say(session.client, "still there", 2);
  fake_session_end(&session);
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/support/parallel/many-small", test_many_small);
  g_test_add_func("/support/parallel/many-large", test_many_large);
  g_test_add_func("/support/parallel/blocked-observer", test_blocked_observer);
  g_test_add_func("/support/parallel/blocked-source", test_blocked_source);
  g_test_add_func("/support/parallel/cancel-in-any-order", test_cancel_in_any_order);
  g_test_add_func("/support/parallel/lose-wakes-all", test_lose_wakes_all);
  g_test_add_func("/support/parallel/too-many", test_too_many);
  return g_test_run();
}
