/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bridge.h: workspace files go into the sandbox before a command, text files that it made come back after
 * it (behaviour 8). One tar stream each way. The bridge knows no provider: it is given a transport.
 *
 * Not thread-safe: the run serialises copies.
 */
#ifndef SANDHOST_WORKSPACE_BRIDGE_H
#define SANDHOST_WORKSPACE_BRIDGE_H

#include <glib.h>
#include <sandhost/provider.h>

#include "workspace/folder.h"

typedef struct {
  WorkspaceFolder *
      folder; /* borrowed until bridge_free; where there is none it is empty, and made by the first write */
  const char *const *include; /* globs; NULL or empty: everything */
  const char *const *exclude;
  guint64 max_files; /* per copy */
  guint64 max_file_bytes;
  guint64 max_copy_bytes; /* per copy */
  /* Why a file is never copied in, whatever the policy says; NULL: it may be. Constant. The function may be NULL. */
  const char *(*withheld)(void *user, const char *path);
  void *withheld_user;
} BridgeSettings;

/* How the bridge reaches the sandbox; each works below the sandbox's working directory. FALSE with *error
 * set on failure. The streams and structs are the contract's. */
typedef struct {
  void *user;
  const char *name; /* whose word the sandbox's is, for messages */
  gboolean (*upload)(void *user, const struct sandhost_source *tar, GError **error);
  gboolean (*changes)(void *user, const struct sandhost_known *known, gsize known_count,
                      guint64 max_hash_bytes, const struct sandhost_entry_sink *sink,
                      GError **error);
  gboolean (*download)(void *user, const struct sandhost_path *names, gsize name_count,
                       const struct sandhost_sink *tar, GError **error);
} BridgeTransport;

/* Whether the policy lets a file be read (copied in) or written (copied back). Called once per candidate.
 * FALSE without an error: not permitted, the file is skipped. FALSE with *error: the copy stops. */
typedef gboolean (*BridgePermit)(void *user, gboolean write, const char *path, GError **error);

/* Text on its way into the workspace. */
typedef struct {
  void *user;
  /* The text to be written in its place, owned, or NULL: it is written as it is. */
  GString *(*replace)(void *user, const void *data, gsize length);
  /* Whether it holds a credential: then a file's name is not written at all, and no file of the workspace that holds one
   * itself is replaced, which would only take it away from its owner. */
  gboolean (*holds_credential)(void *user, const void *data, gsize length);
} BridgeFilter;

typedef struct {
  char *path;
  char *reason; /* texts of behaviour 8.3 */
} BridgeSkip;

/* A workspace may hold a hundred thousand files that are left out: nobody reads as many lines. */
#define BRIDGE_MOST_SKIPS 200

/* What one command's copies did; filled by copy_in, then copy_back. */
typedef struct {
  GPtrArray *copied_in; /* char *, sorted */
  GPtrArray *written;   /* char *, sorted */
  GPtrArray *redacted;  /* char *, sorted: those of them that the filter changed */
  GPtrArray *
      skipped; /* BridgeSkip *, in order of finding: at most BRIDGE_MOST_SKIPS, the last one says how many more */
  guint64 more_skipped; /* that are only counted */
} BridgeReport;

BridgeReport *bridge_report_new(void);
void bridge_report_free(BridgeReport *report);
void bridge_report_skip(BridgeReport *report, const char *path, const char *reason);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BridgeReport, bridge_report_free)

typedef struct Bridge Bridge;

/* settings is copied. Returns owned. */
Bridge *bridge_new(const BridgeSettings *settings, BridgePermit permit, void *permit_user);
/* From here on every file that comes back passes the filter. Copied. */
void bridge_set_filter(Bridge *bridge, const BridgeFilter *filter);
void bridge_free(Bridge *bridge);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Bridge, bridge_free)

/* The sandbox is gone: everything goes in again. */
void bridge_forget(Bridge *bridge);

/* Before a command. The report gets what went in and, unlike the reference, every file that was left out
 * with its reason (fault 26). Nothing is uploaded when nothing changed. */
gboolean bridge_copy_in(Bridge *bridge, const BridgeTransport *transport, BridgeReport *report,
                        GError **error);

/* After a command. */
gboolean bridge_copy_back(Bridge *bridge, const BridgeTransport *transport, BridgeReport *report,
                          GError **error);

#endif
