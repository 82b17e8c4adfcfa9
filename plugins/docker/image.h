/* SPDX-License-Identifier: Apache-2.0 */
/* image.h: the image of a sandbox: looked up, pulled where it is missing, with the credentials of Docker's own
 * configuration and with progress for the person who waits. */
#ifndef SANDHOST_DOCKER_IMAGE_H
#define SANDHOST_DOCKER_IMAGE_H

#include "engine.h"

/* What is known of an image that is there. */
struct image {
  char *
      id; /* "sha256:..."; what is to be started, so that a tag that moves meanwhile changes nothing */
  char *architecture; /* "amd64" */
  char *os;
  GPtrArray
      *volumes; /* of char *: folders that the image declares as VOLUME; each absolute and normal */
  gboolean has_entrypoint;
};
void image_clear(struct image *image);

/* Finds name ("python:3.12-slim", "host:5000/x@sha256:...", "sha256:...") or, where allowed, pulls it. Several
 * sandboxes that want the same missing image at once pull it once each at the engine, which joins them. Progress lines
 * go to host->progress. Texts: "Sandbox image {image} is not present and pulling is disabled" (SANDHOST_NOT_FOUND). */
int32_t image_get(Engine *engine, const struct sandhost_host *host, struct sandhost_call *call,
                  const char *name, gboolean may_pull, struct image *ret_image);

/* ---- registry-auth.c ---- */

/* The registry of an image name, as Docker's configuration names it ("https://index.docker.io/v1/" for Docker Hub).
 * Owned. NULL: the name is no image reference. */
char *registry_of_image(const char *name);

/* The value of X-Registry-Auth for a registry from config.json in config_dir (auths, credHelpers, credsStore), owned;
 * NULL: none. config_dir NULL: DOCKER_CONFIG, else ~/.docker. A credential helper that fails, hangs (10 s) or says
 * nonsense is told through *ret_complaint (owned, without its output, which may hold a secret), as is a configuration
 * that cannot be read. cancel_fd becoming readable ends the wait for a helper; -1: none. The result is a secret: wipe
 * it with explicit_bzero before g_free. */
char *registry_auth(const char *config_dir, const char *registry, int cancel_fd,
                    char **ret_complaint);

#endif
