/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-spawn.h: starts a process whose stdin and stdout are one stream to this process.
 *
 * For plugins that start sandhost-guest, or a program that becomes it, on this machine. The child
 * shares no memory copy with its parent (as posix_spawn does it), gets nothing of it but what is
 * said here, and is not waited for: the caller owns the process.
 */
#ifndef SANDHOST_SUPPORT_GUEST_SPAWN_H
#define SANDHOST_SUPPORT_GUEST_SPAWN_H

#include <glib.h>
#include <sandhost/provider.h>
#include <sys/types.h>

/* Everything may stay zero. All is borrowed until guest_spawn returns. */
struct guest_spawn_options {
  gboolean change_user; /* become uid and gid, with no supplementary groups; needs root */
  uid_t uid;
  gid_t gid;
  const int
      *cgroup_fds; /* open cgroup.procs files that the child joins first, as the caller's user */
  size_t cgroup_count;
  const int *pass_fds; /* become 3, 4, ... in the child, in this order; any descriptors here */
  size_t pass_count;   /* at most GUEST_SPAWN_MAX_PASS */
  const char *cwd;     /* entered as the new user; NULL: the caller's */
};

#define GUEST_SPAWN_MAX_PASS 64

/* Starts argv[0], a path (PATH is not searched), with exactly the variables of envp (NULL: none), in
 * a session of its own, with default signal dispositions and an empty mask. stdin and stdout are one
 * socket, whose other end is *ret_stream_fd; stderr is a pipe, whose non-blocking read end is
 * *ret_error_fd. No other descriptor but pass_fds reaches it. All returned descriptors are owned by
 * the caller and close on exec. *ret_pidfd is -1 where the kernel has no pidfds (before 5.3).
 * Returns 0 once argv[0] runs, or the negative errno of whatever failed, also inside the child: then
 * nothing is left behind. Threads: any. */
int guest_spawn(const char *const argv[], const char *const envp[],
                const struct guest_spawn_options *options, pid_t *ret_pid, int *ret_pidfd,
                int *ret_stream_fd, int *ret_error_fd);

/* The path of sandhost-guest-MACHINE in guest_dir, owned by the caller; NULL where guest_dir is empty
 * or has no such program that this process may execute. */
char *guest_program(struct sandhost_path guest_dir);

#endif
