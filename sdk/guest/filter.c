/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.c: a filter of system calls from the list that the provider bubblewrap's is made from, too.
 *
 * It stands behind the filter that a container engine has, which engines of different age and configuration make of
 * different things: a socket to the machine's hypervisor and io_uring are open in many. The guest and its commands have
 * one user, so that the kernel lets a command change the guest's limits: that is refused here as well.
 */
#include "filter.h"

#include <sandhost/refused-calls-private.h>

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

#define MOST 320
#define X32_BIT 0x40000000u
#define REFUSE(number) (SECCOMP_RET_ERRNO | ((number)&SECCOMP_RET_DATA))
/* The low half is all that the kernel looks at where an argument is an int; both machines have it first. */
#define ARGUMENT(index) ((unsigned)(offsetof(struct seccomp_data, args) + 8u * (index)))
#define HIGH_HALF 4u

/* Steps of the rules that look at arguments. */
#define OTHER_STEPS 160

#define CALL(NAME) SYS_##NAME,
#define NUMBERED(NAME, NUMBER) NUMBER,
static const unsigned REFUSED[] = {SANDHOST_REFUSED_CALLS(CALL) SANDHOST_REFUSED_NEW_CALLS(NUMBERED)
#ifdef __x86_64__
                                       SANDHOST_REFUSED_OLD_CALLS(CALL)
#endif
};

/* Two steps for each of them. */
_Static_assert(2 * sizeof REFUSED / sizeof REFUSED[0] + OTHER_STEPS <= MOST, "room for every step");

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

/* Begins the rules for what was loaded being value. The jump over them is set by case_end. */
static unsigned short case_begin(struct program *program, unsigned value) {
  step(program, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0);
  return program->count;
}

static unsigned short call_begin(struct program *program, unsigned number) {
  load(program, offsetof(struct seccomp_data, nr));
  return case_begin(program, number);
}

static void case_end(struct program *program, unsigned short first) {
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

static void refuse_calls(struct program *program) {
  load(program, offsetof(struct seccomp_data, nr));
#define ABSENT(NAME, NUMBER) end_if(program, NUMBER, REFUSE(ENOSYS));
  SANDHOST_ABSENT_NEW_CALLS(ABSENT)
  for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
    end_if(program, REFUSED[i], REFUSE(EPERM));
  }
}

/* Goes on with the families of the internet only. */
static void refuse_families(struct program *program) {
  unsigned short netlink = case_begin(program, AF_NETLINK);
  load(program, ARGUMENT(2));
  step(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
  end(program, REFUSE(EPROTONOSUPPORT));
  case_end(program, netlink);
#define FAMILY(NAME)                                                                               \
  if ((NAME) != AF_INET && (NAME) != AF_INET6) {                                                   \
    end_if(program, NAME, SECCOMP_RET_ALLOW);                                                      \
  }
  SANDHOST_ALLOWED_FAMILIES(FAMILY)
  step(program, BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0);
  step(program, BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0);
  end(program, REFUSE(EAFNOSUPPORT));
}

static void refuse_sockets(struct program *program, unsigned call) {
  unsigned short first = call_begin(program, call);
  load(program, ARGUMENT(0));
  refuse_families(program);
  load(program, ARGUMENT(1));
  step(program, BPF_ALU | BPF_AND | BPF_K, SANDHOST_TYPE_BITS, 0, 0);
#define TYPE(NAME, NUMBER) end_if(program, NUMBER, REFUSE(ESOCKTNOSUPPORT));
  SANDHOST_REFUSED_TYPES(TYPE)
  load(program, ARGUMENT(2));
#define PROTOCOL(NAME, NUMBER) end_if(program, NUMBER, REFUSE(EPROTONOSUPPORT));
  SANDHOST_REFUSED_PROTOCOLS(PROTOCOL)
  case_end(program, first);
}

static void refuse_requests(struct program *program) {
  unsigned short first = call_begin(program, SYS_ioctl);
  load(program, ARGUMENT(1));
#define REQUEST(NAME) end_if(program, NAME, REFUSE(EPERM));
  SANDHOST_REFUSED_REQUESTS(REQUEST)
  case_end(program, first);
}

/* New user namespaces give capabilities over what they own, and with them most of the kernel's code. */
static void refuse_namespaces(struct program *program, unsigned call) {
  unsigned short first = call_begin(program, call);
  load(program, ARGUMENT(0));
  step(program, BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1);
  end(program, REFUSE(EPERM));
  case_end(program, first);
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
  case_end(program, first);
}

/* Engines allow some of them; which, depends on their age. */
static void refuse_personalities(struct program *program) {
  unsigned short first = call_begin(program, SYS_personality);
  load(program, ARGUMENT(0));
  end_if(program, SANDHOST_ASKED_PERSONALITY, SECCOMP_RET_ALLOW);
  step(program, BPF_JMP | BPF_JSET | BPF_K, ~(unsigned)SANDHOST_ALLOWED_PERSONALITY_BITS, 0, 1);
  end(program, REFUSE(EPERM));
  case_end(program, first);
}

int filter_install(void) {
  struct program program = {.count = 0};
  refuse_machines(&program);
  refuse_calls(&program);
  refuse_sockets(&program, SYS_socket);
  refuse_sockets(&program, SYS_socketpair);
  refuse_requests(&program);
  refuse_namespaces(&program, SYS_clone);
  refuse_namespaces(&program, SYS_unshare);
  refuse_limits(&program);
  refuse_personalities(&program);
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
