/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.c: a list of system calls that are refused; all else is allowed, as tools of many kinds run here.
 *
 * It stands behind the filter that a container engine has, which engines of different age and configuration make of
 * different things: a socket to the machine's hypervisor and io_uring are open in many. The guest and its commands have
 * one user, so that the kernel lets a command change the guest's limits: that is refused here as well.
 */
#include "filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE AUDIT_ARCH_AARCH64
#endif

#ifdef OWN_MACHINE

#define MOST 256
#define X32_BIT 0x40000000u
#define REFUSE(number) (SECCOMP_RET_ERRNO | ((number)&SECCOMP_RET_DATA))
/* The low half is all that the kernel looks at where an argument is an int; both machines have it first. */
#define ARGUMENT(index) ((unsigned)(offsetof(struct seccomp_data, args) + 8u * (index)))
#define HIGH_HALF 4u

/* Newer than some headers; the same numbers on every machine. */
#define NUMBER_IO_URING_SETUP 425
#define NUMBER_IO_URING_ENTER 426
#define NUMBER_IO_URING_REGISTER 427
#define NUMBER_OPEN_TREE 428
#define NUMBER_MOVE_MOUNT 429
#define NUMBER_FSOPEN 430
#define NUMBER_FSCONFIG 431
#define NUMBER_FSMOUNT 432
#define NUMBER_FSPICK 433
#define NUMBER_CLONE3 435
#define NUMBER_MOUNT_SETATTR 442
#define NUMBER_QUOTACTL_FD 443
#define NUMBER_OPEN_TREE_ATTR 467

/* What no compiler, interpreter, version control or package manager needs. */
static const unsigned REFUSED[] = {
    /* keys belong to a user, not to a namespace */
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    /* a wide way into the kernel, for tracing and for speed */
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    NUMBER_IO_URING_SETUP,
    NUMBER_IO_URING_ENTER,
    NUMBER_IO_URING_REGISTER,
    /* files and mounts by other ways than paths */
    SYS_open_by_handle_at,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    NUMBER_OPEN_TREE,
    NUMBER_MOVE_MOUNT,
    NUMBER_FSOPEN,
    NUMBER_FSCONFIG,
    NUMBER_FSMOUNT,
    NUMBER_FSPICK,
    NUMBER_MOUNT_SETATTR,
    NUMBER_OPEN_TREE_ATTR,
    SYS_quotactl,
    NUMBER_QUOTACTL_FD,
    SYS_setns,
    /* the machine itself */
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_vhangup,
#ifdef __x86_64__
    SYS_kexec_file_load,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
    SYS__sysctl,
    SYS_sysfs,
#endif
};

/* Two steps for each of them; the other rules have less than a hundred. */
_Static_assert(2 * sizeof REFUSED / sizeof REFUSED[0] + 100 <= MOST, "room for every step");

struct program {
  struct sock_filter steps[MOST];
  unsigned short count;
};

static void step(struct program *program, unsigned code, unsigned value, unsigned yes,
                 unsigned no) {
  program->steps[program->count++] = (struct sock_filter){
      .code = (unsigned short)code, .jt = (unsigned char)yes, .jf = (unsigned char)no, .k = value};
}

