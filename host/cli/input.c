/* SPDX-License-Identifier: Apache-2.0 */
/* input.c: one place reads standard input, and remembers what went wrong. */
#include "cli/input.h"

#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"

/* atomic: errno of the first read that failed */
static gint first_fault;

static ssize_t note(ssize_t count) {
  if (count < 0 && errno != EAGAIN && errno != EINTR) {
    int fault = errno;
    g_atomic_int_compare_and_exchange(&first_fault, 0, fault);
    errno = fault;
  }
  return count;
}

gboolean input_is_readable(void) {
  char nothing;
  /* A terminal would stop who only may read later, in the background. */
  if (!isatty(STDIN_FILENO)) {
    note(read(STDIN_FILENO, &nothing, 0));
  }
  g_autofree char *fault = input_fault();
  if (fault) {
    cli_complain("%s", fault);
  }
  return !fault;
}

ssize_t input_read(void *buffer, gsize length) {
  return note(read(STDIN_FILENO, buffer, length));
}

gboolean input_goes_on(ssize_t count) {
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

char *input_fault(void) {
  int fault = g_atomic_int_get(&first_fault);
  return fault ? g_strdup_printf("could not read standard input: %s", g_strerror(fault)) : NULL;
}
