/* SPDX-License-Identifier: Apache-2.0 */
/* command-private.h: reasons that the reader and its checks share, with the exact texts of behaviour 5.2. */
#ifndef SANDHOST_GOVERNANCE_COMMAND_PRIVATE_H
#define SANDHOST_GOVERNANCE_COMMAND_PRIVATE_H

#include <glib.h>

#define UNREADABLE_GRAMMAR "the shell grammar cannot read it"
#define UNREADABLE_NOTHING "no command"

/* Whether base is the name of a shell that command_read_argv looks into. */
gboolean command_is_shell(const char *base);

/* Whether flags is a group of short flags that holds c, and none that takes a word of its own, reads
 * stdin or changes the grammar: what follows is the script. */
gboolean command_takes_script(const char *flags);

/* Why the first word of a command in a script makes it no simple command, whatever follows; some words
 * only where no part of them is quoted. NULL: it does not. Returns owned. */
char *command_check_first(const char *word, gboolean quoted);

/* Why a command of these words runs more than its words say: a shell, or a builtin that runs text.
 * NULL: it does not. Returns owned. */
char *command_check_words(const char *const *words, guint count);

#endif
