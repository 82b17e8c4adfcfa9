/* SPDX-License-Identifier: Apache-2.0 */
/* execute-private.h: one call of execute on its way, as the files of it share it. */
#ifndef SANDHOST_RUN_EXECUTE_PRIVATE_H
#define SANDHOST_RUN_EXECUTE_PRIVATE_H

#include "run/execute.h"
#include "run/output.h"
#include "run/run-private.h"

typedef struct {
  Run *run;
  const ExecuteCall *request;
  char *id;     /* call_... */
  char *script; /* the command as sh gets it */
  JsonObject *args;
  gint64 limit; /* seconds */
  Gate *gate;
  GPtrArray *approvals;       /* ids of earlier answers that this call stands on */
  GPtrArray *answered;        /* approvals (JsonObject *) of asks that were answered at once */
  gboolean begun;             /* the command may take effect */
  gboolean waits;             /* its asks were put down for a person */
  JsonObject *budget_request; /* the call waits for a budget; NULL: it does not */
  PolicyDecision *decision;   /* that of the command itself */
  Session *session;
  char *execution_id;
  BridgeReport *report;   /* NULL: nothing is copied */
  guint files_allowed[2]; /* read, write: told in one summary */
  JsonObject *files_denied;

  Output out;
  Output err;
  /* What is kept, once the command has ended. */
  JsonObject *stdout_text;
  JsonObject *stderr_text;
  JsonObject *stdout_kept; /* what the record has of it beside the text; NULL: nothing */
  JsonObject *stderr_kept;
  JsonObject *stdout_offloaded; /* what its event has in place of the text; NULL: the text */
  JsonObject *stderr_offloaded;
  gboolean large;    /* what events hold of it is a matter of memory */
  gboolean redacted; /* a credential was taken out of it */
  gboolean stdout_cut;
  gboolean stderr_cut;
  gboolean stopped; /* the door's output function said so */
  struct sandhost_result result;
  gint64 started;
  gboolean timed_out;
  gboolean lost;
  PolicyRequest *command; /* what is asked about it; made when it is first wanted */
  gboolean not_started; /* the sandbox was lost, and it is certain that the command was not begun */
} Call;

/* execute-ask.c */
Gate *call_gate(Call *call);
/* Before anybody is asked: FALSE where a later step is certain to be refused, so that nobody answers in vain. opens: a
 * sandbox is made for the command. */
gboolean call_look_ahead(Call *call, gboolean opens, GError **error);
gboolean call_authorize(Call *call, PolicyRequest *take_request, PolicyDecision **ret_decision,
                        GError **error);
/* What the manifest asks for, as one batch. */
gboolean call_authorize_manifest(Call *call, GError **error);
/* Leaves the decision with the call. */
gboolean call_authorize_command(Call *call, GError **error);

/* execute-record.c. Nothing is durable before the journal is flushed. */
void call_record_started(Run *run, const char *call_id, JsonObject *args, JsonObject *tag,
                         gboolean resumed);
/* GateHooks.record; user is a Call. */
gboolean call_record_decision(void *user, const PolicyRequest *request,
                              const PolicyDecision *decision, GError **error);
/* The event, owned: it is made durable with the step that begins the command, or not at all. */
JsonObject *call_command_event(Call *call);
/* failure NULL: it ended by itself, or at its limit. */
void call_record_command_ended(Call *call, gint64 duration, const GError *failure);
void call_record_sync(Call *call);
/* waits: the outcome of a call that waits for a person; NULL: it does not. */
void call_record_ended(Run *run, const char *call_id, const ExecuteOutcome *outcome,
                       const char *waits);

/* budget.c. Each of the first three is FALSE where a budget has no room: the run then waits
 * (call->budget_request), is over, or goes on without this command. */
/* Before anything is made for the command; nothing is taken. */
gboolean budget_look(Call *call, GError **error);
/* The same before a person is asked: TRUE also where the run is to wait for a budget, which comes after the answer. */
gboolean budget_look_ahead(Call *call, GError **error);
/* Takes what the command needs, uses the approvals and writes its beginning, all at once. Takes the event. */
gboolean budget_begin(Call *call, JsonObject *take_event, GError **error);
/* The command has ended: what it took is charged. */
void budget_ended(Call *call);

/* execute-tell.c */
gboolean call_is_cancel(const GError *error);
/* Once for a run: the next command would be told the same. */
void call_tell_shortened(const Call *call);
void call_tell_error(const Call *call, const GError *error, ExecuteOutcome *ret_outcome);
void call_tell_result(const Call *call, ExecuteOutcome *ret_outcome);

#endif
