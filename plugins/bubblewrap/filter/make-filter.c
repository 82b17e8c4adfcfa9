/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-filter.c: a filter of system calls from the list that the guest's is made from, too.
 *
 * It runs when sandhost is built and writes the filter's program as C to stdout: to make it anew in each
 * process took as long as everything else that a sandbox needs of the provider.
 */

#include <sandhost/refused-calls-private.h>

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define LOW_HALF UINT64_C(0xffffffff) /* all that the kernel looks at where an argument is an int */

struct call {
  const char *name;
  int number; /* where the library is older than the call; 0: it knows all of them */
};

#define CALL(NAME) {#NAME, 0},
#define NEW_CALL(NAME, NUMBER) {#NAME, NUMBER},
static const struct call refused[] = {
    SANDHOST_REFUSED_CALLS(CALL) SANDHOST_REFUSED_NEW_CALLS(NEW_CALL)
        SANDHOST_REFUSED_OLD_CALLS(CALL)
    /* of machines with 32 bits only, for which the guest has no filter */
    {"umount", 0},
    {"stime", 0},
    {"clock_settime64", 0},
    {"vm86", 0},
    {"vm86old", 0}};
static const struct call absent[] = {SANDHOST_ABSENT_NEW_CALLS(NEW_CALL)};

#define VALUE(NAME) NAME,
#define NUMBERED(NAME, NUMBER) NUMBER,
static const unsigned int requests[] = {SANDHOST_REFUSED_REQUESTS(VALUE)};
static const unsigned int families[] = {SANDHOST_ALLOWED_FAMILIES(VALUE) AF_NETLINK};
static const unsigned int internets[] = {AF_INET, AF_INET6};
static const unsigned int types[] = {SANDHOST_REFUSED_TYPES(NUMBERED)};
static const unsigned int protocols[] = {SANDHOST_REFUSED_PROTOCOLS(NUMBERED)};

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

static int refuse_calls(scmp_filter_ctx filter, int error, const struct call *calls, size_t count) {
  int result = 0;
  for (size_t i = 0; i < count && result == 0; i++) {
    int call = seccomp_syscall_resolve_name(calls[i].name);
    call = call == __NR_SCMP_ERROR && calls[i].number > 0 ? calls[i].number : call;
    result = refuse(filter, error, call, 0, NULL);
  }
  return result;
}

static int is_family(unsigned int family) {
  for (size_t i = 0; i < COUNT(families); i++) {
    if (families[i] == family) {
      return 1;
    }
  }
  return 0;
}

/* Where a number has upper bits, it is greater than all families. */
static int refuse_families(scmp_filter_ctx filter, int call) {
  const struct scmp_arg_cmp other_netlink[] = {SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                                               SCMP_A2(SCMP_CMP_NE, 0)};
  int error = refuse_if(filter, EAFNOSUPPORT, call, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
  for (unsigned int family = 0; family < AF_NETLINK && error == 0; family++) {
    if (!is_family(family)) {
      error = refuse_if(filter, EAFNOSUPPORT, call, SCMP_A0(SCMP_CMP_EQ, family));
    }
  }
  return error ? error : refuse(filter, EPROTONOSUPPORT, call, COUNT(other_netlink), other_netlink);
}

static int refuse_kinds(scmp_filter_ctx filter, int call, unsigned int family) {
  int error = 0;
  for (size_t i = 0; i < COUNT(types) && error == 0; i++) {
    const struct scmp_arg_cmp kind[] = {SCMP_A0(SCMP_CMP_EQ, family),
                                        SCMP_A1(SCMP_CMP_MASKED_EQ, SANDHOST_TYPE_BITS, types[i])};
    error = refuse(filter, ESOCKTNOSUPPORT, call, COUNT(kind), kind);
  }
  for (size_t i = 0; i < COUNT(protocols) && error == 0; i++) {
    const struct scmp_arg_cmp kind[] = {SCMP_A0(SCMP_CMP_EQ, family),
                                        SCMP_A2(SCMP_CMP_MASKED_EQ, LOW_HALF, protocols[i])};
    error = refuse(filter, EPROTONOSUPPORT, call, COUNT(kind), kind);
  }
  return error;
}

static int refuse_sockets(scmp_filter_ctx filter, int call) {
  int error = refuse_families(filter, call);
  for (size_t i = 0; i < COUNT(internets) && error == 0; i++) {
    error = refuse_kinds(filter, call, internets[i]);
  }
  return error;
}

static int refuse_requests(scmp_filter_ctx filter) {
  int error = 0;
  for (size_t i = 0; i < COUNT(requests) && error == 0; i++) {
    error = refuse_if(filter, EPERM, SCMP_SYS(ioctl),
                      SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_HALF, requests[i]));
  }
  return error;
}

/* New user namespaces give capabilities over what they own, and with them most of the kernel's code. */
static int refuse_namespaces(scmp_filter_ctx filter) {
  const struct scmp_arg_cmp new_user =
      SCMP_A0(SCMP_CMP_MASKED_EQ, (uint64_t)CLONE_NEWUSER, (uint64_t)CLONE_NEWUSER);
  int error = refuse_if(filter, EPERM, SCMP_SYS(clone), new_user);
  return error ? error : refuse_if(filter, EPERM, SCMP_SYS(unshare), new_user);
}

/* Limits of another process: the guest has the same user as its commands. */
static int refuse_limits(scmp_filter_ctx filter) {
  const struct scmp_arg_cmp others[] = {SCMP_A0(SCMP_CMP_NE, 0), SCMP_A2(SCMP_CMP_NE, 0)};
  return refuse(filter, EPERM, SCMP_SYS(prlimit64), COUNT(others), others);
}

/*
 * Personalities with other than the good bits.
 *
 * Conditions cannot say "any of these bits, but not all". Going round all other bits, a value that has
 * some and lacks some has a bit whose successor it lacks; what has all others has to have the good ones.
 */
static int refuse_personalities(scmp_filter_ctx filter) {
  const uint64_t good = SANDHOST_ALLOWED_PERSONALITY_BITS;
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
  int error = refuse_calls(filter, EPERM, refused, COUNT(refused));
  error = error ? error : refuse_calls(filter, ENOSYS, absent, COUNT(absent));
  error = error ? error : refuse_sockets(filter, SCMP_SYS(socket));
  error = error ? error : refuse_sockets(filter, SCMP_SYS(socketpair));
  error = error ? error : refuse_requests(filter);
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
