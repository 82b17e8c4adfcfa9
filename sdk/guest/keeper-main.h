/* SPDX-License-Identifier: Apache-2.0 */
/* keeper-main.h: the code that a keeper runs. */
#ifndef SANDHOST_GUEST_KEEPER_MAIN_H
#define SANDHOST_GUEST_KEEPER_MAIN_H

#include <sys/types.h>

/* Parameters up to this size come in the packet itself, larger ones in a memfd behind the three
 * descriptors. */
#define KEEPER_INLINE (16u * 1024u)

/* Serves the commands of a guest, this process's parent, from the socket until it closes. */
_Noreturn void keeper_main(int socket, pid_t guest);

#endif
