/* SPDX-License-Identifier: Apache-2.0 */
/* spool.h: bytes of unknown number, kept until their number is known: in memory, then in a nameless file. */
#ifndef SANDHOST_PROVIDER_SPOOL_H
#define SANDHOST_PROVIDER_SPOOL_H

#include <glib.h>
#include <sandhost/provider.h>

typedef struct Spool Spool;

Spool *spool_new(void);
void spool_free(Spool *spool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Spool, spool_free)

/* Fills it. Borrows the spool. */
struct sandhost_sink spool_sink(Spool *spool);

guint64 spool_size(const Spool *spool);
/* Why the sink stopped; NULL: it did not. */
const char *spool_failure(const Spool *spool);

/* Gives everything to put in pieces; FALSE when put did, or when it could not be read. */
gboolean spool_read_back(Spool *spool, gboolean (*put)(void *user, const void *data, gsize length),
                         void *user);

#endif
