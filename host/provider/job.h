/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h: one call of a plugin's function: its arguments, its thread, its end.
 *
 * The function runs in a worker while the caller waits. Past the deadline or a cancel it has CONTRACT_GRACE to come
 * back; then the caller leaves with an error, and what it lent (streams, requests) is out of the plugin's
 * reach: requests are copies, streams go through gates that are then closed. Jobs are memory that is never
 * given back and used again late, so that a plugin that calls into a finished job meets a closed gate.
 */
#ifndef SANDHOST_PROVIDER_JOB_H
#define SANDHOST_PROVIDER_JOB_H

#include "provider/provider-private.h"

/* The contract's two seconds for cleaning up, and one for a loaded machine. */
#define CONTRACT_GRACE (3 * CLOCK_SECOND)

typedef struct Bell Bell;
typedef struct Job Job;
struct Job {
  struct sandhost_call call; /* first: a call is a job */

  /* ---- Set before job_run ---- */
  const char *operation;      /* the slot's name; constant */
  gint32 (*invoke)(Job *job); /* in the worker, with the level's lock */
  void (*orphaned)(Job *job); /* in the worker: it came back after the caller had left; NULL */
  Provider *provider;
  ProviderInstance *instance; /* owned reference; NULL */
  Sandbox *sandbox;           /* owned reference; NULL */
  Level *level;               /* NULL: nothing is serialised */

  /* Arguments: copies that live until the job ends. */
  struct sandhost_open open;
  struct sandhost_create create;
  struct sandhost_execute execute;
  struct sandhost_network network;
  struct sandhost_changes changes;
  struct sandhost_probe probe;
  struct sandhost_sweep sweep;
  struct sandhost_text text; /* a ref, an id */
  struct sandhost_path path;
  const struct sandhost_path *names;
  gsize name_count;
  guint32 mode;
  guint64 execution;
  gint32 signal_number;

  /* The caller's streams: only with the gate held and while the caller is there. */
  const struct sandhost_sink *their_sink;
  const struct sandhost_source *their_source;
  const struct sandhost_observer *their_observer;
  const struct sandhost_entry_sink *their_entries;
  GPtrArray *their_orphans; /* of Orphan */

  /* What the plugin gets in their place. */
  struct sandhost_sink sink;
  struct sandhost_source source;
  struct sandhost_observer observer;
  struct sandhost_entry_sink entries;
  struct sandhost_orphan_sink orphans;

  /* ---- gate ---- */
  gint32 stopped;     /* what one of the caller's streams said to stop */
  const char *breach; /* what a stream was given that it must not; constant, or breach_text */
  char breach_text[512];
  guint64 delivered[2]; /* bytes of output given to the observer */
  guint64 entry_count;
  gboolean started;
  gboolean touched; /* a sink was written to, or a source read */

  /* ---- Results, of a job that came back ---- */
  gint32 status;
  struct sandhost_result result;
  struct sandhost_sandbox *ret_sandbox;
  struct sandhost_instance *ret_instance;
  guint32 ret_verdict;
  guint32 *levels; /* in the arena */

  /* ---- Kept by job.c ---- */
  gint refs; /* the caller's and the worker's */
  Bell *bell;
  gboolean inside, done, abandoned; /* call.lock */
  void (*slow)(
      void *user); /* called once by who waits in job_finish, at slow_at; NULL: nobody is told */
  void *slow_user;
  gint64 slow_at; /* CLOCK_MONOTONIC */
  GPtrArray *arena;
  Job *next_idle;
};

/* A job on a provider, instance or sandbox (each may be NULL but the first). Takes references. Returns owned. */
Job *job_new(const char *operation, const CallScope *scope, Provider *provider,
             ProviderInstance *instance, Sandbox *sandbox, TestCommands *tests);
void job_unref(Job *job);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Job, job_unref)

/* Runs it. FALSE with *error: it failed, or did not come back. What it told can be asked with
 * call_reported(&job->call, ...) where job_came_back. */
gboolean job_run(Job *job, GError **error);
/* The same in two: what is begun must be finished. */
void job_start(Job *job);
gboolean job_finish(Job *job, GError **error);
gboolean job_came_back(Job *job);

/* Memory that lives as long as the job; never NULL. */
void *job_alloc(Job *job, gsize count, gsize size);
struct sandhost_text job_text(Job *job, struct sandhost_text text);
struct sandhost_path job_path(Job *job, struct sandhost_path path);
struct sandhost_pair *job_pairs(Job *job, const struct sandhost_pair *pairs, gsize count);
struct sandhost_text *job_texts(Job *job, const struct sandhost_text *texts, gsize count);
struct sandhost_text *job_strv(Job *job, char *const *strings, gsize *ret_count);

/* Gated streams (gate.c). */
void gate_sink(Job *job, const struct sandhost_sink *sink);
void gate_source(Job *job, const struct sandhost_source *source);
void gate_observer(Job *job, const struct sandhost_observer *observer);
void gate_entries(Job *job, const struct sandhost_entry_sink *entries);
/* What is listed is checked against job->sweep and appended as Orphan. */
void gate_orphans(Job *job, GPtrArray *orphans);

#endif
