/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound.c: who is in the provider, since when and until when, and a thread that looks at it. A thread that is in a provider
 * cannot be ended from outside, so whoever is told that one hangs has to end the process.
 */
#include "bound.h"

#include "guard.h"

/* What a call may take beyond its deadline, and what has no call: far more than the two seconds of provider.h, as a busy
 * machine is no fault of a provider's. */
#define GRACE (60 * SECOND)
#define LOOK_US 100000
/* A process that was stopped for an hour finds everything overdue: what goes on then has these to come back. */
#define LOOKS 20

typedef struct Stay {
  const char *operation;
  gint64 began;
  gint64 until;
  guint overdue; /* looks */
  struct Stay *next;
  GuardStay guard;
} Stay;

static const struct sandhost_provider *real;
static gint64 most; /* nanoseconds; 0: by the call */
static BoundStuck tell_stuck;
static Stay *stays; /* lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void enter(Stay *stay, const char *operation, const struct sandhost_call *call) {
  guard_enter(&stay->guard, operation);
  gint64 now = suite_now();
  gint64 end = call ? MAX(call->deadline, now) : now;
  stay->operation = operation;
  stay->began = now;
  stay->until = most > 0 ? now + most : end + GRACE;
  stay->overdue = 0;
  pthread_mutex_lock(&lock);
  stay->next = stays;
  stays = stay;
  pthread_mutex_unlock(&lock);
}

static void leave(Stay *stay) {
  pthread_mutex_lock(&lock);
  Stay **at = &stays;
  while (*at != stay) {
    at = &(*at)->next;
  }
  *at = stay->next;
  pthread_mutex_unlock(&lock);
  guard_leave(&stay->guard);
}

static gpointer look(gpointer nothing) {
  (void)nothing;
  for (;;) {
    g_usleep(LOOK_US);
    gint64 now = suite_now();
    pthread_mutex_lock(&lock);
    for (Stay *stay = stays; stay; stay = stay->next) {
      stay->overdue += now > stay->until ? 1 : 0;
      if (stay->overdue == LOOKS) {
        tell_stuck(stay->operation, (stay->until - stay->began) / SECOND);
      }
    }
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

/* ---- The functions ---------------------------------------------------------------------------------------------------- */

#define WATCHED(NAME, PARAMETERS, ARGUMENTS)                                                       \
  static int32_t watched_##NAME PARAMETERS {                                                       \
    Stay stay;                                                                                     \
    enter(&stay, #NAME, call);                                                                     \
    int32_t status = real->NAME ARGUMENTS;                                                         \
    leave(&stay);                                                                                  \
    return status;                                                                                 \
  }

typedef struct sandhost_call Call;
typedef struct sandhost_instance Instance;
typedef struct sandhost_sandbox Sandbox;
typedef struct sandhost_text Text;
typedef struct sandhost_path Path;

WATCHED(open, (Call * call, const struct sandhost_open *request, Instance **ret_instance),
        (call, request, ret_instance))
WATCHED(create,
        (Call * call, Instance *instance, const struct sandhost_create *request,
         Sandbox **ret_sandbox),
        (call, instance, request, ret_sandbox))
WATCHED(execute,
        (Call * call, Sandbox *sandbox, const struct sandhost_execute *request,
         const struct sandhost_observer *observer, struct sandhost_result *ret_result),
        (call, sandbox, request, observer, ret_result))
WATCHED(read_file, (Call * call, Sandbox *sandbox, Path path, const struct sandhost_sink *sink),
        (call, sandbox, path, sink))
WATCHED(write_file,
        (Call * call, Sandbox *sandbox, Path path, uint32_t mode,
         const struct sandhost_source *source),
        (call, sandbox, path, mode, source))
WATCHED(terminate, (Call * call, Sandbox *sandbox), (call, sandbox))
WATCHED(start, (Call * call, const struct sandhost_host *host), (call, host))
WATCHED(enforces_now, (Call * call, Instance *instance, uint32_t *levels, size_t count),
        (call, instance, levels, count))
WATCHED(set_network_policy, (Call * call, Sandbox *sandbox, const struct sandhost_network *network),
        (call, sandbox, network))
WATCHED(snapshot, (Call * call, Sandbox *sandbox), (call, sandbox))
WATCHED(delete_snapshot, (Call * call, Instance *instance, Text id), (call, instance, id))
WATCHED(upload, (Call * call, Sandbox *sandbox, Path dir, const struct sandhost_source *tar),
        (call, sandbox, dir, tar))
WATCHED(download,
        (Call * call, Sandbox *sandbox, Path dir, const Path *names, size_t name_count,
         const struct sandhost_sink *tar),
        (call, sandbox, dir, names, name_count, tar))
WATCHED(changes,
        (Call * call, Sandbox *sandbox, const struct sandhost_changes *request,
         const struct sandhost_entry_sink *sink),
        (call, sandbox, request, sink))
WATCHED(attach, (Call * call, Instance *instance, Text ref, Sandbox **ret_sandbox),
        (call, instance, ref, ret_sandbox))
WATCHED(sweep,
        (Call * call, Instance *instance, const struct sandhost_sweep *request,
         const struct sandhost_orphan_sink *sink),
        (call, instance, request, sink))
WATCHED(signal, (Call * call, Sandbox *sandbox, uint64_t execution, int32_t number),
        (call, sandbox, execution, number))
WATCHED(probe,
        (Call * call, Sandbox *sandbox, const struct sandhost_probe *request,
         uint32_t *ret_verdict),
        (call, sandbox, request, ret_verdict))

static void watched_release(Sandbox *sandbox) {
  Stay stay;
  enter(&stay, "release", NULL);
  real->release(sandbox);
  leave(&stay);
}

static void watched_close(Instance *instance) {
  Stay stay;
  enter(&stay, "close", NULL);
  real->close(instance);
  leave(&stay);
}

static void watched_stop(void) {
  Stay stay;
  enter(&stay, "stop", NULL);
  real->stop();
  leave(&stay);
}

/* What is missing stays so. */
#define WATCH(NAME) ret_table->NAME = real->NAME ? watched_##NAME : NULL

void bound_table(const struct sandhost_provider *provider, gint64 seconds, BoundStuck stuck,
                 struct sandhost_provider *ret_table) {
  real = provider;
  most = seconds * SECOND;
  tell_stuck = stuck;
  *ret_table = *provider;
  WATCH(open);
  WATCH(close);
  WATCH(create);
  WATCH(execute);
  WATCH(read_file);
  WATCH(write_file);
  WATCH(terminate);
  WATCH(release);
  WATCH(start);
  WATCH(stop);
  WATCH(enforces_now);
  WATCH(set_network_policy);
  WATCH(snapshot);
  WATCH(delete_snapshot);
  WATCH(upload);
  WATCH(download);
  WATCH(changes);
  WATCH(attach);
  WATCH(sweep);
  WATCH(signal);
  WATCH(probe);
  g_thread_unref(g_thread_new("bounds", look, NULL));
}
