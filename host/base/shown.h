/* SPDX-License-Identifier: Apache-2.0 */
/* shown.h: text from outside as a person reads it: nothing in it moves a cursor, hides, or turns what stands around it. */
#ifndef SANDHOST_BASE_SHOWN_H
#define SANDHOST_BASE_SHOWN_H

#include <glib.h>

/* What controls, is invisible, or directs the text around it. */
gboolean shown_is_hidden(gunichar c);

/* Whole and in one line: newline, tab and CR as \n \t \r, other controls and bytes that are no UTF-8 as \xNN, what is
 * invisible or directs text (Unicode Cc, Cf, Zl, Zp) as \uNNNN. */
void shown_append(GString *out, const char *text);
/* Returns owned; "" for NULL. */
char *shown_text(const char *text);

/* The same of a text of several lines, each for itself. Returns owned, NULL-ended. */
char **shown_lines(const char *text);

#endif
