/* SPDX-License-Identifier: Apache-2.0 */
/* guest-request.c: the one loop that every operation runs in. */
#include "guest-request.h"

#include "failure.h"

#include <errno.h>
#include <string.h>

#define CHUNK ((size_t)128 * 1024)
#define CREDIT_BATCH (GUEST_WINDOW / 4)

/* ---- Parameters ------------------------------------------------------------------------------ */

/* The room in front is for the header of the first frame. */
GByteArray *guest_parameters_new(void) {
  GByteArray *parameters = g_byte_array_sized_new(512);
  return g_byte_array_set_size(parameters, GUEST_HEADER);
}

void guest_parameters_u32(GByteArray *parameters, uint32_t value) {
  unsigned char bytes[4];
  guest_put_u32(bytes, value);
  g_byte_array_append(parameters, bytes, sizeof bytes);
}

void guest_parameters_u64(GByteArray *parameters, uint64_t value) {
  unsigned char bytes[8];
  guest_put_u64(bytes, value);
  g_byte_array_append(parameters, bytes, sizeof bytes);
}

void guest_parameters_bytes(GByteArray *parameters, const void *data, size_t length) {
  guest_parameters_u32(parameters, (uint32_t)length);
  if (length > 0) {
    g_byte_array_append(parameters, data, (guint)length);
  }
}

/* ---- The state of one run -------------------------------------------------------------------- */

struct run {
  GuestClient *client;
  struct sandhost_call *call;
  struct guest_exchange *exchange;
  GByteArray *parameters;
  struct guest_request request;

  int64_t deadline;
  int32_t cancel_fd;
  int64_t opened_at;
  int64_t callback_time; /* spent in the caller's functions, which the guest cannot help */

  int32_t over;         /* the status to return, once the call is over before its request */
  const char *over_why; /* static */
  gboolean cut_short;   /* that came before everything was there: it counts even after a DONE */
  int64_t cancelled_at; /* when CANCEL was sent; 0: not yet */

  unsigned char *chunk;   /* for what produce gives; owned; made when needed */
  gboolean produced_all;  /* END was sent, or there is nothing to send */
  gboolean produce_waits; /* produce had nothing; its descriptor tells more */
  gboolean looked;        /* whether the guest is gone already, before a command is sent to it */
};

static void end_early(struct run *run, int32_t status, const char *why) {
  if (run->over == 0) {
    run->over = status;
    run->over_why = why;
  }
}

int32_t guest_call_over(const GuestClient *client, const struct sandhost_call *call,
                        int64_t deadline, int64_t now) {
  if (now >= deadline) {
    return SANDHOST_TIMEOUT;
  }
  return client->host->cancelled(call) ? SANDHOST_CANCELLED : 0;
}

/* Without the lock. */
static void check_call(struct run *run, int64_t now) {
  if (run->over != 0) {
    return;
  }
  int32_t over = guest_call_over(run->client, run->call, run->deadline, now);
  if (over == SANDHOST_TIMEOUT) {
    end_early(run, over, "the deadline passed");
  } else if (over != 0) {
    end_early(run, over, "cancelled");
  }
}

/* ---- To the guest (with the lock) ------------------------------------------------------------ */

/* Queues all frames of the OPEN. From the second on, the header overwrites bytes that are sent. */
static void send_open(struct run *run) {
  struct guest_request *request = &run->request;
  size_t left = run->parameters->len - GUEST_HEADER;
  unsigned char *at = run->parameters->data;
  do {
    uint32_t length = (uint32_t)MIN(left, (size_t)GUEST_MAX_FRAME);
    left -= length;
    guest_frame_pack(at, (struct guest_frame){.length = length,
                                              .kind = GUEST_OPEN,
                                              .channel = (uint8_t)request->operation,
                                              .flags = left > 0 ? GUEST_MORE : 0,
                                              .request = request->id});
    guest_connection_send(run->client, request, at, GUEST_HEADER + length);
    at += length;
  } while (left > 0);
  request->opened = TRUE;
  request->never_left = run->client->send_failed; /* a guest begins nothing before all of it */
  request->wants = GUEST_WANTS_NOTHING;
  run->opened_at = contract_now();
  g_byte_array_unref(g_steal_pointer(&run->parameters));
}

