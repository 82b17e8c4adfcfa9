/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c: counting them. */
#include "descriptors.h"

#include <dirent.h>
#include <fcntl.h>

guint descriptors_open(gboolean keeps_only) {
  guint count = 0;
  DIR *folder = opendir("/proc/self/fd");
  if (!folder) {
    return 0;
  }
  const struct dirent *entry = NULL;
  while ((entry = readdir(folder))) {
    gint64 fd = 0;
    if (g_ascii_string_to_signed(entry->d_name, 10, 3, G_MAXINT, &fd, NULL) &&
        fd != dirfd(folder)) {
      int flags = fcntl((int)fd, F_GETFD);
      count += flags >= 0 && !(keeps_only && (flags & FD_CLOEXEC)) ? 1 : 0;
    }
  }
  closedir(folder);
  return count;
}

guint descriptors_grown(gboolean keeps_only, guint before) {
  guint now = descriptors_open(keeps_only);
  for (int i = 0; i < PATIENCE_TRIES && now > before; i++) {
    g_usleep(PATIENCE_STEP);
    now = descriptors_open(keeps_only);
  }
  return now > before ? now - before : 0;
}
