/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake-http.h: an HTTP peer that says exactly what a test wants, byte by byte.
 *
 * It listens on a unix socket in a fresh folder. Each connection gets a thread, which runs the test's script with
 * the number of the connection, beginning with 0. It can therefore break every rule.
 */
#ifndef SANDHOST_TESTS_FAKE_HTTP_H
#define SANDHOST_TESTS_FAKE_HTTP_H

#include "fake-guest.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

#define FAKE_SECOND ((int64_t)1000000000)

typedef struct FakeHttp FakeHttp;
typedef void (*fake_http_script)(FakeHttp *http, int fd, int number);

struct FakeHttp {
  char *folder;
  char *path;
  int listen_fd;
  int stop[2]; /* a pipe: its end tells the scripts to end */
  fake_http_script script;
  void *data; /* the test's */
  GThread *thread;
  GPtrArray *workers; /* of GThread *; of the thread alone */
  int connections;    /* atomic */
  int closed;         /* atomic: how many of them have ended */
  int requests;       /* atomic: read as a whole by fake_http_read */
};

struct fake_http_worker {
  FakeHttp *http;
  int fd;
  int number;
};

FAKE_UNUSED static gpointer fake_http_work(gpointer data) {
  struct fake_http_worker *worker = data;
  worker->http->script(worker->http, worker->fd, worker->number);
  close(worker->fd);
  __atomic_fetch_add(&worker->http->closed, 1, __ATOMIC_SEQ_CST);
  g_free(worker);
  return NULL;
}

FAKE_UNUSED static gpointer fake_http_accept(gpointer data) {
  FakeHttp *http = data;
  for (;;) {
    struct pollfd fds[] = {{.fd = http->listen_fd, .events = POLLIN},
                           {.fd = http->stop[0], .events = POLLIN}};
    if (poll(fds, 2, -1) < 0 && errno == EINTR) {
      continue;
    }
    if (fds[1].revents) {
      return NULL;
    }
    /* cppcheck-suppress nullPointer; accept4(2) takes none where nobody asks who it is */
    int fd = accept4(http->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
      continue;
    }
    struct fake_http_worker *worker = g_new0(struct fake_http_worker, 1);
    worker->http = http;
    worker->fd = fd;
    worker->number = __atomic_fetch_add(&http->connections, 1, __ATOMIC_SEQ_CST);
    g_ptr_array_add(http->workers, g_thread_new("connection", fake_http_work, worker));
  }
}

FAKE_UNUSED static int fake_http_listen(const char *path, int backlog) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  g_assert_cmpuint(strlen(path), <, sizeof address.sun_path);
  memcpy(address.sun_path, path, strlen(path));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint(fd, >=, 0);
  g_assert_cmpint(bind(fd, (const struct sockaddr *)&address, sizeof address), ==, 0);
  g_assert_cmpint(listen(fd, backlog), ==, 0);
  return fd;
}

FAKE_UNUSED static FakeHttp *fake_http_start(fake_http_script script, void *data) {
  FakeHttp *http = g_new0(FakeHttp, 1);
  http->script = script;
  http->data = data;
  http->folder = g_dir_make_tmp("sandhost-http-XXXXXX", NULL);
  g_assert_nonnull(http->folder);
  http->path = g_build_filename(http->folder, "engine.sock", NULL);
  http->listen_fd = fake_http_listen(http->path, 64);
  g_assert_cmpint(pipe2(http->stop, O_CLOEXEC), ==, 0);
  http->workers = g_ptr_array_new();
  http->thread = g_thread_new("peer", fake_http_accept, http);
  return http;
}

FAKE_UNUSED static void fake_http_end(FakeHttp *take_http) {
  close(take_http->stop[1]);
  g_thread_join(take_http->thread);
  for (guint i = 0; i < take_http->workers->len; i++) {
    g_thread_join(g_ptr_array_index(take_http->workers, i));
  }
  g_ptr_array_unref(take_http->workers);
  close(take_http->stop[0]);
  close(take_http->listen_fd);
  g_unlink(take_http->path);
  g_rmdir(take_http->folder);
  g_free(take_http->path);
  g_free(take_http->folder);
  g_free(take_http);
}

