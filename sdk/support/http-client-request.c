/* SPDX-License-Identifier: Apache-2.0 */
/* http-client-request.c: one request and its answer: curl's callbacks, and the loop that waits for it. */
#include "http-client-private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* How often the caller is asked whether it cancelled, where it has no descriptor to tell. */
#define ASK_MILLISECONDS 50
#define WAIT_MILLISECONDS 60000
/* How long a peer may take to say whether it wants an upload at all. */
#define CONTINUE_MILLISECONDS 250L
#define DAY ((int64_t)86400 * HTTP_SECOND)
/* Of an answer; curl gives larger ones as well. */
#define LAST_STATUS 999

/* ---- What curl calls ------------------------------------------------------------------------- */

/* Ends the exchange from a callback; the first reason counts. */
static void end_exchange(struct http_exchange *exchange, int32_t status, const char *why) {
  if (exchange->ended == 0) {
    exchange->ended = status;
    exchange->ended_why = why;
  }
}

static gboolean is_over(struct http_exchange *exchange) {
  int32_t over = http_call_over(exchange->client, exchange->call);
  if (over != 0) {
    end_exchange(exchange, over, NULL);
  }
  return over != 0;
}

static gboolean is_idempotent(const char *method) {
  static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
  for (size_t i = 0; i < G_N_ELEMENTS(methods); i++) {
    if (strcmp(method, methods[i]) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

/* Before the request goes out on a connection. curl comes here once more where a kept connection turned out
 * to be dead: what the peer may have got already is not sent a second time, unless that does no harm. */
static int before_request(void *user, char *remote, char *local, int remote_port, int local_port) {
  struct http_exchange *exchange = user;
  (void)remote;
  (void)local;
  (void)remote_port;
  (void)local_port;
  long sent = 0;
  (void)curl_easy_getinfo(exchange->handle.easy, CURLINFO_REQUEST_SIZE, &sent);
  if (exchange->connected && sent > 0 && !is_idempotent(exchange->request->method)) {
    exchange->repeats = TRUE;
    return CURL_PREREQFUNC_ABORT;
  }
  if (!http_connection_check(exchange)) {
    return CURL_PREREQFUNC_ABORT;
  }
  exchange->connected = TRUE;
  exchange->last_byte = contract_now();
  return CURL_PREREQFUNC_OK;
}

static size_t take_header(char *data, size_t size, size_t count, void *user) {
  struct http_exchange *exchange = user;
  size_t length = size * count;
  exchange->answered = TRUE;
  exchange->last_byte = contract_now();
  exchange->header_length += length;
  if (exchange->header_length > HTTP_MAX_HEADER) {
    end_exchange(exchange, SANDHOST_PROTOCOL, "sent a header that is too long");
    return 0;
  }
  long status = 0;
  (void)curl_easy_getinfo(exchange->handle.easy, CURLINFO_RESPONSE_CODE, &status);
  if (length > 5 && memcmp(data, "HTTP/", 5) == 0) {
    exchange->header_whole = FALSE;
  } else if (data[0] == '\r' || data[0] == '\n') {
    exchange->header_whole = status >= 200;
    if (status > LAST_STATUS) {
      end_exchange(exchange, SANDHOST_PROTOCOL, "sent what is no HTTP answer");
      return 0;
    }
  }
  if (status == 101 && !exchange->header_whole) {
    end_exchange(exchange, SANDHOST_PROTOCOL, "switched protocols, which it was not asked to");
    return 0;
  }
  return length;
}

/* An error answer is kept as far as it is of use; where it goes on, the connection is given up. */
static size_t collect(struct http_exchange *exchange, const void *data, size_t length,
                      gboolean good) {
  size_t most = HTTP_MAX_ERROR;
  if (good) {
    most = exchange->request->max_body > 0 ? exchange->request->max_body : HTTP_MAX_BODY;
  }
  if (!exchange->body) {
    exchange->body = g_byte_array_new();
  }
  size_t room = MIN(most, G_MAXUINT - 1) - exchange->body->len;
  if (length <= room) {
    g_byte_array_append(exchange->body, data, (guint)length);
    return length;
  }
  if (good) {
    end_exchange(exchange, SANDHOST_PROTOCOL, "sent an answer that is too long");
  } else {
    g_byte_array_append(exchange->body, data, (guint)room);
    exchange->cut = TRUE;
  }
  return 0;
}

static size_t take_body(char *data, size_t size, size_t count, void *user) {
  struct http_exchange *exchange = user;
  const struct sandhost_sink *sink = exchange->request->sink;
  size_t length = size * count;
  long status = 0;
  if (is_over(exchange)) {
    return 0;
  }
  (void)curl_easy_getinfo(exchange->handle.easy, CURLINFO_RESPONSE_CODE, &status);
  gboolean good = status >= 200 && status < 300;
  exchange->last_byte = contract_now();
  if (!good || !sink) {
    return collect(exchange, data, length, good);
  }
  int32_t answer = length > 0 ? sink->write(sink->user, data, length) : SANDHOST_OK;
  exchange->last_byte = contract_now(); /* the time that the sink took is not the peer's */
  if (answer != SANDHOST_OK) {
    end_exchange(exchange, SANDHOST_CANCELLED, "the receiver of the answer stopped");
    return 0;
  }
  return length;
}

static size_t give_upload(char *buffer, size_t size, size_t count, void *user) {
  struct http_exchange *exchange = user;
  const struct sandhost_source *source = exchange->request->upload;
  if (is_over(exchange)) {
    return CURL_READFUNC_ABORT;
  }
  int64_t got = source->read(source->user, buffer, size * count);
  exchange->last_byte = contract_now(); /* the time that the source took is not the peer's */
  if (got < 0 || (uint64_t)got > size * count) {
    end_exchange(exchange, SANDHOST_CANCELLED, "the source of the request's body stopped");
    return CURL_READFUNC_ABORT;
  }
  return (size_t)got;
}

static int watch_progress(void *user, curl_off_t download_total, curl_off_t downloaded,
                          curl_off_t upload_total, curl_off_t uploaded) {
  struct http_exchange *exchange = user;
  (void)download_total;
  (void)upload_total;
  if (downloaded + uploaded != exchange->moved) {
    exchange->moved = downloaded + uploaded;
    exchange->last_byte = contract_now();
  }
  return 0;
}

/* ---- The request ----------------------------------------------------------------------------- */

static gboolean has_header(const char *const *headers, const char *name) {
  for (size_t i = 0; headers && headers[i]; i++) {
    if (g_ascii_strncasecmp(headers[i], name, strlen(name)) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

static int32_t add_header(struct http_exchange *exchange, const char *line) {
  struct curl_slist *longer = curl_slist_append(exchange->headers, line);
  if (!longer) {
    return SANDHOST_NO_MEMORY;
  }
  exchange->headers = longer;
  return SANDHOST_OK;
}

static int32_t prepare_headers(struct http_exchange *exchange) {
  const struct http_request *request = exchange->request;
  int32_t status = SANDHOST_OK;
  for (size_t i = 0; request->headers && request->headers[i]; i++) {
    status = status == SANDHOST_OK ? add_header(exchange, request->headers[i]) : status;
  }
  /* What curl would add on its own. */
  if (status == SANDHOST_OK && !has_header(request->headers, "Content-Type:")) {
    status = add_header(exchange, "Content-Type:");
  }
  if (status == SANDHOST_OK && !request->upload) {
    status = add_header(exchange, "Expect:");
  }
  (void)curl_easy_setopt(exchange->handle.easy, CURLOPT_HTTPHEADER, exchange->headers);
  return status;
}

static void prepare_method(struct http_exchange *exchange) {
  const struct http_request *request = exchange->request;
  CURL *easy = exchange->handle.easy;
  if (request->upload) {
    (void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_upload);
    (void)curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
    (void)curl_easy_setopt(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, CONTINUE_MILLISECONDS);
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
  } else if (request->body || strcmp(request->method, "POST") == 0 ||
             strcmp(request->method, "PUT") == 0) {
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body ? request->body : "");
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                           (curl_off_t)(request->body ? request->body_length : 0));
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
  } else if (strcmp(request->method, "HEAD") == 0) {
    (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  } else {
    (void)curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
  }
}

static int32_t prepare(struct http_exchange *exchange) {
  CURL *easy = exchange->handle.easy;
  http_handle_prepare(exchange);
  prepare_method(exchange);
  (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
  (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
  (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
  (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
  (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_request);
  (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
  (void)curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
  (void)curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, watch_progress);
  (void)curl_easy_setopt(easy, CURLOPT_XFERINFODATA, exchange);
  /* A length that does not fit is an error and not none. */
  (void)curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)G_MAXINT64);
  return prepare_headers(exchange);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* When the exchange ends if nothing happens; INT64_MAX: never. */
static int64_t exchange_end(const struct http_exchange *exchange) {
  int64_t end = exchange->client->host->deadline(exchange->call);
  if (exchange->connected && exchange->silence > 0 &&
      exchange->last_byte < INT64_MAX - exchange->silence) {
    end = MIN(end, exchange->last_byte + exchange->silence);
  }
  return end;
}

static gboolean is_silent(const struct http_exchange *exchange) {
  return exchange->connected && exchange->silence > 0 &&
         contract_now() - exchange->last_byte >= exchange->silence;
}

/* Until something happens to the connection, the caller cancels, or it is time to look at the clock. */
static CURLMcode pause_for_news(struct http_exchange *exchange) {
  const int cancel_fd = exchange->client->host->cancel_fd(exchange->call);
  struct curl_waitfd cancel = {.fd = cancel_fd, .events = CURL_WAIT_POLLIN};
  int64_t most = cancel_fd < 0 ? ASK_MILLISECONDS : WAIT_MILLISECONDS;
  int64_t end = exchange_end(exchange);
  if (end != INT64_MAX) {
    int64_t left = MAX(end - contract_now(), 0);
    most = MIN(most, left / 1000000 + 1);
  }
  return curl_multi_poll(exchange->handle.multi, &cancel, cancel_fd < 0 ? 0 : 1, (int)most, NULL);
}

int32_t http_exchange_run(struct http_exchange *exchange, CURLcode *ret_code) {
  CURLM *multi = exchange->handle.multi;
  if (curl_multi_add_handle(multi, exchange->handle.easy) != CURLM_OK) {
    return SANDHOST_INTERNAL;
  }
  for (;;) {
    int running = 0;
    int left = 0;
    CURLMcode trouble = curl_multi_perform(multi, &running);
    CURLMsg *message = curl_multi_info_read(multi, &left);
    if (message && message->msg == CURLMSG_DONE) {
      *ret_code = message->data.result;
      return exchange->ended;
    }
    if (trouble != CURLM_OK) {
      return trouble == CURLM_OUT_OF_MEMORY ? SANDHOST_NO_MEMORY : SANDHOST_INTERNAL;
    }
    if (is_over(exchange)) {
      return exchange->ended;
    }
    if (is_silent(exchange)) {
      end_exchange(exchange, SANDHOST_UNAVAILABLE, NULL);
      return exchange->ended;
    }
    if (pause_for_news(exchange) != CURLM_OK) {
      return SANDHOST_INTERNAL;
    }
  }
}

void http_exchange_clear(struct http_exchange *exchange) {
  if (exchange->handle.multi) {
    http_handle_give_back(exchange->client, exchange->handle);
    exchange->handle = (struct http_handle){0};
  }
  if (exchange->has_true_fd) {
    close(exchange->true_fd);
    exchange->has_true_fd = FALSE;
  }
  curl_slist_free_all(exchange->headers);
  exchange->headers = NULL;
  g_clear_pointer(&exchange->connect_words, g_free);
  g_clear_pointer(&exchange->body, g_byte_array_unref);
}

/* ---- The answer ------------------------------------------------------------------------------ */

static int64_t retry_after(CURL *easy) {
  curl_off_t seconds = 0;
  (void)curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
  return seconds <= 0 ? 0 : MIN(seconds, DAY / HTTP_SECOND) * HTTP_SECOND;
}

/* Bounds what a hostile peer may put into a message, and makes text of it. */
static char *content_type(CURL *easy) {
  const char *type = NULL;
  (void)curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
  if (!type) {
    return NULL;
  }
  g_autofree char *start = g_strndup(type, 256);
  return g_utf8_make_valid(start, -1);
}

static struct http_reply reply_of(struct http_exchange *exchange) {
  CURL *easy = exchange->handle.easy;
  struct http_reply reply = {.retry_after = retry_after(easy), .content_type = content_type(easy)};
  (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &reply.status);
  GByteArray *body = exchange->body ? g_steal_pointer(&exchange->body) : g_byte_array_new();
  reply.length = body->len;
  g_byte_array_append(body, (const guint8 *)"", 1);
  reply.body = (char *)g_byte_array_free(body, FALSE);
  return reply;
}

/* Whether the peer's listen queue is full: curl has then no connection and no errno, or believes it has one. */
static gboolean is_queue_full(const struct http_exchange *exchange, CURLcode code) {
  long number = 0;
  if (code == CURLE_OK || !exchange->client->unix_socket) {
    return FALSE;
  }
  (void)curl_easy_getinfo(exchange->handle.easy, CURLINFO_OS_ERRNO, &number);
  return exchange->queue_full || (code == CURLE_COULDNT_CONNECT && exchange->connect_error == 0 &&
                                  (number == 0 || number == EAGAIN));
}

static int32_t send_guarded(struct http_exchange *exchange, struct http_reply *ret_reply) {
  HttpClient *client = exchange->client;
  CURLcode code = CURLE_OK;
  int32_t status = http_call_over(client, exchange->call);
  status = status != 0 ? status : http_handle_take(client, &exchange->handle);
  status = status != SANDHOST_OK ? status : prepare(exchange);
  status = status != SANDHOST_OK ? status : http_exchange_run(exchange, &code);
  while (status == SANDHOST_OK && is_queue_full(exchange, code) && http_queue_wait(exchange)) {
    (void)curl_multi_remove_handle(exchange->handle.multi, exchange->handle.easy);
    status = http_exchange_run(exchange, &code);
  }
  if (status == SANDHOST_OK && code == CURLE_OK && !exchange->header_whole) {
    code = CURLE_PARTIAL_FILE; /* which curl lets pass */
  }
  if (status == SANDHOST_OK && (code == CURLE_OK || exchange->cut)) {
    *ret_reply = reply_of(exchange);
    return SANDHOST_OK;
  }
  return http_exchange_fail(exchange, status, code);
}

int32_t http_client_send(HttpClient *client, struct sandhost_call *call, const char *peer,
                         const struct http_request *request, struct http_reply *ret_reply) {
  int32_t status = http_request_check(client, call, request);
  if (status != SANDHOST_OK) {
    return status;
  }
  struct http_exchange exchange = {.client = client,
                                   .call = call,
                                   .peer = peer,
                                   .request = request,
                                   .silence = client->silence,
                                   .begun = contract_now()};
  if (request->silence != 0) {
    exchange.silence = MAX(request->silence, 0);
  }
  struct http_pipe_guard guard;
  http_pipe_guard_begin(&guard);
  status = send_guarded(&exchange, ret_reply);
  http_exchange_clear(&exchange);
  http_pipe_guard_end(&guard);
  return status;
}