static void give_credit(struct run *run, uint32_t length) {
  struct guest_request *request = &run->request;
  request->to_credit += length;
  if (request->to_credit < CREDIT_BATCH || request->done || run->client->lost) {
    return;
  }
  unsigned char credit[4];
  guest_put_u32(credit, request->to_credit);
  request->may_receive += request->to_credit;
  request->to_credit = 0;
  guest_connection_send_small(run->client, request, GUEST_CREDIT, 0, request->id, credit,
                              sizeof credit);
}

/* What passes while the guest does not end the request: a cancel of ours, its grace, a limit. */
static void expire(struct run *run, int64_t now) {
  GuestClient *client = run->client;
  struct guest_request *request = &run->request;
  if (request->done || client->lost || !request->opened) {
    return;
  }
  if (run->over != 0 && run->cancelled_at == 0) {
    run->cancelled_at = now;
    run->cut_short = TRUE;
    guest_connection_send_small(client, request, GUEST_CANCEL, 0, request->id, NULL, 0);
  }
  if (run->cancelled_at != 0 && now - run->cancelled_at >= client->timing.cancel_grace) {
    guest_connection_lose(client, "it did not answer");
  }
}

/* When the command of this request must be over at the latest; INT64_MAX: never. */
static int64_t limit_due(const struct run *run) {
  const struct guest_request *request = &run->request;
  if (run->exchange->limit <= 0 || !request->opened) {
    return INT64_MAX;
  }
  int64_t from = request->started ? request->started_at : run->opened_at;
  int64_t grace = run->client->timing.limit_grace + run->callback_time;
  if (run->exchange->limit > INT64_MAX - from - grace) {
    return INT64_MAX;
  }
  return from + run->exchange->limit + grace;
}

static void expire_limit(struct run *run, int64_t now) {
  if (!run->request.done && now >= limit_due(run)) {
    guest_connection_lose(run->client,
                          "Command exceeded its time limit and the sandbox was stopped");
  }
}

/* ---- The caller's functions (called without the lock, entered and left with it) -------------- */

static int64_t begin_callback(struct run *run) {
  guest_connection_pass_on(run->client);
  pthread_mutex_unlock(&run->client->lock);
  return contract_now();
}

static void end_callback(struct run *run, int64_t began) {
  run->callback_time += contract_now() - began;
  pthread_mutex_lock(&run->client->lock);
}

static void tell_started(struct run *run) {
  run->request.told = TRUE;
  if (run->exchange->started && run->over == 0) {
    int64_t began = begin_callback(run);
    run->exchange->started(run->exchange->user, run->request.id);
    end_callback(run, began);
  }
}

/* Without the lock, which it takes to give credit. */
static void consume(struct run *run, uint32_t channel, const unsigned char *data, size_t length) {
  struct guest_exchange *exchange = run->exchange;
  while (length > 0) {
    size_t part = MIN(length, (size_t)CREDIT_BATCH);
    int32_t status = SANDHOST_OK;
    if (run->over == 0) {
      int64_t began = contract_now();
      status = exchange->consume(exchange->user, channel, data, part);
      run->callback_time += contract_now() - began;
    } else {
      run->cut_short = TRUE;
    }
    if (status == SANDHOST_OK && run->over == 0) {
      check_call(run, contract_now());
    }
    pthread_mutex_lock(&run->client->lock);
    if (status == GUEST_VIOLATION) {
      guest_connection_break(run->client, &run->request, exchange->violation);
      end_early(run, SANDHOST_PROTOCOL, exchange->violation);
    } else if (status != SANDHOST_OK) {
      end_early(run, SANDHOST_CANCELLED, exchange->stopped_by);
      run->cut_short = TRUE;
    }
    expire(run, contract_now());
    give_credit(run, (uint32_t)part);
    pthread_mutex_unlock(&run->client->lock);
    data += part;
    length -= part;
  }
}

static gboolean has_data(const struct guest_request *request) {
  return request->piece_count > 0 || (request->inbox && request->inbox->len > 0);
}

