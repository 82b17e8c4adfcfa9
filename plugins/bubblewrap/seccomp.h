/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp.h: the system calls that a sandbox is refused, for what namespaces alone leave open.
 *
 * Most of what is refused the kernel refuses anyway to a process without capabilities. Open otherwise
 * would be: the keyrings of who started the host, sockets of families that know no network namespace,
 * the calls of 32-bit programs, and calls that serve mainly to attack the kernel.
 */
#ifndef SANDHOST_BUBBLEWRAP_SECCOMP_H
#define SANDHOST_BUBBLEWRAP_SECCOMP_H

/* Makes the filter as bwrap --seccomp reads it, in sealed memory. Returns a descriptor, the caller's, or
 * a negative errno. */
int seccomp_filter_new(void);

/* Opens it for one bwrap, which reads from where a descriptor stands. Returns a descriptor, the caller's,
 * or a negative errno. Threads: any. */
int seccomp_filter_open(int filter_fd);

#endif
