/* SPDX-License-Identifier: Apache-2.0 */
/* http-client.c: the client itself: its handles, each with a connection that is kept, and how they connect. */
#include "http-client-private.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PATIENCE (10 * HTTP_SECOND)
/* How often a full listen queue is tried again. */
#define QUEUE_PAUSE ((int64_t)5000000)

int32_t http_call_over(const HttpClient *client, const struct sandhost_call *call) {
  if (!client->host->cancelled(call)) {
    return 0;
  }
  return contract_now() >= client->host->deadline(call) ? SANDHOST_TIMEOUT : SANDHOST_CANCELLED;
}

/* ---- The client ------------------------------------------------------------------------------ */

/* curl wants this once per process. It is never undone: a provider is never unloaded. */
static void init_curl(void) {
  static gsize done;
  if (g_once_init_enter(&done)) {
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    g_once_init_leave(&done, 1);
  }
}

HttpClient *http_client_new(const struct sandhost_host *host,
                            const struct http_client_settings *settings) {
  init_curl();
  HttpClient *client = g_new0(HttpClient, 1);
  client->host = host;
  client->unix_socket = g_strdup(settings->unix_socket);
  client->ca_file = g_strdup(settings->ca_file);
  client->cert_file = g_strdup(settings->cert_file);
  client->key_file = g_strdup(settings->key_file);
  client->insecure = settings->insecure;
  client->connect = settings->connect;
  client->explain = settings->explain;
  client->user = settings->user;
  client->connect_patience =
      settings->connect_patience > 0 ? settings->connect_patience : DEFAULT_PATIENCE;
  client->silence = settings->silence;
  client->agent = g_strdup_printf("sandhost/%.*s", (int)host->version.length, host->version.data);
  pthread_mutex_init(&client->lock, NULL);
  return client;
}

void http_client_free(HttpClient *client) {
  if (!client) {
    return;
  }
  struct http_pipe_guard guard;
  http_pipe_guard_begin(&guard);
  for (size_t i = 0; i < client->idle_count; i++) {
    http_handle_free(client->idle[i]);
  }
  http_pipe_guard_end(&guard);
  pthread_mutex_destroy(&client->lock);
  g_free(client->unix_socket);
  g_free(client->ca_file);
  g_free(client->cert_file);
  g_free(client->key_file);
  g_free(client->agent);
  g_free(client);
}

void http_reply_clear(struct http_reply *reply) {
  g_free(reply->body);
  g_free(reply->content_type);
  *reply = (struct http_reply){0};
}

/* ---- Handles --------------------------------------------------------------------------------- */

void http_handle_free(struct http_handle handle) {
  if (handle.multi && handle.easy) {
    (void)curl_multi_remove_handle(handle.multi, handle.easy);
  }
  if (handle.easy) {
    curl_easy_cleanup(handle.easy);
  }
  if (handle.multi) {
    (void)curl_multi_cleanup(handle.multi);
  }
}

int32_t http_handle_new(struct http_handle *ret_handle) {
  struct http_handle handle = {.multi = curl_multi_init(), .easy = curl_easy_init()};
  if (!handle.multi || !handle.easy) {
    http_handle_free(handle);
    return SANDHOST_NO_MEMORY;
  }
  (void)curl_multi_setopt(handle.multi, CURLMOPT_MAXCONNECTS, 1L);
  *ret_handle = handle;
  return SANDHOST_OK;
}

int32_t http_handle_take(HttpClient *client, struct http_handle *ret_handle) {
  pthread_mutex_lock(&client->lock);
  gboolean found = client->idle_count > 0;
  if (found) {
    *ret_handle = client->idle[--client->idle_count];
  }
  pthread_mutex_unlock(&client->lock);
  return found ? SANDHOST_OK : http_handle_new(ret_handle);
}

void http_handle_give_back(HttpClient *client, struct http_handle take_handle) {
  (void)curl_multi_remove_handle(take_handle.multi, take_handle.easy);
  curl_easy_reset(take_handle.easy); /* forgets all that was borrowed, keeps the connection */
  pthread_mutex_lock(&client->lock);
  gboolean room = client->idle_count < HTTP_IDLE_HANDLES;
  if (room) {
    client->idle[client->idle_count++] = take_handle;
  }
  pthread_mutex_unlock(&client->lock);
  if (!room) {
    http_handle_free(take_handle);
  }
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* connect(2) that waits while the peer's listen queue is full, which a poll does not tell. 0 or an errno. */
static int connect_in_queue(struct http_exchange *exchange, int fd,
                            const struct sockaddr_un *address) {
  const HttpClient *client = exchange->client;
  const int64_t until = contract_now() + client->connect_patience;
  for (;;) {
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0) {
      return 0;
    }
    if (errno == EINTR) {
      continue;
    }
    if (errno != EAGAIN) {
      return errno;
    }
    if (contract_now() >= until || client->host->cancelled(exchange->call)) {
      return ETIMEDOUT;
    }
    (void)client->host->wait(exchange->call, -1, 0, QUEUE_PAUSE);
  }
}

static int open_unix(struct http_exchange *exchange) {
  const char *path = exchange->client->unix_socket;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) {
    exchange->connect_error = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path, path, strlen(path));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    exchange->connect_error = errno;
    return -1;
  }
  int error = connect_in_queue(exchange, fd, &address);
  if (error) {
    exchange->connect_error = error;
    close(fd);
    return -1;
  }
  return fd;
}

