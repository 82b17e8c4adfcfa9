/* SPDX-License-Identifier: Apache-2.0 */
/* spawner.c: one thread, a queue of jobs that live on their callers' stacks, and a lock over both. */
#include "spawner.h"

#include "mount-view.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

struct job {
  const char *const *argv;
  const struct guest_spawn_options *options;
  struct guest_process process; /* result, with the next */
  int error;
  sem_t done; /* one for each: many callers at once do not wake each other */
  struct job *next;
};

struct Spawner {
  pthread_t thread;
  GStrv needed;         /* constant; NULL: all */
  pthread_mutex_t lock; /* guards all below; nothing else is taken under it */
  pthread_cond_t work;
  struct job *first;
  struct job *last;
  gboolean stopping;
};

static void run_job(struct job *job, MountView *view) {
  if (view) {
    mount_view_refresh(view);
  }
  job->error = guest_spawn(job->argv, NULL, job->options, &job->process.pid, &job->process.pidfd,
                           &job->process.stream_fd, &job->process.error_fd);
}

static void *spawner_main(void *data) {
  Spawner *spawner = data;
  /* Without one all works, only later. */
  MountView *view = spawner->needed ? mount_view_new((const char *const *)spawner->needed) : NULL;
  pthread_mutex_lock(&spawner->lock);
  for (;;) {
    while (!spawner->first && !spawner->stopping) {
      pthread_cond_wait(&spawner->work, &spawner->lock);
    }
    struct job *job = spawner->first;
    if (!job) {
      break;
    }
    spawner->first = job->next;
    pthread_mutex_unlock(&spawner->lock);
    run_job(job, view);
    sem_post(&job->done); /* the job is its caller's again */
    pthread_mutex_lock(&spawner->lock);
  }
  pthread_mutex_unlock(&spawner->lock);
  mount_view_free(view);
  return NULL;
}

static void release(Spawner *spawner) {
  pthread_cond_destroy(&spawner->work);
  pthread_mutex_destroy(&spawner->lock);
  g_strfreev(spawner->needed);
  g_free(spawner);
}

Spawner *spawner_new(const char *const *needed) {
  Spawner *spawner = g_new0(Spawner, 1);
  spawner->needed = g_strdupv((GStrv)(gsize)needed);
  pthread_mutex_init(&spawner->lock, NULL);
  pthread_cond_init(&spawner->work, NULL);
  /* The program's signals are for its own threads. */
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  int error = pthread_create(&spawner->thread, NULL, spawner_main, spawner);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (error) {
    release(spawner);
    errno = error;
    return NULL;
  }
  return spawner;
}

void spawner_free(Spawner *spawner) {
  if (!spawner) {
    return;
  }
  pthread_mutex_lock(&spawner->lock);
  spawner->stopping = TRUE;
  pthread_cond_signal(&spawner->work);
  pthread_mutex_unlock(&spawner->lock);
  pthread_join(spawner->thread, NULL);
  release(spawner);
}

int spawner_spawn(Spawner *spawner, const char *const argv[],
                  const struct guest_spawn_options *options, struct guest_process *ret_process) {
  /* It may lie on the stack: this function stays until the job is done. */
  struct job job = {.argv = argv, .options = options};
  sem_init(&job.done, 0, 0);
  pthread_mutex_lock(&spawner->lock);
  if (spawner->first) {
    spawner->last->next = &job; // cppcheck-suppress autoVariables
  } else {
    spawner->first = &job; // cppcheck-suppress autoVariables
  }
  spawner->last = &job; // cppcheck-suppress autoVariables
  pthread_mutex_unlock(&spawner->lock);
  pthread_cond_signal(&spawner->work); /* not under the lock, which it would wake up to wait for */
  while (sem_wait(&job.done) < 0) {    /* a signal */
  }
  sem_destroy(&job.done);
  if (job.error == 0) {
    *ret_process = job.process;
  }
  return job.error;
}