static void load(struct program *program, unsigned offset) {
  step(program, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

static void end(struct program *program, unsigned action) {
  step(program, BPF_RET | BPF_K, action, 0, 0);
}

/* Ends with the action when what was loaded equals value. */
static void end_if(struct program *program, unsigned value, unsigned action) {
  step(program, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
  end(program, action);
}

/* Begins the rules of one call. The jump over them is set by call_end. */
static unsigned short call_begin(struct program *program, unsigned number) {
  load(program, offsetof(struct seccomp_data, nr));
  step(program, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 0);
  return program->count;
}

static void call_end(struct program *program, unsigned short first) {
  end(program, SECCOMP_RET_ALLOW);
  program->steps[first - 1].jf = (unsigned char)(program->count - first);
}

/* Calls of 32-bit programs have numbers of their own, which no rule would meet. */
static void refuse_machines(struct program *program) {
  load(program, offsetof(struct seccomp_data, arch));
  step(program, BPF_JMP | BPF_JEQ | BPF_K, OWN_MACHINE, 1, 0);
  end(program, REFUSE(ENOSYS));
#ifdef __x86_64__
  load(program, offsetof(struct seccomp_data, nr));
  step(program, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
  end(program, REFUSE(ENOSYS));
#endif
}

/* The flags of clone3 lie in memory, where a filter cannot look; libraries do without it. */
static void refuse_calls(struct program *program) {
  load(program, offsetof(struct seccomp_data, nr));
  end_if(program, NUMBER_CLONE3, REFUSE(ENOSYS));
  for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
    end_if(program, REFUSED[i], REFUSE(EPERM));
  }
}

/* A family that is not here is told as one that the kernel does not have, which programs are used to. Other families,
 * like that of virtual machines, are not bound by a network namespace. Netlink is left for the list of network devices
 * only. */
static void refuse_sockets(struct program *program, unsigned call) {
  unsigned short first = call_begin(program, call);
  load(program, ARGUMENT(0));
  end_if(program, AF_UNIX, SECCOMP_RET_ALLOW);
  end_if(program, AF_INET, SECCOMP_RET_ALLOW);
  end_if(program, AF_INET6, SECCOMP_RET_ALLOW);
  step(program, BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 1, 0);
  end(program, REFUSE(EAFNOSUPPORT));
  load(program, ARGUMENT(2));
  end_if(program, 0, SECCOMP_RET_ALLOW);
  end(program, REFUSE(EPROTONOSUPPORT));
  call_end(program, first);
}

/* Typing into a terminal, and the menu of the console. */
static void refuse_terminal(struct program *program) {
  unsigned short first = call_begin(program, SYS_ioctl);
  load(program, ARGUMENT(1));
  end_if(program, TIOCSTI, REFUSE(EPERM));
  end_if(program, TIOCLINUX, REFUSE(EPERM));
  call_end(program, first);
}

/* New user namespaces give capabilities over what they own, and with them most of the kernel's code. */
static void refuse_namespaces(struct program *program, unsigned call) {
  unsigned short first = call_begin(program, call);
  load(program, ARGUMENT(0));
  step(program, BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1);
  end(program, REFUSE(EPERM));
  call_end(program, first);
}

/* Limits of another process may be read, not set. */
static void refuse_limits(struct program *program) {
  unsigned short first = call_begin(program, SYS_prlimit64);
  load(program, ARGUMENT(0));
  end_if(program, 0, SECCOMP_RET_ALLOW);
  load(program, ARGUMENT(2));
  step(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
  end(program, REFUSE(EPERM));
  load(program, ARGUMENT(2) + HIGH_HALF);
  step(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
  end(program, REFUSE(EPERM));
  call_end(program, first);
}

int filter_install(void) {
  struct program program = {.count = 0};
  refuse_machines(&program);
  refuse_calls(&program);
  refuse_sockets(&program, SYS_socket);
  refuse_sockets(&program, SYS_socketpair);
  refuse_terminal(&program);
  refuse_namespaces(&program, SYS_clone);
  refuse_namespaces(&program, SYS_unshare);
  refuse_limits(&program);
  end(&program, SECCOMP_RET_ALLOW);

  const struct sock_fprog whole = {.len = program.count, .filter = program.steps};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
    return -1;
  }
  /* As engines do it: without this flag older kernels make every process slower. */
  long result =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &whole);
  if (result < 0 && errno == EINVAL) {
    result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole);
  }
  return result == 0 || errno == EINVAL || errno == ENOSYS ? 0 : -1;
}

#else

int filter_install(void) {
  return 0;
}

#endif
