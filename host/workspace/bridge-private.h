/* SPDX-License-Identifier: Apache-2.0 */
/* bridge-private.h: what the two directions of the bridge share. */
#ifndef SANDHOST_WORKSPACE_BRIDGE_PRIVATE_H
#define SANDHOST_WORKSPACE_BRIDGE_PRIVATE_H

#include "base/digest.h"
#include "workspace/beneath.h"
#include "workspace/bridge.h"

/* One path, on both sides. */
typedef struct {
  char *path;
  gsize length;

  /* The workspace's side. */
  FileIdentity identity;     /* when it was last looked at */
  guint8 base[DIGEST_BYTES]; /* content that it had when both sides were last the same */
  gboolean has_base;
  gboolean settled;  /* while its identity is that one there is nothing to do; with has_base, its
                      * content is then base */
  gboolean unwanted; /* outside the patterns, or a run record */

  /* The sandbox's side. */
  guint8 sandbox[DIGEST_BYTES]; /* content that it has, as far as is known */
  gboolean in_sandbox;          /* sandbox is set */
  gboolean apart; /* base and sandbox differ and are left so: a filter stands between them */
  gboolean checkout_reported;

  /* What was reported last, so that it is not said twice: a hash of the reason (0: nothing) and of
   * which content. */
  guint in_reason;
  guint back_reason;
  FileIdentity in_reported;
  guint8 back_reported[DIGEST_BYTES];
} FileState;

struct Bridge {
  WorkspaceFolder *folder; /* borrowed */
  char **include;
  char **exclude;
  guint64 max_files;
  guint64 max_file_bytes;
  guint64 max_copy_bytes;
  const char *(*withheld)(void *user, const char *path);
  void *withheld_user;
  BridgePermit permit;
  void *permit_user;
  BridgeFilter filter; /* functions NULL: none */
  GHashTable *files;   /* FileState.path -> FileState; owns the states */
  gsize path_bytes;    /* of all states */
  GPtrArray *known;    /* FileState with in_sandbox, sorted by path; NULL: to be made again */
  FileContent buffer;  /* for whatever file is read now */
};

/* The state of path, made where there is none. Borrowed. */
FileState *bridge_state(Bridge *bridge, const char *path);
FileState *bridge_find(const Bridge *bridge, const char *path);

/* Whether the bridge follows as many paths as it may. */
gboolean bridge_is_full(const Bridge *bridge);

gboolean bridge_is_wanted(const Bridge *bridge, const char *path);

/* The sandbox is known to hold this content. */
void bridge_set_sandbox(Bridge *bridge, FileState *state, const guint8 digest[DIGEST_BYTES]);
void bridge_unset_sandbox(Bridge *bridge, FileState *state);

/* Both sides hold this content; identity is the workspace's file of it, taken after tick. */
void bridge_set_same(Bridge *bridge, FileState *state, const guint8 digest[DIGEST_BYTES],
                     const FileIdentity *identity, gint64 tick);

/* The workspace's file holds what the filter made of the sandbox's. */
void bridge_set_redacted(Bridge *bridge, FileState *state, const guint8 sandbox[DIGEST_BYTES],
                         const guint8 workspace[DIGEST_BYTES], const FileIdentity *identity,
                         gint64 tick);

/* States with in_sandbox sorted by path. Borrowed until a state changes. */
GPtrArray *bridge_known(Bridge *bridge);

#endif
