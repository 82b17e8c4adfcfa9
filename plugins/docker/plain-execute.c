/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain-execute.c: a command through the engine's exec, followed through its one stream.
 *
 * It runs below the script of plain-script.c, which says where it begins and ends. What the script cannot say, since it
 * was killed itself, the engine does. Where the image has no shell, the command runs bare: the stream's end is its end.
 */
#include "plain-execute.h"

#include "failure.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define TICK (50 * PLAIN_MILLISECOND)       /* for a cancel without a descriptor */
#define INPUT_TICK (10 * PLAIN_MILLISECOND) /* for an input without one */
/* Past its limit, for a command to end in before the container does. */
#define LIMIT_GRACE (10 * PLAIN_SECOND)
#define LIMIT_KILL_PATIENCE (2 * PLAIN_SECOND)
/* The same for a call that is over: the contract gives two seconds in all. */
#define CANCEL_GRACE (400 * PLAIN_MILLISECOND)
#define CANCEL_KILL_PATIENCE (1000 * PLAIN_MILLISECOND)

/* ---- Input -------------------------------------------------------------------------------------- */

static gboolean wants_input(const struct execution *execution) {
  return !execution->input_done && execution->input_length == 0;
}

static void ask_input(struct execution *execution) {
  int64_t count = execution->observer.input(execution->observer.user, execution->input,
                                            sizeof execution->input);
  if (count == 0 || count > (int64_t)sizeof execution->input) {
    execution->input_done = TRUE;
  } else if (count > 0) {
    execution->input_length = (size_t)count;
    execution->input_at = 0;
  }
}

/* The other side sees the end of the input and goes on answering, also behind TLS: the engine takes a connection that is
 * closed one way for the end of stdin. */
static void close_input(struct execution *execution) {
  execution->input_closed = TRUE;
  (void)shutdown(execution->channel->send_fd(execution->channel), SHUT_WR);
}

static void send_input(struct execution *execution) {
  while (execution->input_length > 0) {
    ssize_t count =
        execution->channel->send(execution->channel, execution->input + execution->input_at,
                                 execution->input_length - execution->input_at);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    }
    if (count < 0) { /* nobody reads any more: the stream's end tells why */
      execution->input_done = TRUE;
      execution->input_closed = TRUE;
      execution->input_length = 0;
      return;
    }
    execution->input_at += (size_t)count;
    if (execution->input_at == execution->input_length) {
      execution->input_length = 0;
    }
  }
  if (execution->input_done && !execution->input_closed) {
    close_input(execution);
  }
}

/* ---- Waiting ------------------------------------------------------------------------------------ */

static int64_t limit_at(const struct execution *execution) {
  int64_t from = execution->begun_at ? execution->begun_at : execution->opened_at;
  int64_t limit = execution->request->limit;
  return limit == 0 ? INT64_MAX : limit > INT64_MAX - from ? INT64_MAX : from + limit;
}

static int64_t next_time(const struct execution *execution, int input_fd, int cancel_fd) {
  int64_t now = contract_now();
  int64_t next = execution->give_up_at ? execution->give_up_at
                                       : MIN(limit_at(execution),
                                             execution->sandbox->host->deadline(execution->call));
  if (!execution->give_up_at && cancel_fd < 0) {
    next = MIN(next, now + TICK);
  }
  if (wants_input(execution) && input_fd < 0) {
    next = MIN(next, now + INPUT_TICK);
  }
  return MAX(next - now, 0);
}

static void add_fd(struct pollfd *fds, nfds_t *count, int fd, short events) {
  if (fd >= 0) {
    fds[(*count)++] = (struct pollfd){.fd = fd, .events = events};
  }
}

static void wait_for_something(struct execution *execution) {
  ByteChannel *channel = execution->channel;
  struct pollfd fds[4];
  nfds_t count = 0;
  int cancel_fd = execution->sandbox->host->cancel_fd(execution->call);
  int input_fd =
      wants_input(execution) ? execution->observer.input_fd(execution->observer.user) : -1;
  if (channel->pending && channel->pending(channel)) {
    return;
  }
  add_fd(fds, &count, channel->receive_fd(channel), POLLIN);
  if (execution->input_length > 0) {
    add_fd(fds, &count, channel->send_fd(channel), POLLOUT);
  }
  add_fd(fds, &count, execution->give_up_at ? -1 : cancel_fd, POLLIN);
  add_fd(fds, &count, input_fd, POLLIN);
  int64_t left = next_time(execution, input_fd, cancel_fd);
  struct timespec patience = {.tv_sec = (time_t)(left / PLAIN_SECOND),
                              .tv_nsec = (long)(left % PLAIN_SECOND)};
  (void)ppoll(fds, count, &patience, NULL);
}

/* ---- Ending it ---------------------------------------------------------------------------------- */

static void notice_over(struct execution *execution) {
  const struct sandhost_host *host = execution->sandbox->host;
  if (execution->over || execution->at_limit) {
    return;
  }
  if (host->cancelled(execution->call)) {
    gboolean late = contract_now() >= host->deadline(execution->call);
    execution->over = late ? SANDHOST_TIMEOUT : SANDHOST_CANCELLED;
    execution->over_why = late ? "the command did not end before the deadline" : "cancelled";
  } else if (contract_now() >= limit_at(execution)) {
    execution->at_limit = TRUE;
  }
}

