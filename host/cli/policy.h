/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h: what the policy commands share. */
#ifndef SANDHOST_CLI_POLICY_H
#define SANDHOST_CLI_POLICY_H

#include "cli/cli.h"

int cli_policy_show(int argc, char **argv);
int cli_policy_explain(int argc, char **argv);
int cli_policy_test(int argc, char **argv);
int cli_policy_replay(int argc, char **argv);

/* A policy, and the configuration that chose it. */
typedef struct {
  ProviderRegistry *registry;
  Config *config; /* NULL: the file is a policy alone */
  Policy *policy;
} PolicySubject;

/* Reads a configuration, or a file that is a policy; path NULL: the default configuration. examples: as for
 * policy_new_trying. CONFIG errors. */
gboolean policy_subject_open(PolicySubject *subject, const char *path, GPtrArray *examples,
                             GError **error);
void policy_subject_clear(PolicySubject *subject);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PolicySubject, policy_subject_clear)

/* {name, mode, profile, policy_id, hash}. Returns owned. */
JsonObject *policy_subject_json(const Policy *policy);

/* "policy: NAME, MODE, hash HASH" on stdout. */
void policy_subject_say(const Policy *policy);
/* What its author hardly means, on stderr. */
void policy_subject_advise(const PolicySubject *subject);

/* One line on stdout, without control characters: rules and records are other people's texts. */
void policy_say(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* "process.exec 'sh'": the capability and its target, where it has one. Returns owned. */
char *policy_asked(const PolicyRequest *request);
/* "deny by no_rm", or without a rule "deny (unknown_capability)". Returns owned. */
char *policy_effect_by(Effect effect, const char *reason_code, char **rule_ids);

#endif
