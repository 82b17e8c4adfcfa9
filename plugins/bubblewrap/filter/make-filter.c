/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-filter.c: a list of what is refused; all else is allowed, as tools of many kinds run here.
 *
 * It runs when sandhost is built and writes the filter's program as C to stdout: to make it anew in each
 * process took as long as everything else that a sandbox needs of the provider.
 */

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define LOW_HALF UINT64_C(0xffffffff) /* all that the kernel looks at where an argument is an int */
/* Newer than some versions of the library; the same number on every machine. */
#define NUMBER_OPEN_TREE_ATTR 467

/* What no compiler, interpreter, version control or package manager needs. Debuggers keep ptrace, which
 * the guest is protected from by itself. */
static const char *const refused[] = {
    /* keys belong to a user, not to a namespace */
    "keyctl", "add_key", "request_key",
    /* a wide way into the kernel, for tracing and for speed */
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register",
    /* files and mounts by other ways than paths */
    "open_by_handle_at", "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree",
    "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "quotactl",
    "quotactl_fd", "setns",
    /* the machine itself */
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
    "create_module", "reboot", "swapon", "swapoff", "acct", "syslog", "settimeofday", "stime",
    "clock_settime", "clock_settime64", "sethostname", "setdomainname", "iopl", "ioperm", "vhangup",
    /* remains of former times */
    "modify_ldt", "vm86", "vm86old", "uselib", "sysfs", "_sysctl", "lookup_dcookie", "nfsservctl",
    "get_kernel_syms", "query_module"};

/* Adds one rule; a call that this machine does not have needs none. */
static int refuse(scmp_filter_ctx filter, int error, int call, unsigned int count,
                  const struct scmp_arg_cmp *conditions) {
  if (call == __NR_SCMP_ERROR) {
    return 0;
  }
  int result =
      seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((uint32_t)error), call, count, conditions);
  return result == -EDOM ? 0 : result;
}

static int refuse_if(scmp_filter_ctx filter, int error, int call, struct scmp_arg_cmp condition) {
  return refuse(filter, error, call, 1, &condition);
}

/* A family that is not here is told as one that the kernel does not have, which programs are used to.
 * Other families, like that of virtual machines, are not bound by a network namespace. Netlink is left
 * for the list of network devices only. */
static int refuse_sockets(scmp_filter_ctx filter, int call) {
  const struct scmp_arg_cmp other_netlink[] = {SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                                               SCMP_A2(SCMP_CMP_NE, 0)};
  int error = refuse_if(filter, EAFNOSUPPORT, call, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
  for (unsigned int family = 0; family < AF_NETLINK && error == 0; family++) {
    if (family != AF_UNIX && family != AF_INET && family != AF_INET6) {
      error = refuse_if(filter, EAFNOSUPPORT, call, SCMP_A0(SCMP_CMP_EQ, family));
    }
  }
  return error ? error : refuse(filter, EPROTONOSUPPORT, call, COUNT(other_netlink), other_netlink);
}

/* Typing into a terminal, and the menu of the console. */
static int refuse_terminal(scmp_filter_ctx filter) {
  const int call = SCMP_SYS(ioctl);
  int error =
      refuse_if(filter, EPERM, call, SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_HALF, (uint64_t)TIOCSTI));
  return error ? error
               : refuse_if(filter, EPERM, call,
                           SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_HALF, (uint64_t)TIOCLINUX));
}

/* New user namespaces give capabilities over what they own, and with them most of the kernel's code.
 * The flags of clone3 lie in memory, where a filter cannot look; libc does without it. */
static int refuse_namespaces(scmp_filter_ctx filter) {
  const struct scmp_arg_cmp new_user =
      SCMP_A0(SCMP_CMP_MASKED_EQ, (uint64_t)CLONE_NEWUSER, (uint64_t)CLONE_NEWUSER);
  int error = refuse_if(filter, EPERM, SCMP_SYS(clone), new_user);
  error = error ? error : refuse_if(filter, EPERM, SCMP_SYS(unshare), new_user);
  return error ? error : refuse(filter, ENOSYS, SCMP_SYS(clone3), 0, NULL);
}

