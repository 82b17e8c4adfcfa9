/* SPDX-License-Identifier: Apache-2.0 */
/* tar-owner.h: gives all members of a tar stream one owner, as it passes. */
#ifndef SANDHOST_DOCKER_TAR_OWNER_H
#define SANDHOST_DOCKER_TAR_OWNER_H

#include <glib.h>
#include <stdint.h>

struct tar_owner {
  uint32_t uid;
  uint32_t gid;
};

/* One stream. One thread. */
typedef struct TarFilter TarFilter;

/* Where a filter's bytes go. FALSE ends the stream. */
typedef gboolean (*tar_filter_write)(void *user, const void *data, size_t length);

/* owner is copied; NULL: members keep theirs. user is borrowed. */
TarFilter *tar_filter_new(const struct tar_owner *owner, tar_filter_write write, void *user);
void tar_filter_free(TarFilter *filter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TarFilter, tar_filter_free)

enum tar_filter_result {
  TAR_FILTER_OK,
  TAR_FILTER_STOPPED, /* write said so */
  TAR_FILTER_BROKEN,  /* it is no tar stream, or has members that no working directory can have */
};

/* Takes the next bytes of the stream, cut anywhere. */
enum tar_filter_result tar_filter_take(TarFilter *filter, const void *data, size_t length);

/* Whether the stream came to its proper end: what a broken source leaves behind is not whole. */
gboolean tar_filter_is_whole(const TarFilter *filter);

/* Appends the header of a folder that belongs to root. name is below 100 bytes. */
void tar_append_folder(GByteArray *tar, const char *name, uint32_t mode);
/* Appends the end of an archive. */
void tar_append_end(GByteArray *tar);

#endif
