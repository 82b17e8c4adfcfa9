/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apart.h: a provider is judged in a process of its own, and whoever began that one tells how it ended: a provider that ends
 * its process, stops it or says that all is well has not ended the suite.
 */
#ifndef SANDHOST_CONFORMANCE_APART_H
#define SANDHOST_CONFORMANCE_APART_H

#include <glib.h>
#include <stdio.h>

/* Runs judge in a child and returns the exit code: what it gave to apart_end, or 2 where it ended without that, beside a line
 * on stderr: "PROGRAM: file WORDS: what was being done". */
int apart_run(const char *file, int (*judge)(void *user), void *user);

/* ---- For the child ---- */

/* What the suite says goes here: 1 and 2 are the provider's, and looked at. Both are written at once. */
extern FILE *apart_out, *apart_err;

/* What is being done with the provider. Kept. */
void apart_doing(const char *what);
/* The provider is loaded: from here on each operation has a bound of its own. */
void apart_loaded(void);
/* How it ended; sum: the last line, or NULL. */
void apart_end(int code, const char *sum);
/* Whether this process is the one that judges, and not a copy that somebody made of it. */
gboolean apart_is_own(void);
/* The end of a copy: whoever waits is told. */
void apart_end_copy(const char *what) G_GNUC_NORETURN;
/* Whether what is told still arrives; and the end where it does not. */
gboolean apart_is_heard(void);
void apart_end_unheard(const char *what) G_GNUC_NORETURN;
/* What the provider has printed since the last time; NULL: nothing. Owned. */
char *apart_take_printed(void);
/* Puts 1 and 2 back where they do not lead to the suite any more. FALSE: they did not. */
gboolean apart_keeps_streams(void);

#endif
