/* SPDX-License-Identifier: Apache-2.0 */
/* plain-execute.h: a command on its way, for the files that share it. It belongs to the thread of its call. */
#ifndef SANDHOST_DOCKER_PLAIN_EXECUTE_H
#define SANDHOST_DOCKER_PLAIN_EXECUTE_H

#include "plain.h"

/* What the engine says in place of the output of a command that it could not start. */
#define ENGINE_COMPLAINT "OCI runtime exec failed"

enum how { HOW_SCRIPT, HOW_BARE };

struct execution {
  struct sandhost_sandbox *sandbox;
  struct sandhost_call *call;
  const struct sandhost_execute *request;
  struct sandhost_observer observer;
  enum how how;
  struct plain_mark mark;
  ByteChannel *channel; /* owned */
  char *exec_id;        /* owned */

  struct engine_frames frames;
  struct plain_words words[3]; /* per SANDHOST_STDOUT, SANDHOST_STDERR */
  uint32_t stream;             /* whose bytes are being looked at */
  GString *head;               /* of stdout, until it is known whose it is */
  gboolean head_open;
  uint64_t written[3];
  int64_t callback_time;

  int64_t opened_at;
  int64_t begun_at; /* 0: not yet */
  int64_t ended_at;
  gboolean ended[3];
  int code;        /* -1: unknown */
  int told;        /* what the shell told of a signal: 0 none, 1 one, 2 it tells none */
  gboolean at_end; /* of the stream */

  unsigned char input[16384];
  size_t input_length;
  size_t input_at;
  gboolean input_done;
  gboolean input_closed;

  int32_t over;         /* status with which it is being ended; 0 */
  const char *over_why; /* static */
  gboolean at_limit;
  int64_t give_up_at; /* when the container goes; 0: nothing is being ended */
};

/* ---- plain-execute-request.c ---- */

/* SANDHOST_OK, or SANDHOST_INVALID with the call's error set. */
int32_t execution_check(const struct execution *execution);
/* Makes the exec and opens its stream. */
int32_t execution_open(struct execution *execution);

/* ---- plain-execute-output.c ---- */

/* Reads what is there, a bounded while. */
int32_t execution_receive(struct execution *execution);
/* At the stream's end: hands on what was held back. */
void execution_release_held(struct execution *execution);
/* Hands output on and counts it. */
int32_t execution_deliver(struct execution *execution, uint32_t stream, const void *data,
                          size_t length);
/* What came first was the command's own after all. */
int32_t execution_close_head(struct execution *execution);
/* Whether nothing more of the command comes. */
gboolean execution_is_ended(const struct execution *execution);

/* ---- plain-execute-result.c ---- */

/* Learns the exit code where the script has not said it. */
int32_t execution_learn_code(struct execution *execution);
/* Beside a loss: nothing of the command was begun. */
void execution_tell_not_begun(const struct execution *execution);
/* Tells what the engine said in place of output. *ret_again: there is no shell, nothing ran. */
int32_t execution_explain_head(struct execution *execution, gboolean *ret_again);
void execution_fill_result(struct execution *execution, struct sandhost_result *ret_result);

#endif
