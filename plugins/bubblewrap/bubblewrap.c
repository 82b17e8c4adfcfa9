/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bubblewrap.c: the provider. A sandbox is one bwrap with sandhost-guest as the init of its namespaces;
 * what it sees is in layout.c, what it may use up in cgroup.c, the making of one in create.c.
 */
#include "instance.h"

#include "failure.h"
#include "nproc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND ((int64_t)1000000000)
/* Until the kernel has taken the last process of an ended sandbox out of its group. */
#define CGROUP_PATIENCE (2 * SECOND)

/* Each has two dozen descriptors open; many sandboxes at once need not have a thousand for that. Two could keep the
 * spawner busy; the others are there for those whose turn comes late. */
#define MAX_STARTS 4u

/* The only state of the plugin: set once by the entry, before anything else runs. */
static const struct sandhost_host *host;

/* ---- Options ---------------------------------------------------------------------------------- */

/* With less, not even small files could be copied in. */
#define LEAST_WORKDIR ((int64_t)1 << 20)

/* The guest, the keeper of a command and the command's shell: with less nothing could run. */
#define LEAST_PIDS 3

enum { OPTION_BWRAP, OPTION_WORKDIR_SIZE, OPTION_TMP_SIZE, OPTION_PIDS_LIMIT, OPTION_MAX_OUTPUT };

static const struct sandhost_option options[] = {
    [OPTION_BWRAP] = {.size = sizeof(struct sandhost_option),
                      .name = "bwrap",
                      .type = SANDHOST_OPTION_TEXT,
                      .help = "path of bwrap; by default it is searched for in /usr/bin, /bin and "
                              "/usr/local/bin"},
    [OPTION_WORKDIR_SIZE] = {.size = sizeof(struct sandhost_option),
                             .name = "workdir_size",
                             .type = SANDHOST_OPTION_SIZE,
                             .flags = SANDHOST_OPTION_POSITIVE,
                             .fallback = "1g",
                             .help = "how much the working directory, which is in memory, holds"},
    [OPTION_TMP_SIZE] = {.size = sizeof(struct sandhost_option),
                         .name = "tmp_size",
                         .type = SANDHOST_OPTION_SIZE,
                         .flags = SANDHOST_OPTION_POSITIVE,
                         .fallback = "64m",
                         .help = "how much /tmp and /dev/shm hold, each"},
    [OPTION_PIDS_LIMIT] = {.size = sizeof(struct sandhost_option),
                           .name = "pids_limit",
                           .type = SANDHOST_OPTION_INTEGER,
                           .flags = SANDHOST_OPTION_POSITIVE,
                           .fallback = "256",
                           .help = "how many processes and threads there can be at once"},
    [OPTION_MAX_OUTPUT] = {.size = sizeof(struct sandhost_option),
                           .name = "max_output_bytes",
                           .type = SANDHOST_OPTION_INTEGER,
                           .flags = SANDHOST_OPTION_POSITIVE,
                           .fallback = "1000000",
                           .help = "how much output of a command is kept, per stream"},
};

static const struct sandhost_enforces enforces[] = {
    {SANDHOST_SETTING_NETWORK_OFF, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_NETWORK_ON, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_MEMORY, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_CPU, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_PIDS, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_ENVIRONMENT, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_FILES, SANDHOST_LEVEL_ENFORCED},
};

/* ---- Plugin and instance ---------------------------------------------------------------------- */

static int32_t bubblewrap_open(struct sandhost_call *call, const struct sandhost_open *request,
                               struct sandhost_instance **ret_instance) {
  if (request->value_count != G_N_ELEMENTS(options)) {
    return fail_call(host, call, SANDHOST_INVALID, "%zu options were expected, %zu came",
                     G_N_ELEMENTS(options), request->value_count);
  }
  const struct sandhost_value *values = request->values;
  g_autofree char *bwrap = NULL;
  if (values[OPTION_BWRAP].set) {
    bwrap = g_strndup(values[OPTION_BWRAP].text.data, values[OPTION_BWRAP].text.length);
    if (bwrap[0] != '/') {
      return fail_call(host, call, SANDHOST_INVALID,
                       "bubblewrap sandbox option 'bwrap' must be an absolute path");
    }
  }
  if (values[OPTION_WORKDIR_SIZE].integer < LEAST_WORKDIR) {
    return fail_call(host, call, SANDHOST_INVALID,
                     "bubblewrap sandbox option 'workdir_size' must be at least 1m");
  }
  if (values[OPTION_PIDS_LIMIT].integer < LEAST_PIDS) {
    return fail_call(host, call, SANDHOST_INVALID,
                     "bubblewrap sandbox option 'pids_limit' must be at least %d, which the guest, "
                     "the keeper of a command and its shell are",
                     LEAST_PIDS);
  }
  struct sandhost_instance *instance = g_new0(struct sandhost_instance, 1);
  instance->host = host;
  instance->bwrap_option = g_steal_pointer(&bwrap);
  instance->workdir_size = (uint64_t)values[OPTION_WORKDIR_SIZE].integer;
  instance->tmp_size = (uint64_t)values[OPTION_TMP_SIZE].integer;
  instance->pids_limit = (uint64_t)values[OPTION_PIDS_LIMIT].integer;
  instance->guest = guest_program(request->guest_dir);
  instance->guest_fd = instance->guest ? open(instance->guest, O_PATH | O_CLOEXEC) : -1;
  instance->filter_fd = -1;
  instance->disable_userns = TRUE;
  instance->keys = g_hash_table_new(g_str_hash, g_str_equal);
  pthread_mutex_init(&instance->lock, NULL);
  sem_init(&instance->starts, 0, MAX_STARTS);
  *ret_instance = instance;
  return SANDHOST_OK;
}

