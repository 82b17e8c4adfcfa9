/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approver.h: whether the one who decides is who the name says. Names of approvers are free text; whoever can tell gets
 * asked before a decision is stored: a program that the configuration names (governance_config.approver_check), and a
 * function of the program that embeds sandhost. Both must agree; where neither is there, a name is taken as given.
 *
 * The program is stored with the run when it begins, so that a decision in any process, without the configuration, asks
 * the same one. It gets a question as one line of JSON on its stdin. Exit code 0 is yes; with any other the first line of
 * its stderr says why not. It is killed, with its process group, after APPROVER_SECONDS. Its folder is /, its stdout
 * nowhere, its environment this process's. What cannot be asked is no.
 */
#ifndef SANDHOST_RUN_APPROVER_H
#define SANDHOST_RUN_APPROVER_H

#include "base/cancel.h"
#include "config/config.h"

#define APPROVER_SECONDS 30

/* A function of the program: FALSE refuses, with *ret_refusal (owned by the caller; may stay NULL) as the reason. */
typedef struct {
  gboolean (*ask)(void *user, JsonObject *question, char **ret_refusal);
  void *user;
  Cancel *cancel; /* the program is not waited for any longer; NULL */
} ApproverHook;

/* Whether a text of a person's can be kept as it is: valid UTF-8 of at most so many bytes. CONFIG; NULL text: TRUE. */
gboolean approver_check_text(const char *what, const char *text, gsize most, GError **error);
/* Whether this can be the name of who decides, at every door: such a text, not blank, on one line. CONFIG. */
#define APPROVER_MOST_NAME 256u /* bytes */
gboolean approver_check_name(const char *name, GError **error);

/* What is stored of the configuration's program: {argv, project_root, agent_dirs}; NULL: there is none. Returns owned. */
JsonObject *approver_stored(const Config *config);

/* Whether the program is there, can be run, and is nobody else's to change: no file or folder on its way may be written
 * by others (but folders above its own, where the sticky bit keeps them from replacing it) or lies where the agent writes (the rule
 * for policy files). So must be whatever file its arguments name by an
 * absolute path. CONFIG "governance_config.approver_check: {path}: {why}". */
gboolean approver_check_place(JsonObject *stored, GError **error);

/* Asks all. request: the run's stored one, which may hold approver_check; hook may be NULL. question: {run_id,
 * approval_id, decision, approver, note, arguments, approval}; borrowed. POLICY_DENIED "Approver {name} is refused:
 * {why}"; CONFIG where the place is wrong; FAILED where the program cannot be asked. */
gboolean approver_allows(JsonObject *request, const ApproverHook *hook, JsonObject *question,
                         GError **error);

/* approver-program.c: the program alone, killed after so many seconds, and when cancel (may be NULL) is raised or this
 * thread is told to end by a signal. */
gboolean approver_ask_program(const char *const *argv, JsonObject *question, gint64 seconds,
                              Cancel *cancel, GError **error);

#endif
