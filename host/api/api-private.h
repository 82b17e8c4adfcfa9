/* SPDX-License-Identifier: Apache-2.0 */
/* api-private.h: what the files of this door share: the host behind its handle, and how errors get out. */
#ifndef SANDHOST_API_API_PRIVATE_H
#define SANDHOST_API_API_PRIVATE_H

#include <pthread.h>

#include "record/record.h"
#include "run/approver.h"
#include "run/harness.h"
#include "run/run.h"
#include "sandhost.h"

struct sandhost {
  guint generation;   /* of the process that opened it (base/forked.h) */
  gint references;    /* atomic: one of the program, one of each run */
  JsonObject *config; /* as given; NULL: the defaults. Not changed once made */
  char *workspace;    /* these three: of the settings; NULL: not set */
  char *provider;
  char *record_path;
  int (*check_approver)(void *user, const struct sandhost_decision *decision, char **ret_refusal);
  void *user; /* of check_approver */
  ProviderRegistry *registry;

  pthread_mutex_t lock; /* guards what follows; held while it is made, not while it is used */
  Harness *harness;     /* NULL: not checked yet. Does not change once made */
  Privacy *privacy; /* what host_privacy made without a harness; NULL. Does not change once made */
  Record *record;   /* NULL: not needed yet. Does not change once made */
};

struct sandhost_run {
  guint generation; /* as its host's */
  sandhost *host;   /* a reference */
  Run *run;
  Cancel *cancel;
  struct sandhost_hooks hooks; /* its request is NULL */
  char *request;               /* what sandhost_run_request gives; NULL */

  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t idle;
  guint executing;
  gboolean ending;
  GHashTable *holds;  /* name, owned, to its meter: what was held and not settled */
  GPtrArray *stopped; /* ResumeCall *: what earlier segments left; NULL: nothing, or it was run */
  gboolean reset;     /* an earlier segment had a sandbox */
};

sandhost *host_ref(sandhost *host);
/* The last reference frees. */
void host_unref(sandhost *host);

/* The host's harness and record, made when they are first needed; borrowed until the last reference is gone. NULL:
 * *error. */
const Harness *host_harness(sandhost *host, GError **error);
Record *host_record(sandhost *host, GError **error);

/* What this host knows of credentials, without checking anything; borrowed until the last reference is gone. */
const Privacy *host_privacy(sandhost *host);

/* The run and its record, for who reads or changes it: the whole id, owned; story_find's errors. */
char *host_find_run(sandhost *host, const char *wanted, Record **ret_record, GError **error);
/* The record, for what is listed of one run (*ret_id owned), or with wanted NULL of all. NULL with *error. */
Record *host_record_for(sandhost *host, const char *wanted, char **ret_id, GError **error);

/* run.c. A handle that is not started yet; hooks are copied. NULL: *ret_status and *ret_error. */
sandhost_run *api_run_new(sandhost *host, const struct sandhost_hooks *hooks, int *ret_status,
                          char **ret_error);
void api_run_free(sandhost_run *run);
/* What the run room is told with; good as long as the run. */
RunHooks api_run_hooks(sandhost_run *run);
/* A call begins; each that has begun is left. STATE: none does, since the run is ending, or another process's. */
int api_run_enter(sandhost_run *run, char **ret_error);
void api_run_leave(sandhost_run *run);
/* One call; all borrowed. */
typedef struct {
  const char *command;
  gint64 timeout;
  const char *tool_call_id; /* of an earlier segment; NULL: a new call */
  JsonObject *tag;          /* text; not shared with another thread; NULL */
} ApiCall;
/* Returns owned. */
JsonObject *api_run_execute(sandhost_run *run, const ApiCall *call);

/* What the run would end as if nobody said more. Constant. */
const char *api_run_status(sandhost_run *run);

/* The program's function that is asked about an approver; user is the host. */
ApproverHook api_approver(sandhost *host);

/* A JSON object that the program gave: *ret_object is owned, NULL for a NULL text. what names it. CONFIG. */
gboolean api_take_object(const char *what, const char *text, JsonObject **ret_object,
                         GError **error);

/* Whether a handle is of the process that this one was forked from. Nothing may be done with it: a thread that has its lock
 * stayed there, and its record and sandbox are that process's. */
gboolean api_is_inherited(guint generation);
int api_refuse_inherited(char **ret_error);

/* Give an error out: *ret_error (may be NULL) gets its text; returns its status, which is never OK. error is
 * borrowed. */
int api_fail(const GError *error, char **ret_error);
/* The same where what makes no sense is an argument and not the configuration. */
int api_fail_argument(const GError *error, char **ret_error);
/* The same for a status with a text of ours. */
int api_refuse(int status, const char *text, char **ret_error);

/* A value in the program's hands: owned text where ret_text is not NULL. */
void api_give(JsonObject *value, char **ret_text);

/* Copies a sized struct of the program to the library's own, of size bytes, which is zeroed beyond what was given. least
 * is the size of the first release. FALSE: the size is below that, or the program set something that this library does
 * not know. Both begin with their size. */
gboolean api_take_sized(const void *given, size_t least, void *ret_own, size_t size);

/* The bytes of a struct up to the end of a member: its size in the release in which the member was the last. */
#define API_SIZE_TO(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

#endif
