/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c: a thread for every call that runs at once, used again and never ended.
 *
 * They do not end because a process that asked for a signal at its parent's death (PR_SET_PDEATHSIG, which is
 * how a sandbox is made to die with the host) gets it when the thread that started it ends. So there are as
 * many as there ever were calls at once.
 */
#include "provider/worker.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

typedef struct Worker Worker;
struct Worker {
  pthread_cond_t wake;
  void (*function)(void *argument); /* NULL: idle */
  void *argument;
  Worker *next; /* among the idle */
};

/* The process's idle workers. A forked child has none of its parent's threads, hence the pid. */
static struct {
  pthread_mutex_t lock;
  Worker *idle;
  pid_t pid;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What a crash raises: blocked, it would end the process before anybody could say where. */
static const int CRASHES[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};

/* Of a stack that has run over nothing is left for a handler. */
#define HANDLER_STACK (64u << 10)

static void *work(void *argument) {
  Worker *self = argument;
  const stack_t own = {.ss_sp = g_malloc(HANDLER_STACK), .ss_size = HANDLER_STACK};
  stack_t theirs;
  if (sigaltstack(NULL, &theirs) == 0 && (theirs.ss_flags & SS_DISABLE)) {
    sigaltstack(&own, NULL);
  }
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    while (!self->function) {
      pthread_cond_wait(&self->wake, &pool.lock);
    }
    void (*function)(void *) = self->function;
    void *its_argument = self->argument;
    pthread_mutex_unlock(&pool.lock);
    function(its_argument);
    pthread_mutex_lock(&pool.lock);
    self->function = NULL;
    self->next = pool.idle;
    pool.idle = self;
  }
  return NULL;
}

/* With the lock held. */
static gboolean start_worker(void (*function)(void *), void *argument) {
  Worker *worker = g_new0(Worker, 1);
  pthread_cond_init(&worker->wake, NULL);
  worker->function = function;
  worker->argument = argument;

  sigset_t all;
  sigset_t before;
  pthread_t thread;
  sigfillset(&all);
  for (gsize i = 0; i < G_N_ELEMENTS(CRASHES); i++) {
    sigdelset(&all, CRASHES[i]);
  }
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&thread, NULL, work, worker);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    pthread_cond_destroy(&worker->wake);
    g_free(worker);
    return FALSE;
  }
  pthread_detach(thread);
  return TRUE;
}

gboolean worker_run(void (*function)(void *argument), void *argument) {
  pthread_mutex_lock(&pool.lock);
  if (pool.pid != getpid()) {
    pool.idle = NULL;
    pool.pid = getpid();
  }
  Worker *worker = pool.idle;
  gboolean ok = TRUE;
  if (worker) {
    pool.idle = worker->next;
    worker->function = function;
    worker->argument = argument;
  } else {
    ok = start_worker(function, argument);
  }
  pthread_mutex_unlock(&pool.lock);
  if (worker) {
    pthread_cond_signal(&worker->wake); /* not under the lock, which it would wake up to wait for */
  }
  return ok;
}
