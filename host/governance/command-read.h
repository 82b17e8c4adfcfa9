/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command-read.h: what a command line runs, as far as its text alone proves it (behaviour 5.2).
 *
 * A line is read into simple commands of literal words, or it is unreadable for one reason; there is
 * nothing between. Pure functions of their arguments, for any thread; time and memory are linear in
 * the text, which is bounded.
 */
#ifndef SANDHOST_GOVERNANCE_COMMAND_READ_H
#define SANDHOST_GOVERNANCE_COMMAND_READ_H

#include <glib.h>

#define COMMAND_MAX_CHARACTERS 10000

/* How a command follows the one before it. */
typedef enum {
  JOIN_NEXT, /* ; or newline; also the first one */
  JOIN_AND,
  JOIN_OR,
  JOIN_PIPE,
} CommandJoin;

typedef struct {
  CommandJoin join;
  guint count;              /* of words, at least one */
  const char *const *words; /* NULL behind the last; words[0] is the program as it is written */
} SimpleCommand;

typedef struct {
  char *reason;            /* why it cannot be read; NULL: it is readable */
  char *text;              /* the script, or the words of an argv joined by spaces */
  guint count;             /* of commands: 0 when unreadable, else at least one */
  SimpleCommand *commands; /* in the order of the text */

  /* Where the words live. */
  char *bytes;
  GPtrArray *words;
} CommandLine;

/* A script, as sh -c takes it (UTF-8, else unreadable). Never fails. Returns owned. */
CommandLine *command_read_script(const char *script);

/* What is started: a shell with a flag group that holds c and a script, or else one command of literal
 * words. NULL is an empty argv. Never fails. Returns owned. */
CommandLine *command_read_argv(const char *const *argv);

void command_line_free(CommandLine *line);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CommandLine, command_line_free)

/* The last part of a program's path. Borrowed from it. */
const char *command_base_name(const char *program);

#endif
