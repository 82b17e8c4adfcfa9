/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needles.h: many fixed texts looked for at once, in one pass and in linear time, whatever the texts and the haystack
 * are. Immutable once made.
 */
#ifndef SANDHOST_PRIVACY_NEEDLES_H
#define SANDHOST_PRIVACY_NEEDLES_H

#include <glib.h>

typedef struct Needles Needles;

/* Takes copies of count texts, none of them empty; NULL for count 0. Returns owned. */
Needles *needles_new(const char *const *texts, gsize count);
void needles_free(Needles *needles);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Needles, needles_free)

/* A place in a haystack that comes in pieces; zeroed at its beginning. */
typedef struct {
  guint32 state;
} NeedlesPlace;

/* Reads on in data from *at until a needle ends or length is reached, and leaves *at behind what was read. Returns the
 * length of the longest needle that ends just there, or 0 at the end of data. It may have begun in an earlier piece. */
gsize needles_next(const Needles *needles, NeedlesPlace *place, const guint8 *data, gsize length,
                   gsize *at);

/* How many of the last bytes read may be the beginning of a needle: no needle that is still to be found begins before
 * them. */
gsize needles_open(const Needles *needles, NeedlesPlace place);

/* Whether any is in data. */
gboolean needles_any(const Needles *needles, const void *data, gsize length);

#endif