gboolean http_connects_itself(const HttpClient *client) {
  return client->connect || client->unix_socket;
}

int http_open_socket(struct http_exchange *exchange) {
  HttpClient *client = exchange->client;
  g_clear_pointer(&exchange->connect_words, g_free);
  exchange->connect_error = 0;
  if (!client->connect) {
    return open_unix(exchange);
  }
  int fd = client->connect(client->user, &exchange->connect_words);
  if (fd < 0) {
    return -1;
  }
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    exchange->connect_error = errno;
    close(fd);
    return -1;
  }
  return fd;
}

/* A socket whose connect(2) succeeds at once and sends nothing, and where it is to connect. */
static int open_stand_in(struct curl_sockaddr *address) {
  const struct sockaddr_in nobody = {
      .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  memcpy(&address->addr, &nobody, sizeof nobody);
  address->addrlen = sizeof nobody;
  return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/*
 * curl connects every socket itself, also one that is connected (7.88 does not hear CURL_SOCKOPT_ALREADY_CONNECTED).
 * So where settings.connect makes the connection, curl gets a stand-in to connect, whose number the true connection
 * takes over before the request: http_connection_check.
 */
static curl_socket_t open_by_hook(struct http_exchange *exchange, struct curl_sockaddr *address) {
  int fd = http_open_socket(exchange);
  if (fd < 0) {
    return CURL_SOCKET_BAD;
  }
  int stand_in = open_stand_in(address);
  if (stand_in < 0) {
    exchange->connect_error = errno;
    close(fd);
    return CURL_SOCKET_BAD;
  }
  if (exchange->has_true_fd) {
    close(exchange->true_fd);
  }
  exchange->true_fd = fd;
  exchange->has_true_fd = TRUE;
  return stand_in;
}

static curl_socket_t open_for_curl(void *user, curlsocktype purpose,
                                   struct curl_sockaddr *address) {
  struct http_exchange *exchange = user;
  (void)purpose;
  curl_socket_t fd =
      exchange->client->connect
          ? open_by_hook(exchange, address)
          : socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  exchange->new_fd = fd;
  exchange->has_new_fd = fd >= 0;
  return fd;
}

gboolean http_connection_check(struct http_exchange *exchange) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  exchange->is_new = exchange->has_new_fd;
  if (!exchange->has_new_fd) {
    return TRUE; /* a kept connection */
  }
  exchange->has_new_fd = FALSE;
  if (exchange->has_true_fd) {
    gboolean good = dup3(exchange->true_fd, exchange->new_fd, O_CLOEXEC) >= 0;
    exchange->connect_error = good ? 0 : errno;
    close(exchange->true_fd);
    exchange->has_true_fd = FALSE;
    return good;
  }
  /* Where the peer's queue is full, curl takes the socket for connected, as a poll does. */
  exchange->queue_full = exchange->client->unix_socket &&
                         getpeername(exchange->new_fd, (struct sockaddr *)&address, &length) < 0 &&
                         errno == ENOTCONN;
  return !exchange->queue_full;
}

gboolean http_queue_wait(struct http_exchange *exchange) {
  const HttpClient *client = exchange->client;
  (void)client->host->wait(exchange->call, -1, 0, QUEUE_PAUSE);
  exchange->queue_full = FALSE;
  if (contract_now() - exchange->begun >= client->connect_patience) {
    exchange->connect_error = ETIMEDOUT;
    return FALSE;
  }
  return TRUE;
}

static void restrict_protocols(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
  (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
  /* A thread that still looks a name up does not hold a cancel up. */
  (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
}

static void prepare_tls(CURL *easy, const HttpClient *client) {
  (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  if (client->ca_file) {
    (void)curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_file);
    (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
  }
  if (client->cert_file) {
    (void)curl_easy_setopt(easy, CURLOPT_SSLCERT, client->cert_file);
    (void)curl_easy_setopt(easy, CURLOPT_SSLKEY,
                           client->key_file ? client->key_file : client->cert_file);
  }
  (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, client->insecure ? 0L : 1L);
  (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, client->insecure ? 0L : 2L);
}

void http_handle_prepare(struct http_exchange *exchange) {
  const HttpClient *client = exchange->client;
  CURL *easy = exchange->handle.easy;
  (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
  (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->complaint);
  (void)curl_easy_setopt(easy, CURLOPT_URL, exchange->request->url);
  (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  (void)curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* none, whatever the environment says */
  (void)curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
  (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  (void)curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
  (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, client->agent);
  (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                         (long)MAX(client->connect_patience / 1000000, 1));
  restrict_protocols(easy);
  prepare_tls(easy, client);
  if (http_connects_itself(client)) {
    /* With a path here, whichever, curl looks no name up. */
    (void)curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH,
                           client->connect ? "/" : client->unix_socket);
  }
  (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_for_curl);
  (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, exchange);
}

/* ---- SIGPIPE --------------------------------------------------------------------------------- */

void http_pipe_guard_begin(struct http_pipe_guard *guard) {
  sigset_t pipe_signal;
  sigset_t pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  guard->was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &guard->old);
}

void http_pipe_guard_end(const struct http_pipe_guard *guard) {
  sigset_t pipe_signal;
  sigset_t pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  if (!guard->was_pending && sigismember(&pending, SIGPIPE) == 1) {
    const struct timespec now = {0};
    while (sigtimedwait(&pipe_signal, NULL, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &guard->old, NULL);
}
