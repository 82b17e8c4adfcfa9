/* SPDX-License-Identifier: Apache-2.0 */
/* command-match.h: which commands a rule is about: those that begin with certain words (behaviour
 * 5.1). */
#ifndef SANDHOST_GOVERNANCE_COMMAND_MATCH_H
#define SANDHOST_GOVERNANCE_COMMAND_MATCH_H

#include "base/json.h"
#include "governance/command-read.h"

/* Immutable once read; for any thread. */
typedef struct {
  guint count; /* of places, at least one */
  char **
      *words; /* of each place its alternatives, NULL-terminated; those of words[0] are programs */
} CommandMatcher;

/* Reads "command" of a rule. Refusals of behaviour 5.1. Returns owned. */
CommandMatcher *command_matcher_new(const char *rule_id, JsonObject *object, GError **error);
void command_matcher_free(CommandMatcher *matcher);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CommandMatcher, command_matcher_free)

/* Whether command begins with the words. A program with a / counts as its base name to a rule that
 * restrains, and not at all to one that allows. */
gboolean command_matcher_matches(const CommandMatcher *matcher, const SimpleCommand *command,
                                 gboolean allows);

/* One example of a rule, tried. */
typedef struct {
  char *rule_id;
  char *text;
  gboolean wanted; /* to match */
  gboolean passed;
} CommandExample;
void command_example_free(CommandExample *example);
/* What is wrong with one that did not pass, with the texts of behaviour 5.1. Returns owned. */
char *command_example_fault(const CommandExample *example);

/* Decides the "examples" of a rule as the rule alone would: its matcher (NULL: none) has to match what
 * stands under match, and nothing under not_match. tried (NULL: the first that is not so is the error)
 * gets a CommandExample for each, and one that fails is no error then. */
gboolean command_matcher_try(const CommandMatcher *matcher, const char *rule_id, gboolean allows,
                             JsonObject *examples, GPtrArray *tried, GError **error);

#endif
