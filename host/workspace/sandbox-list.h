/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox-list.h: what a sandbox says has changed in it, collected, checked and sorted.
 *
 * The sandbox may say anything. What leaves this file is sorted by path, has no path twice, no path
 * that leads out, nothing hidden, and nothing inside a checkout.
 */
#ifndef SANDHOST_WORKSPACE_SANDBOX_LIST_H
#define SANDHOST_WORKSPACE_SANDBOX_LIST_H

#include "base/digest.h"
#include "workspace/bridge.h"

typedef struct {
  const char *path; /* borrowed from the list; perhaps not UTF-8 */
  guint64 bytes;
  gboolean checkout;
  gboolean unread_folder; /* what it holds could not be listed, or not all of it */
  gboolean has_digest;
  guint8 digest[DIGEST_BYTES];
  guint8 version[DIGEST_BYTES]; /* tells one content from another: the digest, else made of size and
                                   time */
} SandboxFile;

typedef struct SandboxList SandboxList;

/* Asks the transport what differs from known. NULL with *error: the transport's own where that
 * failed. */
SandboxList *sandbox_list_get(const BridgeTransport *transport, const struct sandhost_known *known,
                              gsize known_count, guint64 max_hash_bytes, GError **error);
void sandbox_list_free(SandboxList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SandboxList, sandbox_list_free)

gsize sandbox_list_count(const SandboxList *list);
/* Borrowed from list. */
const SandboxFile *sandbox_list_at(const SandboxList *list, gsize index);

#endif
