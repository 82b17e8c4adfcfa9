/* SPDX-License-Identifier: Apache-2.0 */
/* guest-client.c: the life of a client: made, greeted, lost, freed; and the small operations. */
#include "guest-client.h"

#include "failure.h"
#include "guest-request.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define SECOND ((int64_t)1000000000)

GuestClient *guest_client_new(const struct sandhost_host *host, ByteChannel *take_channel,
                              const char *working_dir) {
  GuestClient *client = g_new0(GuestClient, 1);
  client->host = host;
  client->channel = take_channel;
  client->working_dir = g_strdup(working_dir ? working_dir : "");
  client->timing = (struct guest_timing){.ping_after = 5 * SECOND,
                                         .lost_after = 15 * SECOND,
                                         .cancel_grace = 2 * SECOND,
                                         .limit_grace = 10 * SECOND};
  client->buffer = g_malloc(GUEST_RECEIVE_BUFFER);
  client->out = g_byte_array_new();
  client->heard_at = client->unread_since = contract_now();
  pthread_mutex_init(&client->lock, NULL);
  for (size_t i = 0; i < GUEST_MAX_REQUESTS; i++) {
    client->wake_fds[i] = -1;
  }
  return client;
}

void guest_client_free(GuestClient *client) {
  if (!client) {
    return;
  }
  client->channel->free(client->channel);
  for (size_t i = 0; i < GUEST_MAX_REQUESTS; i++) {
    if (client->wake_fds[i] >= 0) {
      close(client->wake_fds[i]);
    }
  }
  pthread_mutex_destroy(&client->lock);
  g_byte_array_unref(client->out);
  g_free(client->buffer);
  g_free(client->spare);
  g_free(client->lost_reason);
  g_free(client->working_dir);
  g_free(client);
}

gboolean guest_client_lose(GuestClient *client, const char *reason) {
  pthread_mutex_lock(&client->lock);
  gboolean busy = client->open_count > 0;
  guest_connection_lose(client, reason);
  pthread_mutex_unlock(&client->lock);
  return busy;
}

