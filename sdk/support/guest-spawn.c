/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-spawn.c: clone with shared memory, as posix_spawn does it, plus what posix_spawn cannot do:
 * cgroups, another user and descriptors at chosen numbers.
 *
 * The child runs in the parent's memory while the parent's thread stands still, so it uses nothing
 * but raw system calls: a libc function might take a lock, or change the user of every thread.
 */
#include "guest-spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_STACK ((size_t)64 * 1024)
#define KERNEL_SIGNALS 64

/* The kernel's own struct sigaction, which rt_sigaction takes. All zero is SIG_DFL. */
struct kernel_action {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)(void);
  unsigned long mask;
};

struct child {
  const char *const *argv;
  const char *const *envp;
  const struct guest_spawn_options *options;
  int stream_fd; /* this and error_fd and pass_fds are above every number that the child fills */
  int error_fd;
  const int *pass_fds;
  unsigned int close_limit; /* where closing one by one stops, on kernels without close_range */
  volatile int *failure;    /* errno, written by the child; at the far end of its stack */
};

/* The child has the parent's memory, which must not look like a second thread to the sanitizers.
 * Thread sanitizer takes a clone for a fork and marks the memory as a forked one's: there the child
 * gets a copy, and only the page that it reports through is shared. */
#if defined(__SANITIZE_THREAD__)
#define CHILD_CODE __attribute__((no_sanitize("thread")))
#define CHILD_MEMORY 0
#define CHILD_STACK_SHARING MAP_SHARED
#else
#if defined(__SANITIZE_ADDRESS__)
#define CHILD_CODE __attribute__((no_sanitize("address")))
#else
#define CHILD_CODE
#endif
#define CHILD_MEMORY CLONE_VM
#define CHILD_STACK_SHARING MAP_PRIVATE
#endif

CHILD_CODE static long change_user(const struct guest_spawn_options *options) {
  if (!options->change_user) {
    return 0;
  }
  if (syscall(SYS_setgroups, (size_t)0, NULL) < 0 ||
      syscall(SYS_setresgid, options->gid, options->gid, options->gid) < 0) {
    return -1;
  }
  return syscall(SYS_setresuid, options->uid, options->uid, options->uid);
}

CHILD_CODE static long place_descriptors(const struct child *child) {
  if (syscall(SYS_dup3, child->stream_fd, 0, 0) < 0 ||
      syscall(SYS_dup3, child->stream_fd, 1, 0) < 0 ||
      syscall(SYS_dup3, child->error_fd, 2, 0) < 0) {
    return -1;
  }
  unsigned int next = 3;
  for (size_t i = 0; i < child->options->pass_count; i++) {
    if (syscall(SYS_dup3, child->pass_fds[i], next, 0) < 0) {
      return -1;
    }
    next++;
  }
  if (syscall(SYS_close_range, next, UINT_MAX, 0u) == 0) {
    return 0;
  }
  for (unsigned int fd = next; fd < child->close_limit; fd++) {
    (void)syscall(SYS_close, fd);
  }
  return 0;
}

CHILD_CODE static void reset_signals(void) {
  struct kernel_action action = {0};
  for (int number = 1; number <= KERNEL_SIGNALS; number++) {
    /* Fails for SIGKILL and SIGSTOP, which cannot be changed anyway. */
    (void)syscall(SYS_rt_sigaction, number, &action, NULL, sizeof action.mask);
  }
  unsigned long none = 0;
  (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

CHILD_CODE static int child_main(void *data) {
  struct child *child = data;
  const struct guest_spawn_options *options = child->options;
  for (size_t i = 0; i < options->cgroup_count; i++) {
    if (syscall(SYS_write, options->cgroup_fds[i], "0", (size_t)1) != 1) {
      goto failed;
    }
  }
  (void)syscall(SYS_setsid);
  if (change_user(options) < 0 || (options->cwd && syscall(SYS_chdir, options->cwd) < 0) ||
      place_descriptors(child) < 0) {
    goto failed;
  }
  reset_signals();
  (void)syscall(SYS_execve, child->argv[0], child->argv, child->envp);
failed:
  *child->failure = errno;
  syscall(SYS_exit_group, 127);
  __builtin_unreachable();
}

/* Runs the child until it has become argv[0]. Returns its number or a negative errno. */
static pid_t clone_once(struct child *child) {
  void *stack = mmap(NULL, CHILD_STACK, PROT_READ | PROT_WRITE,
                     CHILD_STACK_SHARING | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) {
    return -errno;
  }
  child->failure = stack;
  /* No handler of this process may run in the child, which has its memory. */
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  pid_t pid =
      clone(child_main, (char *)stack + CHILD_STACK, CHILD_MEMORY | CLONE_VFORK | SIGCHLD, child);
  int error = pid < 0 ? errno : *child->failure;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  munmap(stack, CHILD_STACK);
  if (pid >= 0 && error) {
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
  }
  return error ? -error : pid;
}

/*
 * A child that changes its user makes the memory that it shares with this process undumpable, which
 * keeps other processes of that user away from it until it has become argv[0]. Afterwards this process
 * gets its own setting back. The lock is there so that this does not happen under another child; it
 * guards nothing else and is taken by no caller that holds another lock of this library.
 */
static pid_t clone_child(struct child *child) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if (!child->options->change_user) {
    return clone_once(child);
  }
  pthread_mutex_lock(&lock);
  int dumpable = prctl(PR_GET_DUMPABLE);
  pid_t pid = clone_once(child);
  if (dumpable == 1) {
    (void)prctl(PR_SET_DUMPABLE, 1);
  }
  pthread_mutex_unlock(&lock);
  return pid;
}

/* Replaces *fd by a duplicate of at least lowest, so that the child can fill the numbers below. */
static int lift(int *fd, int lowest) {
  if (*fd >= lowest) {
    return 0;
  }
  int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, lowest);
  if (lifted < 0) {
    return -errno;
  }
  close(*fd);
  *fd = lifted;
  return 0;
}

