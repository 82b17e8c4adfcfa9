/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper-main.c: the keeper itself: receives a command, starts it, waits, tells.
 *
 * Parameters are those of GUEST_EXECUTE from cwd on: cwd bytes, argc u32, words, count u32,
 * variables.
 */
#include "keeper-main.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"
#include "long-script.h"
#include "mark.h"
#include "start.h"
#include "tree.h"

struct job {
  uint64_t mark;
  int fds[4]; /* stdin, stdout, stderr, parameters (or -1) */
  const unsigned char *bytes;
  size_t length;
  size_t mapped;
  char *cwd;
  char **argv;
  char **environment;
};

/* ---- Receiving ------------------------------------------------------------------------------- */

static int receive(int fd, struct job *job, unsigned char *inlined) {
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(4 * sizeof(int))];
  } control;
  uint64_t mark = MARK_NONE;
  struct iovec parts[2] = {{.iov_base = &mark, .iov_len = sizeof mark},
                           {.iov_base = inlined, .iov_len = KEEPER_INLINE}};
  struct msghdr message = {.msg_iov = parts,
                           .msg_iovlen = 2,
                           .msg_control = control.room,
                           .msg_controllen = sizeof control.room};
  ssize_t count = -1;
  do {
    count = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  struct cmsghdr *header = count > (ssize_t)sizeof mark ? CMSG_FIRSTHDR(&message) : NULL;
  if (!header || header->cmsg_type != SCM_RIGHTS) {
    return -1;
  }
  size_t passed = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  memset(job, 0, sizeof *job);
  job->fds[3] = -1;
  memcpy(job->fds, CMSG_DATA(header), passed * sizeof(int));
  job->bytes = inlined;
  job->length = (size_t)count - sizeof mark;
  job->mark = mark;
  if (passed == 4) {
    struct stat facts;
    if (fstat(job->fds[3], &facts) < 0) {
      return -1;
    }
    job->length = job->mapped = (size_t)facts.st_size;
    job->bytes = mmap(NULL, job->mapped, PROT_READ, MAP_PRIVATE, job->fds[3], 0);
    if (job->bytes == MAP_FAILED) {
      return -1;
    }
  }
  return 0;
}

static char *copy_bytes(struct guest_reader *reader) {
  size_t length = 0;
  const char *bytes = guest_read_bytes(reader, &length);
  char *text = malloc(length + 1);
  if (text) {
    memcpy(text, bytes, length);
    text[length] = '\0';
  }
  return text;
}

static char **copy_list(struct guest_reader *reader, size_t *ret_count) {
  uint32_t count = guest_read_u32(reader);
  if (count > reader->left / 4) {
    reader->bad = 1;
    count = 0;
  }
  char **list = calloc((size_t)count + 1, sizeof *list);
  for (uint32_t i = 0; list && i < count; i++) {
    list[i] = copy_bytes(reader);
  }
  *ret_count = count;
  return list;
}

static int same_name(const char *a, const char *b) {
  size_t length = strcspn(a, "=");
  return strncmp(a, b, length) == 0 && b[length] == '=';
}

/* The guest's own environment with the command's variables laid over it; takes the list's strings.
 * */
static char **merge_environment(char **given, size_t count) {
  size_t own = 0;
  while (environ[own]) {
    own++;
  }
  char **merged = calloc(own + count + 1, sizeof *merged);
  size_t at = 0;
  for (size_t i = 0; merged && i < own; i++) {
    int replaced = 0;
    for (size_t j = 0; j < count; j++) {
      replaced = replaced || same_name(given[j], environ[i]);
    }
    if (!replaced) {
      merged[at++] = environ[i];
    }
  }
  for (size_t j = 0; merged && j < count; j++) {
    int replaced = 0; /* by a later one of the same name */
    for (size_t k = j + 1; k < count; k++) {
      replaced = replaced || same_name(given[k], given[j]);
    }
    if (replaced) {
      free(given[j]);
    } else {
      merged[at++] = given[j];
    }
  }
  return merged;
}

