/* SPDX-License-Identifier: Apache-2.0 */
/* inside.c: one note per thread. */
#include "provider/inside.h"

#include <locale.h>
#include <pthread.h>

static _Thread_local Inside now;

void inside_enter(InsideVisit *visit, const char *provider, const char *operation) {
  visit->before = now;
  pthread_sigmask(SIG_SETMASK, NULL, &visit->mask);
  now = (Inside){.provider = provider, .operation = operation};
}

void inside_leave(const InsideVisit *visit) {
  now = visit->before;
  pthread_sigmask(SIG_SETMASK, &visit->mask, NULL);
  uselocale(LC_GLOBAL_LOCALE); /* nobody in the host has one of the thread's own */
}

Inside inside_now(void) {
  return now;
}
