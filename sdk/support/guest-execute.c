/* SPDX-License-Identifier: Apache-2.0 */
/* guest-execute.c: a command: its parameters checked, its output counted, its result believed no
 * further than it makes sense. */
#include "failure.h"
#include "guest-request.h"

#include <limits.h>
#include <string.h>

#define EXECUTE_RESULTS (3 * 4 + 6 * 8)
G_STATIC_ASSERT(EXECUTE_RESULTS <= GUEST_RESULTS);

struct execution {
  const struct sandhost_execute *request;
  struct sandhost_observer observer;
  const char **violation; /* of the exchange */
  uint64_t delivered[3];  /* per SANDHOST_STDOUT, SANDHOST_STDERR */
};

/* ---- Parameters ------------------------------------------------------------------------------ */

static int32_t fail_invalid(const GuestClient *client, struct sandhost_call *call,
                            const char *message) {
  return fail_call(client->host, call, SANDHOST_INVALID, "%s", message);
}

static int32_t check_observer(const GuestClient *client, struct sandhost_call *call,
                              const struct sandhost_execute *request,
                              const struct sandhost_observer *observer) {
  int32_t status = guest_check_size(client, call, "observer", observer->size,
                                    CONTRACT_FIRST_SIZE(struct sandhost_observer, input_fd));
  if (status != SANDHOST_OK) {
    return status;
  }
  if (!observer->output ||
      ((request->flags & SANDHOST_EXECUTE_STDIN) && (!observer->input || !observer->input_fd))) {
    return fail_invalid(client, call, "the observer lacks a function that the command needs");
  }
  return SANDHOST_OK;
}

static int32_t check_request(const GuestClient *client, struct sandhost_call *call,
                             const struct sandhost_execute *request) {
  int32_t status = guest_check_size(client, call, "request to execute", request->size,
                                    CONTRACT_FIRST_SIZE(struct sandhost_execute, reserved));
  if (status != SANDHOST_OK) {
    return status;
  }
  if (request->flags & ~SANDHOST_EXECUTE_STDIN || request->reserved != 0) {
    return fail_invalid(client, call, "the command has a flag that this provider does not know");
  }
  if (request->argc == 0 || request->argv[0].length == 0) {
    return fail_invalid(client, call, "the command is empty");
  }
  if (request->limit < 0) {
    return fail_invalid(client, call, "the limit of the command is negative");
  }
  return request->cwd.length == 0
             ? SANDHOST_OK
             : guest_check_absolute(client, call, "working directory of the command", request->cwd);
}

/* Counts length and its prefix. FALSE: together they are more than an OPEN may hold. */
static gboolean count_bytes(size_t *total, size_t length) {
  if (length > GUEST_MAX_PARAMETERS || *total + length + 4 > GUEST_MAX_PARAMETERS) {
    return FALSE;
  }
  *total += length + 4;
  return TRUE;
}

static int32_t check_contents(const GuestClient *client, struct sandhost_call *call,
                              const struct sandhost_execute *request) {
  size_t total = 64 + (request->cwd.length > 0 ? request->cwd.length : strlen(client->working_dir));
  gboolean fits = TRUE;
  for (size_t i = 0; fits && i < request->argc; i++) {
    const struct sandhost_text *argument = &request->argv[i];
    fits = count_bytes(&total, argument->length);
    if (fits && argument->length > 0 && memchr(argument->data, 0, argument->length)) {
      return fail_invalid(client, call, "an argument of the command holds a NUL");
    }
  }
  for (size_t i = 0; fits && i < request->environment_count; i++) {
    const struct sandhost_pair *pair = &request->environment[i];
    fits = pair->name.length <= GUEST_MAX_PARAMETERS && count_bytes(&total, pair->value.length) &&
           count_bytes(&total, pair->name.length + 1);
    if (fits && (pair->name.length == 0 || memchr(pair->name.data, 0, pair->name.length) ||
                 memchr(pair->name.data, '=', pair->name.length) ||
                 (pair->value.length > 0 && memchr(pair->value.data, 0, pair->value.length)))) {
      return fail_invalid(client, call, "a variable of the command has no sensible name or value");
    }
  }
  if (!fits) {
    return fail_call(client->host, call, SANDHOST_INVALID,
                     "the command and its variables are larger than %u bytes",
                     GUEST_MAX_PARAMETERS);
  }
  return SANDHOST_OK;
}

static GByteArray *make_parameters(const GuestClient *client,
                                   const struct sandhost_execute *request) {
  GByteArray *parameters = guest_parameters_new();
  guest_parameters_u32(parameters, request->flags);
  guest_parameters_u64(parameters, (uint64_t)request->limit);
  guest_parameters_u64(parameters, request->max_output_bytes);
  if (request->cwd.length > 0) {
    guest_parameters_bytes(parameters, request->cwd.data, request->cwd.length);
  } else {
    guest_parameters_bytes(parameters, client->working_dir, strlen(client->working_dir));
  }
  guest_parameters_u32(parameters, (uint32_t)request->argc);
  for (size_t i = 0; i < request->argc; i++) {
    guest_parameters_bytes(parameters, request->argv[i].data, request->argv[i].length);
  }
  guest_parameters_u32(parameters, (uint32_t)request->environment_count);
  for (size_t i = 0; i < request->environment_count; i++) {
    const struct sandhost_pair *pair = &request->environment[i];
    guest_parameters_u32(parameters, (uint32_t)(pair->name.length + 1 + pair->value.length));
    g_byte_array_append(parameters, (const guint8 *)pair->name.data, (guint)pair->name.length);
    g_byte_array_append(parameters, (const guint8 *)"=", 1);
    if (pair->value.length > 0) {
      g_byte_array_append(parameters, (const guint8 *)pair->value.data, (guint)pair->value.length);
    }
  }
  return parameters;
}

