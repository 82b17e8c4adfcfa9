/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http-client.h: HTTP requests of a provider, on libcurl, that keep the contract: they end at the call's
 * deadline and when the caller cancels, hold no more of an answer than was asked for, and tell their
 * failure with the names of the contract.
 *
 * A client keeps connections to its peers open between requests. All functions but http_client_new and
 * http_client_free may be called from any thread, and requests of several threads run at once.
 */
#ifndef SANDHOST_SUPPORT_HTTP_CLIENT_H
#define SANDHOST_SUPPORT_HTTP_CLIENT_H

#include "guest-client.h"

#include <glib.h>
#include <sandhost/provider.h>

/* Why there is no connection, for settings.explain. */
enum http_trouble {
  HTTP_NO_CONNECTION, /* error_number says why */
  HTTP_NO_NAME,       /* the name of the host is unknown */
  HTTP_NO_TLS,        /* the two sides do not agree on TLS, or do not trust each other */
  HTTP_CUT,           /* what settings.connect gave ended before a first answer */
};

/* Where and how a client connects. All is copied by http_client_new; NULL and 0 mean the default. */
struct http_client_settings {
  const char *unix_socket; /* path: every request goes there, whatever host its URL names */
  const char *ca_file;     /* PEM; default: the system's */
  const char *cert_file;   /* PEM of the client, with key_file */
  const char *key_file;
  gboolean insecure; /* do not check the server's certificate and name */

  /* Opens the connection in place of socket(2) and connect(2): returns a connected stream socket, which the
   * client then owns, or -1 with *ret_error (owned by the caller). Called once per connection, from the
   * thread of a request. For peers that are reached through a program (ssh). */
  int (*connect)(void *user, char **ret_error);
  void *user; /* borrowed until http_client_free */

  /* Says in better words why the peer is not reachable, and what to do: an owned text that takes the place of
   * reason; NULL: reason stays. From the thread of a request. Optional. */
  char *(*explain)(void *user, enum http_trouble trouble, int error_number, const char *reason);

  int64_t connect_patience; /* nanoseconds for a connection to be made; default 10 s */
  int64_t
      silence; /* nanoseconds without a byte from the peer before the request fails; 0: only the deadline */
};

typedef struct HttpClient HttpClient;

HttpClient *http_client_new(const struct sandhost_host *host,
                            const struct http_client_settings *settings);
/* No request may be running. NULL is allowed. */
void http_client_free(HttpClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpClient, http_client_free)

/* One request. All is borrowed until it returns. */
struct http_request {
  const char *method;
  const char *url;            /* http:// or https://; redirects are not followed */
  const char *const *headers; /* "Name: value", NULL-terminated; or NULL */
  const void *body;           /* sent with its length; or */
  size_t body_length;
  const struct sandhost_source *upload; /* sent chunked; its -1 ends the request as cancelled */
  const struct sandhost_sink
      *sink;       /* gets the body of a 2xx answer as it comes; else it is collected */
  size_t max_body; /* a longer collected body is SANDHOST_PROTOCOL; 0: 1 MiB */
  int64_t silence; /* in place of the client's, where above 0; -1: none */
  gboolean
      no_effect; /* what it does is no effect of the call: a failure never says may_have_happened */
};

struct http_reply {
  long status;
  char *body; /* owned; NUL-terminated; what was collected (of an error answer at most 64 KiB) */
  size_t length;
  char *content_type;  /* owned; NULL */
  int64_t retry_after; /* nanoseconds of the Retry-After header; 0 */
};
void http_reply_clear(struct http_reply *reply);

/* Sends and waits. SANDHOST_OK with *ret_reply for an answer of any status; else the call's error is set:
 * UNAVAILABLE (no connection, or it broke; fail_details says may_have_happened once the request was sent),
 * TIMEOUT, CANCELLED, PROTOCOL. peer names the other side in messages ("the Docker engine at unix:///…"). */
int32_t http_client_send(HttpClient *client, struct sandhost_call *call, const char *peer,
                         const struct http_request *request, struct http_reply *ret_reply);

/* Sends a request that asks to switch protocols ("Connection: Upgrade", "Upgrade: tcp" are added) and, where
 * the answer is 101 (or 200 without a length, as older engines say it), returns the raw connection as an owned
 * channel in *ret_channel; *ret_reply holds the answer of any other status and *ret_channel is NULL. Bytes that
 * came right behind the answer are not lost. The channel outlives the client only where settings.connect is
 * not used. */
int32_t http_client_upgrade(HttpClient *client, struct sandhost_call *call, const char *peer,
                            const struct http_request *request, struct http_reply *ret_reply,
                            ByteChannel **ret_channel);

#endif
