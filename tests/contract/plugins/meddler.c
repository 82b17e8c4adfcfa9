/* SPDX-License-Identifier: Apache-2.0 */
/* meddler.c: changes in create and execute what is the process's or the thread's: MEDDLER_WITH names it:
 * errno, locale, thread-locale, mask, umask, cwd, environment, handler. Its commands all succeed. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>

#include "good.h"

static int is_asked_for(const char *what) {
  const char *said = getenv("MEDDLER_WITH");
  return said && strcmp(said, what) == 0;
}

static void ignore(int number) {
  (void)number;
}

static void use_own_locale(void) {
  static locale_t own;
  own = own ? own : newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
  uselocale(own);
}

static void block_everything(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void take_signals(void) {
  const struct sigaction action = {.sa_handler = ignore};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
}

static void meddle(void) {
  if (is_asked_for("errno")) {
    errno = EPIPE;
  } else if (is_asked_for("locale")) {
    setlocale(LC_ALL, "C.UTF-8");
  } else if (is_asked_for("thread-locale")) {
    use_own_locale();
  } else if (is_asked_for("mask")) {
    block_everything();
  } else if (is_asked_for("umask")) {
    umask(0777);
  } else if (is_asked_for("cwd")) {
    if (chdir("/") != 0) {
      abort();
    }
  } else if (is_asked_for("environment")) {
    setenv("PATH", "/nonexistent", 1);
  } else if (is_asked_for("handler")) {
    take_signals();
  }
}

static int32_t meddler_create(struct sandhost_call *call, struct sandhost_instance *instance,
                              const struct sandhost_create *request,
                              struct sandhost_sandbox **ret_sandbox) {
  int32_t status = good_create(call, instance, request, ret_sandbox);
  meddle();
  return status;
}

static int32_t meddler_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               const struct sandhost_execute *request,
                               const struct sandhost_observer *observer,
                               struct sandhost_result *ret_result) {
  int32_t status = good_execute(call, sandbox, request, observer, ret_result);
  ret_result->exit_code = 0;
  meddle();
  return status;
}

GOOD_PLUGIN("meddler", table.create = meddler_create; table.execute = meddler_execute)