static void bubblewrap_close(struct sandhost_instance *instance) {
  if (instance->guest_fd >= 0) {
    close(instance->guest_fd);
  }
  if (instance->filter_fd >= 0) {
    close(instance->filter_fd);
  }
  spawner_free(instance->spawner);
  sem_destroy(&instance->starts);
  pthread_mutex_destroy(&instance->lock);
  g_hash_table_unref(instance->keys);
  cgroup_place_free(instance->place);
  layout_free(instance->layout);
  g_free(instance->guest);
  g_free(instance->bwrap_option);
  g_free(instance->bwrap);
  g_free(instance);
}

static void lower(struct sandhost_call *call, uint32_t setting, uint32_t *level,
                  const char *reason) {
  *level = SANDHOST_LEVEL_NONE;
  report_fact(host, call, SANDHOST_REPORT_LOWERED + setting, reason);
}

static int32_t bubblewrap_enforces_now(struct sandhost_call *call,
                                       struct sandhost_instance *instance, uint32_t *levels,
                                       size_t count) {
  const CgroupPlace *place = instance_place(instance);
  for (size_t i = 0; i < MIN(count, G_N_ELEMENTS(enforces)); i++) {
    uint32_t setting = enforces[i].setting;
    levels[i] = enforces[i].level;
    if (setting == SANDHOST_SETTING_MEMORY && !cgroup_place_has(place, CGROUP_MEMORY)) {
      lower(call, setting, &levels[i],
            "this user cannot make a control group with a memory limit on this machine");
    } else if (setting == SANDHOST_SETTING_CPU && !cgroup_place_has(place, CGROUP_CPU)) {
      lower(call, setting, &levels[i],
            "this user cannot make a control group with a CPU limit on this machine");
    } else if (setting == SANDHOST_SETTING_PIDS && !nproc_works() &&
               !cgroup_place_has(place, CGROUP_PIDS)) {
      lower(call, setting, &levels[i],
            "this user cannot make a control group on this machine, and its kernel does not count "
            "processes per sandbox");
    }
  }
  return SANDHOST_OK;
}

/* ---- Sandbox ---------------------------------------------------------------------------------- */

static int32_t bubblewrap_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                  const struct sandhost_execute *request,
                                  const struct sandhost_observer *observer,
                                  struct sandhost_result *ret_result) {
  uint64_t kills_before = sandbox->cgroup ? cgroup_oom_kills(sandbox->cgroup) : 0;
  int32_t status = guest_sandbox_execute(call, sandbox, request, observer, ret_result);
  if (status != SANDHOST_OK || !sandbox->cgroup) {
    return status;
  }
  /* A shell whose command was killed ends by itself, and says so with this exit code. */
  gboolean killed =
      (ret_result->ended == SANDHOST_ENDED_SIGNAL && ret_result->signal == SIGKILL) ||
      (ret_result->ended == SANDHOST_ENDED_EXIT && ret_result->exit_code == 128 + SIGKILL);
  if (killed && cgroup_oom_kills(sandbox->cgroup) > kills_before) {
    ret_result->ended = SANDHOST_ENDED_MEMORY;
    ret_result->exit_code = 128 + SIGKILL;
    ret_result->signal = 0;
  }
  return status;
}

static int32_t end_group(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  int error = sandbox->cgroup ? cgroup_remove(sandbox->cgroup, CGROUP_PATIENCE) : 0;
  if (error < 0) {
    return fail_call_errno(host, call, SANDHOST_INTERNAL, -error,
                           "the sandbox's control group cannot be removed");
  }
  return SANDHOST_OK;
}

static int32_t bubblewrap_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  int32_t status = guest_sandbox_end(&sandbox->guest, call);
  if (status != SANDHOST_OK) {
    return status;
  }
  instance_free_key(sandbox->instance, sandbox->key);
  return end_group(call, sandbox);
}

static void bubblewrap_release(struct sandhost_sandbox *sandbox) {
  guest_sandbox_clear(&sandbox->guest);
  if (sandbox->cgroup) {
    (void)cgroup_remove(sandbox->cgroup, CGROUP_PATIENCE);
    cgroup_free(sandbox->cgroup);
  }
  instance_free_key(sandbox->instance, sandbox->key);
  g_free(sandbox->key);
  g_free(sandbox);
}

/* ---- The table -------------------------------------------------------------------------------- */

static const struct sandhost_provider table = {
    .size = sizeof(struct sandhost_provider),
    .minor = SANDHOST_ABI_MINOR,
    .threads = SANDHOST_THREADS_PARALLEL,
    .name = "bubblewrap",
    .version = "0.1.0",
    .summary = "private namespaces on this machine, made by bubblewrap; no daemon, no root",
    .options = options,
    .option_count = G_N_ELEMENTS(options),
    .option_size = sizeof(struct sandhost_option),
    .enforces = enforces,
    .enforces_count = G_N_ELEMENTS(enforces),
    .open = bubblewrap_open,
    .close = bubblewrap_close,
    .create = bubblewrap_create,
    .execute = bubblewrap_execute,
    .read_file = guest_sandbox_read_file,
    .write_file = guest_sandbox_write_file,
    .terminate = bubblewrap_terminate,
    .release = bubblewrap_release,
    .enforces_now = bubblewrap_enforces_now,
    .upload = guest_sandbox_upload,
    .download = guest_sandbox_download,
    .changes = guest_sandbox_changes,
    .signal = guest_sandbox_signal,
    .probe = guest_sandbox_probe,
};

const struct sandhost_provider *sandhost_provider_1(const struct sandhost_host *host_table) {
  if (host_table->size < offsetof(struct sandhost_host, progress) + sizeof host_table->progress) {
    return NULL;
  }
  host = host_table;
  return &table;
}
