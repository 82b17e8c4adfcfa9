/* SPDX-License-Identifier: Apache-2.0 */
/* docker-hand.c: the life of a container, and a command in it, as one asks the engine for them by hand. */
#include "docker-bench.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

gint64 by_hand_exec(const char *socket, Hand *hand, const char *container, const char *line,
                    gint64 bytes) {
  static const char START[] = "{\"Detach\":false,\"Tty\":false}";
  g_autofree char *wanted = g_strdup_printf(
      "{\"AttachStdout\":true,\"AttachStderr\":true,\"Cmd\":[\"sh\",\"-c\",\"%s\"]}", line);
  g_autofree char *path = g_strdup_printf("/containers/%s/exec", container);
  g_autofree char *made = NULL;
  g_autofree char *seen = NULL;
  gint64 from = clock_now();
  int status = hand_ask(hand, "POST", path, wanted, strlen(wanted), &made);
  g_autofree char *id = hand_text(made, "Id");
  if (status != 201 || !id) {
    return -1;
  }
  g_autofree char *start = g_strdup_printf("/exec/%s/start", id);
  g_autofree char *inspect = g_strdup_printf("/exec/%s/json", id);
  int stream = hand_stream(socket, start, START, strlen(START));
  if (stream < 0) {
    return -1;
  }
  gint64 seen_bytes = hand_drain(stream);
  status = hand_ask(hand, "GET", inspect, NULL, 0, &seen);
  gboolean ok =
      status == 200 && strstr(seen, "\"ExitCode\":0") && (bytes < 0 || seen_bytes >= bytes);
  return ok ? clock_now() - from : -1;
}

typedef struct {
  char *id;
  int stream;
} Container;

/* FALSE: there is none. */
static gboolean container_start(const Bench *bench, Container *container) {
  static guint number;
  g_autofree char *path = g_strdup_printf("/containers/create?name=sandhost-by-hand%u", number++);
  g_autofree char *made = NULL;
  int status = hand_ask(bench->hand, "POST", path, bench->create, strlen(bench->create), &made);
  container->id = hand_text(made, "Id");
  if (status != 201 || !container->id) {
    fprintf(stderr, "by hand: %s\n", made);
    g_clear_pointer(&container->id, g_free);
    return FALSE;
  }
  g_autofree char *attach =
      g_strdup_printf("/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1", container->id);
  g_autofree char *start = g_strdup_printf("/containers/%s/start", container->id);
  container->stream = hand_stream(bench->socket, attach, NULL, 0);
  status = hand_ask(bench->hand, "POST", start, NULL, 0, NULL);
  return container->stream >= 0 && status == 204;
}

/* The engine may have begun to remove it itself, as it ended: then until it is gone. */
static gboolean container_end(const Bench *bench, Container *container) {
  g_autofree char *removal = g_strdup_printf("/containers/%s?force=1&v=1", container->id);
  g_autofree char *look = g_strdup_printf("/containers/%s/json", container->id);
  int status = hand_ask(bench->hand, "DELETE", removal, NULL, 0, NULL);
  for (int seen = 200; status == 409 && seen == 200;) {
    seen = hand_ask(bench->hand, "GET", look, NULL, 0, NULL);
    status = seen == 404 ? 404 : status;
  }
  if (container->stream >= 0) {
    close(container->stream);
  }
  g_free(container->id);
  return status == 204 || status == 404;
}

gint64 by_hand_start(void *user) {
  Container container = {.stream = -1};
  docker_settle();
  gint64 from = clock_now();
  gboolean ok = container_start(user, &container);
  gint64 took = clock_now() - from;
  return container.id && container_end(user, &container) && ok ? took : -1;
}

gint64 by_hand_end(void *user) {
  Container container = {.stream = -1};
  gboolean ok = container_start(user, &container);
  docker_settle();
  gint64 from = clock_now();
  ok = container.id && container_end(user, &container) && ok;
  return ok ? clock_now() - from : -1;
}
