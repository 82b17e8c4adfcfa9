/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused-calls-private.h: what commands may not ask of the kernel, for the two that make a filter of it: the guest,
 * when a provider asks it to, and the provider bubblewrap. Each list is given the macro that takes its entries.
 *
 * All else is allowed, as tools of many kinds run in a sandbox: what stands here is what no compiler, interpreter,
 * version control or package manager needs. Debuggers keep ptrace, which the guest protects itself from.
 */
#ifndef SANDHOST_REFUSED_CALLS_PRIVATE_H
#define SANDHOST_REFUSED_CALLS_PRIVATE_H

/* NAME. Every machine has them, with numbers of its own. */
#define SANDHOST_REFUSED_CALLS(X)                                                                  \
  /* keys belong to a user, not to a namespace */                                                  \
  X(keyctl)                                                                                        \
  X(add_key)                                                                                       \
  X(request_key)                                                                                   \
  /* a wide way into the kernel, for tracing and for speed */                                      \
  X(bpf)                                                                                           \
  X(perf_event_open)                                                                               \
  X(userfaultfd)                                                                                   \
  /* files and mounts by other ways than paths, and who else uses them */                          \
  X(open_by_handle_at)                                                                             \
  X(fanotify_init)                                                                                 \
  X(mount)                                                                                         \
  X(umount2)                                                                                       \
  X(pivot_root)                                                                                    \
  X(chroot)                                                                                        \
  X(quotactl)                                                                                      \
  X(setns)                                                                                         \
  /* the machine itself */                                                                         \
  X(kexec_load)                                                                                    \
  X(kexec_file_load)                                                                               \
  X(init_module)                                                                                   \
  X(finit_module)                                                                                  \
  X(delete_module)                                                                                 \
  X(reboot)                                                                                        \
  X(swapon)                                                                                        \
  X(swapoff)                                                                                       \
  X(acct)                                                                                          \
  X(syslog)                                                                                        \
  X(settimeofday)                                                                                  \
  X(clock_settime)                                                                                 \
  X(sethostname)                                                                                   \
  X(setdomainname)                                                                                 \
  X(vhangup)                                                                                       \
  /* remains of former times */                                                                    \
  X(lookup_dcookie)                                                                                \
  X(nfsservctl)

/* NAME, NUMBER. Newer than some headers and libraries; the same number on every machine. */
#define SANDHOST_REFUSED_NEW_CALLS(X)                                                              \
  X(io_uring_setup, 425)                                                                           \
  X(io_uring_enter, 426)                                                                           \
  X(io_uring_register, 427)                                                                        \
  X(open_tree, 428)                                                                                \
  X(move_mount, 429)                                                                               \
  X(fsopen, 430)                                                                                   \
  X(fsconfig, 431)                                                                                 \
  X(fsmount, 432)                                                                                  \
  X(fspick, 433)                                                                                   \
  X(mount_setattr, 442)                                                                            \
  X(quotactl_fd, 443)                                                                              \
  X(open_tree_attr, 467)

/* NAME. Of the older machines, x86_64 among them. */
#define SANDHOST_REFUSED_OLD_CALLS(X)                                                              \
  X(iopl)                                                                                          \
  X(ioperm)                                                                                        \
  X(modify_ldt)                                                                                    \
  X(uselib)                                                                                        \
  X(sysfs)                                                                                         \
  X(_sysctl)                                                                                       \
  X(create_module)                                                                                 \
  X(get_kernel_syms)                                                                               \
  X(query_module)

/* NAME. Refused with ENOSYS: its flags lie in memory, where a filter cannot look. Libraries do without it. */
#define SANDHOST_ABSENT_NEW_CALLS(X) X(clone3, 435)

/* Requests of ioctl: typing into a terminal, the menu of the console, and the kernel's drivers of modems and of
 * other lines, which any terminal can be given to. */
#define SANDHOST_REFUSED_REQUESTS(X)                                                               \
  X(TIOCSTI)                                                                                       \
  X(TIOCLINUX)                                                                                     \
  X(TIOCSETD)

/* Families of sockets. One that is not here is told as one that the kernel does not have, which programs are used
 * to. Others, like that of virtual machines, are not bound by a network namespace. Netlink is left besides, for the
 * list of network devices only. */
#define SANDHOST_ALLOWED_FAMILIES(X)                                                               \
  X(AF_UNIX)                                                                                       \
  X(AF_INET)                                                                                       \
  X(AF_INET6)

/* Of the families of the internet, the types and protocols (NAME, NUMBER) that nearly nobody uses. Asking is enough
 * to have the kernel load and run their code. A type is the low bits of its argument. */
#define SANDHOST_TYPE_BITS 0xf
#define SANDHOST_REFUSED_TYPES(X)                                                                  \
  X(RDM, 4)                                                                                        \
  X(SEQPACKET, 5)                                                                                  \
  X(DCCP, 6)                                                                                       \
  X(PACKET, 10) /* the former name of the family AF_PACKET */
#define SANDHOST_REFUSED_PROTOCOLS(X)                                                              \
  X(DCCP, 33)                                                                                      \
  X(L2TP, 115)                                                                                     \
  X(SCTP, 132)                                                                                     \
  X(UDPLITE, 136)                                                                                  \
  X(SMC, 256)

/* The bits of a personality that debuggers and sanitizers use: 32-bit names, and no random addresses. 0xffffffff asks
 * for the present one and stays. */
#define SANDHOST_ALLOWED_PERSONALITY_BITS 0x0040008
#define SANDHOST_ASKED_PERSONALITY 0xffffffff

#endif
