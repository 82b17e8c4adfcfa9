/* SPDX-License-Identifier: Apache-2.0 */
/* parameters.h: those of an execute request. */
#ifndef SANDHOST_GUEST_PARAMETERS_H
#define SANDHOST_GUEST_PARAMETERS_H

#include "guest.h"

/* Whether what the keeper will read (cwd, words, variables) makes sense. */
int parameters_make_sense(struct guest_reader reader);

#endif
