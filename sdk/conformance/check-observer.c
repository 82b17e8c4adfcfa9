/* SPDX-License-Identifier: Apache-2.0 */
/* check-observer.c: in which thread an observer is called. */
#include <string.h>

#include "suite.h"

typedef struct {
  GThread *own; /* that of the execute call */
  const char *
      foreign; /* what was called from another one; NULL: nothing. A pointer, so a foreign thread may set it */
  const char *input;
} Watched;

static void look(Watched *watched, const char *function) {
  if (g_thread_self() != watched->own) {
    __atomic_store_n(&watched->foreign, function, __ATOMIC_SEQ_CST);
  }
}

static void on_started(void *user, uint64_t execution) {
  (void)execution;
  look(user, "started");
}

static int32_t on_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)stream;
  (void)data;
  (void)length;
  look(user, "output");
  return SANDHOST_OK;
}

static int64_t on_input(void *user, void *buffer, size_t length) {
  Watched *watched = user;
  look(watched, "input");
  gsize take = MIN(strlen(watched->input), length);
  memcpy(buffer, watched->input, take);
  watched->input += take;
  return (int64_t)take;
}

static int32_t on_input_fd(void *user) {
  look(user, "input_fd");
  return -1;
}

static void check_thread(Subject *subject, Verdict *verdict) {
  const struct sandhost_text argv[] = {as_text("sh"), as_text("-c"),
                                       as_text("cat; echo err >&2; sleep 0.1; echo end")};
  const struct sandhost_execute request = {.size = sizeof request,
                                           .argv = argv,
                                           .argc = G_N_ELEMENTS(argv),
                                           .flags = SANDHOST_EXECUTE_STDIN};
  Watched watched = {.own = g_thread_self(), .input = "some input\n"};
  const struct sandhost_observer observer = {.size = sizeof observer,
                                             .user = &watched,
                                             .started = on_started,
                                             .output = on_output,
                                             .input = on_input,
                                             .input_fd = on_input_fd};
  struct sandhost_result result = {.size = sizeof result};
  struct sandhost_call call;
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  call_init(&call, 60);
  gint32 status = subject->table->execute(&call, box.handle, &request, &observer, &result);
  const char *foreign = __atomic_load_n(&watched.foreign, __ATOMIC_SEQ_CST);
  if (status != SANDHOST_OK) {
    wrong(verdict, "execute failed with %s: %s", status_name(status),
          call.message ? call.message : "no message");
  } else if (foreign) {
    wrong(verdict, "the observer's %s was called from another thread than that of the execute",
          foreign);
  }
  call_clear(&call);
  box_close(&box, verdict);
}

const Check OBSERVER_CHECKS[] = {
    {"execute: its thread", "an observer is called from the thread of the execute call only",
     check_thread},
    {0},
};
