/* SPDX-License-Identifier: Apache-2.0 */
/* nproc.c: the guest's process, found through bwrap, gets a limit from outside. */
#include "nproc.h"

#include <errno.h>
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
  return major > 5 || (major == 5 && minor >= 14);
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
static int limit_as(pid_t pid, const struct rlimit *limit, uid_t uid, gid_t gid) {
  const uid_t own_uid = getuid();
  const gid_t own_gid = getgid();
  gboolean change = own_uid != uid || own_gid != gid;
  sigset_t all;
  sigset_t old;
  sigfillset(&all); /* no handler of the program runs meanwhile */
  pthread_sigmask(SIG_BLOCK, &all, &old);
  int error = change ? set_real_ids(uid, gid) : 0;
  if (error == 0 && prlimit(pid, RLIMIT_NPROC, limit, NULL) < 0) {
    error = -errno;
  }
  if (change) {
    int back = set_real_ids(own_uid, own_gid);
    error = error ? error : back;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return error;
}

int nproc_limit(int info_fd, uint64_t limit, uid_t uid, gid_t gid) {
  static const char key[] = "\"child-pid\":";
  char text[1024];
  int pid = 0;
  ssize_t count = read(info_fd, text, sizeof text - 1);
  if (count <= 0) {
    return -ENODATA;
  }
  text[count] = '\0';
  const char *found = strstr(text, key);
  if (!found || sscanf(found + sizeof key - 1, "%d", &pid) != 1 || pid <= 1) {
    return -EPROTO;
  }
  const struct rlimit values = {.rlim_cur = limit, .rlim_max = limit};
  return limit_as(pid, &values, uid, gid);
}
