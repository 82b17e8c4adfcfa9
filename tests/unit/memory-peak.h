/* SPDX-License-Identifier: Apache-2.0 */
/* memory-peak.h: how much memory this process has held at most, since it was last asked to forget. */
#ifndef SANDHOST_TESTS_MEMORY_PEAK_H
#define SANDHOST_TESTS_MEMORY_PEAK_H

#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_PEAK_UNUSED __attribute__((unused))

/* A bound in KiB; a sanitizer keeps what was freed for a while, and more beside what was not. */
#if defined(__SANITIZE_THREAD__)
#define MEMORY_PEAK_KIB(kib) ((gsize)6 * (kib)) /* four bytes for each, and what it keeps */
#elif defined(__SANITIZE_ADDRESS__)
#define MEMORY_PEAK_KIB(kib) ((gsize)3 * (kib))
#else
#define MEMORY_PEAK_KIB(kib) ((gsize)(kib))
#endif

/* In KiB; the line is VmRSS or VmHWM. */
MEMORY_PEAK_UNUSED static gsize memory_line(const char *name) {
  g_autofree char *text = NULL;
  g_assert_true(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
  const char *line = strstr(text, name);
  g_assert_nonnull(line);
  return (gsize)g_ascii_strtoull(line + strlen(name) + 1, NULL, 10);
}

/* What is held now counts as the peak. Returns it. */
MEMORY_PEAK_UNUSED static gsize memory_peak_reset(void) {
  int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    ssize_t count = write(fd, "5", 1);
    (void)
        count; /* where it may not be, the peak of all the time counts, which is too much, not too little */
    close(fd);
  }
  return memory_line("VmRSS:");
}

/* What was held at most beyond that. */
MEMORY_PEAK_UNUSED static gsize memory_peak_above(gsize start) {
  gsize peak = memory_line("VmHWM:");
  return peak > start ? peak - start : 0;
}

#endif
