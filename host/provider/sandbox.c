/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c: the life of a sandbox and the operations that every provider has: create, execute, files, end. */
#include <string.h>

#include "base/clock.h"
#include "provider/emulate.h"
#include "provider/job.h"
#include "provider/mount-check.h"
#include "provider/text.h"

/* How long terminate may take, whatever became of the caller. */
#define END_DEADLINE (30 * CLOCK_SECOND)

/* ---- The handle ----------------------------------------------------------------------------------------------- */

static gint32 invoke_terminate(Job *job) {
  g_atomic_int_set(&job->sandbox->terminated, TRUE);
  return job->provider->table.terminate(&job->call, job->sandbox->theirs);
}

/* Two references, of which one is this job's: the other is that of who ends it, or, when that one has not waited so
 * long, of a call that has not come back either and still works with the handle. Who waits after the count was looked
 * at had a reference then. */
static gboolean is_alone(Job *job) {
  gboolean two = g_atomic_int_get(&job->sandbox->refs) == 2;
  pthread_mutex_lock(&job->call.gate);
  gboolean waits = !job->call.left;
  pthread_mutex_unlock(&job->call.gate);
  return two && waits;
}

/* The same, and release with it where nobody else has the handle: one call in place of two. */
static gint32 invoke_end(Job *job) {
  Sandbox *sandbox = job->sandbox;
  gint32 status = invoke_terminate(job);
  if (is_alone(job)) {
    job->provider->table.release(sandbox->theirs);
    sandbox->theirs = NULL;
  }
  return status;
}

/* For a handle that nobody holds any more: what is left of the plugin's sandbox. */
static gint32 invoke_release(Job *job) {
  job->provider->table.release(job->ret_sandbox);
  return SANDHOST_OK;
}

static gint32 invoke_terminate_and_release(Job *job) {
  job->provider->table.terminate(&job->call, job->ret_sandbox);
  job->provider->table.release(job->ret_sandbox);
  return SANDHOST_OK;
}

/* No other call on this sandbox runs. A call that does not come back is left alone. */
static void give_back(ProviderInstance *instance, struct sandhost_sandbox *theirs,
                      gboolean terminated) {
  const CallScope scope = {.deadline = clock_deadline(END_DEADLINE)};
  g_autoptr(Job) job = job_new(terminated ? "release" : "terminate", &scope, instance->provider,
                               instance, NULL, instance->tests);
  job->ret_sandbox = theirs;
  job->invoke = terminated ? invoke_release : invoke_terminate_and_release;
  job_run(job, NULL);
}

void sandbox_unref(Sandbox *sandbox) {
  if (!sandbox || !g_atomic_int_dec_and_test(&sandbox->refs)) {
    return;
  }
  if (sandbox->theirs) {
    give_back(sandbox->instance, sandbox->theirs, g_atomic_int_get(&sandbox->terminated));
  }
  provider_instance_unref(sandbox->instance);
  level_clear(&sandbox->level);
  pthread_mutex_destroy(&sandbox->lock);
  g_free(sandbox->lost);
  g_free(sandbox->ref);
  g_free(sandbox->image);
  g_free(sandbox->network);
  g_free(sandbox->working_dir);
  g_free(sandbox);
}

void sandbox_mark_lost(Sandbox *sandbox, const char *reason) {
  pthread_mutex_lock(&sandbox->lock);
  if (!sandbox->lost) {
    sandbox->lost = g_strdup(reason);
  }
  pthread_mutex_unlock(&sandbox->lock);
}

const char *sandbox_lost_reason(const Sandbox *sandbox) {
  Sandbox *ours = (Sandbox *)(gsize)sandbox; /* only its lock changes */
  pthread_mutex_lock(&ours->lock);
  const char *reason = ours->lost;
  pthread_mutex_unlock(&ours->lock);
  return reason;
}

const char *sandbox_ref(const Sandbox *sandbox) {
  return sandbox->ref;
}

const char *sandbox_image(const Sandbox *sandbox) {
  return sandbox->image;
}

const char *sandbox_network_isolation(const Sandbox *sandbox) {
  return sandbox->network;
}

const char *sandbox_working_dir(const Sandbox *sandbox) {
  return sandbox->working_dir;
}

/* ---- create --------------------------------------------------------------------------------------------------- */

static gint32 invoke_create(Job *job) {
  return job->provider->table.create(&job->call, job->instance->theirs, &job->create,
                                     &job->ret_sandbox);
}

