/* SPDX-License-Identifier: Apache-2.0 */
/* nproc.c: the guest's process, found below bwrap's, gets a limit from outside. */
#include "nproc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define UNCHANGED ((uid_t)-1)

gboolean nproc_works(void) {
  struct utsname system;
  unsigned int major = 0;
  unsigned int minor = 0;
  if (uname(&system) < 0 || sscanf(system.release, "%u.%u", &major, &minor) != 2) {
    return FALSE;
  }
  return (major > 5 || (major == 5 && minor >= 14)) &&
         access("/proc/thread-self/children", R_OK) == 0;
}

pid_t nproc_child(pid_t bwrap) {
  char path[64];
  char text[64];
  int child = 0;
  g_snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)bwrap, (int)bwrap);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  ssize_t count = read(fd, text, sizeof text - 1);
  close(fd);
  text[MAX(count, 0)] = '\0';
  return sscanf(text, "%d", &child) == 1 && child > 1 ? child : 0;
}

/* Changes the real ids of this thread alone; the effective ones, which files and capabilities go by, stay.
 * libc's functions would change every thread. */
static int set_real_ids(uid_t uid, gid_t gid) {
  if (syscall(SYS_setresgid, gid, UNCHANGED, UNCHANGED) < 0 ||
      syscall(SYS_setresuid, uid, UNCHANGED, UNCHANGED) < 0) {
    return -errno;
  }
  return 0;
}

/* A process may limit those whose ids are all its own real ones. */
int nproc_limit(pid_t pid, uint64_t limit, uid_t uid, gid_t gid) {
  const struct rlimit values = {.rlim_cur = limit, .rlim_max = limit};
  const uid_t own_uid = getuid();
  const gid_t own_gid = getgid();
  const gboolean change = own_uid != uid || own_gid != gid;
  sigset_t all;
  sigset_t old;
  sigfillset(&all); /* no handler of the program runs meanwhile */
  pthread_sigmask(SIG_BLOCK, &all, &old);
  int error = change ? set_real_ids(uid, gid) : 0;
  if (error == 0 && prlimit(pid, RLIMIT_NPROC, &values, NULL) < 0) {
    error = -errno;
  }
  if (change) {
    int back = set_real_ids(own_uid, own_gid);
    error = error ? error : back;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return error;
}
