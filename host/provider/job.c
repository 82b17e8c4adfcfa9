/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c: runs a call in a worker and waits for it, or does not.
 *
 * Lock order: call.lock, then a level's own. A level asks call_is_over, which takes none.
 */
#include "provider/job.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "provider/inside.h"
#include "provider/text.h"
#include "provider/worker.h"

/* ---- Memory that is used again late --------------------------------------------------------------------- */

/* So many later calls end before a job's memory serves another. */
#define QUARANTINE 256u

/* The process's idle jobs, oldest first. */
static struct {
  pthread_mutex_t lock;
  Job *first;
  Job *last;
  guint count;
} idle = {.lock = PTHREAD_MUTEX_INITIALIZER};

static Job *take_memory(void) {
  pthread_mutex_lock(&idle.lock);
  Job *job = NULL;
  if (idle.count > QUARANTINE) {
    job = idle.first;
    idle.first = job->next_idle;
    idle.count--;
  }
  pthread_mutex_unlock(&idle.lock);
  if (!job) {
    job = g_new0(Job, 1);
    call_init(&job->call);
  }
  return job;
}

static void give_memory(Job *job) {
  pthread_mutex_lock(&idle.lock);
  job->next_idle = NULL;
  if (idle.count == 0) {
    idle.first = job;
  } else {
    idle.last->next_idle = job;
  }
  idle.last = job;
  idle.count++;
  pthread_mutex_unlock(&idle.lock);
}

/* ---- What a caller sleeps on ------------------------------------------------------------------------------ */

/* It is rung when the worker has let go of every lock, or the caller would wake up to wait for one; the job may be gone
 * by then, so it has a life of its own. */
struct Bell {
  gint refs;
  int fd; /* -1: there is none to be had, and the caller looks now and then */
};

static Bell *bell_new(void) {
  Bell *bell = g_new0(Bell, 1);
  bell->refs = 1;
  bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return bell;
}

static Bell *bell_ref(Bell *bell) {
  g_atomic_int_inc(&bell->refs);
  return bell;
}

static void bell_unref(Bell *bell) {
  if (g_atomic_int_dec_and_test(&bell->refs)) {
    if (bell->fd >= 0) {
      close(bell->fd);
    }
    g_free(bell);
  }
}

/* Takes the reference. */
static void bell_ring(Bell *take_bell) {
  if (take_bell->fd >= 0) {
    eventfd_write(take_bell->fd, 1); /* cannot overflow */
  }
  bell_unref(take_bell);
}

/* ---- Life --------------------------------------------------------------------------------------------------- */

/* Everything but the call, of memory that is taken into use; with the gate, since a late stream may look. */
static void reset(Job *job) {
  pthread_mutex_lock(&job->call.gate);
  gsize head = offsetof(Job, operation);
  memset((char *)job + head, 0, sizeof *job - head);
  pthread_mutex_unlock(&job->call.gate);
}

Job *job_new(const char *operation, const CallScope *scope, Provider *provider,
             ProviderInstance *instance, Sandbox *sandbox, TestCommands *tests) {
  Job *job = take_memory();
  reset(job);
  job->refs = 1;
  job->operation = operation;
  job->provider = provider;
  job->instance = instance;
  job->sandbox = sandbox;
  if (instance) {
    g_atomic_int_inc(&instance->refs);
  }
  if (sandbox) {
    g_atomic_int_inc(&sandbox->refs);
  }
  job->level = provider_level(provider, instance, sandbox);
  job->arena = g_ptr_array_new_with_free_func(g_free);
  job->bell = bell_new();
  call_begin(&job->call, scope, tests);
  return job;
}

void job_unref(Job *job) {
  if (!job || !g_atomic_int_dec_and_test(&job->refs)) {
    return;
  }
  call_end(&job->call);
  bell_unref(job->bell);
  g_ptr_array_unref(job->arena);
  Sandbox *sandbox = job->sandbox;
  ProviderInstance *instance = job->instance;
  give_memory(job); /* its streams stay as they are: shut */
  sandbox_unref(sandbox);
  provider_instance_unref(instance);
}

/* ---- In the worker ---------------------------------------------------------------------------------------- */

static gboolean is_over(void *user) {
  return call_is_over(user);
}