/* Begins to end what runs. From now on only its end, or the time to give up, is waited for. */
static void end_command(struct execution *execution) {
  gboolean over = execution->over != 0;
  int32_t status = plain_kill_tree(execution->sandbox, execution->call, &execution->mark,
                                   over ? CANCEL_KILL_PATIENCE : LIMIT_KILL_PATIENCE);
  execution->input_done = TRUE;
  execution->input_length = 0;
  if (status != SANDHOST_OK) {
    plain_kill_all(execution->sandbox, execution->call);
  } else if (over) {
    execution->at_end = TRUE; /* nothing of it is left, and nobody listens */
  }
  int64_t grace = over ? CANCEL_GRACE : LIMIT_GRACE;
  int64_t from =
      over ? contract_now() : MAX(limit_at(execution), contract_now() - LIMIT_KILL_PATIENCE);
  execution->give_up_at = MAX(from + grace, contract_now() + CANCEL_GRACE);
}

static int32_t give_up(struct execution *execution) {
  return plain_stop(execution->sandbox, execution->call,
                    execution->over
                        ? "A cancelled command did not end and the sandbox was stopped"
                        : "Command exceeded its time limit and the sandbox was stopped");
}

static int32_t follow(struct execution *execution) {
  while (!execution_is_ended(execution)) {
    if (!execution->input_closed && !execution->input_done && wants_input(execution)) {
      ask_input(execution);
    }
    if (!execution->input_closed) {
      send_input(execution);
    }
    wait_for_something(execution);
    int32_t status = execution_receive(execution);
    if (status != SANDHOST_OK) {
      return status;
    }
    if (execution_is_ended(execution)) {
      break;
    }
    notice_over(execution);
    if ((execution->over || execution->at_limit) && !execution->give_up_at) {
      end_command(execution);
    } else if (execution->give_up_at && contract_now() >= execution->give_up_at) {
      return give_up(execution);
    }
  }
  return SANDHOST_OK;
}

/* ---- The operation ------------------------------------------------------------------------------ */

static void begin(struct execution *execution) {
  gboolean has_input = (execution->request->flags & SANDHOST_EXECUTE_STDIN) != 0;
  execution->opened_at = contract_now();
  execution->code = -1;
  execution->head = g_string_new(NULL);
  execution->head_open = TRUE;
  execution->input_done = !has_input;
  execution->input_closed = !has_input;
  execution->words[SANDHOST_STDOUT].nonce = execution->mark.nonce;
  execution->words[SANDHOST_STDERR].nonce = execution->mark.nonce;
  if (execution->how == HOW_BARE) {
    execution->begun_at = execution->opened_at;
    if (execution->observer.started) {
      execution->observer.started(execution->observer.user, 0);
    }
  }
}

static int32_t attempt(struct execution *execution, gboolean *ret_again,
                       struct sandhost_result *ret_result) {
  int32_t status = execution_open(execution);
  if (status != SANDHOST_OK) {
    if (status == SANDHOST_LOST) {
      execution_tell_not_begun(execution);
    }
    return status;
  }
  begin(execution);
  status = follow(execution);
  if (status == SANDHOST_OK && execution->over) {
    return fail_call(execution->sandbox->host, execution->call, execution->over, "%s",
                     execution->over_why);
  }
  if (status == SANDHOST_OK) {
    status = execution_learn_code(execution);
  }
  if (status == SANDHOST_OK) {
    status = execution_explain_head(execution, ret_again);
  }
  if (status == SANDHOST_OK && !*ret_again) {
    execution_fill_result(execution, ret_result);
  } else if (status != SANDHOST_OK && status != SANDHOST_LOST) {
    /* Nobody hears of it any more: it does not go on unseen. */
    (void)plain_kill_tree(execution->sandbox, execution->call, &execution->mark,
                          CANCEL_KILL_PATIENCE);
  }
  return status;
}

static void end(struct execution *execution) {
  if (execution->channel) {
    execution->channel->free(execution->channel);
  }
  if (execution->head) {
    g_string_free(execution->head, TRUE);
  }
  g_free(execution->exec_id);
}

int32_t plain_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                      const struct sandhost_execute *request,
                      const struct sandhost_observer *observer,
                      struct sandhost_result *ret_result) {
  int32_t status = plain_check_size(sandbox, call, "request to execute", request->size,
                                    CONTRACT_FIRST_SIZE(struct sandhost_execute, reserved));
  if (status == SANDHOST_OK) {
    status = plain_check_size(sandbox, call, "observer", observer->size,
                              CONTRACT_FIRST_SIZE(struct sandhost_observer, input_fd));
  }
  if (status == SANDHOST_OK) {
    status = plain_check_size(sandbox, call, "result", ret_result->size,
                              CONTRACT_FIRST_SIZE(struct sandhost_result, max_rss));
  }
  gboolean again = TRUE;
  for (enum how how = HOW_SCRIPT; status == SANDHOST_OK && again && how <= HOW_BARE; how++) {
    struct execution *execution = g_new0(struct execution, 1);
    execution->sandbox = sandbox;
    execution->call = call;
    execution->request = request;
    execution->observer = *observer;
    execution->how = how;
    again = FALSE;
    status = execution_check(execution);
    if (status == SANDHOST_OK && !plain_mark_make(&execution->mark)) {
      status = fail_call(sandbox->host, call, SANDHOST_INTERNAL, "there is no randomness");
    }
    if (status == SANDHOST_OK) {
      status = attempt(execution, &again, ret_result);
    }
    end(execution);
    g_free(execution);
  }
  return status;
}