/* It was made after the caller had left. */
static void end_late(Job *job) {
  if (job->status == SANDHOST_OK && job->ret_sandbox) {
    give_back(job->instance, job->ret_sandbox, FALSE);
  }
}

static void copy_network(Job *job, const Manifest *manifest) {
  job->network.size = sizeof job->network;
  job->network.mode = manifest->network ? SANDHOST_NETWORK_ALLOW : SANDHOST_NETWORK_DENY;
  job->network.allowed_hosts = job_strv(job, manifest->allowed_hosts, &job->network.allowed_count);
  job->network.denied_hosts = job_strv(job, manifest->denied_hosts, &job->network.denied_count);
}

static void copy_environment(Job *job, const Manifest *manifest) {
  gsize count = 0;
  gsize value_count = 0;
  struct sandhost_text *names = job_strv(job, manifest->environment_names, &count);
  struct sandhost_text *values = job_strv(job, manifest->environment_values, &value_count);
  struct sandhost_pair *pairs = job_alloc(job, count, sizeof *pairs);
  for (gsize i = 0; i < MIN(count, value_count); i++) {
    pairs[i] = (struct sandhost_pair){.name = names[i], .value = values[i]};
  }
  job->create.environment = pairs;
  job->create.environment_count = MIN(count, value_count);
}

static gboolean copy_mount(Job *job, const Manifest *manifest, GError **error) {
  if (!manifest->mount) {
    return TRUE;
  }
  g_autofree char *source = mount_check(job->provider->table.name, manifest->mount->source, error);
  if (!source) {
    return FALSE;
  }
  struct sandhost_mount *mount = job_alloc(job, 1, sizeof *mount);
  mount->size = sizeof *mount;
  mount->source = job_path(job, path_of(source));
  mount->target = job_path(job, path_of(manifest->mount->target));
  mount->writable = manifest->mount->writable ? 1 : 0;
  job->create.mounts = mount;
  job->create.mount_count = 1;
  return TRUE;
}

static gboolean copy_manifest(Job *job, const Manifest *manifest, GError **error) {
  struct sandhost_create *create = &job->create;
  create->size = sizeof *create;
  create->image = job_text(job, text_of(manifest->image));
  create->snapshot = job_text(job, text_of(NULL));
  create->working_dir = job_path(job, path_of(manifest->working_dir));
  create->cpu_millis = manifest->cpu_millis;
  create->memory_bytes = manifest->memory_bytes;
  create->lifetime = manifest->lifetime_seconds > G_MAXINT64 / CLOCK_SECOND
                         ? G_MAXINT64
                         : manifest->lifetime_seconds * CLOCK_SECOND;
  create->gpu = manifest->gpu ? 1 : 0;
  create->network = &job->network;
  copy_network(job, manifest);
  copy_environment(job, manifest);
  return copy_mount(job, manifest, error);
}

static Sandbox *new_sandbox(ProviderInstance *instance, Job *job, const char *working_dir) {
  Sandbox *sandbox = g_new0(Sandbox, 1);
  sandbox->refs = 1;
  sandbox->instance = instance;
  g_atomic_int_inc(&instance->refs);
  sandbox->theirs = job->ret_sandbox;
  level_init(&sandbox->level);
  pthread_mutex_init(&sandbox->lock, NULL);
  sandbox->ref = g_strdup(call_reported(&job->call, SANDHOST_REPORT_REF));
  sandbox->image = g_strdup(call_reported(&job->call, SANDHOST_REPORT_IMAGE));
  sandbox->network = g_strdup(call_reported(&job->call, SANDHOST_REPORT_NETWORK));
  sandbox->working_dir = g_strdup(working_dir);
  return sandbox;
}

Sandbox *sandbox_create(ProviderInstance *instance, const Manifest *manifest, const char *key,
                        const char *run_id, const CallScope *scope, GError **error) {
  if (!provider_instance_check(instance, manifest, error)) {
    return NULL;
  }
  g_autoptr(Job) job =
      job_new("create", scope, instance->provider, instance, NULL, instance->tests);
  job->invoke = invoke_create;
  job->orphaned = end_late;
  job->create.key = job_text(job, text_of(key));
  job->create.run_id = job_text(job, text_of(run_id));
  if (!copy_manifest(job, manifest, error) || !job_run(job, error)) {
    return NULL;
  }
  if (!job->ret_sandbox) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL,
                "%s: create said that it succeeded and gave no sandbox",
                provider_instance_name(instance));
    return NULL;
  }
  return new_sandbox(instance, job, manifest->working_dir);
}