/* One of the counters. */
FAKE_UNUSED static int fake_http_count(const int *counter) {
  return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

/* ---- What scripts do ------------------------------------------------------------------------- */

/* Until there is something to read. FALSE: the test is over. */
FAKE_UNUSED static gboolean fake_http_wait(FakeHttp *http, int fd, int milliseconds) {
  struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = http->stop[0], .events = POLLIN}};
  while (poll(fds, 2, milliseconds) < 0 && errno == EINTR) {
  }
  return fds[1].revents == 0;
}

/* The next request: its header and its body where that has a length, as one text (owned); NULL: there is none. */
FAKE_UNUSED static char *fake_http_read(FakeHttp *http, int fd) {
  g_autoptr(GString) text = g_string_new(NULL);
  for (;;) {
    char byte;
    if (!fake_http_wait(http, fd, -1) || recv(fd, &byte, 1, 0) <= 0) {
      return NULL;
    }
    g_string_append_c(text, byte);
    if (text->len >= 4 && strcmp(text->str + text->len - 4, "\r\n\r\n") == 0) {
      break;
    }
  }
  const char *length = strstr(text->str, "Content-Length: ");
  if (length) {
    gsize count = (gsize)g_ascii_strtoull(length + 16, NULL, 10);
    gsize start = text->len;
    g_string_set_size(text, start + count);
    if (!fake_read_all(fd, text->str + start, count)) {
      return NULL;
    }
  }
  __atomic_fetch_add(&http->requests, 1, __ATOMIC_SEQ_CST);
  return g_string_free(g_steal_pointer(&text), FALSE);
}

/* The same, without looking at it. */
FAKE_UNUSED static gboolean fake_http_skip(FakeHttp *http, int fd) {
  g_autofree char *text = fake_http_read(http, fd);
  return text != NULL;
}

FAKE_UNUSED static void fake_http_say(int fd, const char *text) {
  fake_write_all(fd, text, strlen(text));
}

FAKE_UNUSED static void fake_http_answer(int fd, const char *status, const char *body) {
  g_autofree char *text = g_strdup_printf(
      "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
      strlen(body), body);
  fake_http_say(fd, text);
}

/* Says nothing until the other side has closed, or the test is over. */
FAKE_UNUSED static void fake_http_keep_still(FakeHttp *http, int fd) {
  char buffer[4096];
  while (fake_http_wait(http, fd, -1) && recv(fd, buffer, sizeof buffer, 0) > 0) {
  }
}

/* Answers every request with 200 and "{}". */
FAKE_UNUSED static void fake_http_serve(FakeHttp *http, int fd, int number) {
  (void)number;
  while (fake_http_skip(http, fd)) {
    fake_http_answer(fd, "200 OK", "{}");
  }
}

/* ---- Cancelling from another thread ---------------------------------------------------------- */

struct fake_canceller {
  struct sandhost_call *call;
  int *flag; /* atomic: cancels once it is above 0 */
};

FAKE_UNUSED static gpointer fake_cancel_when(gpointer data) {
  struct fake_canceller *canceller = data;
  while (__atomic_load_n(canceller->flag, __ATOMIC_SEQ_CST) == 0) {
    g_usleep(1000);
  }
  fake_call_cancel(canceller->call);
  return NULL;
}

/* Removes a folder with all that is in it, and frees its path. */
FAKE_UNUSED static void fake_folder_remove(char *take_folder) {
  const char *const argv[] = {"rm", "-rf", "--", take_folder, NULL};
  g_assert_true(g_spawn_sync(NULL, (char **)(gsize)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                             NULL, NULL, NULL, NULL));
  g_free(take_folder);
}

#endif