static void deliver(struct run *run) {
  struct guest_request *request = &run->request;
  GByteArray *inbox = g_steal_pointer(&request->inbox);
  guest_connection_pass_on(run->client);
  pthread_mutex_unlock(&run->client->lock);
  for (size_t i = 0; i < request->piece_count; i++) {
    consume(run, request->pieces[i].channel, request->pieces[i].data, request->pieces[i].length);
  }
  for (size_t at = 0; inbox && at < inbox->len;) {
    struct guest_record record;
    memcpy(&record, inbox->data + at, sizeof record);
    consume(run, record.channel, inbox->data + at + sizeof record, record.length);
    at += sizeof record + record.length;
  }
  pthread_mutex_lock(&run->client->lock);
  request->piece_count = 0;
  if (request->pieces_buffer) {
    guest_connection_recycle(run->client, g_steal_pointer(&request->pieces_buffer));
  }
  if (inbox && !request->inbox) {
    request->inbox = g_byte_array_set_size(inbox, 0);
  } else if (inbox) {
    g_byte_array_unref(inbox);
  }
}

static gboolean may_produce(const struct run *run) {
  return run->request.opened && !run->produced_all && !run->produce_waits && run->over == 0;
}

static void produce(struct run *run) {
  struct guest_exchange *exchange = run->exchange;
  struct guest_request *request = &run->request;
  size_t wanted = MIN((size_t)request->may_send, CHUNK);
  if (!run->chunk) {
    run->chunk = g_malloc(GUEST_HEADER + CHUNK);
  }
  int64_t began = begin_callback(run);
  int64_t count = exchange->produce(exchange->user, run->chunk + GUEST_HEADER, wanted);
  end_callback(run, began);
  if (count == -1 && exchange->produce_fd) {
    run->produce_waits = TRUE;
    return;
  }
  if (count < 0 || (uint64_t)count > wanted) {
    end_early(run, SANDHOST_CANCELLED, exchange->stopped_by);
    run->cut_short = TRUE;
    return;
  }
  if (request->done || run->client->lost) {
    return;
  }
  uint8_t kind = count > 0 ? GUEST_DATA : GUEST_END;
  guest_frame_pack(run->chunk, (struct guest_frame){.length = (uint32_t)count,
                                                    .kind = kind,
                                                    .channel = GUEST_IN,
                                                    .request = request->id});
  request->may_send -= (uint32_t)count;
  run->produced_all = count == 0;
  guest_connection_send(run->client, request, run->chunk, GUEST_HEADER + (size_t)count);
}

/* ---- The loop -------------------------------------------------------------------------------- */

static void wait_for_more(struct run *run, int64_t now) {
  struct guest_request *request = &run->request;
  gboolean input_waits = run->produce_waits && run->over == 0;
  struct guest_wait wait = {.cancel_fd = -1, .input_fd = -1, .until = limit_due(run)};
  if (run->over == 0) {
    wait.cancel_fd = run->cancel_fd;
    wait.until = MIN(wait.until, run->deadline);
    if (run->cancel_fd < 0) {
      wait.until = MIN(wait.until, now + GUEST_CANCEL_TICK);
    }
  } else {
    wait.until = MIN(wait.until, run->cancelled_at + run->client->timing.cancel_grace);
  }
  if (input_waits) {
    pthread_mutex_unlock(&run->client->lock);
    wait.input_fd = run->exchange->produce_fd(run->exchange->user);
    pthread_mutex_lock(&run->client->lock);
    if (wait.input_fd < 0) {
      wait.until = MIN(wait.until, now + GUEST_INPUT_TICK);
    }
  }
  request->wants = !request->opened   ? GUEST_WANTS_ROOM
                   : may_produce(run) ? GUEST_WANTS_CREDIT
                                      : GUEST_WANTS_NOTHING;
  guest_connection_wait(run->client, request, &wait);
  request->wants = GUEST_WANTS_NOTHING;
  if (input_waits && (wait.input_ready || wait.input_fd < 0)) {
    run->produce_waits = FALSE;
  }
}

/* One step, with the lock. FALSE: nothing is left to do. */
static gboolean step(struct run *run, int64_t now) {
  GuestClient *client = run->client;
  struct guest_request *request = &run->request;
  expire(run, now);
  expire_limit(run, now);
  if (request->started && !request->told) {
    tell_started(run);
  } else if (has_data(request)) {
    deliver(run);
  } else if (request->done || client->lost || (run->over != 0 && !request->opened)) {
    return FALSE;
  } else if (!request->opened && guest_connection_has_room(client)) {
    if (!run->looked && run->exchange->started) {
      run->looked = TRUE;
      guest_connection_look(client, request);
      return TRUE;
    }
    send_open(run);
  } else if (may_produce(run) && request->may_send > 0 && guest_connection_has_room(client)) {
    produce(run);
  } else {
    wait_for_more(run, now);
  }
  return TRUE;
}

