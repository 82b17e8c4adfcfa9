/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.h: tar streams into the working directory of a sandbox, and out of it. */
#ifndef SANDHOST_CONFORMANCE_TRANSFER_H
#define SANDHOST_CONFORMANCE_TRANSFER_H

#include <archive.h>

#include "suite.h"

struct archive *tar_begin(GByteArray *into);
/* type: AE_IF*; link: NULL, or where a link leads. */
void tar_add(struct archive *tar, const char *name, unsigned type, const char *content,
             const char *link);
void tar_add_file(struct archive *tar, const char *name, unsigned mode, const char *content);
void tar_end(struct archive *tar);

/* *ret_touched: something was read. */
gint32 box_upload(Box *box, const GByteArray *tar, gboolean *ret_touched);
/* At most 16 names. */
gint32 box_download(Box *box, const char *const *names, gsize count, GByteArray *into);

/* A slot may turn out not to be there in a sandbox, before anything was taken or given. */
gboolean slot_is_absent(gint32 status, const char *slot, gboolean touched, Verdict *verdict);

#endif
