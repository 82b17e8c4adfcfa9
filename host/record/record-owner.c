/* SPDX-License-Identifier: Apache-2.0 */
/* record-owner.c: process id, start time, boot and namespace, from /proc. */
#include "record/record-owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Of the fields after the name in /proc/PID/stat, counted from 0: the state and the start time. */
#define FIELD_STATE 0
#define FIELD_START 19

#define TEXT_MAX 1024 /* a stat line has at most 52 numbers and a name of 64 bytes */

static gboolean read_small(const char *path, char text[TEXT_MAX]) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return FALSE;
  }
  ssize_t length = read(fd, text, TEXT_MAX - 1);
  close(fd);
  text[MAX(length, 0)] = '\0';
  return length > 0;
}

/* FALSE when /proc does not tell. */
static gboolean read_stat(gint64 pid, char *ret_state, gint64 *ret_start) {
  char text[TEXT_MAX];
  g_autofree char *path = g_strdup_printf("/proc/%" G_GINT64_FORMAT "/stat", pid);
  if (!read_small(path, text)) {
    return FALSE;
  }
  /* The name stands in parentheses and may hold anything, parentheses too. */
  const char *rest = strrchr(text, ')');
  if (!rest || rest[1] != ' ') {
    return FALSE;
  }
  g_auto(GStrv) fields = g_strsplit(rest + 2, " ", FIELD_START + 2);
  guint64 start = 0;
  if (g_strv_length(fields) <= FIELD_START ||
      !g_ascii_string_to_unsigned(fields[FIELD_START], 10, 0, G_MAXINT64, &start, NULL)) {
    return FALSE;
  }
  *ret_state = fields[FIELD_STATE][0];
  *ret_start = (gint64)start;
  return TRUE;
}

RecordOwner record_owner_self(void) {
  RecordOwner self = {.pid = getpid()};
  char text[TEXT_MAX];
  char state = 0;
  read_stat(self.pid, &state, &self.start);
  gboolean booted = read_small("/proc/sys/kernel/random/boot_id", text);
  self.boot = booted ? g_strdup(g_strchomp(text)) : g_strdup("");
  ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text - 1);
  text[MAX(length, 0)] = '\0';
  self.namespace = g_strdup(text);
  return self;
}

void record_owner_clear(RecordOwner *owner) {
  g_clear_pointer(&owner->boot, g_free);
  g_clear_pointer(&owner->namespace, g_free);
}

gboolean record_owner_is_gone(const RecordOwner *owner, const RecordOwner *self) {
  if (*owner->boot && *self->boot && strcmp(owner->boot, self->boot) != 0) {
    return TRUE;
  }
  if (strcmp(owner->namespace, self->namespace) != 0 || owner->pid < 1 || owner->pid > G_MAXINT) {
    return FALSE;
  }
  /* kill sees processes that a /proc mounted with hidepid does not show. */
  if (kill((pid_t)owner->pid, 0) < 0 && errno == ESRCH) {
    return TRUE;
  }
  char state = 0;
  gint64 start = 0;
  if (!read_stat(owner->pid, &state, &start)) {
    return FALSE;
  }
  return state == 'Z' || state == 'X' || (owner->start != 0 && start != owner->start);
}

gboolean record_owner_is_same(const RecordOwner *owner, const RecordOwner *self) {
  gboolean known = *self->boot && *self->namespace && self->start != 0;
  return known && owner->pid == self->pid && owner->start == self->start &&
         g_strcmp0(owner->boot, self->boot) == 0 &&
         g_strcmp0(owner->namespace, self->namespace) == 0;
}
