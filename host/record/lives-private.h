/* SPDX-License-Identifier: Apache-2.0 */
/* lives-private.h: a run's life and its approvals, as lives.c and approvals.c see them within one transaction. Functions
 * return an SQLite code. */
#ifndef SANDHOST_RECORD_LIVES_PRIVATE_H
#define SANDHOST_RECORD_LIVES_PRIVATE_H

#include "record/record-private.h"

/* A run's row and its life, as far as they matter here. */
typedef struct {
  gint64 number;
  char *status;
  char *trace_id;
  gboolean lives; /* it has a life */
  gint64 attempt;
  gint64 lease;
  gint64 heartbeat_at;
  JsonObject *request;
  JsonObject *error;
  RecordOwner owner; /* the process */
} Life;

void life_clear(Life *life);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Life, life_clear)

/* lives.c. Whether a run with this status (RECORD_OPEN) may still go on. */
gboolean life_is_open(const char *status);
/* SQLITE_NOTFOUND: no such run. */
int life_read(Record *record, const char *run_id, Life *ret_life);
/* What was recorded with the run's begin; NULL with *ret_code. Returns owned. */
JsonObject *life_header(Record *record, const char *run_id, int *ret_code);
/* SQLITE_OK and *refusal set when somebody else holds the run. */
int life_check_held(Record *record, const char *run_id, const char *owner, GError **refusal);

/* approvals.c. */
/* Of one run (number) or, with 0, of all; each with run_id and run_status. An approval whose time is over is told as
 * expired, whether or not anybody has written that yet. */
int approvals_read(Record *record, gint64 number, gboolean all, JsonObject *array);
int approvals_insert(Record *record, const char *run_id, JsonObject *approval);
/* The run has ended for good: nothing of it is run again. */
int approvals_forget_inputs(Record *record, const char *run_id);
/* What nobody decided in time is over; approvals_read tells it as expired already. */
int approvals_expire_late(Record *record, const char *run_id, JsonObject *approvals);

#endif
