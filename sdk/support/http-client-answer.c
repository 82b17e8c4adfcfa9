/* SPDX-License-Identifier: Apache-2.0 */
/* http-client-answer.c: reads an HTTP answer by hand: its header, and the body of one that is a refusal. */
#include "http-client-raw.h"

#include <string.h>

#define MAX_LINE ((size_t)1024) /* of a chunk's length */

/* ---- The answer's header --------------------------------------------------------------------- */

/* "HTTP/1.1 101 UPGRADED". FALSE: it is something else. */
static gboolean read_status(const char *line, long *ret_status) {
  if (!g_str_has_prefix(line, "HTTP/1.") || !g_ascii_isdigit(line[7]) || line[8] != ' ') {
    return FALSE;
  }
  const char *digits = line + 9;
  for (int i = 0; i < 3; i++) {
    if (!g_ascii_isdigit(digits[i])) {
      return FALSE;
    }
  }
  *ret_status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
  return *ret_status >= 100 && (digits[3] == '\0' || digits[3] == ' ');
}

/* The value behind name in "Name: value". Borrowed from line. NULL: the line is another. */
static const char *value_of(const char *line, const char *name) {
  size_t length = strlen(name);
  if (g_ascii_strncasecmp(line, name, length) != 0 || line[length] != ':') {
    return NULL;
  }
  const char *value = line + length + 1;
  return value + strspn(value, " \t");
}

static gboolean read_line(struct http_head *head, char *line) {
  guint64 number;
  const char *value;
  g_strchomp(line);
  if ((value = value_of(line, "Content-Length"))) {
    if (!g_ascii_string_to_unsigned(value, 10, 0, G_MAXINT64, &number, NULL)) {
      return FALSE;
    }
    head->content_length = (int64_t)number;
  } else if ((value = value_of(line, "Transfer-Encoding"))) {
    head->chunked = TRUE;
    return g_ascii_strcasecmp(value, "chunked") == 0;
  } else if ((value = value_of(line, "Content-Type"))) {
    g_autofree char *start = g_strndup(value, 256);
    g_free(head->content_type);
    head->content_type = g_utf8_make_valid(start, -1);
  } else if ((value = value_of(line, "Retry-After"))) {
    if (g_ascii_string_to_unsigned(value, 10, 0, 86400, &number, NULL)) {
      head->retry_after = (int64_t)number * HTTP_SECOND;
    }
  }
  return TRUE;
}

/* text: all lines, without the empty one. */
static gboolean parse_head(const char *text, struct http_head *ret_head) {
  g_auto(GStrv) lines = g_strsplit(text, "\r\n", -1);
  struct http_head head = {.content_length = -1};
  if (!read_status(lines[0], &head.status)) {
    return FALSE;
  }
  for (size_t i = 1; lines[i]; i++) {
    if (!read_line(&head, lines[i])) {
      g_free(head.content_type);
      return FALSE;
    }
  }
  *ret_head = head;
  return TRUE;
}

/* One header, which may be that of a preliminary answer. */
static int32_t receive_head(struct http_raw *raw, struct http_head *ret_head) {
  for (;;) {
    const char *start = (const char *)raw->in->data + raw->at;
    size_t length = raw->in->len - raw->at;
    const char *end = length > 0 ? memmem(start, length, "\r\n\r\n", 4) : NULL;
    if (end) {
      g_autofree char *text = g_strndup(start, (size_t)(end - start));
      raw->at += (size_t)(end - start) + 4;
      return strlen(text) == (size_t)(end - start) && parse_head(text, ret_head)
                 ? SANDHOST_OK
                 : http_raw_fail_answer(raw, "sent what is no HTTP answer");
    }
    if (length >= HTTP_MAX_UPGRADE_HEADER) {
      return http_raw_fail_answer(raw, "sent a header that is too long");
    }
    if (length >= 5 && memcmp(start, "HTTP/", 5) != 0) {
      return http_raw_fail_answer(raw, "sent what is no HTTP answer");
    }
    gboolean ended = FALSE;
    int32_t status = http_raw_receive(raw, &ended);
    if (status != SANDHOST_OK || ended) {
      return status != SANDHOST_OK ? status : http_raw_fail_closed(raw);
    }
  }
}

