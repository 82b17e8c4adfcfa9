/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.h: the execute tool (behaviour 7), the way of one command: asked about, given a sandbox, the workspace's
 * files copied in, run, files copied back, told. Any number may run at once in a run.
 */
#ifndef SANDHOST_RUN_EXECUTE_H
#define SANDHOST_RUN_EXECUTE_H

#include "run/run.h"

#define EXECUTE_DEFAULT_TIMEOUT 60 /* seconds */

typedef struct {
  const char *command;
  gint64 timeout; /* seconds; 0: the default; clamped to 1 ... tool_call_timeout */
  /* A call that an earlier segment of the run left waiting, or never began; NULL: a new one. */
  const char *tool_call_id;
  JsonObject
      *tag; /* of the door: kept with the call, for when it must be told in another process; NULL */

  /* Follows the command as it runs; each may be NULL. They are called from one thread at a time: not that of
   * execute_run, except for the last of the output, once the command has ended. */
  void *user;
  void (*started)(void *user, guint64 execution);
  /* Everything that the command writes, without credentials, also what is over the cap of the result. FALSE ends the command. NULL: only
   * what the result keeps leaves the sandbox. */
  gboolean (*output)(void *user, guint32 stream, const void *data, gsize length);
  /* stdin, as sandhost_observer has it; NULL: it is empty. */
  gint64 (*input)(void *user, void *buffer, gsize length);
  gint32 (*input_fd)(void *user);
  /* No other call of this run is under way or follows: the sandbox is ended while the result is written down. */
  gboolean last;
} ExecuteCall;

/* How a call ended, for a door that must turn it into an exit code. */
typedef enum {
  EXECUTE_FINISHED, /* the command ran and ended; exit_code is its own */
  EXECUTE_TIMED_OUT,
  EXECUTE_LOST,     /* the sandbox went away under it */
  EXECUTE_DENIED,   /* by the policy */
  EXECUTE_WAITING,  /* the policy asks and nobody answered; with run_is_paused it waits */
  EXECUTE_REJECTED, /* the arguments make no sense; nothing was done */
  EXECUTE_CANCELLED,
  EXECUTE_FAILED,  /* provider, record or workspace */
  EXECUTE_UNKNOWN, /* it was interrupted in another process, and may have taken effect */
} ExecuteEnd;

typedef struct {
  ExecuteEnd end;
  int exit_code;           /* of the command; -1 where it did not run */
  JsonObject *observation; /* behaviour 7.2: tool_name, args, status, data, message; owned */
  JsonObject *sync;        /* {copied_in, written, skipped} or NULL; owned */
} ExecuteOutcome;

void execute_outcome_clear(ExecuteOutcome *outcome);

/* What a person is told of a timeout above most, the configuration's tool_call_timeout; NULL: nothing is cut. Owned. */
char *execute_shortened(gint64 timeout, gint64 most);

/* {run_id, trace_id, status, data, message, workspace_sync}, and where they apply governance_error_code, error_type,
 * record_error. Returns owned; shares parts of outcome. */
JsonObject *execute_outcome_json(const Run *run, const ExecuteOutcome *outcome);

/* Runs one command to its end. Everything that can go wrong is in the outcome. */
void execute_run(Run *run, const ExecuteCall *call, ExecuteOutcome *ret_outcome);

/* Ends with EXECUTE_REJECTED what never was a call (bad JSON, wrong arguments), so that it is recorded too.
 * arguments may be NULL. */
void execute_reject(Run *run, JsonObject *arguments, const char *message,
                    ExecuteOutcome *ret_outcome);

/* Ends a call of an earlier segment of which nobody knows whether it took effect: it is not done again. reported: how its
 * command is known to have ended ("success", "error"); NULL: unknown. */
void execute_unknown(Run *run, const char *tool_call_id, JsonObject *arguments,
                     const char *reported, ExecuteOutcome *ret_outcome);

/* Ends a call of an earlier segment that was never begun and cannot be: message says why. */
void execute_withheld(Run *run, const char *tool_call_id, JsonObject *arguments,
                      const char *message, ExecuteOutcome *ret_outcome);

/* Sends a signal to a command that runs. */
gboolean execute_signal(Run *run, guint64 execution, int signal_number, GError **error);

/* The tool's declaration for a model: {name, description, parameters}. Returns owned. */
JsonObject *execute_declaration(const Harness *harness);

#endif
