/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h: what another policy would have made of a recorded run. Pure: events in, verdicts out. */
#ifndef SANDHOST_RUN_REPLAY_H
#define SANDHOST_RUN_REPLAY_H

#include "governance/policy.h"

typedef enum {
  REPLAY_SAME,
  REPLAY_DIFFERS,
  REPLAY_UNDECIDABLE, /* what would decide it is not on record, or is damaged */
} ReplayVerdict;

/* One recorded request, decided again. */
typedef struct {
  ReplayVerdict verdict;
  char *at;               /* when it was asked; NULL: not recorded */
  char *tool_call_id;     /* NULL: not recorded */
  PolicyRequest *request; /* command: what it runs, where that is recorded; NULL: not readable */

  /* As it was recorded: the policy's own decision, before any person answered. */
  gboolean decided; /* FALSE: no decision is recorded */
  Effect effect;
  char *reason_code;
  char **rule_ids;

  PolicyDecision *decision; /* the policy's own now; NULL: undecidable */
  char *why;                /* why it is undecidable; NULL */
} Replayed;

/* Decides every request of a run, as record_run gives it, again. by_rules: a decision to the same effect for
 * another reason or by other rules differs too. An owned array of Replayed *, which frees them. */
GPtrArray *replay_run(const Policy *policy, JsonObject *run, gboolean by_rules);

#endif
