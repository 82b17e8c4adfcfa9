/* SPDX-License-Identifier: Apache-2.0 */
/* archive-copy.h: copies a folder of one container to another as a stream that is nowhere held
 * whole. */
#ifndef SANDHOST_DOCKER_ARCHIVE_COPY_H
#define SANDHOST_DOCKER_ARCHIVE_COPY_H

#include "engine.h"
#include "tar-owner.h"

struct archive_copy {
  Engine *engine; /* all is borrowed */
  const struct sandhost_host *host;
  const char *from; /* container */
  const char *from_path;
  const char *to; /* container */
  const char *to_path;
  const struct tar_owner *owner; /* whom the files belong to afterwards; NULL: as they are */
  uint64_t max_bytes;            /* of the archive; more is SANDHOST_LIMIT */
};

/* The archive of from_path becomes the content of to_path, which exists. Both requests run at
 * once, one of them in a thread that ends before this returns. After a failure part of it may be
 * there. */
int32_t archive_copy(const struct archive_copy *copy, struct sandhost_call *call);

#endif
