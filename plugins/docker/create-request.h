/* SPDX-License-Identifier: Apache-2.0 */
/* create-request.h: what the engine is asked for when a sandbox is made. Pure: asks nobody, changes nothing. */
#ifndef SANDHOST_DOCKER_CREATE_REQUEST_H
#define SANDHOST_DOCKER_CREATE_REQUEST_H

#include "instance.h"

/* Where the guest's volume is mounted inside, read-only. */
#define GUEST_FOLDER "/.sandhost"
#define GUEST_PROGRAM "guest"
#define GUEST_READABLE_PROGRAM "guest-readable"

struct container_plan {
  const struct sandhost_instance *instance; /* borrowed, as is all but the flags */
  const struct sandhost_create *request;    /* checked */
  const struct image *image;
  const char *working_dir;
  const GPtrArray *environment; /* of char *, "NAME=value": what the request adds */
  const char *guest_volume;     /* NULL: the plain path */
  gboolean guest_readable;      /* the runtime has to read what it runs */
  const char *session;          /* for the label */
  const char *run_id;
  gboolean
      is_podman; /* it ignores the options of a volume: the working directory is a tmpfs then */
};

/* How the working directory's volume is mounted, as the engine's local driver words it. Owned. */
char *create_request_volume_options(const struct sandhost_instance *instance);

/* What the engine is asked for so that there can be pids_limit processes. */
uint64_t create_request_pids(uint64_t pids_limit, gboolean is_gvisor);

/* The body of POST /containers/create. Owned. */
json_object *create_request_new(const struct container_plan *plan);

#endif
