/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h: the one sandbox of a run, shared by the commands that run in it.
 *
 * A session is opened by the first command that needs one. When a call finds the sandbox lost, the session is
 * marked so: commands that run in it finish as lost, new ones open a fresh one, and the last user ends it.
 * Every function may be called from any thread.
 */
#ifndef SANDHOST_RUN_SESSION_H
#define SANDHOST_RUN_SESSION_H

#include "provider/sandbox.h"
#include "run/harness.h"
#include "run/journal.h"
#include "workspace/bridge.h"

/* Asked for each file that is to be copied for copier; as BridgePermit. */
typedef gboolean (*SessionPermit)(void *copier, gboolean write, const char *path, GError **error);

/* Whom the end of a sandbox concerns; each function may be NULL. A line of text, from any thread. */
typedef struct {
  void (*slow)(void *user, const char *line); /* its end is waited for */
  void (*warn)(void *user, const char *line); /* it did not end, and may live on */
  void *user;
} SessionEar;

typedef struct {
  gint references; /* atomic: one for the run while it is current, one for each command in it */
  char *id;        /* sandbox_... */
  Sandbox *sandbox;
  Journal *journal; /* borrowed */
  const Harness *harness;
  gint64 opened; /* CLOCK_MONOTONIC */
  gint64 paid;   /* atomic: the same, until when the budget knows of it */
  gint commands; /* atomic */
  gint lost;     /* atomic */
  Bridge *
      bridge; /* what the sandbox holds of the workspace; NULL: nothing is copied. Used under the run's
                      * copying lock, as is copier */
  SessionEar ear;
  SessionPermit permit;
  void *copier; /* for whom the bridge copies now: user of the permit function */
} Session;

/* Creates the sandbox, has its network checked where the provider's word alone does not count, and records
 * sandbox_session_created. A sandbox that fails the check is ended. folder is the run's, and
 * borrowed. Returns owned, one reference. */
Session *session_open(const Harness *harness, Journal *journal, const char *run_id,
                      WorkspaceFolder *folder, SessionPermit permit, const SessionEar *ear,
                      const CallScope *scope, GError **error);

Session *session_ref(Session *session);
/* The last reference ends the sandbox and records sandbox_session_closed. NULL is allowed. */
void session_unref(Session *session);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Session, session_unref)

/* The time for which it has been open since this was last asked, in millionths of a second: for the budget. */
gint64 session_unpaid(Session *session);

void session_mark_lost(Session *session);
gboolean session_is_lost(Session *session);
/* For people: the provider's reason, trimmed, else "it stopped". Borrowed. */
const char *session_lost_reason(Session *session);

/* session-end.c: ends the sandbox, and tells the ear what that comes to. *error: it did not end. */
void session_end_sandbox(const Harness *harness, Sandbox *take_sandbox, const SessionEar *ear,
                         GError **error);
/* Warns of a sandbox that a create which failed may have made all the same. */
void session_tell_uncertain(const Harness *harness, const SessionEar *ear, const GError *failure);

/* How the bridge reaches this session's sandbox; scope is borrowed and must outlive the copies. What was decided is
 * made durable before anything is copied. */
typedef struct {
  Session *session;
  const CallScope *scope;
} SessionTransport;
BridgeTransport session_transport(SessionTransport *transport);

#endif