const char *guest_client_lost_reason(GuestClient *client) {
  pthread_mutex_lock(&client->lock);
  const char *reason = client->lost_reason;
  pthread_mutex_unlock(&client->lock);
  return reason;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

int32_t guest_check_size(const GuestClient *client, struct sandhost_call *call, const char *what,
                         size_t size, size_t first_size) {
  if (size < first_size) {
    return fail_call(client->host, call, SANDHOST_INVALID, "the %s is smaller than it ever was",
                     what);
  }
  return SANDHOST_OK;
}

int32_t guest_check_absolute(const GuestClient *client, struct sandhost_call *call,
                             const char *what, struct sandhost_path path) {
  if (path.length == 0 || path.data[0] != '/') {
    return fail_call(client->host, call, SANDHOST_INVALID, "the %s is not an absolute path", what);
  }
  if (path.length >= PATH_MAX) {
    return fail_call(client->host, call, SANDHOST_INVALID, "the %s is too long for a path", what);
  }
  if (memchr(path.data, 0, path.length)) {
    return fail_call(client->host, call, SANDHOST_INVALID, "the %s holds a NUL", what);
  }
  return SANDHOST_OK;
}

/* ---- Greeting -------------------------------------------------------------------------------- */

static void send_hello(GuestClient *client, struct guest_request *request) {
  unsigned char frame[GUEST_HEADER + 8 + GUEST_NONCE];
  guest_frame_pack(
      frame, (struct guest_frame){.length = sizeof frame - GUEST_HEADER, .kind = GUEST_HELLO});
  guest_put_u32(frame + GUEST_HEADER, GUEST_MAGIC);
  guest_put_u32(frame + GUEST_HEADER + 4, GUEST_VERSION);
  memcpy(frame + GUEST_HEADER + 8, client->nonce, GUEST_NONCE);
  guest_connection_send(client, request, frame, sizeof frame);
}

/* Waits, with the lock, until the greeting is there or will not be. Returns the status of a call that
 * is over before, or 0. */
static int32_t wait_for_hello(GuestClient *client, struct guest_request *request) {
  const int64_t deadline = client->host->deadline(request->call);
  const int32_t cancel_fd = client->host->cancel_fd(request->call);
  while (!request->done && !client->lost) {
    pthread_mutex_unlock(&client->lock);
    int64_t now = contract_now();
    int32_t over = guest_call_over(client, request->call, deadline, now);
    pthread_mutex_lock(&client->lock);
    if (over != 0) {
      return over;
    }
    struct guest_wait wait = {.cancel_fd = cancel_fd,
                              .input_fd = -1,
                              .until = cancel_fd < 0 ? MIN(deadline, now + GUEST_CANCEL_TICK)
                                                     : deadline};
    guest_connection_wait(client, request, &wait);
  }
  return 0;
}

int32_t guest_client_greet(GuestClient *client, struct sandhost_call *call, gboolean *ret_is_init) {
  struct guest_request request = {.call = call};
  if (getrandom(client->nonce, GUEST_NONCE, 0) != GUEST_NONCE) {
    return fail_call_errno(client->host, call, SANDHOST_INTERNAL, errno, "no random bytes");
  }
  pthread_mutex_lock(&client->lock);
  int error = client->lost ? 0 : guest_connection_enter(client, &request);
  int32_t over = 0;
  if (error == 0 && !client->lost) {
    send_hello(client, &request);
    over = wait_for_hello(client, &request);
    if (over != 0) {
      guest_connection_lose(client, "its greeting was not waited for");
    }
    guest_connection_leave(client, &request);
  }
  gboolean is_init = (client->guest_flags & GUEST_IS_INIT) != 0;
  pthread_mutex_unlock(&client->lock);
  if (error < 0) {
    return fail_call_errno(client->host, call, SANDHOST_LIMIT, -error, "cannot make an eventfd");
  }
  if (over != 0) {
    return fail_call(client->host, call, over, "%s before the guest greeted",
                     over == SANDHOST_TIMEOUT ? "the deadline passed" : "cancelled");
  }
  if (!request.done || request.broke) {
    return guest_request_fail_lost(client, call, request.broke);
  }
  if (ret_is_init) {
    *ret_is_init = is_init;
  }
  return SANDHOST_OK;
}

/* ---- Small operations ------------------------------------------------------------------------ */

int32_t guest_client_signal(GuestClient *client, struct sandhost_call *call, uint64_t execution,
                            int32_t signal) {
  if (signal < 1 || signal > 64) {
    return fail_call(client->host, call, SANDHOST_INVALID, "signal %d does not exist", signal);
  }
  pthread_mutex_lock(&client->lock);
  gboolean lost = client->lost;
  struct guest_request *request = client->slots[execution % GUEST_MAX_REQUESTS];
  gboolean found = request && request->id == execution && request->operation == GUEST_EXECUTE &&
                   request->started && !request->done;
  if (found && !lost) {
    unsigned char number[4];
    guest_put_u32(number, (uint32_t)signal);
    guest_connection_send_small(client, NULL, GUEST_SIGNAL, 0, request->id, number, sizeof number);
  }
  pthread_mutex_unlock(&client->lock);
  if (lost) {
    return guest_request_fail_lost(client, call, FALSE);
  }
  if (!found) {
    return fail_call(client->host, call, SANDHOST_NOT_FOUND, "the command is not running");
  }
  return SANDHOST_OK;
}

int32_t guest_client_probe(GuestClient *client, struct sandhost_call *call,
                           const struct sandhost_probe *request, uint32_t *ret_verdict) {
  int32_t status = guest_check_size(client, call, "probe", request->size,
                                    CONTRACT_FIRST_SIZE(struct sandhost_probe, patience));
  if (status != SANDHOST_OK) {
    return status;
  }
  if (request->address.length == 0 || request->address.length > 64 || request->port == 0 ||
      request->port > 65535 || request->patience < 0 || request->reserved != 0) {
    return fail_call(client->host, call, SANDHOST_INVALID,
                     "the address, port or patience of the probe makes no sense");
  }
  GByteArray *parameters = guest_parameters_new();
  guest_parameters_bytes(parameters, request->address.data, request->address.length);
  guest_parameters_u32(parameters, request->port);
  guest_parameters_u64(parameters, (uint64_t)request->patience);
  struct guest_exchange exchange = {.operation = GUEST_PROBE, .results_expected = 4};
  unsigned char results[GUEST_RESULTS];
  status = guest_request_run(client, call, &exchange, parameters, results);
  if (status != SANDHOST_OK) {
    return status;
  }
  uint32_t verdict = guest_get_u32(results);
  if (verdict != SANDHOST_PROBE_REACHED && verdict != SANDHOST_PROBE_BLOCKED) {
    return guest_request_violation(client, call, "a probe without a verdict");
  }
  *ret_verdict = verdict;
  return SANDHOST_OK;
}
