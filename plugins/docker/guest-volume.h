/* SPDX-License-Identifier: Apache-2.0 */
/* guest-volume.h: the engine's volume that holds sandhost-guest, filled once per engine and version of the guest. */
#ifndef SANDHOST_DOCKER_GUEST_VOLUME_H
#define SANDHOST_DOCKER_GUEST_VOLUME_H

#include "instance.h"

/* The volume's name, borrowed until the instance is closed, in *ret_name; NULL there when no guest for the engine's
 * architecture is installed. It is filled where the engine does not have it, by way of a container of the image that
 * is never started. refill: fill it even if it is there, since a container found it empty. */
int32_t guest_volume_get(struct sandhost_instance *instance, struct sandhost_call *call,
                         const char *image_id, gboolean refill, const char **ret_name);

#endif
