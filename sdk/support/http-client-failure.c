/* SPDX-License-Identifier: Apache-2.0 */
/* http-client-failure.c: what went wrong with a request, in the words and with the names of the contract. */
#include "failure.h"
#include "http-client-private.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* ---- Sentences ------------------------------------------------------------------------------- */

static void tell_details(HttpClient *client, struct sandhost_call *call, gboolean sent) {
  const struct sandhost_failure details = {
      .size = sizeof details, .service_code = {.data = ""}, .may_have_happened = sent ? 1 : 0};
  client->host->fail_details(call, &details);
}

int32_t http_fail(HttpClient *client, struct sandhost_call *call, gboolean sent, int32_t status,
                  const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *message = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  if (sent) {
    tell_details(client, call, sent);
  }
  return fail_call(client->host, call, status, "%s", message);
}

int32_t http_fail_unreachable(HttpClient *client, struct sandhost_call *call, gboolean sent,
                              const char *peer, enum http_trouble trouble, int error_number,
                              const char *reason) {
  g_autofree char *better =
      client->explain ? client->explain(client->user, trouble, error_number, reason) : NULL;
  return http_fail(client, call, sent, SANDHOST_UNAVAILABLE, "%s is not reachable: %s", peer,
                   better ? better : reason);
}

int32_t http_fail_silent(HttpClient *client, struct sandhost_call *call, gboolean sent,
                         const char *peer, int64_t silence) {
  return http_fail(client, call, sent, SANDHOST_UNAVAILABLE, "%s has said nothing for %.3g s", peer,
                   (double)silence / (double)HTTP_SECOND);
}

/* ---- curl's results -------------------------------------------------------------------------- */

static gboolean was_sent(const struct http_exchange *exchange) {
  long sent = 0;
  if (exchange->handle.easy) {
    (void)curl_easy_getinfo(exchange->handle.easy, CURLINFO_REQUEST_SIZE, &sent);
  }
  return exchange->connected && sent > 0;
}

/* Whether it may have had an effect, if it was sent. */
static gboolean counts(const struct http_exchange *exchange, gboolean sent) {
  return sent && !exchange->request->no_effect;
}

/* curl's words, or those of its code; text from elsewhere may be in them. Owned. */
static char *words_of(const struct http_exchange *exchange, CURLcode code) {
  const char *words = exchange->complaint[0] ? exchange->complaint : curl_easy_strerror(code);
  char *text = g_utf8_make_valid(words, -1);
  for (char *at = text; *at; at++) {
    if ((unsigned char)*at < ' ' || *at == 127) {
      *at = ' ';
    }
  }
  return g_strchomp(text);
}

static int32_t fail_without_connection(struct http_exchange *exchange, CURLcode code) {
  long number = exchange->connect_error;
  g_autofree char *words = NULL;
  if (exchange->connect_words) {
    words = g_strdup(exchange->connect_words);
  } else if (code == CURLE_OPERATION_TIMEDOUT || number == ETIMEDOUT) {
    number = ETIMEDOUT;
    words = g_strdup_printf("no connection within %.3g s",
                            (double)exchange->client->connect_patience / (double)HTTP_SECOND);
  } else {
    if (number == 0) {
      (void)curl_easy_getinfo(exchange->handle.easy, CURLINFO_OS_ERRNO, &number);
    }
    words = number > 0 ? g_strdup(g_strerror((int)number)) : words_of(exchange, code);
  }
  return http_fail_unreachable(exchange->client, exchange->call, FALSE, exchange->peer,
                               HTTP_NO_CONNECTION, (int)number, words);
}

static gboolean is_tls_trouble(const struct http_exchange *exchange, CURLcode code) {
  switch (code) {
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CONNECT_ERROR:
  case CURLE_SSL_CACERT_BADFILE:
  case CURLE_SSL_CERTPROBLEM:
  case CURLE_SSL_CIPHER:
  case CURLE_SSL_ISSUER_ERROR:
  case CURLE_SSL_ENGINE_INITFAILED:
    return TRUE;
  case CURLE_RECV_ERROR:
  case CURLE_SEND_ERROR:
    /* A server that refuses the client's certificate says so only after the handshake. */
    return !exchange->answered && strstr(exchange->complaint, "alert") != NULL;
  default:
    return FALSE;
  }
}

static int32_t fail_broken(struct http_exchange *exchange) {
  gboolean sent = counts(exchange, was_sent(exchange));
  if (!exchange->answered && exchange->client->connect) {
    return http_fail_unreachable(exchange->client, exchange->call, sent, exchange->peer, HTTP_CUT,
                                 0, "the connection ended");
  }
  if (!exchange->answered && exchange->is_new &&
      g_str_has_prefix(exchange->request->url, "https:")) {
    /* With TLS 1.3 the peer looks at the client's certificate after the client's handshake is done. */
    return http_fail_unreachable(exchange->client, exchange->call, sent, exchange->peer,
                                 HTTP_NO_TLS, 0,
                                 "the connection ended right after the handshake, as it does where "
                                 "the client's certificate is missing or refused");
  }
  return http_fail(exchange->client, exchange->call, sent, SANDHOST_UNAVAILABLE,
                   exchange->answered ? "%s broke the connection off in the middle of its answer"
                                      : "%s closed the connection without an answer",
                   exchange->peer);
}

