/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c: looks by trying, since listing those that are open would need one more. */
#include "base/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* With fewer left, whatever failed may have failed for that. */
#define ENOUGH 8

#define WAY_OUT "raise that (ulimit -n), or see who leaves them open (sandhost provider test)"

static gboolean are_scarce(void) {
  int tried[ENOUGH];
  int count = 0;
  gboolean scarce = FALSE;
  while (count < ENOUGH && !scarce) {
    tried[count] = eventfd(0, EFD_CLOEXEC);
    scarce = tried[count] < 0 && errno == EMFILE;
    if (tried[count] < 0) {
      break;
    }
    count++;
  }
  while (count > 0) {
    close(tried[--count]);
  }
  return scarce;
}

/* ENFILE is another matter: it is the whole machine's, and its text begins with that of EMFILE. */
static gboolean is_told(const char *message) {
  const char *here = strstr(message, g_strerror(EMFILE));
  return here && !strstr(message, g_strerror(ENFILE));
}

char *descriptors_explain(const char *message) {
  struct rlimit limit = {0};
  if (strstr(message, WAY_OUT) || (!is_told(message) && !are_scarce()) ||
      getrlimit(RLIMIT_NOFILE, &limit) < 0) {
    return g_strdup(message);
  }
  return g_strdup_printf("%s; only %llu files may be open at once: " WAY_OUT, message,
                         (unsigned long long)limit.rlim_cur);
}
