/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain-tar.h: reads a tar stream as it comes: ustar, pax and GNU long names, as container engines write them.
 *
 * The stream is hostile until checked: whatever is read from it is bounded, and a name is told only when it is below the
 * stream's top.
 */
#ifndef SANDHOST_DOCKER_PLAIN_TAR_H
#define SANDHOST_DOCKER_PLAIN_TAR_H

#include <glib.h>
#include <sandhost/provider.h>

enum tar_kind { TAR_FILE, TAR_FOLDER, TAR_LINK, TAR_HARD_LINK, TAR_OTHER };

/* A member. Borrowed while it is told. */
struct tar_member {
  const char *name; /* relative; each component a name; no slash at the end */
  const char *link; /* of links: what they say, not checked at all */
  enum tar_kind kind;
  uint64_t bytes; /* of content that follows */
  uint32_t mode;  /* permission bits */
  int64_t mtime;  /* nanoseconds since 1970 */
};

/* What is told. Each returns SANDHOST_OK, or any other status to stop. */
struct tar_events {
  int32_t (*member)(void *user, const struct tar_member *member);
  int32_t (*content)(void *user, const void *data, size_t length);
  int32_t (*member_end)(void *user); /* after the content of a TAR_FILE */
};

typedef struct TarReader TarReader;

TarReader *tar_reader_new(const struct tar_events *events, void *user);
void tar_reader_free(TarReader *reader);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TarReader, tar_reader_free)

/* Takes the next bytes. SANDHOST_OK, the status of a function that stopped, or SANDHOST_PROTOCOL with the complaint. */
int32_t tar_reader_feed(TarReader *reader, const void *data, size_t length);
/* Whether the stream's own end has come. */
gboolean tar_reader_at_end(const TarReader *reader);
/* What is wrong with the stream. Static. NULL: nothing. */
const char *tar_reader_complaint(const TarReader *reader);

#endif