static int32_t fail_protocol(struct http_exchange *exchange, const char *what) {
  return http_fail(exchange->client, exchange->call, counts(exchange, TRUE), SANDHOST_PROTOCOL,
                   "%s %s", exchange->peer, what);
}

/* An answer of which curl can make nothing. */
static int32_t fail_weird(struct http_exchange *exchange, CURLcode code) {
  g_autofree char *words = words_of(exchange, code);
  return http_fail(exchange->client, exchange->call, counts(exchange, TRUE), SANDHOST_PROTOCOL,
                   "%s sent what is no HTTP answer (%s)", exchange->peer, words);
}

static int32_t fail_for_code(struct http_exchange *exchange, CURLcode code) {
  HttpClient *client = exchange->client;
  g_autofree char *words = words_of(exchange, code);
  if (exchange->repeats) {
    return fail_broken(exchange);
  }
  if (is_tls_trouble(exchange, code)) {
    return http_fail_unreachable(client, exchange->call, FALSE, exchange->peer, HTTP_NO_TLS, 0,
                                 words);
  }
  switch (code) {
  case CURLE_COULDNT_CONNECT:
  case CURLE_OPERATION_TIMEDOUT:
  case CURLE_ABORTED_BY_CALLBACK:
    return fail_without_connection(exchange, code);
  case CURLE_COULDNT_RESOLVE_HOST:
    return http_fail_unreachable(client, exchange->call, FALSE, exchange->peer, HTTP_NO_NAME, 0,
                                 "no host has this name");
  case CURLE_URL_MALFORMAT:
  case CURLE_BAD_FUNCTION_ARGUMENT:
    return http_fail(client, exchange->call, FALSE, SANDHOST_INVALID,
                     "the address of a request to %s makes no sense (%s)", exchange->peer, words);
  case CURLE_GOT_NOTHING:
  case CURLE_SEND_ERROR:
  case CURLE_RECV_ERROR:
  case CURLE_PARTIAL_FILE:
  case CURLE_SEND_FAIL_REWIND:
    return fail_broken(exchange);
  case CURLE_UNSUPPORTED_PROTOCOL:
  case CURLE_WEIRD_SERVER_REPLY:
  case CURLE_BAD_CONTENT_ENCODING:
  case CURLE_WRITE_ERROR:
  case CURLE_FILESIZE_EXCEEDED:
  case CURLE_READ_ERROR:
    return fail_weird(exchange, code);
  case CURLE_OUT_OF_MEMORY:
    /* So curl says that a line of the header is too long. */
    return was_sent(exchange) ? fail_protocol(exchange, "sent a header that is too long")
                              : http_fail(client, exchange->call, FALSE, SANDHOST_NO_MEMORY,
                                          "no memory for a request");
  default:
    return http_fail(client, exchange->call, counts(exchange, was_sent(exchange)),
                     SANDHOST_UNAVAILABLE, "a request to %s failed: %s", exchange->peer, words);
  }
}

int32_t http_exchange_fail(struct http_exchange *exchange, int32_t ended, CURLcode code) {
  HttpClient *client = exchange->client;
  gboolean sent = counts(exchange, was_sent(exchange));
  switch (ended) {
  case SANDHOST_OK:
    return fail_for_code(exchange, code);
  case SANDHOST_PROTOCOL:
    return fail_protocol(exchange, exchange->ended_why);
  case SANDHOST_TIMEOUT:
    return http_fail(client, exchange->call, sent, ended, "the deadline passed");
  case SANDHOST_CANCELLED:
    return http_fail(client, exchange->call, sent, ended, "%s",
                     exchange->ended_why ? exchange->ended_why : "cancelled");
  case SANDHOST_UNAVAILABLE:
    return http_fail_silent(client, exchange->call, sent, exchange->peer, exchange->silence);
  case SANDHOST_NO_MEMORY:
    return http_fail(client, exchange->call, sent, ended, "no memory for a request");
  default:
    return http_fail(client, exchange->call, sent, SANDHOST_INTERNAL, "curl does not do its work");
  }
}

/* ---- The request itself ---------------------------------------------------------------------- */

static gboolean is_token(const char *text) {
  for (const char *at = text; *at; at++) {
    if (!g_ascii_isalnum(*at) && !strchr("!#$%&'*+-.^_`|~", *at)) {
      return FALSE;
    }
  }
  return text[0] != '\0';
}

int32_t http_request_check(HttpClient *client, struct sandhost_call *call,
                           const struct http_request *request) {
  if (http_connects_itself(client) && g_str_has_prefix(request->url, "https:")) {
    return fail_call(client->host, call, SANDHOST_INVALID,
                     "a connection that is not made over a network is not encrypted");
  }
  gboolean good = is_token(request->method) && (g_str_has_prefix(request->url, "http://") ||
                                                g_str_has_prefix(request->url, "https://"));
  for (const char *at = request->url; good && *at; at++) {
    good = (unsigned char)*at > ' ' && *at != 127;
  }
  for (size_t i = 0; good && request->headers && request->headers[i]; i++) {
    good = !strpbrk(request->headers[i], "\r\n") && strchr(request->headers[i], ':');
  }
  if (good) {
    return SANDHOST_OK;
  }
  return fail_call(client->host, call, SANDHOST_INVALID,
                   "the method, address or a header of a request has characters that do not belong "
                   "there");
}