/* Closes the copies among the first count of passed. */
static void drop_passed(const struct guest_spawn_options *options, const int *passed,
                        size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (passed[i] != options->pass_fds[i]) {
      close(passed[i]);
    }
  }
}

/* What the child duplicates: descriptors of at least lowest; copies of those that are below. Returns 0, or a negative
 * errno with no copy made. */
static int lift_passed(const struct guest_spawn_options *options, int lowest, int *ret_passed) {
  for (size_t i = 0; i < options->pass_count; i++) {
    const int fd = options->pass_fds[i];
    ret_passed[i] = fd >= lowest ? fd : fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (ret_passed[i] < 0) {
      int error = -errno;
      drop_passed(options, ret_passed, i);
      return error;
    }
  }
  return 0;
}

static void close_all(const int *fds, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (fds[i] >= 0) {
      close(fds[i]);
    }
  }
}

static unsigned int close_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 65536) {
    return 65536;
  }
  return (unsigned int)limit.rlim_cur;
}

/* The ends of the stream and of the pipe; 0 is ours, 1 the child's. */
static int make_ends(int stream[2], int errors[2], int lowest) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) < 0 ||
      pipe2(errors, O_CLOEXEC) < 0 || fcntl(errors[0], F_SETFL, O_NONBLOCK) < 0) {
    return -errno;
  }
  int error = lift(&stream[1], lowest);
  return error ? error : lift(&errors[1], lowest);
}

int guest_spawn(const char *const argv[], const char *const envp[],
                const struct guest_spawn_options *options, pid_t *ret_pid, int *ret_pidfd,
                int *ret_stream_fd, int *ret_error_fd) {
  static const struct guest_spawn_options no_options;
  static const char *const no_environment[] = {NULL};
  options = options ? options : &no_options;
  if (!argv || !argv[0] || options->pass_count > GUEST_SPAWN_MAX_PASS) {
    return -EINVAL;
  }
  const int lowest = 3 + (int)options->pass_count;
  int stream[2] = {-1, -1};
  int errors[2] = {-1, -1};
  int passed[GUEST_SPAWN_MAX_PASS];
  pid_t pid = make_ends(stream, errors, lowest);
  pid = pid == 0 ? lift_passed(options, lowest, passed) : pid;
  if (pid == 0) {
    struct child child = {.argv = argv,
                          .envp = envp ? envp : no_environment,
                          .options = options,
                          .stream_fd = stream[1],
                          .error_fd = errors[1],
                          .pass_fds = passed,
                          .close_limit = close_limit()};
    pid = clone_child(&child);
    drop_passed(options, passed, options->pass_count);
  }
  close_all(&stream[1], 1);
  close_all(&errors[1], 1);
  if (pid < 0) {
    close_all(&stream[0], 1);
    close_all(&errors[0], 1);
    return pid;
  }
  *ret_pid = pid;
  *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  *ret_stream_fd = stream[0];
  *ret_error_fd = errors[0];
  return 0;
}

char *guest_program(struct sandhost_path guest_dir) {
  struct utsname machine;
  if (guest_dir.length == 0 || guest_dir.length >= PATH_MAX || uname(&machine) < 0) {
    return NULL;
  }
  g_autofree char *dir = g_strndup(guest_dir.data, guest_dir.length);
  g_autofree char *path = g_strdup_printf("%s/sandhost-guest-%s", dir, machine.machine);
  if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0) {
    return NULL;
  }
  return g_steal_pointer(&path);
}
