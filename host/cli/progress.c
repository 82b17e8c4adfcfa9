/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: one line on stderr, written over. */
#include "cli/progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"

#define SELDOM (10 * CLOCK_SECOND)
#define DEFAULT_COLUMNS 80u
#define ERASE_LINE "\r\033[K"

void progress_init(Progress *progress, gboolean verbose) {
  const char *term = g_getenv("TERM");
  *progress = (Progress){
      .terminal = isatty(STDERR_FILENO) == 1 && g_strcmp0(term, "dumb") != 0 && !verbose,
      .verbose = verbose,
  };
  pthread_mutex_init(&progress->lock, NULL);
}

void progress_clear(Progress *progress) {
  progress_end(progress);
  pthread_mutex_destroy(&progress->lock);
}

/* A line that wraps could not be written over. Wide characters count twice. Owned. */
static char *cut_to_width(const char *line) {
  struct winsize size = {0};
  guint columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col
                                                                                  : DEFAULT_COLUMNS;
  guint used = 0;
  const char *at = line;
  while (*at) {
    gunichar c = g_utf8_get_char(at);
    used += g_unichar_iszerowidth(c) ? 0 : g_unichar_iswide(c) ? 2 : 1;
    if (used >= columns) {
      break;
    }
    at += g_utf8_skip[(guchar)*at];
  }
  return g_strndup(line, (gsize)(at - line));
}

static void write_line(const char *before, const char *line, const char *after) {
  g_autofree char *text = g_strconcat(before, line, after, NULL);
  cli_write(STDERR_FILENO, text, strlen(text));
}

void progress_tell(Progress *progress, const char *line) {
  pthread_mutex_lock(&progress->lock);
  if (progress->terminal) {
    g_autofree char *cut = cut_to_width(line);
    write_line(ERASE_LINE, cut, "");
    progress->shown = TRUE;
  } else if (progress->verbose || (progress->told && clock_now() - progress->told >= SELDOM)) {
    write_line("sandhost: ", line, "\n");
    progress->told = clock_now();
  } else if (!progress->told) {
    progress->told = clock_now();
  }
  pthread_mutex_unlock(&progress->lock);
}

void progress_end(Progress *progress) {
  pthread_mutex_lock(&progress->lock);
  if (progress->shown) {
    write_line(ERASE_LINE, "", "");
    progress->shown = FALSE;
  }
  progress->told = 0;
  pthread_mutex_unlock(&progress->lock);
}
