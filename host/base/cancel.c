/* SPDX-License-Identifier: Apache-2.0 */
/* cancel.c: an eventfd that is written once and never read, and a flag for those who only ask. */
#include "base/cancel.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct Cancel {
  gint references; /* atomic */
  gint raised;     /* atomic */
  int fd;
};

Cancel *cancel_new(void) {
  Cancel *cancel = g_new0(Cancel, 1);
  cancel->references = 1;
  cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return cancel;
}

Cancel *cancel_ref(Cancel *cancel) {
  g_atomic_int_inc(&cancel->references);
  return cancel;
}

void cancel_unref(Cancel *cancel) {
  if (cancel && g_atomic_int_dec_and_test(&cancel->references)) {
    if (cancel->fd >= 0) {
      close(cancel->fd);
    }
    g_free(cancel);
  }
}

void cancel_raise(Cancel *cancel) {
  int saved = errno; /* may run in a signal handler */
  g_atomic_int_set(&cancel->raised, 1);
  if (cancel->fd >= 0) {
    eventfd_write(cancel->fd, 1);
  }
  errno = saved;
}

gboolean cancel_raised(const Cancel *cancel) {
  return cancel && __atomic_load_n(&cancel->raised, __ATOMIC_ACQUIRE) != 0;
}

int cancel_fd(const Cancel *cancel) {
  return cancel ? cancel->fd : -1;
}
