/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: sandhost-guest, the program that runs inside a sandbox.
 *
 * Speaks the protocol of guest-protocol-private.h on descriptors 0 and 1. As PID 1 of its namespace
 * it is init; as an ordinary child it is a subreaper. In both cases everything that it starts ends
 * with it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filter.h"
#include "guest.h"
#include "mark.h"

#define MOST_FILES 16384
#define LARGE (256 * 1024) /* bytes */
#define STREAM_FD 100      /* from here on the stream's descriptors are put */

pthread_mutex_t guest_lock = PTHREAD_MUTEX_INITIALIZER;
int guest_is_init;
int guest_null;
struct rlimit guest_file_limit;

#ifdef __SANITIZE_ADDRESS__
/* What cannot be traced cannot be searched for leaks. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_leaks=0";
}
#endif

static void print_help(void) {
  puts(
      "usage: sandhost-guest [--filter] [--nproc N]\n"
      "Runs inside a sandbox and serves sandhost on descriptors 0 and 1. It is of no use by hand.\n"
      "  --filter    first refuses itself, and all that it starts, system calls that no tool "
      "needs\n"
      "  --nproc N   first limits itself, and all that it starts, to N processes\n"
      "  --version   print the protocol's version");
}

/* Something harmless to read from, whether or not the sandbox has a /dev/null. */
static int open_null(void) {
  int ends[2];
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0 && pipe2(ends, O_CLOEXEC) == 0) {
    close(ends[1]);
    fd = ends[0];
  }
  return fd;
}

/* Closes what /proc says is open, and looks again until that is nothing more: the list may move while it is read.
 * 0, or -1: nothing is listed here. */
static int close_listed(unsigned first, unsigned last) {
  DIR *list = opendir("/proc/self/fd");
  int closed = list ? 1 : 0;
  while (closed > 0) {
    closed = 0;
    rewinddir(list);
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
      char *end = NULL;
      unsigned long fd = strtoul(entry->d_name, &end, 10);
      if (end != entry->d_name && !*end && fd >= first && fd <= last &&
          fd != (unsigned long)dirfd(list)) {
        closed += close((int)fd) == 0;
      }
    }
  }
  return list ? closedir(list) : -1;
}

/* Nobody but us has run in the sandbox yet. A kernel without close_range may be one for which tens of thousands of calls
 * that find nothing take seconds (gVisor). */
static void close_between(unsigned first, unsigned last) {
  if (first <= last && close_range(first, last, 0) < 0 && close_listed(first, last) < 0) {
    for (unsigned fd = first; fd <= last && fd < 65536; fd++) {
      close((int)fd);
    }
  }
}

/* The reason that a sandbox does not begin, to whoever started us and still listens. Returns the exit code. */
static int complain(const char *what) {
  int error = errno;
  struct rlimit files;
  if ((error == EINVAL || error == EMFILE) && getrlimit(RLIMIT_NOFILE, &files) == 0) {
    fprintf(stderr, "sandhost-guest: the limit of open files (ulimit -n) is %llu here, too low\n",
            (unsigned long long)files.rlim_cur);
  } else {
    fprintf(stderr, "sandhost-guest: %s: %s\n", what, strerror(error));
  }
  return 1;
}

/* Moves the stream out of the way of everything that is ever inherited, gives 0, 1 and 2 to nobody,
 * and keeps nothing else of whoever started us. The two may be one socket: each gets a descriptor
 * of its own, so that reading and writing can be watched apart. */
static int take_stream(void) {
  int in = fcntl(0, F_DUPFD_CLOEXEC, STREAM_FD);
  int out = in < 0 ? -1 : fcntl(1, F_DUPFD_CLOEXEC, in + 1);
  int null = out < 0 ? -1 : open_null();
  if (null < 0) {
    return -1;
  }
  for (int i = 0; i < 3; i++) {
    /* dup2 of a descriptor to itself would leave it close-on-exec. */
    if (i == null ? fcntl(i, F_SETFD, 0) < 0 : dup2(null, i) < 0) {
      return -1;
    }
  }
  guest_null = 0;
  close_between(3, (unsigned)in - 1);
  close_between((unsigned)in + 1, (unsigned)out - 1);
  close_between((unsigned)out + 1, ~0u);
  return stream_init(in, out);
}

/* Many commands at once need many pipes; a command gets the limit that the sandbox came with. */
static void raise_file_limit(void) {
  struct rlimit own;
  if (getrlimit(RLIMIT_NOFILE, &guest_file_limit) == 0) {
    own = guest_file_limit;
    own.rlim_cur = own.rlim_max < MOST_FILES ? own.rlim_max : MOST_FILES;
    if (own.rlim_cur > guest_file_limit.rlim_cur) {
      setrlimit(RLIMIT_NOFILE, &own);
    }
  }
}

static void settle(void) {
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigset_t child;
  static const struct rlimit NO_CORE = {0, 0};
  guest_is_init = getpid() == 1;
  prctl(PR_SET_DUMPABLE, 0); /* a command of the same user reads nothing of us, and traces us not */
  mark_init();
  prctl(PR_SET_NAME, "sandhost-guest");
  setrlimit(RLIMIT_CORE, &NO_CORE);
  raise_file_limit();
  /* What an operation took goes back to the system when it is done. */
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, LARGE);
  mallopt(M_TRIM_THRESHOLD, LARGE);
  setsid();
  umask(022);
  sigaction(SIGPIPE, &ignore, NULL);
  if (!guest_is_init) {
    /* What a terminal or a command's kill would send us has no meaning here: the stream's end is
     * our end. */
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGQUIT, &ignore, NULL);
    sigaction(SIGHUP, &ignore, NULL);
    sigaction(SIGTERM, &ignore, NULL);
  }
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
}

/* 0, or -1: it is no number, or the limit cannot be had; then nothing may run. A lower one that holds already stays. */
static int limit_processes(const char *text) {
  char *end = NULL;
  errno = 0;
  unsigned long number = strtoul(text, &end, 10);
  struct rlimit limit;
  if (errno || end == text || *end || *text == '-' || number == 0 ||
      getrlimit(RLIMIT_NPROC, &limit) < 0) {
    return -1;
  }
  limit.rlim_max = limit.rlim_max < number ? limit.rlim_max : number;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NPROC, &limit);
}

/* What is to be returned at once, or -1: serve. */
static int read_arguments(int argc, char **argv) {
  int is_filtered = argc > 1 && strcmp(argv[1], "--filter") == 0;
  char **rest = argv + is_filtered;
  int count = argc - is_filtered;
  if (count == 1 || (count == 3 && strcmp(rest[1], "--nproc") == 0)) {
    if (count == 3 && limit_processes(rest[2]) < 0) {
      return complain("cannot limit processes");
    }
    return is_filtered && filter_install() < 0 ? complain("cannot refuse system calls") : -1;
  }
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    printf("sandhost-guest protocol %u\n", GUEST_VERSION);
    return 0;
  }
  print_help();
  return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
}

int main(int argc, char **argv) {
  int exit_code = read_arguments(argc, argv);
  if (exit_code >= 0) {
    return exit_code;
  }
  settle();
  if (take_stream() < 0 || loop_init() < 0) {
    return complain("cannot serve its stream");
  }
  memory_init();
  keeper_init(); /* without one now, the first command makes it */
  loop_run();
  if (!guest_is_init) { /* the end of init is the end of all */
    keeper_kill_everything();
  }
  return 0;
}