/* ---- attach --------------------------------------------------------------------------------------------------- */

static gint32 invoke_attach(Job *job) {
  return job->provider->table.attach(&job->call, job->instance->theirs, job->text,
                                     &job->ret_sandbox);
}

/* It was adopted after the caller had left: the handle goes, the sandbox was there before and stays. */
static void release_late(Job *job) {
  if (job->status == SANDHOST_OK && job->ret_sandbox) {
    give_back(job->instance, job->ret_sandbox, TRUE);
  }
}

Sandbox *sandbox_attach(ProviderInstance *instance, const char *ref, const char *working_dir,
                        const CallScope *scope, GError **error) {
  const char *name = provider_instance_name(instance);
  if (!instance->provider->table.attach) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED,
                "a %s sandbox cannot be taken up again; make a new one", name);
    return NULL;
  }
  g_autoptr(Job) job =
      job_new("attach", scope, instance->provider, instance, NULL, instance->tests);
  job->invoke = invoke_attach;
  job->orphaned = release_late;
  job->text = job_text(job, text_of(ref));
  if (!job_run(job, error)) {
    return NULL;
  }
  if (!job->ret_sandbox) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL,
                "%s: attach said that it succeeded and gave no sandbox", name);
    return NULL;
  }
  Sandbox *sandbox = new_sandbox(instance, job, working_dir);
  if (!sandbox->ref) {
    sandbox->ref = g_strdup(ref);
  }
  return sandbox;
}

static Job *start_end(Sandbox *sandbox, gint32 (*invoke)(Job *job)) {
  const CallScope scope = {.deadline = clock_deadline(END_DEADLINE)};
  Job *job = job_new("terminate", &scope, sandbox->instance->provider, sandbox->instance, sandbox,
                     sandbox->instance->tests);
  job->invoke = invoke;
  job_start(job);
  return job;
}

void sandbox_end_begin(Sandbox *sandbox) {
  if (!sandbox->ending) {
    sandbox->ending = start_end(sandbox, invoke_terminate);
  }
}

gboolean sandbox_end(Sandbox *take_sandbox, GError **error) {
  return sandbox_end_telling(take_sandbox, NULL, NULL, error);
}

gboolean sandbox_end_telling(Sandbox *take_sandbox, void (*slow)(void *user), void *user,
                             GError **error) {
  Sandbox *sandbox = take_sandbox;
  if (!sandbox) {
    return TRUE;
  }
  Job *job = g_steal_pointer(&sandbox->ending);
  if (!job) {
    job = start_end(sandbox, invoke_end);
  }
  job->slow = slow;
  job->slow_user = user;
  job->slow_at = clock_deadline(SANDBOX_SLOW_END);
  gboolean ok = job_finish(job, error);
  job_unref(job);
  sandbox_unref(sandbox);
  return ok;
}

/* ---- Calls on a sandbox ------------------------------------------------------------------------------------- */

Job *sandbox_job(Sandbox *sandbox, const char *operation, const CallScope *scope, GError **error) {
  const char *lost = sandbox_lost_reason(sandbox);
  if (lost) {
    GError *failure =
        g_error_new_literal(PROVIDER_ERROR, SANDHOST_LOST, *lost ? lost : "the sandbox is gone");
    provider_error_set_not_happened(failure, TRUE);
    g_propagate_error(error, failure);
    return NULL;
  }
  return job_new(operation, scope, sandbox->instance->provider, sandbox->instance, sandbox,
                 sandbox->instance->tests);
}

gboolean sandbox_cannot(const Sandbox *sandbox, const char *what, GError **error) {
  g_set_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED, "the %s sandbox %s",
              provider_instance_name(sandbox->instance), what);
  return FALSE;
}

static gint32 invoke_execute(Job *job) {
  job->result.size = sizeof job->result;
  return job->provider->table.execute(&job->call, job->sandbox->theirs, &job->execute,
                                      &job->observer, &job->result);
}

