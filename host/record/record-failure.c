/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-failure.c: what is said where the file cannot be read or written.
 *
 * Of a lock that somebody keeps, the kernel's list of locks tells whose it is. The file itself is not asked: to close one
 * more descriptor of it would drop the locks that this process has.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "record/record-private.h"

/* The process that may write, by one line of /proc/locks: "1: POSIX  ADVISORY  WRITE 812 08:01:3932 120 120". 0: the line
 * is about another file, a reader, or ourselves. */
static pid_t holder_in(const char *line, const ino_t *files, gsize count) {
  long pid = 0;
  unsigned long long inode = 0;
  char kind[16] = "";
  char access[16] = "";
  /* NOLINTNEXTLINE(cert-err34-c): the kernel's own text; what does not fit is no line of a holder */
  if (sscanf(line, "%*u: %15s %*15s %15s %ld %*x:%*x:%llu", kind, access, &pid, &inode) != 4 ||
      strcmp(kind, "POSIX") != 0 || strcmp(access, "WRITE") != 0 || pid <= 0 || pid == getpid()) {
    return 0;
  }
  for (gsize i = 0; i < count; i++) {
    if (files[i] == inode) {
      return (pid_t)pid;
    }
  }
  return 0;
}

/* 0: nobody that can be seen from here. */
static pid_t find_holder(const char *path) {
  static const char *const PARTS[] = {"", "-shm"};
  ino_t files[G_N_ELEMENTS(PARTS)] = {0};
  gsize count = 0;
  pid_t holder = 0;
  g_autofree char *locks = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS(PARTS); i++) {
    struct stat facts;
    g_autofree char *name = g_strconcat(path, PARTS[i], NULL);
    if (stat(name, &facts) == 0) {
      files[count++] = facts.st_ino;
    }
  }
  if (!g_file_get_contents("/proc/locks", &locks, NULL, NULL)) {
    return 0;
  }
  g_auto(GStrv) lines = g_strsplit(locks, "\n", -1);
  for (gsize i = 0; lines[i] && holder == 0; i++) {
    holder = holder_in(lines[i], files, count);
  }
  return holder;
}

/* Stopped by a signal, or by who traces it. */
static gboolean is_stopped(pid_t pid) {
  g_autofree char *name = g_strdup_printf("/proc/%ld/stat", (long)pid);
  g_autofree char *text = NULL;
  const char *end = g_file_get_contents(name, &text, NULL, NULL) ? strrchr(text, ')') : NULL;
  return end && strlen(end) > 2 && (end[2] == 'T' || end[2] == 't');
}

/* Owned. */
static char *holder_text(const char *path) {
  pid_t pid = find_holder(path);
  if (pid == 0) {
    return g_strdup_printf("another process holds it, perhaps a stopped one; fuser -v %s lists who "
                           "has it open, and kill -CONT PID lets a stopped process go on",
                           path);
  }
  return is_stopped(pid) ? g_strdup_printf("process %ld holds it and is stopped; kill -CONT %ld "
                                           "lets it go on, kill -KILL %ld ends it",
                                           (long)pid, (long)pid, (long)pid)
                         : g_strdup_printf("process %ld has held it for long; where that hangs, "
                                           "kill %ld ends it",
                                           (long)pid, (long)pid);
}

gboolean record_fail(Record *record, const char *what, int code, GError **error) {
  int base = code & 0xff;
  int number =
      base == SQLITE_IOERR || base == SQLITE_CANTOPEN ? sqlite3_system_errno(record->db) : 0;
  g_autofree char *holder = base == SQLITE_BUSY ? holder_text(record->path) : NULL;
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD, "could not %s the record %s: %s%s%s%s",
              what, record->path, holder ? holder : sqlite3_errstr(code), number ? " (" : "",
              number ? g_strerror(number) : "", number ? ")" : "");
  return FALSE;
}
