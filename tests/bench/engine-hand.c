/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine-hand.c: HTTP/1.1 over a kept unix socket, written straight down.
 *
 * It trusts the engine, which the benchmark started itself. Answers are read by their length, in chunks, or not at all
 * (204, 304).
 */
#include "engine-hand.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SMALL ((size_t)65536)

struct Hand {
  int fd;
  GByteArray *read; /* received and not yet taken */
};

static int open_socket(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || strlen(path) >= sizeof address.sun_path) {
    return -1;
  }
  memcpy(address.sun_path, path, strlen(path));
  if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
    close(fd);
    return -1;
  }
  return fd;
}

Hand *hand_new(const char *socket_path) {
  int fd = open_socket(socket_path);
  if (fd < 0) {
    return NULL;
  }
  Hand *hand = g_new0(Hand, 1);
  hand->fd = fd;
  hand->read = g_byte_array_new();
  return hand;
}

void hand_free(Hand *hand) {
  if (hand) {
    close(hand->fd);
    g_byte_array_unref(hand->read);
    g_free(hand);
  }
}

static gboolean send_all(int fd, const void *data, size_t length) {
  for (const char *at = data; length > 0;) {
    ssize_t count = send(fd, at, length, MSG_NOSIGNAL);
    if (count < 0) {
      return FALSE;
    }
    at += count;
    length -= (size_t)count;
  }
  return TRUE;
}

/* Reads more; FALSE at the end. */
static gboolean receive_more(Hand *hand) {
  guint8 buffer[65536];
  ssize_t count = read(hand->fd, buffer, sizeof buffer);
  if (count <= 0) {
    return FALSE;
  }
  g_byte_array_append(hand->read, buffer, (guint)count);
  return TRUE;
}

/* Everything up to and with the mark, taken; owned. NULL at the end. */
static char *take_until(Hand *hand, const char *mark) {
  for (;;) {
    const guint8 *found =
        hand->read->len ? memmem(hand->read->data, hand->read->len, mark, strlen(mark)) : NULL;
    if (found) {
      gsize length = (gsize)(found - hand->read->data) + strlen(mark);
      char *text = g_strndup((const char *)hand->read->data, length);
      g_byte_array_remove_range(hand->read, 0, (guint)length);
      return text;
    }
    if (!receive_more(hand)) {
      return NULL;
    }
  }
}

static gboolean take_bytes(Hand *hand, gsize length, GString *body) {
  while (hand->read->len < length) {
    if (!receive_more(hand)) {
      return FALSE;
    }
  }
  g_string_append_len(body, (const char *)hand->read->data, (gssize)length);
  if (length > 0) {
    g_byte_array_remove_range(hand->read, 0, (guint)length);
  }
  return TRUE;
}

static gboolean take_chunks(Hand *hand, GString *body) {
  for (;;) {
    g_autofree char *head = take_until(hand, "\r\n");
    if (!head) {
      return FALSE;
    }
    gsize length = (gsize)g_ascii_strtoull(head, NULL, 16);
    if (!take_bytes(hand, length, body)) {
      return FALSE;
    }
    g_autofree char *end = take_until(hand, "\r\n");
    if (!end || length == 0) {
      return end != NULL;
    }
  }
}

/* The value of a header in a head; NULL. Borrowed. */
static const char *header(const char *head, const char *name) {
  const char *found = strcasestr(head, name);
  return found ? found + strlen(name) : NULL;
}

static gboolean take_body(Hand *hand, int status, const char *head, GString *body) {
  const char *length = header(head, "\r\nContent-Length: ");
  if (status == 204 || status == 304) {
    return TRUE;
  }
  if (header(head, "\r\nTransfer-Encoding: chunked")) {
    return take_chunks(hand, body);
  }
  if (length) {
    return take_bytes(hand, (gsize)g_ascii_strtoull(length, NULL, 10), body);
  }
  while (receive_more(hand)) { /* up to the end of the connection */
  }
  return take_bytes(hand, hand->read->len, body);
}

static int status_of(const char *head) {
  return g_str_has_prefix(head, "HTTP/1.1 ") ? (int)g_ascii_strtoull(head + 9, NULL, 10) : -1;
}

/* The head and the body in one piece where it is small, as one packet is cheaper than two. */
static gboolean send_request(int fd, const char *method, const char *path, const char *headers,
                             const void *body, size_t length) {
  g_autoptr(GString) request = g_string_new(NULL);
  g_string_append_printf(request,
                         "%s /v1.41%s HTTP/1.1\r\nHost: docker\r\nContent-Length: %zu\r\n%s\r\n",
                         method, path, length, headers);
  if (length > 0 && length < SMALL) {
    g_string_append_len(request, body, (gssize)length);
    length = 0;
  }
  return send_all(fd, request->str, request->len) && send_all(fd, body, length);
}

static int ask(Hand *hand, const char *method, const char *path, const char *headers,
               const void *body, size_t length, char **ret_answer) {
  if (!send_request(hand->fd, method, path, headers, body, length)) {
    return -1;
  }
  g_autofree char *head = take_until(hand, "\r\n\r\n");
  g_autoptr(GString) answer = g_string_new(NULL);
  int status = head ? status_of(head) : -1;
  if (status < 0 || !take_body(hand, status, head, answer)) {
    return -1;
  }
  if (ret_answer) {
    *ret_answer = g_strdup(answer->str);
  }
  return status;
}

int hand_ask(Hand *hand, const char *method, const char *path, const void *body, size_t length,
             char **ret_answer) {
  return ask(hand, method, path, body ? "Content-Type: application/json\r\n" : "", body, length,
             ret_answer);
}

int hand_put(Hand *hand, const char *path, const void *tar, size_t length) {
  return ask(hand, "PUT", path, "Content-Type: application/x-tar\r\n", tar, length, NULL);
}

int hand_stream(const char *socket_path, const char *path, const void *body, size_t length) {
  g_autofree char *headers = g_strdup_printf("Connection: Upgrade\r\nUpgrade: tcp\r\n%s",
                                             body ? "Content-Type: application/json\r\n" : "");
  Hand hand = {.fd = open_socket(socket_path), .read = g_byte_array_new()};
  g_autofree char *head = NULL;
  if (hand.fd >= 0 && send_request(hand.fd, "POST", path, headers, body, length)) {
    head = take_until(&hand, "\r\n\r\n");
  }
  g_byte_array_unref(hand.read);
  if (hand.fd >= 0 && (!head || status_of(head) != 101)) {
    close(hand.fd);
    return -1;
  }
  return hand.fd;
}

gint64 hand_drain(int stream) {
  g_autofree char *buffer = g_malloc(SMALL);
  gint64 seen = 0;
  for (ssize_t count = 1; count > 0;) {
    count = read(stream, buffer, SMALL);
    seen += MAX(count, 0);
  }
  close(stream);
  return seen;
}

char *hand_text(const char *answer, const char *key) {
  g_autofree char *mark = g_strdup_printf("\"%s\":\"", key);
  const char *found = answer ? strstr(answer, mark) : NULL;
  const char *end = found ? strchr(found + strlen(mark), '"') : NULL;
  return end ? g_strndup(found + strlen(mark), (gsize)(end - found) - strlen(mark)) : NULL;
}