/* What a result must not say; NULL: it makes sense. Constant. */
static const char *result_fault(const struct sandhost_result *result, const guint64 delivered[2]) {
  switch (result->ended) {
  case SANDHOST_ENDED_EXIT:
    if (result->exit_code < 0 || result->exit_code > 255) {
      return "gave an exit code that is none";
    }
    break;
  case SANDHOST_ENDED_SIGNAL:
    if (result->signal < 1 || result->signal > 64) {
      return "gave a signal that is none";
    }
    break;
  case SANDHOST_ENDED_LIMIT:
  case SANDHOST_ENDED_MEMORY:
    break;
  default:
    return "gave an end of the command that is not known";
  }
  if (result->stdout_bytes < delivered[0] || result->stderr_bytes < delivered[1]) {
    return "counted less output than it gave";
  }
  return NULL;
}

/* What follows from the rest says the same for every provider. */
static void normalise(struct sandhost_result *result) {
  result->size = sizeof *result;
  result->reserved = 0;
  if (result->ended == SANDHOST_ENDED_SIGNAL) {
    result->exit_code = 128 + result->signal;
  } else {
    result->signal = 0;
  }
  if (result->ended == SANDHOST_ENDED_LIMIT || result->ended == SANDHOST_ENDED_MEMORY) {
    result->exit_code = 137;
  }
  result->duration = MAX(result->duration, 0);
  result->user_time = MAX(result->user_time, 0);
  result->system_time = MAX(result->system_time, 0);
}

static gboolean argv_is_sound(const struct sandhost_execute *request) {
  for (gsize i = 0; i < request->argc; i++) {
    if (memchr(request->argv[i].data, 0, request->argv[i].length)) {
      return FALSE;
    }
  }
  return request->argc > 0 && request->argv[0].length > 0;
}

gboolean sandbox_execute(Sandbox *sandbox, const CallScope *scope,
                         const struct sandhost_execute *request,
                         const struct sandhost_observer *observer,
                         struct sandhost_result *ret_result, GError **error) {
  if (!argv_is_sound(request)) {
    g_set_error_literal(error, PROVIDER_ERROR, SANDHOST_INVALID,
                        "a command needs a name, and no part of it may hold a NUL");
    return FALSE;
  }
  g_autoptr(Job) job = sandbox_job(sandbox, "execute", scope, error);
  if (!job) {
    return FALSE;
  }
  job->invoke = invoke_execute;
  job->execute = *request;
  job->execute.size = sizeof job->execute;
  job->execute.argv = job_texts(job, request->argv, request->argc);
  job->execute.cwd = job_path(job, request->cwd);
  job->execute.environment = job_pairs(job, request->environment, request->environment_count);
  gate_observer(job, observer);
  GError *failure = NULL;
  if (!job_run(job, &failure)) {
    if (provider_error_details(failure).did_not_happen &&
        (job->started || job->delivered[0] > 0 || job->delivered[1] > 0)) {
      provider_error_set_not_happened(failure, FALSE); /* it told otherwise before */
    }
    g_propagate_error(error, failure);
    return FALSE;
  }
  const char *fault = result_fault(&job->result, job->delivered);
  if (fault) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL, "%s: execute %s",
                provider_instance_name(sandbox->instance), fault);
    return FALSE;
  }
  normalise(&job->result);
  *ret_result = job->result;
  return TRUE;
}

static gint32 invoke_read_file(Job *job) {
  return job->provider->table.read_file(&job->call, job->sandbox->theirs, job->path, &job->sink);
}

gboolean sandbox_read_file(Sandbox *sandbox, const CallScope *scope, const char *path,
                           const struct sandhost_sink *sink, GError **error) {
  g_autoptr(Job) job = sandbox_job(sandbox, "read_file", scope, error);
  if (!job) {
    return FALSE;
  }
  job->invoke = invoke_read_file;
  job->path = job_path(job, path_of(path));
  gate_sink(job, sink);
  return job_run(job, error);
}

static gint32 invoke_write_file(Job *job) {
  return job->provider->table.write_file(&job->call, job->sandbox->theirs, job->path, job->mode,
                                         &job->source);
}

gboolean sandbox_write_file(Sandbox *sandbox, const CallScope *scope, const char *path,
                            guint32 mode, const struct sandhost_source *source, GError **error) {
  g_autoptr(Job) job = sandbox_job(sandbox, "write_file", scope, error);
  if (!job) {
    return FALSE;
  }
  job->invoke = invoke_write_file;
  job->path = job_path(job, path_of(path));
  job->mode = mode & 0777;
  gate_source(job, source);
  return job_run(job, error);
}
