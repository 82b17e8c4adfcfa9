/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budgets.h: what runs have used of their budgets (behaviour 11), counted in the record's own file, which all processes
 * share: a check, what it takes and what happens because of it are one transaction.
 *
 * A counter is one scope, key, meter and window. Amounts are millionths of the meter's unit. spent is what was used,
 * reserved what is held for work that goes on; the two together never pass limit + granted by a charge that is checked.
 * A hold belongs to a run and is released with the run's end, whoever tells it, so a process that died leaves none.
 */
#ifndef SANDHOST_RECORD_BUDGETS_H
#define SANDHOST_RECORD_BUDGETS_H

#include "record/record.h"

/* A limit that covers the run, as its counter. Texts are borrowed. */
typedef struct {
  const char *scope;
  const char *key;
  const char *meter;
  const char *window;
  gint64 starts; /* of the window, nanoseconds since 1970; 0: the total */
  gint64 limit;
  gint64 warn_at;  /* millionths of the limit */
  gboolean pauses; /* else the run ends at the limit */
} RecordLimit;

typedef enum {
  RECORD_OWE,   /* for work that is done already: never refused */
  RECORD_LOOK,  /* is there room for it? nothing is taken */
  RECORD_SPEND, /* spent, if there is room */
  RECORD_HOLD,  /* held, if there is room, until it is settled */
} RecordChargeKind;

typedef struct {
  RecordLimit limit;
  RecordChargeKind kind;
  gint64 amount;
  gint64 least;     /* what will do where there is no room for all of it; 0: nothing less */
  const char *hold; /* of RECORD_HOLD: its name; borrowed */
} RecordCharge;

/* The end of a hold: amount is what was used in its place. */
typedef struct {
  char *hold;
  gint64 amount;
} RecordSettlement;

/* What keeps a step from happening. */
typedef struct {
  gboolean found;
  RecordLimit limit;
  gint64 total; /* the limit and what was granted */
  gint64 used;  /* spent and reserved */
  gint64 needed;
} RecordShortage;

/* "The {scope} budget for {meter} is exhausted: {used} of {limit} used, {n} more needed". Owned. */
char *record_shortage_text(const RecordShortage *shortage);

/* The member of a request that holds the arguments of the calls that wait with it, where the events lack something of
 * them: {tool_call_id: arguments}. No function but record_sealed_calls tells it; it goes when the call begins or the run
 * ends. */
#define BUDGET_SEALED "sealed_calls"

/* Whose work it is that waits. All borrowed. */
typedef struct {
  const char *tool_call_id; /* NULL: no call's */
  JsonObject *sealed; /* its arguments, to be kept as BUDGET_SEALED; NULL: the events have them */
} RecordWaiting;

/* What is durable together, for the owner alone (approvals.h). Everything may be NULL. */
typedef struct {
  const GPtrArray *approval_ids;
  const char *again;   /* a call of an earlier segment that begins: what is sealed of it goes */
  GArray *charges;     /* RecordCharge */
  GArray *settlements; /* RecordSettlement */
  JsonObject *events;
  const GPtrArray *
      answered; /* approvals (JsonObject *) that are decided already: record_ask_budget stores them */
} RecordStep;

/* All of it or nothing. Where a budget has no room: BUDGET_EXCEEDED, *ret_shortage is set, and the approvals are as they
 * were. Of several limits without room one that ends the run comes first. Counters that pass warn_at for the first time
 * add the event budget_warning when they are next charged by RECORD_SPEND or RECORD_OWE (0 will do), since a settlement
 * does not know the limit. */
gboolean record_step(Record *record, const char *run_id, const char *owner, const RecordStep *step,
                     RecordShortage *ret_shortage, GError **error);

/* The checks alone, of charges of the kind RECORD_LOOK. */
gboolean record_look(Record *record, GArray *charges, RecordShortage *ret_shortage, GError **error);

/* Writes down that the run waits for more, with the event budget_exhausted and step's events. A request of the run about
 * this counter that waits already grows. ret_request is {request_id, status, scope, meter, window, key, limit, used,
 * needed, shortfall, message, ...}; owned. */
gboolean record_ask_budget(Record *record, const char *run_id, const char *owner,
                           const RecordShortage *shortage, const RecordWaiting *waiting,
                           const RecordStep *step, JsonObject **ret_request, GError **error);

/* {tool_call_id: arguments}: what is sealed of the run's calls. Returns owned. */
JsonObject *record_sealed_calls(Record *record, const char *run_id, GError **error);

/* All requests, oldest first, each with run_id and run_status; run_id NULL: of every run; all FALSE: only those that
 * wait for a decision. The amounts of one that waits are those of now, of the window that goes on now and the limit that
 * was seen last; has_room: nobody need decide any more. Returns owned. */
JsonObject *record_budget_requests(Record *record, const char *run_id, gboolean all,
                                   GError **error);

/* budget_status: [{scope, meter, window, key, window_starts, limit, granted, spent, reserved, remaining}], of the counters
 * that cover the run (NULL: of all) and whose window goes on; all: also those that are over. Returns owned. */
JsonObject *record_budgets(Record *record, const char *run_id, gboolean all, GError **error);

typedef struct {
  gboolean grants;
  const char *approver;
  const char *note; /* NULL */
  gint64 amount;    /* 0: what is missing now */
} RecordBudgetDecision;

/* Decides what the run waits for, for good; request_id NULL: all of it. Errors: NOT_FOUND; CONFLICT "Run {id} is not
 * waiting for a budget decision". ret_requests (may be NULL): what they have become; owned. */
gboolean record_decide_budget(Record *record, const char *run_id, const char *request_id,
                              const RecordBudgetDecision *decision, JsonObject **ret_requests,
                              GError **error);

#endif