static gint32 fail_here(Job *job, gint32 status, const char *what) {
  g_autofree char *text = g_strdup_printf("%s: %s", job->provider->table.name, what);
  return call_host_table.fail(&job->call, status, text_of(text));
}

static gint32 enter_and_invoke(Job *job) {
  const char *holder = NULL;
  switch (level_enter(job->level, job->call.deadline, is_over, &job->call, &holder)) {
  case LEVEL_OVER:
    return cancel_raised(job->call.cancel)
               ? fail_here(job, SANDHOST_CANCELLED, "cancelled before it began")
               : fail_here(job, SANDHOST_TIMEOUT, "the time was over before it began");
  case LEVEL_ABANDONED: {
    g_autofree char *what = g_strdup_printf("an earlier %s has not come back", holder);
    return fail_here(job, SANDHOST_UNAVAILABLE, what);
  }
  case LEVEL_ENTERED:
    break;
  }
  pthread_mutex_lock(&job->call.lock);
  job->inside = TRUE;
  pthread_mutex_unlock(&job->call.lock);
  InsideVisit visit;
  inside_enter(&visit, job->provider->table.name, job->operation);
  gint32 status = job->invoke(job);
  inside_leave(&visit);
  return status;
}

static void job_main(void *argument) {
  Job *job = argument;
  gint32 status = enter_and_invoke(job);

  pthread_mutex_lock(&job->call.gate);
  job->call.left = TRUE; /* what is written from here on comes too late */
  pthread_mutex_unlock(&job->call.gate);
  pthread_mutex_lock(&job->call.lock);
  job->call.over = TRUE;
  job->status = status;
  job->done = TRUE;
  gboolean abandoned = job->abandoned;
  if (job->inside) {
    level_leave(job->level);
  }
  Bell *bell = abandoned ? NULL : bell_ref(job->bell);
  pthread_mutex_unlock(&job->call.lock);
  /* A caller that waits has the job from here on, this worker's reference included: what ends with it ends in the
   * caller's thread. */
  if (bell) {
    bell_ring(bell);
  } else {
    if (job->orphaned) {
      job->orphaned(job);
    }
    job_unref(job);
  }
}

/* ---- In the caller ----------------------------------------------------------------------------------------- */

gboolean job_came_back(Job *job) {
  pthread_mutex_lock(&job->call.lock);
  gboolean done = job->done;
  pthread_mutex_unlock(&job->call.lock);
  return done;
}

static void sleep_until(Job *job, int cancel, gint64 until) {
  struct pollfd fds[] = {
      {.fd = job->bell->fd, .events = POLLIN},
      {.fd = cancel, .events = POLLIN},
  };
  gint64 left = until == G_MAXINT64 ? G_MAXINT64 : MAX(until - clock_now(), 0);
  if (job->bell->fd < 0) {
    left = MIN(left, 5 * CLOCK_MILLISECOND);
  }
  const struct timespec timeout = {
      .tv_sec = (time_t)(left / CLOCK_SECOND),
      .tv_nsec = (long)(left % CLOCK_SECOND),
  };
  ppoll(fds, G_N_ELEMENTS(fds), left == G_MAXINT64 ? NULL : &timeout, NULL);
}

/* Tells who asked for it that this takes long. Returns until when there is nothing to tell. */
static gint64 tell_slow(Job *job) {
  if (job->slow && clock_now() >= job->slow_at) {
    job->slow(job->slow_user);
    job->slow = NULL;
  }
  return job->slow ? job->slow_at : G_MAXINT64;
}

/* Until it has come back or its grace is over. */
static void wait_for(Job *job) {
  gboolean told = FALSE;
  gint64 until = job->call.deadline;
  while (!job_came_back(job)) {
    if (!told && call_is_over(&job->call)) {
      told = TRUE;
      until = clock_deadline(CONTRACT_GRACE);
      level_poke(job->level);
    } else if (told && clock_now() >= until) {
      return;
    }
    gint64 quiet = tell_slow(job);
    sleep_until(job, told ? -1 : cancel_fd(job->call.cancel), MIN(until, quiet));
  }
}

/* Closes the gate: when this returns nothing of the caller runs, nor ever will. FALSE: the worker has not come
 * back, and the job's end is its matter. */