int32_t guest_request_fail_lost(GuestClient *client, struct sandhost_call *call, gboolean broke) {
  const char *reason = guest_client_lost_reason(client);
  report_fact(client->host, call, SANDHOST_REPORT_LOST, reason);
  return fail_call(client->host, call, broke ? SANDHOST_PROTOCOL : SANDHOST_LOST, "%s", reason);
}

/* Nothing of the operation was begun. */
static int32_t fail_lost_before(GuestClient *client, struct sandhost_call *call) {
  const struct sandhost_failure details = {
      .size = sizeof details, .service_code = {.data = ""}, .may_have_happened = 0};
  client->host->fail_details(call, &details);
  return guest_request_fail_lost(client, call, FALSE);
}

int32_t guest_request_violation(GuestClient *client, struct sandhost_call *call, const char *what) {
  pthread_mutex_lock(&client->lock);
  gboolean first = !client->lost;
  guest_connection_break(client, NULL, what);
  pthread_mutex_unlock(&client->lock);
  return guest_request_fail_lost(client, call, first);
}

/* Without the lock: the request is nobody else's any more. */
static int32_t outcome(struct run *run, unsigned char results[GUEST_RESULTS]) {
  const struct sandhost_host *host = run->client->host;
  const struct guest_request *request = &run->request;
  if (request->never_left && !request->broke && !request->done) {
    return fail_lost_before(run->client, run->call);
  }
  if (request->broke || (request->opened && !request->done)) {
    return guest_request_fail_lost(run->client, run->call, request->broke);
  }
  if (run->over != 0 && (run->cut_short || !request->done)) {
    return fail_call(host, run->call, run->over, "%s", run->over_why);
  }
  if (!request->opened) {
    return fail_lost_before(run->client, run->call);
  }
  if (request->status == SANDHOST_OK) {
    memcpy(results, request->results, GUEST_RESULTS);
    return SANDHOST_OK;
  }
  if (request->message) {
    return fail_call(host, run->call, request->status, "%s", request->message);
  }
  return fail_call(host, run->call, request->status, "the guest gave no reason");
}

static int32_t fail_enter(GuestClient *client, struct sandhost_call *call, int error) {
  if (error == -EBUSY) {
    return fail_call(client->host, call, SANDHOST_LIMIT,
                     "more than %u operations at once in one sandbox", GUEST_MAX_REQUESTS);
  }
  return fail_call_errno(client->host, call, SANDHOST_LIMIT, -error, "cannot make an eventfd");
}

static void run_clear(struct run *run) {
  if (run->parameters) {
    g_byte_array_unref(run->parameters);
  }
  if (run->request.inbox) {
    g_byte_array_unref(run->request.inbox);
  }
  g_free(run->request.pieces_buffer);
  g_free(run->request.message);
  g_free(run->chunk);
}

int32_t guest_request_run(GuestClient *client, struct sandhost_call *call,
                          struct guest_exchange *exchange, GByteArray *take_parameters,
                          unsigned char results[GUEST_RESULTS]) {
  struct run run = {.client = client,
                    .call = call,
                    .exchange = exchange,
                    .parameters = take_parameters,
                    .produced_all = exchange->produce == NULL,
                    .deadline = client->host->deadline(call),
                    .cancel_fd = client->host->cancel_fd(call),
                    .request = {.call = call,
                                .operation = exchange->operation,
                                .results_expected = exchange->results_expected}};
  int32_t status;
  pthread_mutex_lock(&client->lock);
  int error = client->greeted ? guest_connection_enter(client, &run.request) : -EPROTO;
  pthread_mutex_unlock(&client->lock);
  if (error == -EPROTO) {
    status = guest_client_lost_reason(client)
                 ? fail_lost_before(client, call)
                 : fail_call(client->host, call, SANDHOST_INTERNAL, "the guest was not greeted");
  } else if (error < 0) {
    status = fail_enter(client, call, error);
  } else {
    gboolean more;
    do {
      int64_t now = contract_now();
      check_call(&run, now);
      pthread_mutex_lock(&client->lock);
      more = step(&run, now);
      pthread_mutex_unlock(&client->lock);
    } while (more);
    pthread_mutex_lock(&client->lock);
    guest_connection_leave(client, &run.request);
    pthread_mutex_unlock(&client->lock);
    status = outcome(&run, results);
  }
  run_clear(&run);
  return status;
}
