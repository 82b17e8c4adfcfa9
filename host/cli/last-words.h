/* SPDX-License-Identifier: Apache-2.0 */
/* last-words.h: a provider that takes the program along is named, and its exit is not taken for a success. */
#ifndef SANDHOST_CLI_LAST_WORDS_H
#define SANDHOST_CLI_LAST_WORDS_H

/* From here on a crash says where it was before it ends the program, and an exit that nobody here asked for is
 * EXIT_SANDHOST. */
void last_words_begin(void);

/* An ordinary end comes, or a child whose parent tells what became of it. */
void last_words_end(void);

#endif