/* ---- Output and input ------------------------------------------------------------------------ */

static void tell_started(void *user, uint64_t id) {
  struct execution *execution = user;
  if (execution->observer.started) {
    execution->observer.started(execution->observer.user, id);
  }
}

static int32_t consume_output(void *user, uint32_t channel, const void *data, size_t length) {
  struct execution *execution = user;
  uint32_t stream = channel == GUEST_OUT ? SANDHOST_STDOUT : SANDHOST_STDERR;
  uint64_t most = execution->request->max_output_bytes;
  execution->delivered[stream] += length;
  if (most > 0 && execution->delivered[stream] > most) {
    *execution->violation = "more output than it was asked for";
    return GUEST_VIOLATION;
  }
  return execution->observer.output(execution->observer.user, stream, data, length) == SANDHOST_OK
             ? SANDHOST_OK
             : SANDHOST_CANCELLED;
}

static int64_t produce_input(void *user, void *buffer, size_t length) {
  struct execution *execution = user;
  return execution->observer.input(execution->observer.user, buffer, length);
}

static int32_t produce_input_fd(void *user) {
  struct execution *execution = user;
  return execution->observer.input_fd(execution->observer.user);
}

/* ---- The result ------------------------------------------------------------------------------ */

static int64_t duration(uint64_t nanoseconds) {
  return (int64_t)MIN(nanoseconds, (uint64_t)INT64_MAX);
}

/* FALSE: it contradicts itself or what was delivered. */
static gboolean decode_result(const struct execution *execution,
                              const unsigned char results[GUEST_RESULTS],
                              struct sandhost_result *ret_result) {
  struct guest_reader reader = {.data = results, .left = EXECUTE_RESULTS};
  struct sandhost_result result = {.ended = guest_read_u32(&reader)};
  result.exit_code = (int32_t)guest_read_u32(&reader);
  result.signal = (int32_t)guest_read_u32(&reader);
  result.stdout_bytes = guest_read_u64(&reader);
  result.stderr_bytes = guest_read_u64(&reader);
  result.duration = duration(guest_read_u64(&reader));
  result.user_time = duration(guest_read_u64(&reader));
  result.system_time = duration(guest_read_u64(&reader));
  result.max_rss = guest_read_u64(&reader);
  switch (result.ended) {
  case SANDHOST_ENDED_EXIT:
    if (result.exit_code < 0 || result.exit_code > 255) {
      return FALSE;
    }
    result.signal = 0;
    break;
  case SANDHOST_ENDED_SIGNAL:
    if (result.signal < 1 || result.signal > 64) {
      return FALSE;
    }
    result.exit_code = 128 + result.signal;
    break;
  case SANDHOST_ENDED_LIMIT:
  case SANDHOST_ENDED_MEMORY:
    result.exit_code = 137;
    result.signal = 9;
    break;
  default:
    return FALSE;
  }
  if (result.stdout_bytes < execution->delivered[SANDHOST_STDOUT] ||
      result.stderr_bytes < execution->delivered[SANDHOST_STDERR]) {
    return FALSE;
  }
  *ret_result = result;
  return TRUE;
}

int32_t guest_client_execute(GuestClient *client, struct sandhost_call *call,
                             const struct sandhost_execute *request,
                             const struct sandhost_observer *observer,
                             struct sandhost_result *ret_result) {
  int32_t status = check_request(client, call, request);
  if (status == SANDHOST_OK) {
    status = check_contents(client, call, request);
  }
  if (status == SANDHOST_OK) {
    status = check_observer(client, call, request, observer);
  }
  if (status == SANDHOST_OK) {
    status = guest_check_size(client, call, "result", ret_result->size,
                              CONTRACT_FIRST_SIZE(struct sandhost_result, max_rss));
  }
  if (status != SANDHOST_OK) {
    return status;
  }
  struct execution execution = {.request = request, .observer = *observer};
  struct guest_exchange exchange = {.operation = GUEST_EXECUTE,
                                    .results_expected = EXECUTE_RESULTS,
                                    .user = &execution,
                                    .consume = consume_output,
                                    .stopped_by = "the receiver of the output stopped",
                                    .started = tell_started,
                                    .limit = request->limit};
  if (request->flags & SANDHOST_EXECUTE_STDIN) {
    exchange.produce = produce_input;
    exchange.produce_fd = produce_input_fd;
  }
  unsigned char results[GUEST_RESULTS];
  struct sandhost_result result;
  execution.violation = &exchange.violation;
  status = guest_request_run(client, call, &exchange, make_parameters(client, request), results);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (!decode_result(&execution, results, &result)) {
    return guest_request_violation(client, call, "a command that ended in no possible way");
  }
  result.size = ret_result->size;
  memcpy(ret_result, &result, MIN(ret_result->size, sizeof result));
  return SANDHOST_OK;
}
