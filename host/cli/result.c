/* SPDX-License-Identifier: Apache-2.0 */
/* result.c: a thread waits for the signal, which may come while the main thread waits for the sandbox's end. */
#include "cli/result.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "cli/cli.h"

void result_init(Result *result) {
  *result = (Result){.wake = {-1, -1}, .warnings = json_object_new_array()};
  pthread_mutex_init(&result->lock, NULL);
}

void result_warn(Result *result, const char *line) {
  pthread_mutex_lock(&result->lock);
  json_object_array_add(result->warnings, json_object_new_string(line));
  pthread_mutex_unlock(&result->lock);
}

static void print_once(Result *result) {
  pthread_mutex_lock(&result->lock);
  if (result->object) {
    if (json_object_array_length(result->warnings) > 0) {
      json_add_take(result->object, "warnings", json_object_get(result->warnings));
    }
    json_write_line(result->object, cli_put_stdout, NULL);
    g_clear_pointer(&result->object, json_object_put);
  }
  pthread_mutex_unlock(&result->lock);
}

static void *watch(void *data) {
  Result *result = data;
  struct pollfd ends[] = {{.fd = cancel_fd(result->cancel), .events = POLLIN},
                          {.fd = result->wake[0], .events = POLLIN}};
  while (poll(ends, G_N_ELEMENTS(ends), -1) < 0 && errno == EINTR) {
  }
  if (cancel_raised(result->cancel)) {
    print_once(result);
  }
  return NULL;
}

void result_hold(Result *result, JsonObject *take_object, Cancel *cancel) {
  result->object = take_object; /* warnings come from other threads, but nobody prints yet */
  result->cancel = cancel;
  if (cancel_raised(cancel)) {
    print_once(result);
    return;
  }
  if (pipe2(result->wake, O_CLOEXEC) == 0 &&
      pthread_create(&result->watch, NULL, watch, result) != 0) {
    close(result->wake[0]);
    close(result->wake[1]);
    result->wake[0] = -1;
  }
}

void result_print(Result *result) {
  if (result->wake[0] >= 0) {
    close(result->wake[1]); /* the other end becomes readable */
    pthread_join(result->watch, NULL);
    close(result->wake[0]);
    result->wake[0] = -1;
  }
  print_once(result);
}

void result_clear(Result *result) {
  g_clear_pointer(&result->object, json_object_put);
  g_clear_pointer(&result->warnings, json_object_put);
  pthread_mutex_destroy(&result->lock);
}
