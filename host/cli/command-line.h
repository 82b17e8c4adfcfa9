/* SPDX-License-Identifier: Apache-2.0 */
/* command-line.h: the words after -- as the one string that the execute tool takes. */
#ifndef SANDHOST_CLI_COMMAND_LINE_H
#define SANDHOST_CLI_COMMAND_LINE_H

#include <glib.h>

/* One word is a line for the shell as it stands; several words are exactly these words, each quoted where it must
 * be. words is NULL-terminated. Returns owned. */
char *command_line_join(const char *const *words);

#endif
