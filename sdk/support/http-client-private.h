/* SPDX-License-Identifier: Apache-2.0 */
/* http-client-private.h: one running request, between the files that make an HttpClient. */
#ifndef SANDHOST_SUPPORT_HTTP_CLIENT_PRIVATE_H
#define SANDHOST_SUPPORT_HTTP_CLIENT_PRIVATE_H

#include "contract.h"
#include "http-client.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>

/* Handles that wait for their next request, each with the connection of its last one. */
#define HTTP_IDLE_HANDLES 8
#define HTTP_MAX_BODY ((size_t)1 << 20)   /* of a collected answer, unless the request says more */
#define HTTP_MAX_ERROR ((size_t)64 << 10) /* what is kept of an answer that is not 2xx */
#define HTTP_MAX_HEADER ((size_t)64 << 10)
#define HTTP_MAX_UPGRADE_HEADER ((size_t)16 << 10)
#define HTTP_SECOND ((int64_t)1000000000)

struct http_handle {
  CURLM *multi;
  CURL *easy;
};

struct HttpClient {
  const struct sandhost_host *host; /* constant, as is all down to agent */
  char *unix_socket;
  char *ca_file;
  char *cert_file;
  char *key_file;
  gboolean insecure;
  int (*connect)(void *user, char **ret_error);
  char *(*explain)(void *user, enum http_trouble trouble, int error_number, const char *reason);
  void *user;
  int64_t connect_patience;
  int64_t silence;
  char *agent; /* "sandhost/VERSION" */

  pthread_mutex_t lock; /* guards what follows; nothing is called under it */
  struct http_handle idle[HTTP_IDLE_HANDLES];
  size_t idle_count;
};

/* One request while it runs, in the thread that asked for it. */
struct http_exchange {
  HttpClient *client;
  struct sandhost_call *call;
  const char *peer;
  const struct http_request *request;
  int64_t silence; /* nanoseconds; 0: none */
  struct http_handle handle;
  struct curl_slist *headers;      /* owned */
  char complaint[CURL_ERROR_SIZE]; /* curl's own words */
  char *connect_words;             /* owned; why there is no connection; NULL */
  int connect_error;               /* errno of the same; 0 */
  int true_fd; /* owned, where has_true_fd: a connection that curl does not have yet */
  int new_fd;  /* curl's, where has_new_fd: a socket of this request, not yet checked */
  gboolean has_true_fd;
  gboolean has_new_fd;
  gboolean queue_full;   /* the peer takes no connection just now */
  int64_t begun;         /* CLOCK_MONOTONIC nanoseconds */
  gboolean is_new;       /* its connection was made for it */
  gboolean connected;    /* this request has a connection */
  gboolean answered;     /* a first byte of an answer came */
  gboolean header_whole; /* that of the last answer, which is no preliminary one */
  gboolean repeats;      /* curl was about to send again what must not be sent twice */
  gboolean cut;          /* enough of an error answer is there */
  int32_t ended;         /* how a callback ended it: a status; 0: it did not */
  const char *ended_why;
  size_t header_length;
  int64_t last_byte; /* CLOCK_MONOTONIC nanoseconds: when something moved */
  curl_off_t moved;  /* bytes of bodies, both ways, by then */
  GByteArray *body;  /* owned; collected */
};

/* SANDHOST_TIMEOUT, SANDHOST_CANCELLED, or 0 where the call may go on. */
int32_t http_call_over(const HttpClient *client, const struct sandhost_call *call);

/* ---- http-client.c: handles ---- */

/* Takes an idle handle or makes one. SANDHOST_OK or SANDHOST_NO_MEMORY, which sets no error. */
int32_t http_handle_take(HttpClient *client, struct http_handle *ret_handle);
/* Makes one. The same. */
int32_t http_handle_new(struct http_handle *ret_handle);
void http_handle_give_back(HttpClient *client, struct http_handle take_handle);
void http_handle_free(struct http_handle handle);
/* A connected non-blocking socket to where the client's settings say, for clients with unix_socket or connect; -1 with
 * connect_error or connect_words of the exchange set. */
int http_open_socket(struct http_exchange *exchange);
/* Whether its peer is not on a network. */
gboolean http_connects_itself(const HttpClient *client);
/* Once curl takes a new socket for connected: makes that true. FALSE: it is not, with connect_error or queue_full set. */
gboolean http_connection_check(struct http_exchange *exchange);
/* After queue_full: pauses. FALSE: it has lasted too long. */
gboolean http_queue_wait(struct http_exchange *exchange);
/* What all requests have in common: where, how, and with which checks. */
void http_handle_prepare(struct http_exchange *exchange);

/* ---- http-client-request.c ---- */

/* Runs the exchange's handle until curl is done with it. SANDHOST_OK with curl's result, else the status of what ended
 * it early; the error is not set. The handle stays in its multi. */
int32_t http_exchange_run(struct http_exchange *exchange, CURLcode *ret_code);
void http_exchange_clear(struct http_exchange *exchange);

/* ---- http-client-failure.c: the contract's words ---- */

/* Sets the call's error from how http_exchange_run ended. Returns the status. */
int32_t http_exchange_fail(struct http_exchange *exchange, int32_t ended, CURLcode code);
/* The same, where a request that was spoken by hand failed. sent: the peer may have got all of it. */
int32_t http_fail(HttpClient *client, struct sandhost_call *call, gboolean sent, int32_t status,
                  const char *format, ...) G_GNUC_PRINTF(5, 6);
int32_t http_fail_silent(HttpClient *client, struct sandhost_call *call, gboolean sent,
                         const char *peer, int64_t silence);
/* trouble: what kind of reason it is. */
int32_t http_fail_unreachable(HttpClient *client, struct sandhost_call *call, gboolean sent,
                              const char *peer, enum http_trouble trouble, int error_number,
                              const char *reason);
/* SANDHOST_OK, or INVALID with the error set where method or headers would break the request apart. */
int32_t http_request_check(HttpClient *client, struct sandhost_call *call,
                           const struct http_request *request);

/* ---- http-client-tls.c ---- */

/* A channel over a connection that curl made and encrypts. Takes the handle, whose exchange ended well. NULL: there is
 * no connection; then the handle is not taken. */
ByteChannel *http_channel_for_handle(struct http_handle take_handle);

/* ---- SIGPIPE, which this process may not have ignored and must not get ---- */
struct http_pipe_guard {
  sigset_t old;
  gboolean was_pending;
};
void http_pipe_guard_begin(struct http_pipe_guard *guard);
void http_pipe_guard_end(const struct http_pipe_guard *guard);

#endif