static int understand(struct job *job) {
  struct guest_reader reader = {.data = job->bytes, .left = job->length};
  size_t words = 0;
  size_t variables = 0;
  job->cwd = copy_bytes(&reader);
  job->argv = copy_list(&reader, &words);
  char **given = copy_list(&reader, &variables);
  if (reader.bad || !job->cwd || !job->argv || !given || words == 0) {
    free(given);
    return -1;
  }
  job->environment = merge_environment(given, variables);
  free(given);
  return job->environment ? 0 : -1;
}

/* ---- Starting -------------------------------------------------------------------------------- */

static void complain(const struct job *job, const char *what, int number) {
  dprintf(job->fds[2], "sandhost: %.4000s: %s\n", what, strerror(number));
}

static const char *variable(char *const *environment, const char *name) {
  size_t length = strlen(name);
  for (; *environment; environment++) {
    if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') {
      return *environment + length + 1;
    }
  }
  return NULL;
}

/* Where the program is, as execvp would look with the command's own PATH, relative to its folder.
 * 0, or errno. */
static int find_program(const struct job *job, int folder, char *ret_path, size_t room) {
  const char *name = job->argv[0];
  const char *path = variable(job->environment, "PATH");
  int refused = ENOENT;
  if (strchr(name, '/')) {
    return snprintf(ret_path, room, "%s", name) < (int)room ? 0 : ENAMETOOLONG;
  }
  for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; path;
       path = strchr(path, ':') ? strchr(path, ':') + 1 : NULL) {
    struct stat facts;
    int length = (int)strcspn(path, ":");
    if (snprintf(ret_path, room, "%.*s%s%s", length, path, length ? "/" : "", name) >= (int)room) {
      continue;
    }
    if (fstatat(folder, ret_path, &facts, 0) < 0 || !S_ISREG(facts.st_mode)) {
      continue;
    }
    if (faccessat(folder, ret_path, X_OK, 0) == 0) {
      return 0;
    }
    refused = EACCES;
  }
  return refused;
}

/* The exit code of a command that could not be started: 127 not found, 126 anything else. */
static int code_for(int number) {
  return number == ENOENT || number == ENOTDIR ? 127 : 126;
}

