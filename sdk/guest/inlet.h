/* SPDX-License-Identifier: Apache-2.0 */
/* inlet.h: a command's stdin. */
#ifndef SANDHOST_GUEST_INLET_H
#define SANDHOST_GUEST_INLET_H

#include "guest.h"

struct inlet;

/* The end to read from is the caller's to give away. NULL with errno. */
struct inlet *inlet_new(uint32_t request, int *ret_read_end);
/* Takes what the host sent, gives credit back as the command reads it. */
void inlet_data(struct inlet *inlet, const unsigned char *data, size_t length);
/* No more comes: the pipe is closed once all is read. */
void inlet_end(struct inlet *inlet);
/* NULL is allowed. */
void inlet_drop(struct inlet *inlet);

#endif
