/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h: whether an engine honours what it was asked for. */
#ifndef SANDHOST_DOCKER_VERIFY_H
#define SANDHOST_DOCKER_VERIFY_H

#include "instance.h"

/* Looks at the running container, once for each kind of request of an instance: an engine that silently leaves a wall
 * out is refused with its name. */
int32_t verify_container(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const struct sandhost_create *request);

#endif
