/* SPDX-License-Identifier: Apache-2.0 */
/* manners.c: what is done to the process of the host: VICE=THING-in-OPERATION, at the end of each call of that operation. */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vice.h"

/* ---- Things ------------------------------------------------------------------------------------------------------------ */

static void nothing(void) {
}

static void handle(int number) {
  (void)number;
}

static void *stay(void *data) {
  for (;;) {
    pause();
  }
  return data;
}

static void do_chdir(void) {
  if (chdir("/") != 0) {
    abort();
  }
}
static void do_umask(void) {
  umask(0);
}
static void do_locale(void) {
  setlocale(LC_ALL, "C.UTF-8");
}
static void do_own_locale(void) {
  static locale_t own;
  own = own ? own : newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
  uselocale(own);
}
static void do_setenv(void) {
  setenv("VICE_WAS_HERE", "1", 1);
}
static void do_unsetenv(void) {
  unsetenv("PATH");
}
static void do_handler(void) {
  signal(SIGHUP, handle);
}
static void do_ignored(void) {
  signal(SIGPIPE, SIG_IGN);
}
static void do_mask(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
}
static void do_atexit(void) {
  atexit(nothing);
}
static void leave(int code, void *argument) {
  (void)code;
  (void)argument;
}
static void do_on_exit(void) {
  on_exit(leave, NULL);
}
static void do_atfork(void) {
  pthread_atfork(nothing, nothing, nothing);
}
static void do_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, stay, NULL) == 0) {
    pthread_detach(thread);
  }
}
static void do_unjoined(void) {
  pthread_t thread;
  static bool once;
  if (!once) {
    once = pthread_create(&thread, NULL, stay, NULL) == 0;
  }
}
static void do_prints(void) {
  printf("here I am\n");
}
static void do_errs(void) {
  fprintf(stderr, "something is odd\n");
}
static void do_closes(void) {
  close(STDERR_FILENO);
}
static void do_process(void) {
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive the test */
    for (;;) {
      pause();
    }
  }
}
static void do_reap(void) {
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}
static void do_fd(void) {
  vice_open(O_CLOEXEC);
}
static void lose(size_t size) {
  void *volatile lost = malloc(size);
  (void)lost;
}
static void do_bytes(void) { /* as a small instance has them */
  lose(64);
}
static void do_kilobytes(void) {
  lose(2000);
}
static void do_pages(void) {
  void *volatile lost =
      mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  (void)lost;
}
static void do_fork(void) {
  fork();
}
static void do_exit(void) {
  printf("100 passed, 0 failed, 0 skipped\n");
  fflush(stdout);
  _exit(0);
}
static void do_shut(void) {
  for (int fd = 0; fd < 1024; fd++) {
    close(fd);
  }
}
static void do_stop(void) {
  raise(SIGSTOP);
}
static void do_sleep(void) {
  do_mask();
  stay(NULL);
}

static const struct {
  const char *name;
  void (*run)(void);
} THINGS[] = {
    {"chdir", do_chdir},     {"umask", do_umask},
    {"locale", do_locale},   {"own-locale", do_own_locale},
    {"setenv", do_setenv},   {"unsetenv", do_unsetenv},
    {"handler", do_handler}, {"ignored", do_ignored},
    {"mask", do_mask},       {"atexit", do_atexit},
    {"on-exit", do_on_exit}, {"atfork", do_atfork},
    {"thread", do_thread},   {"unjoined", do_unjoined},
    {"prints", do_prints},   {"errs", do_errs},
    {"closes", do_closes},   {"process", do_process},
    {"reaps", do_reap},      {"fd", do_fd},
    {"bytes", do_bytes},     {"kilobytes", do_kilobytes},
    {"pages", do_pages},     {"fork", do_fork},
    {"exit", do_exit},       {"shut", do_shut},
    {"stop", do_stop},       {"sleep", do_sleep},
};

void vice_misbehave(const char *operation) {
  char vice[100];
  for (size_t i = 0; i < sizeof THINGS / sizeof *THINGS; i++) {
    snprintf(vice, sizeof vice, "%s-in-%s", THINGS[i].name, operation);
    if (has_vice(vice)) {
      THINGS[i].run();
    }
  }
}

/* ---- Around each operation ----------------------------------------------------------------------------------------------- */

static struct sandhost_provider inner;

#define MANNERED(NAME, PARAMETERS, ARGUMENTS)                                                      \
  static int32_t mannered_##NAME PARAMETERS {                                                      \
    int32_t status = inner.NAME ARGUMENTS;                                                         \
    vice_misbehave(#NAME);                                                                         \
    return status;                                                                                 \
  }

typedef struct sandhost_call Call;
typedef struct sandhost_instance Instance;
typedef struct sandhost_sandbox Sandbox;
typedef struct sandhost_text Text;
typedef struct sandhost_path Path;

MANNERED(open, (Call * call, const struct sandhost_open *request, Instance **ret_instance),
         (call, request, ret_instance))
MANNERED(create,
         (Call * call, Instance *instance, const struct sandhost_create *request,
          Sandbox **ret_sandbox),
         (call, instance, request, ret_sandbox))
MANNERED(execute,
         (Call * call, Sandbox *sandbox, const struct sandhost_execute *request,
          const struct sandhost_observer *observer, struct sandhost_result *ret_result),
         (call, sandbox, request, observer, ret_result))
MANNERED(terminate, (Call * call, Sandbox *sandbox), (call, sandbox))
MANNERED(snapshot, (Call * call, Sandbox *sandbox), (call, sandbox))
MANNERED(upload, (Call * call, Sandbox *sandbox, Path dir, const struct sandhost_source *tar),
         (call, sandbox, dir, tar))
MANNERED(download,
         (Call * call, Sandbox *sandbox, Path dir, const Path *names, size_t name_count,
          const struct sandhost_sink *tar),
         (call, sandbox, dir, names, name_count, tar))
MANNERED(attach, (Call * call, Instance *instance, Text ref, Sandbox **ret_sandbox),
         (call, instance, ref, ret_sandbox))
MANNERED(sweep,
         (Call * call, Instance *instance, const struct sandhost_sweep *request,
          const struct sandhost_orphan_sink *sink),
         (call, instance, request, sink))

static void mannered_close(Instance *instance) {
  inner.close(instance);
  vice_misbehave("close");
}

static void mannered_release(Sandbox *sandbox) {
  inner.release(sandbox);
  vice_misbehave("release");
}

static int32_t mannered_start(Call *call, const struct sandhost_host *host) {
  int32_t status = inner.start ? inner.start(call, host) : SANDHOST_OK;
  vice_misbehave("start");
  return status;
}

void vice_manners(struct sandhost_provider *table) {
  inner = *table;
  table->open = mannered_open;
  table->close = mannered_close;
  table->create = mannered_create;
  table->execute = mannered_execute;
  table->terminate = mannered_terminate;
  table->release = mannered_release;
  table->snapshot = mannered_snapshot;
  table->upload = mannered_upload;
  table->download = mannered_download;
  table->attach = mannered_attach;
  table->sweep = mannered_sweep;
  table->start = mannered_start;
}