static gboolean leave(Job *job) {
  pthread_mutex_lock(&job->call.gate);
  job->call.left = TRUE;
  pthread_mutex_unlock(&job->call.gate);
  pthread_mutex_lock(&job->call.lock);
  gboolean done = job->done;
  job->abandoned = !done;
  if (!done && job->inside) {
    level_abandon(job->level, job->operation);
  }
  pthread_mutex_unlock(&job->call.lock);
  return done;
}

static gboolean fail_abandoned(Job *job, GError **error) {
  g_autofree char *text = g_strdup_printf("%s: %s did not come back in time",
                                          job->provider->table.name, job->operation);
  if (job->sandbox) {
    sandbox_mark_lost(job->sandbox, text);
  }
  GError *failure = g_error_new_literal(
      PROVIDER_ERROR, cancel_raised(job->call.cancel) ? SANDHOST_CANCELLED : SANDHOST_TIMEOUT,
      text);
  provider_error_set_abandoned(failure);
  g_propagate_error(error, failure);
  return FALSE;
}

static void remember_lost(Job *job) {
  const char *reason = call_reported(&job->call, SANDHOST_REPORT_LOST);
  if (job->sandbox && (reason || job->status == SANDHOST_LOST)) {
    sandbox_mark_lost(job->sandbox, reason ? reason : job->call.message ? job->call.message : "");
  }
}

void job_start(Job *job) {
  g_atomic_int_inc(&job->refs);
  if (!worker_run(job_main, job)) {
    job_main(job); /* no thread is to be had: better here than not at all */
  }
}

gboolean job_run(Job *job, GError **error) {
  job_start(job);
  return job_finish(job, error);
}

gboolean job_finish(Job *job, GError **error) {
  wait_for(job);
  if (!leave(job)) {
    return fail_abandoned(job, error);
  }
  g_atomic_int_add(&job->refs, -1);
  remember_lost(job);
  const char *name = job->provider->table.name;
  if (job->breach) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL, "%s: %s %s", name, job->operation,
                job->breach);
    return FALSE;
  }
  if (job->stopped != SANDHOST_OK && job->status == SANDHOST_OK) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_CANCELLED, "%s: %s was stopped", name,
                job->operation);
    return FALSE;
  }
  GError *failure = NULL;
  gboolean settled = call_settle(&job->call, job->status, name, job->operation, &failure);
  if (failure) {
    char *told = failure->message;
    failure->message = descriptors_explain(told);
    g_free(told);
    g_propagate_error(error, failure);
  }
  return settled;
}

/* ---- Copies of arguments ------------------------------------------------------------------------------- */

void *job_alloc(Job *job, gsize count, gsize size) {
  void *memory = g_malloc0_n(MAX(count, 1), size);
  g_ptr_array_add(job->arena, memory);
  return memory;
}

struct sandhost_text job_text(Job *job, struct sandhost_text text) {
  char *copy = job_alloc(job, text.length + 1, 1);
  if (text.length > 0) {
    memcpy(copy, text.data, text.length);
  }
  return (struct sandhost_text){.data = copy, .length = text.length};
}

struct sandhost_path job_path(Job *job, struct sandhost_path path) {
  struct sandhost_text copy =
      job_text(job, (struct sandhost_text){.data = path.data, .length = path.length});
  return (struct sandhost_path){.data = copy.data, .length = copy.length};
}

struct sandhost_text *job_texts(Job *job, const struct sandhost_text *texts, gsize count) {
  struct sandhost_text *copies = job_alloc(job, count, sizeof *copies);
  for (gsize i = 0; i < count; i++) {
    copies[i] = job_text(job, texts[i]);
  }
  return copies;
}

struct sandhost_pair *job_pairs(Job *job, const struct sandhost_pair *pairs, gsize count) {
  struct sandhost_pair *copies = job_alloc(job, count, sizeof *copies);
  for (gsize i = 0; i < count; i++) {
    copies[i].name = job_text(job, pairs[i].name);
    copies[i].value = job_text(job, pairs[i].value);
  }
  return copies;
}

struct sandhost_text *job_strv(Job *job, char *const *strings, gsize *ret_count) {
  gsize count = 0;
  while (strings && strings[count]) {
    count++;
  }
  struct sandhost_text *copies = job_alloc(job, count, sizeof *copies);
  for (gsize i = 0; i < count; i++) {
    copies[i] = job_text(job, text_of(strings[i]));
  }
  *ret_count = count;
  return copies;
}
