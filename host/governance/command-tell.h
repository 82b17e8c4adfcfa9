/* SPDX-License-Identifier: Apache-2.0 */
/* command-tell.h: a command line for the record, and for the person who is to approve it (behaviour
 * 5.2). */
#ifndef SANDHOST_GOVERNANCE_COMMAND_TELL_H
#define SANDHOST_GOVERNANCE_COMMAND_TELL_H

#include "base/json.h"
#include "governance/command-read.h"

/* Request metadata "command": {name, argc, digest, programs, opaque}, never an argument. programs: each
 * program once, as it is written; empty when the line is unreadable. Returns owned. */
JsonObject *command_metadata(const char *const *argv, const CommandLine *line);

/* What only an approval gets. One line per command, a word in '' where it has blanks or quotes; the whole
 * text when unreadable. Nothing in it moves a cursor or hides. Returns owned. */
char *command_summary(const CommandLine *line);
/* A list of texts; empty when the line is readable. Returns owned. */
JsonObject *command_opaque_reasons(const CommandLine *line);

/* All that the reader saw: {readable, opaque_reasons, commands [{join, program, words}]}, with the
 * arguments; for who asks why, never for the record. Returns owned. */
JsonObject *command_reading(const CommandLine *line);
/* "&&", "||", "|" or ";". Constant. */
const char *command_join_name(CommandJoin join);
/* One command in one line, as command_summary has it. Returns owned. */
char *command_line_of(const SimpleCommand *command);

#endif
