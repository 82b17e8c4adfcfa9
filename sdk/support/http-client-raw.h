/* SPDX-License-Identifier: Apache-2.0 */
/* http-client-raw.h: a connection that HTTP is spoken over by hand, until it is a raw one or the peer refuses that. */
#ifndef SANDHOST_SUPPORT_HTTP_CLIENT_RAW_H
#define SANDHOST_SUPPORT_HTTP_CLIENT_RAW_H

#include "http-client-private.h"

/* The connection while requests and answers go over it. */
struct http_raw {
  HttpClient *client;
  struct sandhost_call *call;
  const char *peer;
  int64_t silence;      /* nanoseconds; 0: none */
  ByteChannel *channel; /* owned */
  gboolean sent;
  int64_t last_byte;
  GByteArray *in; /* what came */
  size_t at;      /* how much of it is used */
};

struct http_head {
  long status;
  int64_t content_length; /* -1: not said */
  gboolean chunked;
  char *content_type; /* owned; NULL */
  int64_t retry_after;
};

/* All of these return SANDHOST_OK, or the status of the call's error, which they have set. */

/* ---- http-client-raw.c: bytes both ways, with the call's patience ---- */

int32_t http_raw_send(struct http_raw *raw, const char *data, size_t length);
/* Waits for more bytes. SANDHOST_OK also where there will be none: then *ret_ended. */
int32_t http_raw_receive(struct http_raw *raw, gboolean *ret_ended);
int32_t http_raw_fail_closed(struct http_raw *raw);
/* what: what the peer did, behind its name. */
int32_t http_raw_fail_answer(struct http_raw *raw, const char *what);

/* ---- http-client-answer.c: what the peer says ---- */

/* The header of the answer, behind those of preliminary ones. ret_head->content_type is owned by the caller. */
int32_t http_raw_receive_head(struct http_raw *raw, struct http_head *ret_head);
/* What is behind the header of a refusal, as far as it is of use. Takes the content type out of head. */
int32_t http_raw_receive_refusal(struct http_raw *raw, struct http_head *head,
                                 struct http_reply *ret_reply);

#endif
