/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beneath.h: opens and reads files below a folder without ever leaving it, neither by .. nor by a
 * link.
 *
 * Every path is relative to a descriptor of the workspace folder, and no component of it may be a
 * link.
 */
#ifndef SANDHOST_WORKSPACE_BENEATH_H
#define SANDHOST_WORKSPACE_BENEATH_H

#include <glib.h>
#include <sys/stat.h>

/* What tells one state of a file from another without reading it. Times are nanoseconds. */
typedef struct {
  guint64 device;
  guint64 inode;
  guint64 bytes;
  gint64 mtime;
  gint64 ctime;
} FileIdentity;

FileIdentity file_identity_of(const struct stat *status);
gboolean file_identity_equal(const FileIdentity *a, const FileIdentity *b);

/* The time that the kernel would stamp on a file now. Taken before a file is looked at. */
gint64 file_tick(void);

/* Whether an identity that was taken after tick can only be that of the content read then. FALSE: a
 * later write may leave the same times, so the file is to be read again. */
gboolean file_identity_is_settled(const FileIdentity *identity, gint64 tick);

/* As openat with O_CLOEXEC added: a descriptor, or -1 with errno. ELOOP: a component is a link
 * (with O_PATH and O_NOFOLLOW the last one may be). path is proper (names.h). */
int beneath_open(int root, const char *path, int flags);

/* The same rule component by component, for kernels without openat2. */
int beneath_open_by_hand(int root, const char *path, int flags);

/* A buffer that is used for one file after another. Zeroed at first; the owner calls
 * file_content_clear. */
typedef struct {
  guint8 *data;
  gsize capacity;
  gsize length;          /* bytes read */
  FileIdentity identity; /* of what was read; begins to hold before the first byte was read */
} FileContent;

void file_content_clear(FileContent *content);

typedef enum {
  FILE_READ_DONE,
  FILE_READ_GONE,      /* it is not there, or no regular file */
  FILE_READ_LINK,      /* it, or a folder above it, is a link */
  FILE_READ_TOO_LARGE, /* content->identity.bytes tells how large */
  FILE_READ_CHANGED,   /* it changed twice while it was read */
  FILE_READ_FAILED,    /* errno tells */
} FileRead;

/* Reads all of a regular file of at most max_bytes. */
FileRead file_read(int root, const char *path, guint64 max_bytes, FileContent *content);

/* Reads the first bytes only, at most length; the file may be of any size. */
FileRead file_read_beginning(int root, const char *path, gsize length, FileContent *content);

#endif
