/* SPDX-License-Identifier: Apache-2.0 */
/* input.h: standard input. What cannot be read is no end of it: who took it for one would have done half of what was
 * asked, and said nothing. A closed one is empty, as /dev/null is. */
#ifndef SANDHOST_CLI_INPUT_H
#define SANDHOST_CLI_INPUT_H

#include <glib.h>
#include <sys/types.h>

/* Whether anything can be read at all; asked before anything is begun. FALSE: told. */
gboolean input_is_readable(void);

/* As read(2). Whatever fails, but for what is only not there yet (EAGAIN, EINTR), is noted. From any thread. */
ssize_t input_read(void *buffer, gsize length);
/* Whether input_read has something to come back with, after it returned that. */
gboolean input_goes_on(ssize_t count);

/* "could not read standard input: why"; NULL: all that was asked for was read. Owned. */
char *input_fault(void);

#endif
