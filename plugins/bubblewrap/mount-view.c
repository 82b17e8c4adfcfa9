/* SPDX-License-Identifier: Apache-2.0 */
/* mount-view.c: a namespace of one's own, and one umount for each tree of mounts that nobody needs. */
#include "mount-view.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

/* Seen from a thread: /proc/self is the process's first thread, which has another namespace. */
#define MOUNTS "/proc/thread-self/mountinfo"
/* Of the fields in a line of it, which proc(5) numbers from 1. */
#define MOUNT_POINT 4

/* What bwrap uses whatever it is told to bind. Of /dev only these, and nothing that is mounted below. */
static const char *const own_places[] = {"/",           "/proc",        "/dev",
                                         "/dev/null",   "/dev/zero",    "/dev/full",
                                         "/dev/random", "/dev/urandom", "/dev/tty"};

static gboolean is_within(const char *path, const char *folder) {
  size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 &&
         (path[length] == '/' || path[length] == '\0' || folder[length - 1] == '/');
}

static gboolean is_kept(const char *mount, char *const *needed) {
  for (size_t i = 0; i < G_N_ELEMENTS(own_places); i++) {
    if (strcmp(mount, own_places[i]) == 0) {
      return TRUE;
    }
  }
  for (; *needed; needed++) {
    if (is_within(mount, *needed) || is_within(*needed, mount)) {
      return TRUE;
    }
  }
  return FALSE;
}

/* Where the paths really are; owned. */
static GStrv resolve(const char *const *paths) {
  g_autoptr(GPtrArray) found = g_ptr_array_new();
  for (; *paths; paths++) {
    char *real = realpath(*paths, NULL);
    if (real) {
      g_ptr_array_add(found, g_strdup(real));
      free(real);
    }
  }
  g_ptr_array_add(found, NULL);
  return (GStrv)g_ptr_array_free(g_steal_pointer(&found), FALSE);
}

/* In the order of the list a mount comes before what is mounted below it and goes together with it. */
static void drop_others(const char *list, char *const *needed) {
  g_auto(GStrv) lines = g_strsplit(list, "\n", -1);
  for (char **line = lines; *line; line++) {
    g_auto(GStrv) fields = g_strsplit(*line, " ", MOUNT_POINT + 2);
    if (g_strv_length(fields) > MOUNT_POINT) {
      g_autofree char *mount_point = g_strcompress(fields[MOUNT_POINT]);
      if (!is_kept(mount_point, needed)) {
        (void)umount2(mount_point, MNT_DETACH | UMOUNT_NOFOLLOW);
      }
    }
  }
}

gboolean mount_view_narrow(const char *const *needed) {
  g_autofree char *list = NULL;
  if (unshare(CLONE_NEWNS) < 0) {
    return FALSE;
  }
  /* Before anything else: as long as mounts are shared with the machine, an umount is one there too. */
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
      !g_file_get_contents(MOUNTS, &list, NULL, NULL)) {
    return FALSE;
  }
  g_auto(GStrv) real = resolve(needed);
  drop_others(list, real);
  return TRUE;
}
