/* SPDX-License-Identifier: Apache-2.0 */
/* mount-view.c: a namespace of one's own, and one umount for each tree of mounts that nobody needs. */
#include "mount-view.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/* Seen from a thread: /proc/self is the process's first thread, which has another namespace. */
#define MOUNTS "/proc/thread-self/mountinfo"
/* Of the fields in a line of it, which proc(5) numbers from 1. */
#define MOUNT_POINT 4
/* Looks in a row when mounts come faster than they are looked at: what is left costs time only. */
#define MOST_LOOKS 4

struct MountView {
  GStrv needed; /* as they really are */
  int list_fd;  /* tells when the list changes */
};

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

/* Whether the list has changed since this was last asked. */
static gboolean has_changed(const MountView *view) {
  struct pollfd list = {.fd = view->list_fd, .events = POLLPRI};
  return poll(&list, 1, 0) > 0 && (list.revents & POLLPRI) != 0;
}

static void narrow(const MountView *view) {
  g_autofree char *list = NULL;
  if (g_file_get_contents(MOUNTS, &list, NULL, NULL)) {
    drop_others(list, view->needed);
  }
}

/* An umount is a change too, so the last look finds nothing to do. */
void mount_view_refresh(MountView *view) {
  for (int looks = 0; looks < MOST_LOOKS && has_changed(view); looks++) {
    narrow(view);
  }
}

MountView *mount_view_new(const char *const *needed) {
  if (unshare(CLONE_NEWNS) < 0) {
    return NULL;
  }
  /* Before anything else: as long as mounts are shared with the machine, an umount is one there too. */
  int list_fd = -1;
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
      (list_fd = open(MOUNTS, O_RDONLY | O_CLOEXEC)) < 0) {
    return NULL;
  }
  MountView *view = g_new0(MountView, 1);
  view->needed = resolve(needed);
  view->list_fd = list_fd;
  narrow(view);
  mount_view_refresh(view);
  return view;
}

void mount_view_free(MountView *view) {
  if (view) {
    close(view->list_fd);
    g_strfreev(view->needed);
    g_free(view);
  }
}