/* Limits of another process: the guest has the same user as its commands. */
static int refuse_limits(scmp_filter_ctx filter) {
  const struct scmp_arg_cmp others[] = {SCMP_A0(SCMP_CMP_NE, 0), SCMP_A2(SCMP_CMP_NE, 0)};
  return refuse(filter, EPERM, SCMP_SYS(prlimit64), COUNT(others), others);
}

/*
 * Personalities other than those of plain and of 32-bit names, with or without random addresses, as
 * debuggers and sanitizers use them. 0xffffffff asks for the present one and stays.
 *
 * Conditions cannot say "any of these bits, but not all". Going round all other bits, a value that has
 * some and lacks some has a bit whose successor it lacks; what has all others has to have the good ones.
 */
static int refuse_personalities(scmp_filter_ctx filter) {
  const uint64_t good = (uint64_t)PER_LINUX32 | (uint64_t)ADDR_NO_RANDOMIZE;
  const int call = SCMP_SYS(personality);
  int error = 0;
  for (unsigned int i = 0; i < 32 && error == 0; i++) {
    uint64_t bit = UINT64_C(1) << i;
    uint64_t next = bit;
    do {
      next = next == UINT64_C(1) << 31 ? 1 : next << 1;
    } while (next & good);
    /* What has all others has bit 0, so that stands for them where a good bit is missing. */
    error = bit & good
                ? refuse_if(filter, EPERM, call, SCMP_A0(SCMP_CMP_MASKED_EQ, bit | 1, 1))
                : refuse_if(filter, EPERM, call, SCMP_A0(SCMP_CMP_MASKED_EQ, bit | next, bit));
  }
  return error;
}

static int fill(scmp_filter_ctx filter) {
  int error = 0;
  for (size_t i = 0; i < COUNT(refused) && error == 0; i++) {
    error = refuse(filter, EPERM, seccomp_syscall_resolve_name(refused[i]), 0, NULL);
  }
  error = error ? error : refuse(filter, EPERM, NUMBER_OPEN_TREE_ATTR, 0, NULL);
  error = error ? error : refuse_sockets(filter, SCMP_SYS(socket));
  error = error ? error : refuse_sockets(filter, SCMP_SYS(socketpair));
  error = error ? error : refuse_terminal(filter);
  error = error ? error : refuse_namespaces(filter);
  error = error ? error : refuse_limits(filter);
  return error ? error : refuse_personalities(filter);
}

/* The filter's program, from a file that nobody else sees: the library writes to descriptors only. */
static int export(scmp_filter_ctx filter, FILE *file) {
  int error = seccomp_export_bpf(filter, fileno(file));
  return error ? error : fseek(file, 0, SEEK_SET) < 0 ? -errno : 0;
}

static void print(FILE *file) {
  puts("/* Made by make-filter. */");
  puts("static const unsigned char filter_program[] = {");
  for (int byte = getc(file); byte != EOF; byte = getc(file)) {
    printf("%d,\n", byte);
  }
  puts("};");
}

int main(void) {
  FILE *file = tmpfile();
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  int result = file && filter ? 0 : -ENOMEM;
  /* The calls of 32-bit programs and of x32 have numbers of their own, which no rule would meet. */
  result =
      result ? result : seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
  /* A tree instead of a list: every call of a command passes it. */
  result = result ? result : seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  result = result ? result : fill(filter);
  result = result ? result : export(filter, file);
  if (result == 0) {
    print(file);
  }
  if (filter) {
    seccomp_release(filter);
  }
  if (file) {
    fclose(file);
  }
  if (result || fflush(stdout) || ferror(stdout)) {
    fprintf(stderr, "make-filter: the filter cannot be made: error %d\n", -result);
    return 1;
  }
  return 0;
}
