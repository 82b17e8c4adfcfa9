/* SPDX-License-Identifier: Apache-2.0 */
/* image-name.h: what people call an image, taken apart: "host:5000/team/x:tag@sha256:...". */
#ifndef SANDHOST_DOCKER_IMAGE_NAME_H
#define SANDHOST_DOCKER_IMAGE_NAME_H

#include <glib.h>

/* A name that was read. All text is plain ASCII without control characters. */
struct image_name {
  gboolean
      is_id; /* "sha256:..." or its 64 digits: what a registry knows nothing of; all below is NULL */
  char *registry;   /* "host:5000", "ghcr.io"; NULL: Docker Hub */
  char *repository; /* with the registry where one was given: what the engine wants as fromImage */
  char *tag;        /* "latest" where neither tag nor digest is given; NULL: only a digest */
  char *digest;     /* "sha256:..."; NULL */
};
void image_name_clear(struct image_name *name);

/* FALSE where text is no image reference. */
gboolean image_name_read(const char *text, struct image_name *ret_name);

/* For messages and for `docker login`: "docker.io", "host:5000". Borrowed. */
const char *image_name_registry(const struct image_name *name);

/* Whether text is "sha256:" and 64 lower-case hexadecimal digits. */
gboolean image_is_id(const char *text);

#endif
