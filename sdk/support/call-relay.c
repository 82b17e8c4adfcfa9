/* SPDX-License-Identifier: Apache-2.0 */
/* call-relay.c: the host's table once more, with another idea of failures, deadline and cancel. */
#include "call-relay.h"

#include "contract.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#define SECOND ((int64_t)1000000000)

static struct call_relay *relay_of(struct sandhost_call *call) {
  return (struct call_relay *)call;
}

static const struct call_relay *relay_of_constant(const struct sandhost_call *call) {
  return (const struct call_relay *)call;
}

struct sandhost_call *call_relay_call(struct call_relay *relay) {
  return (struct sandhost_call *)relay;
}

void call_relay_clear(struct call_relay *relay) {
  g_clear_pointer(&relay->failure, g_free);
  g_clear_pointer(&relay->lost, g_free);
}

static int64_t relay_deadline(const struct sandhost_call *call) {
  const struct call_relay *relay = relay_of_constant(call);
  return relay->deadline > 0 ? relay->deadline : relay->host->deadline(relay->call);
}

static int32_t relay_cancelled(const struct sandhost_call *call) {
  const struct call_relay *relay = relay_of_constant(call);
  return relay->deadline > 0 ? contract_now() >= relay->deadline
                             : relay->host->cancelled(relay->call);
}

static int32_t relay_cancel_fd(const struct sandhost_call *call) {
  const struct call_relay *relay = relay_of_constant(call);
  return relay->deadline > 0 ? -1 : relay->host->cancel_fd(relay->call);
}

/* host->wait for a call that only its own deadline ends. */
static int32_t wait_alone(int64_t deadline, int32_t fd, int32_t events, int64_t duration) {
  int64_t until = deadline;
  int64_t now = contract_now();
  if (duration >= 0 && duration < until - now) {
    until = now + duration;
  }
  for (; now < until; now = contract_now()) {
    struct pollfd ready = {.fd = fd, .events = (short)events};
    struct timespec left = {.tv_sec = (until - now) / SECOND, .tv_nsec = (until - now) % SECOND};
    if (ppoll(&ready, 1, &left, NULL) > 0) {
      return SANDHOST_OK;
    }
  }
  return SANDHOST_TIMEOUT;
}

static int32_t relay_wait(const struct sandhost_call *call, int32_t fd, int32_t events,
                          int64_t duration) {
  const struct call_relay *relay = relay_of_constant(call);
  return relay->deadline > 0 ? wait_alone(relay->deadline, fd, events, duration)
                             : relay->host->wait(relay->call, fd, events, duration);
}

static int32_t relay_fail(struct sandhost_call *call, int32_t status,
                          struct sandhost_text message) {
  struct call_relay *relay = relay_of(call);
  if (status != SANDHOST_LOST && !relay->quiet) {
    relay->failed = TRUE;
    return relay->host->fail(relay->call, status, message);
  }
  if (!relay->failed) {
    relay->failed = TRUE;
    relay->failure = g_strndup(message.data, message.length);
  }
  return status;
}

static void relay_fail_details(struct sandhost_call *call, const struct sandhost_failure *details) {
  struct call_relay *relay = relay_of(call);
  if (!relay->quiet) {
    relay->host->fail_details(relay->call, details);
  }
}

static void relay_report(struct sandhost_call *call, uint32_t kind, struct sandhost_text value) {
  struct call_relay *relay = relay_of(call);
  if (kind != SANDHOST_REPORT_LOST) {
    relay->host->report(relay->call, kind, value);
  } else if (!relay->lost) {
    relay->lost = g_strndup(value.data, value.length);
  }
}

static void relay_progress(struct sandhost_call *call, struct sandhost_text line) {
  struct call_relay *relay = relay_of(call);
  relay->host->progress(relay->call, line);
}

const struct sandhost_host call_relay_host = {.size = sizeof(struct sandhost_host),
                                              .minor = SANDHOST_ABI_MINOR,
                                              .version = {.data = "", .length = 0},
                                              .deadline = relay_deadline,
                                              .cancelled = relay_cancelled,
                                              .cancel_fd = relay_cancel_fd,
                                              .wait = relay_wait,
                                              .fail = relay_fail,
                                              .fail_details = relay_fail_details,
                                              .report = relay_report,
                                              .progress = relay_progress};