int32_t http_raw_receive_head(struct http_raw *raw, struct http_head *ret_head) {
  for (;;) {
    struct http_head head = {0};
    int32_t status = receive_head(raw, &head);
    if (status != SANDHOST_OK) {
      return status;
    }
    if (head.status >= 200 || head.status == 101) {
      *ret_head = head;
      return SANDHOST_OK;
    }
    g_free(head.content_type);
    if (raw->at > HTTP_MAX_UPGRADE_HEADER) {
      return http_raw_fail_answer(raw, "sent a header that is too long");
    }
  }
}

/* ---- The body of a refusal ------------------------------------------------------------------- */

/* Adds at most length bytes to body, as many as come and as it may hold. */
static int32_t receive_part(struct http_raw *raw, uint64_t length, GByteArray *body,
                            gboolean *ret_ended) {
  length = MIN(length, HTTP_MAX_ERROR - body->len);
  while (length > 0) {
    size_t part = MIN(raw->in->len - raw->at, length);
    g_byte_array_append(body, raw->in->data + raw->at, (guint)part);
    raw->at += part;
    length -= part;
    if (raw->at == raw->in->len) {
      g_byte_array_set_size(raw->in, 0);
      raw->at = 0;
    }
    if (length > 0) {
      int32_t status = http_raw_receive(raw, ret_ended);
      if (status != SANDHOST_OK || *ret_ended) {
        return status;
      }
    }
  }
  return SANDHOST_OK;
}

/* The length in front of a chunk; 0: there is no other. */
static int32_t receive_chunk_length(struct http_raw *raw, uint64_t *ret_length) {
  for (;;) {
    const char *start = (const char *)raw->in->data + raw->at;
    size_t length = raw->in->len - raw->at;
    const char *end = length > 0 ? memchr(start, '\n', length) : NULL;
    if (end && end - start <= 1 && (end == start || start[0] == '\r')) {
      raw->at += (size_t)(end - start) + 1; /* what ends the chunk before */
      continue;
    }
    if (end) {
      g_autofree char *line = g_strndup(start, strcspn(start, "\r\n;"));
      raw->at += (size_t)(end - start) + 1;
      return g_ascii_string_to_unsigned(line, 16, 0, G_MAXINT64, ret_length, NULL)
                 ? SANDHOST_OK
                 : http_raw_fail_answer(raw, "sent what is no HTTP answer");
    }
    gboolean ended = FALSE;
    int32_t status = length > MAX_LINE ? http_raw_fail_answer(raw, "sent what is no HTTP answer")
                                       : http_raw_receive(raw, &ended);
    if (status != SANDHOST_OK || ended) {
      *ret_length = 0;
      return status;
    }
  }
}

static int32_t receive_chunks(struct http_raw *raw, GByteArray *body) {
  gboolean ended = FALSE;
  while (!ended && body->len < HTTP_MAX_ERROR) {
    uint64_t length = 0;
    int32_t status = receive_chunk_length(raw, &length);
    if (status == SANDHOST_OK && length > 0) {
      status = receive_part(raw, length, body, &ended);
    }
    if (status != SANDHOST_OK || length == 0) {
      return status;
    }
  }
  return SANDHOST_OK;
}

static int32_t receive_body(struct http_raw *raw, const struct http_head *head, GByteArray *body) {
  gboolean ended = FALSE;
  if (head->status == 204 || head->status == 304) {
    return SANDHOST_OK;
  }
  if (head->chunked) {
    return receive_chunks(raw, body);
  }
  return receive_part(raw,
                      head->content_length < 0 ? HTTP_MAX_ERROR : (uint64_t)head->content_length,
                      body, &ended);
}

int32_t http_raw_receive_refusal(struct http_raw *raw, struct http_head *head,
                                 struct http_reply *ret_reply) {
  GByteArray *body = g_byte_array_new();
  int32_t status = receive_body(raw, head, body);
  if (status != SANDHOST_OK) {
    g_byte_array_unref(body);
    return status;
  }
  *ret_reply = (struct http_reply){.status = head->status,
                                   .length = body->len,
                                   .content_type = g_steal_pointer(&head->content_type),
                                   .retry_after = head->retry_after};
  g_byte_array_append(body, (const guint8 *)"", 1);
  ret_reply->body = (char *)g_byte_array_free(body, FALSE);
  return SANDHOST_OK;
}