static void tell(int fd, const struct keeper_message *message) {
  while (send(fd, message, sizeof *message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

struct beginning { /* of a command: told once */
  int fd;
  int told;
  int64_t time;
};

static void tell_started(void *user, pid_t pid) {
  const struct beginning *beginning = user;
  tell(beginning->fd,
       &(struct keeper_message){.kind = KEEPER_STARTED, .pid = pid, .started = beginning->time});
}

/* 0 with a pid, or the exit code with the reason on the command's stderr. */
static int try_to_start(struct job *job, struct beginning *beginning, pid_t *ret_pid) {
  char program[4096];
  int folder = open(*job->cwd ? job->cwd : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    complain(job, job->cwd, errno);
    return 126;
  }
  int script = long_script_prepare(job->argv);
  int failed = find_program(job, folder, program, sizeof program);
  if (!failed) {
    const struct start start = {.fds = {job->fds[0], job->fds[1], job->fds[2]},
                                .folder = folder,
                                .program = program,
                                .argv = job->argv,
                                .environment = job->environment,
                                .mark = job->mark,
                                .extra = script,
                                .extra_at = LONG_SCRIPT_FD,
                                .tell = tell_started,
                                .user = beginning,
                                .ret_told = &beginning->told};
    failed = start_program(&start, ret_pid);
  }
  close(folder);
  if (script >= 0) {
    close(script);
  }
  if (failed) {
    complain(job, job->argv[0], failed);
    return code_for(failed);
  }
  return 0;
}

static void job_release(struct job *job) {
  for (int i = 0; i < 4; i++) {
    if (job->fds[i] >= 0) {
      close(job->fds[i]);
    }
    job->fds[i] = -1;
  }
  if (job->mapped) {
    munmap((void *)(uintptr_t)job->bytes, job->mapped);
  }
}

static void job_forget(struct job *job) {
  for (size_t i = 0; job->argv && job->argv[i]; i++) {
    free(job->argv[i]);
  }
  /* Variables that were laid over stand behind the guest's own; they are the only ones allocated.
   * */
  for (size_t i = 0; job->environment && job->environment[i]; i++) {
    int own = 0;
    for (size_t j = 0; environ[j]; j++) {
      own = own || environ[j] == job->environment[i];
    }
    if (!own) {
      free(job->environment[i]);
    }
  }
  free(job->argv);
  free(job->environment);
  free(job->cwd);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* What a keeper sleeps for. Both are blocked always, so that one that comes before the sleep ends it all the same. */
static sigset_t awaited(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM); /* the guest died */
  return set;
}

static void on_child(int number) {
  (void)number; /* a signal without a handler might be dropped instead of kept */
}

/* The guest died without a word, which only happens where it is not init: nobody else will end what
 * is left. */
static void end_if_orphaned(pid_t guest) {
  if (getppid() != guest) {
    tree_kill(getpid(), NULL);
    _exit(1);
  }
}

/* Something below that has ended, not yet reaped: the kernel would reap it even when a kill of this
 * keeper is on its way, and how it ended would be lost. So it is looked at first: a killed keeper
 * comes not back from looking, and the guest inherits what there is to reap. 0: nothing is left. */
static pid_t wait_for_end(pid_t guest) {
  const sigset_t signals = awaited();
  siginfo_t info;
  for (;;) {
    info.si_pid = 0;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD) {
      return 0;
    }
    if (info.si_pid != 0) {
      return info.si_pid;
    }
    end_if_orphaned(guest);
    sigwaitinfo(&signals, NULL);
  }
}

/* Reaps whatever ends until nothing is left; tells when it is the command. */
static void tend(int fd, pid_t command, int64_t started, pid_t guest) {
  int told = 0;
  pid_t ended = 0;
  while ((ended = wait_for_end(guest)) != 0) {
    struct rusage usage;
    siginfo_t left;
    int status = 0;
    if (wait4(ended, &status, 0, &usage) != ended || ended != command || told) {
      continue;
    }
    struct keeper_message message = {
        .kind = KEEPER_ENDED,
        .status = status,
        .started = started,
        .ended = guest_now(),
    };
    keeper_message_usage(&message, &usage);
    /* The usual case, told in the same breath: nothing was left behind. */
    message.idle = waitid(P_ALL, 0, &left, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
    tell(fd, &message);
    told = 1;
    if (message.idle) {
      return;
    }
  }
  tell(fd, &(struct keeper_message){.kind = KEEPER_IDLE});
}

static void serve(int fd, struct job *job, pid_t guest) {
  pid_t pid = 0;
  struct beginning beginning = {.fd = fd, .time = guest_now()};
  int code = 126;
  if (understand(job) == 0) {
    code = try_to_start(job, &beginning, &pid);
  }
  job_release(job);
  job_forget(job);
  if (code == 0) {
    tend(fd, pid, beginning.time, guest);
    return;
  }
  if (!beginning.told) {
    tell_started(&beginning, 0);
  }
  tell(fd, &(struct keeper_message){.kind = KEEPER_ENDED,
                                    .status = code << 8,
                                    .idle = 1,
                                    .started = beginning.time,
                                    .ended = guest_now()});
}

/* A process that shares nothing with the guest's way of handling signals. */
static void become_keeper(int fd) {
  static const struct rlimit NO_CORE = {0, 0};
  struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  const sigset_t blocked = awaited();
  sigaction(SIGCHLD, &action, NULL);
  sigaction(SIGQUIT, &ignore, NULL);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  prctl(PR_SET_NAME, "sandhost-keeper");
  setrlimit(RLIMIT_CORE, &NO_CORE);
  if (guest_file_limit.rlim_max > 0) {
    setrlimit(RLIMIT_NOFILE, &guest_file_limit);
  }
  setsid();
  dup2(fd, 3);
  fcntl(3, F_SETFD, FD_CLOEXEC);
  if (close_range(4, ~0u, 0) < 0) {
    for (int i = 4; i < 1024; i++) {
      close(i);
    }
  }
}

_Noreturn void keeper_main(int fd, pid_t guest) {
  static unsigned char inlined[KEEPER_INLINE];
  struct job job;
  become_keeper(fd);
  while (receive(3, &job, inlined) == 0) {
    serve(3, &job, guest);
  }
  _exit(0);
}
