/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safe-write.h: puts content that came from a sandbox into the workspace, whole or not at all.
 *
 * Each file is written without a name, where the file system can do that, and gets one when it is whole; elsewhere
 * under a hidden temporary name in its own folder. No link is ever followed, nothing outside the folder is ever touched,
 * and a file that is not the expected one is never replaced.
 */
#ifndef SANDHOST_WORKSPACE_SAFE_WRITE_H
#define SANDHOST_WORKSPACE_SAFE_WRITE_H

#include "workspace/beneath.h"

#define SAFE_WRITE_LINK "a link out of the workspace; not written"
#define SAFE_WRITE_CONFLICT "changed in the workspace meanwhile; the sandbox's copy was not written"

/* The folder of the last file is kept open for the next one. */
typedef struct {
  int root; /* borrowed */
  char *folder;
  int folder_fd;
  gboolean
      locked;     /* folder_fd is: nobody takes a temporary file in it for one that was left over */
  gboolean named; /* this file system has no files without a name */
} SafeWriter;

SafeWriter safe_writer_for(int root);
void safe_writer_clear(SafeWriter *writer);

/* What stands at a path now. */
typedef struct {
  gboolean exists;
  FileIdentity identity;
  mode_t mode;
  uid_t owner;
  gid_t group;
} SafeTarget;

/* Looks at path without following a link. NULL: *ret_target is set, and a file could be written
 * there. Otherwise the reason why not, owned. */
char *safe_target_look(int root, const char *path, SafeTarget *ret_target);

/* Writes path (proper and not hidden) provided that target still stands there; missing folders are
 * made. The mode is that of the target, 0644 where there is none. NULL: written, and *ret_identity
 * is that of the new file. Otherwise the reason why not, owned; then nothing has changed. */
char *safe_writer_write(SafeWriter *writer, const char *path, const void *data, gsize length,
                        const SafeTarget *target, FileIdentity *ret_identity);

#endif
