/* SPDX-License-Identifier: Apache-2.0 */
/* filter.h: a filter of system calls for the guest and all that it starts. */
#ifndef SANDHOST_GUEST_FILTER_H
#define SANDHOST_GUEST_FILTER_H

/* Cannot be taken back. 0, also where the kernel has no filters, or -1 with errno. */
int filter_install(void);

#endif
