/* SPDX-License-Identifier: Apache-2.0 */
/* create.c: from a request to a guest that has greeted, or to one line that says what to do. */
#include "advice.h"
#include "failure.h"
#include "instance.h"
#include "nproc.h"
#include "seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MILLISECOND ((int64_t)1000000)
/* Who runs the sandboxes of root: the user that owns nothing. */
#define NOBODY 65534u
/* bwrap itself counts among the processes of the group. */
#define OWN_PROCESSES 1u
#define DISABLE_USERNS "--disable-userns"
/* The guest ends at once when its stream does; bwrap is killed when it does not. */
#define END_GRACE (1000 * MILLISECOND)
#define MAX_VARIABLES 1000u

/* A sandbox in the making. */
struct making {
  struct sandhost_call *call;
  struct sandhost_instance *instance;
  const struct sandhost_create *request;
  char *working_dir; /* owned, as are the next two */
  char *key;         /* NULL: not given, or not taken */
  Cgroup *cgroup;
  gboolean limit_nproc; /* by the guest itself */
  const Layout *layout; /* borrowed */
  const char *bwrap;    /* borrowed */
  Spawner *spawner;     /* borrowed */
  int filter_fd;        /* borrowed */
};

/* ---- What is looked up once ------------------------------------------------------------------- */

/* With the lock. */
static const CgroupPlace *find_place(struct sandhost_instance *instance) {
  if (!instance->place) {
    instance->place = cgroup_place_new("/sys/fs/cgroup", "/proc/self/cgroup");
  }
  return instance->place;
}

const CgroupPlace *instance_place(struct sandhost_instance *instance) {
  pthread_mutex_lock(&instance->lock);
  const CgroupPlace *place = find_place(instance);
  pthread_mutex_unlock(&instance->lock);
  return place;
}

/* With the lock. Looks again as long as there is none. */
static const char *find_bwrap(struct sandhost_instance *instance) {
  static const char *const places[] = {"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"};
  if (instance->bwrap) {
    return instance->bwrap;
  }
  if (instance->bwrap_option) {
    if (access(instance->bwrap_option, X_OK) == 0) {
      instance->bwrap = g_strdup(instance->bwrap_option);
    }
    return instance->bwrap;
  }
  for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
    if (access(places[i], X_OK) == 0) {
      instance->bwrap = g_strdup(places[i]);
      break;
    }
  }
  return instance->bwrap;
}

/* With the lock. NULL with errno where there can be none. */
static Spawner *find_spawner(struct sandhost_instance *instance) {
  if (!instance->spawner) {
    g_autoptr(GStrvBuilder) needed = g_strv_builder_new();
    g_strv_builder_add(needed, instance->bwrap);
    g_strv_builder_addv(needed, (const char **)(gsize)layout_sources(instance->layout));
    g_auto(GStrv) paths = g_strv_builder_end(needed);
    /* Nobody knows what a bwrap of the user's own needs besides itself. */
    instance->spawner = spawner_new(instance->bwrap_option ? NULL : (const char *const *)paths);
  }
  return instance->spawner;
}

static int32_t prepare(struct making *making) {
  struct sandhost_instance *instance = making->instance;
  pthread_mutex_lock(&instance->lock);
  const CgroupPlace *place = find_place(instance);
  making->bwrap = find_bwrap(instance);
  if (!instance->layout) {
    instance->layout = layout_new(instance->tmp_size, instance->workdir_size);
  }
  making->layout = instance->layout;
  making->spawner = making->bwrap ? find_spawner(instance) : NULL;
  int thread_error = errno;
  int filter_fd = instance->filter_fd >= 0 ? instance->filter_fd : seccomp_filter_new();
  instance->filter_fd = MAX(filter_fd, -1);
  making->filter_fd = instance->filter_fd;
  if (!instance->swept) {
    instance->swept = TRUE;
    cgroup_place_sweep(place);
  }
  pthread_mutex_unlock(&instance->lock);
  if (!making->bwrap) {
    g_autofree char *advice = advice_for_missing(instance->bwrap_option);
    return fail_call(instance->host, making->call, SANDHOST_UNAVAILABLE, "%s", advice);
  }
  if (instance->guest_fd < 0) {
    return fail_call(instance->host, making->call, SANDHOST_UNAVAILABLE,
                     "the program sandhost-guest for this machine is not installed");
  }
  if (filter_fd < 0) {
    return fail_call_errno(instance->host, making->call, SANDHOST_UNAVAILABLE, -filter_fd,
                           "cannot make the filter of system calls");
  }
  if (!making->spawner) {
    return fail_call_errno(instance->host, making->call, SANDHOST_NO_MEMORY, thread_error,
                           "cannot start a thread");
  }
  return SANDHOST_OK;
}

/* ---- Keys -------------------------------------------------------------------------------------- */

gboolean instance_take_key(struct sandhost_instance *instance, char *key) {
  pthread_mutex_lock(&instance->lock);
  gboolean is_new = !g_hash_table_contains(instance->keys, key);
  if (is_new) {
    g_hash_table_add(instance->keys, key);
  }
  pthread_mutex_unlock(&instance->lock);
  return is_new;
}

void instance_free_key(struct sandhost_instance *instance, const char *key) {
  gpointer noted = NULL;
  pthread_mutex_lock(&instance->lock);
  if (key && g_hash_table_lookup_extended(instance->keys, key, &noted, NULL) && noted == key) {
    g_hash_table_remove(instance->keys, key);
  }
  pthread_mutex_unlock(&instance->lock);
}

/* The host's key as the name of a folder. Returns owned. */
static char *group_name(struct sandhost_text key) {
  gboolean plain = key.length > 0 && key.length <= 100;
  for (size_t i = 0; plain && i < key.length; i++) {
    plain = g_ascii_isalnum(key.data[i]) || key.data[i] == '_' || key.data[i] == '-';
  }
  return plain
             ? g_strndup(key.data, key.length)
             : g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)key.data, key.length);
}

static int32_t fail_exists(const struct making *making) {
  g_autofree char *name = group_name(making->request->key);
  return fail_call(making->instance->host, making->call, SANDHOST_EXISTS,
                   "a sandbox with the key %s exists already", name);
}

/* A sandbox of this process; what another one made is found by its control group, where it has one. */
static int32_t take_key(struct making *making) {
  struct sandhost_text key = making->request->key;
  if (key.length == 0) {
    return SANDHOST_OK;
  }
  making->key = g_strndup(key.data, key.length);
  if (instance_take_key(making->instance, making->key)) {
    return SANDHOST_OK;
  }
  g_clear_pointer(&making->key, g_free);
  return fail_exists(making);
}

/* ---- Limits ----------------------------------------------------------------------------------- */

static int32_t make_group(struct making *making) {
  struct sandhost_instance *instance = making->instance;
  const CgroupPlace *place = instance_place(instance);
  struct cgroup_limits limits = {.memory_bytes = making->request->memory_bytes,
                                 .cpu_millis = making->request->cpu_millis};
  making->limit_nproc = nproc_works();
  if (!making->limit_nproc && cgroup_place_has(place, CGROUP_PIDS)) {
    limits.pids = instance->pids_limit + OWN_PROCESSES;
  }
  if ((limits.memory_bytes > 0 && !cgroup_place_has(place, CGROUP_MEMORY)) ||
      (limits.cpu_millis > 0 && !cgroup_place_has(place, CGROUP_CPU))) {
    return fail_call(instance->host, making->call, SANDHOST_UNSUPPORTED,
                     "this user cannot make a control group with such limits on this machine");
  }
  if (limits.memory_bytes == 0 && limits.cpu_millis == 0 && limits.pids == 0) {
    return SANDHOST_OK;
  }
  g_autofree char *name = group_name(making->request->key);
  g_autofree char *what = NULL;
  int error = cgroup_new(place, name, &limits, &making->cgroup, &what);
  if (error == -EEXIST) {
    return fail_exists(making);
  }
  if (error < 0) {
    return fail_call_errno(instance->host, making->call, SANDHOST_UNAVAILABLE, -error,
                           "cannot make the control group %s", what);
  }
  return SANDHOST_OK;
}

/* ---- Starting --------------------------------------------------------------------------------- */

/* The arguments as a file in memory, read from its begin. Returns the descriptor or a negative errno. */
static int arguments_file(const GByteArray *arguments) {
  int fd = memfd_create("sandhost-bwrap", MFD_CLOEXEC);
  if (fd < 0) {
    return -errno;
  }
  if (write(fd, arguments->data, arguments->len) != (ssize_t)arguments->len ||
      lseek(fd, 0, SEEK_SET) < 0) {
    close(fd);
    return -ENOSPC;
  }
  return fd;
}

static int spawn_with(struct making *making, int arguments_fd, const int *files, size_t file_count,
                      struct guest_process *ret_process) {
  int pass[LAYOUT_FIRST_FILE_FD - LAYOUT_ARGS_FD + LAYOUT_MAX_FILES];
  const int guest_fd = making->instance->guest_fd;
  const int filter_fd = seccomp_filter_open(making->filter_fd);
  if (filter_fd < 0) {
    return filter_fd;
  }
  /* The kernel counts processes per user namespace, so the guest can take the limit on itself: that costs
   * nothing, where joining a control group of version 1 costs ten milliseconds. */
  char pids[24];
  g_snprintf(pids, sizeof pids, "%" G_GUINT64_FORMAT, making->instance->pids_limit);
  const char *const argv[] = {making->bwrap,
                              "--args",
                              G_STRINGIFY(LAYOUT_ARGS_FD),
                              "--",
                              LAYOUT_GUEST_PATH,
                              making->limit_nproc ? "--nproc" : NULL,
                              pids,
                              NULL};
  pass[0] = arguments_fd;
  pass[LAYOUT_GUEST_FD - LAYOUT_ARGS_FD] = guest_fd;
  pass[LAYOUT_FILTER_FD - LAYOUT_ARGS_FD] = filter_fd;
  memcpy(&pass[LAYOUT_FIRST_FILE_FD - LAYOUT_ARGS_FD], files, file_count * sizeof *files);
  struct guest_spawn_options options = {.change_user = geteuid() == 0,
                                        .uid = NOBODY,
                                        .gid = NOBODY,
                                        .pass_fds = pass,
                                        .pass_count =
                                            LAYOUT_FIRST_FILE_FD - LAYOUT_ARGS_FD + file_count,
                                        .cwd = "/"};
  if (making->cgroup) {
    options.cgroup_fds = cgroup_procs_fds(making->cgroup, &options.cgroup_count);
  }
  int error = spawner_spawn(making->spawner, argv, &options, ret_process);
  close(filter_fd);
  return error;
}

static int32_t spawn(struct making *making, gboolean disable_userns,
                     struct guest_process *ret_process) {
  const struct sandhost_create *request = making->request;
  struct layout_wish wish = {.working_dir = making->working_dir,
                             .network = request->network->mode == SANDHOST_NETWORK_ALLOW,
                             .disable_userns = disable_userns,
                             .environment = request->environment,
                             .environment_count = request->environment_count};
  int files[LAYOUT_MAX_FILES];
  size_t file_count = 0;
  while (sem_wait(&making->instance->starts) < 0) { /* a signal */
  }
  g_autoptr(GByteArray) arguments = layout_arguments(making->layout, &wish, files, &file_count);
  int arguments_fd = arguments_file(arguments);
  int error = arguments_fd;
  if (arguments_fd >= 0) {
    error = spawn_with(making, arguments_fd, files, file_count, ret_process);
    close(arguments_fd);
  }
  for (size_t i = 0; i < file_count; i++) {
    close(files[i]);
  }
  sem_post(&making->instance->starts);
  if (error < 0 && access("/proc/self/fd", F_OK) < 0) {
    return fail_call(making->instance->host, making->call, SANDHOST_UNAVAILABLE,
                     "bubblewrap needs /proc, which is not mounted here: mount -t proc proc /proc");
  }
  if (error < 0) {
    return fail_call_errno(making->instance->host, making->call, SANDHOST_UNAVAILABLE, -error,
                           "cannot start %s", making->bwrap);
  }
  return SANDHOST_OK;
}

/* ---- The end of a sandbox in words ------------------------------------------------------------ */

/* bwrap exits with what its child ended with; that is how a killed guest shows. */
static gboolean was_killed(int status) {
  return (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL) ||
         (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static char *describe_end(struct guest_sandbox *guest, int status) {
  const struct sandhost_sandbox *sandbox = (const struct sandhost_sandbox *)guest;
  if (!was_killed(status)) {
    return NULL;
  }
  return g_strdup(sandbox->cgroup && cgroup_oom_kills(sandbox->cgroup) > 0
                      ? "its memory was used up"
                      : "it was killed");
}

static int32_t fail_start(struct making *making, const char *complaint) {
  struct sandhost_instance *instance = making->instance;
  if (making->cgroup && cgroup_oom_kills(making->cgroup) > 0) {
    return fail_call(instance->host, making->call, SANDHOST_LIMIT,
                     "the memory limit of %" G_GUINT64_FORMAT " bytes is too small to start with",
                     making->request->memory_bytes);
  }
  g_autofree char *advice = advice_for_complaint(complaint, making->bwrap, "/proc/sys");
  return fail_call(instance->host, making->call, SANDHOST_UNAVAILABLE, "%s", advice);
}

/* ---- Create ----------------------------------------------------------------------------------- */

/* From a process to a sandbox, or to nothing. *ret_complaint as below. */
static int32_t adopt(struct making *making, const struct guest_process *take_process,
                     struct sandhost_sandbox **ret_sandbox, char **ret_complaint) {
  const struct sandhost_host *host = making->instance->host;
  gboolean is_init = FALSE;
  struct sandhost_sandbox *sandbox = g_new0(struct sandhost_sandbox, 1);
  guest_sandbox_init(&sandbox->guest, host, take_process, making->working_dir, END_GRACE);
  sandbox->guest.describe_end = describe_end;
  int32_t status = guest_sandbox_greet(&sandbox->guest, making->call, &is_init, ret_complaint);
  if (status == SANDHOST_OK && !is_init) {
    status = fail_call(host, making->call, SANDHOST_PROTOCOL,
                       "the sandbox's guest is not the first process of its namespace");
  }
  if (status != SANDHOST_OK) {
    guest_sandbox_clear(&sandbox->guest);
    g_free(sandbox);
    return status;
  }
  *ret_sandbox = sandbox;
  return SANDHOST_OK;
}

/* One bwrap, up to the greeting. *ret_complaint is set where bwrap ended instead and no error is. */
static int32_t attempt(struct making *making, gboolean disable_userns,
                       struct sandhost_sandbox **ret_sandbox, char **ret_complaint) {
  struct guest_process process;
  int32_t status = spawn(making, disable_userns, &process);
  return status == SANDHOST_OK ? adopt(making, &process, ret_sandbox, ret_complaint) : status;
}

/* Tries, a second time without what an old bwrap does not know. */
static int32_t start(struct making *making, struct sandhost_sandbox **ret_sandbox) {
  struct sandhost_instance *instance = making->instance;
  pthread_mutex_lock(&instance->lock);
  gboolean disable_userns = instance->disable_userns;
  pthread_mutex_unlock(&instance->lock);
  g_autofree char *complaint = NULL;
  int32_t status = attempt(making, disable_userns, ret_sandbox, &complaint);
  if (complaint && disable_userns && advice_is_about(complaint, DISABLE_USERNS)) {
    pthread_mutex_lock(&instance->lock);
    instance->disable_userns = FALSE;
    pthread_mutex_unlock(&instance->lock);
    g_clear_pointer(&complaint, g_free);
    status = attempt(making, FALSE, ret_sandbox, &complaint);
  }
  return complaint ? fail_start(making, complaint) : status;
}

static int32_t check(struct making *making) {
  const struct sandhost_host *host = making->instance->host;
  const struct sandhost_create *request = making->request;
  g_autofree char *reason = NULL;
  int32_t status = guest_sandbox_check_create(host, making->call, request,
                                              GUEST_SANDBOX_LIMITS | GUEST_SANDBOX_NETWORK_OFF);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (request->environment_count > MAX_VARIABLES) {
    return fail_call(host, making->call, SANDHOST_INVALID, "the sandbox has more than %u variables",
                     MAX_VARIABLES);
  }
  making->working_dir = layout_check_working_dir(request->working_dir, &reason);
  if (!making->working_dir) {
    return fail_call(host, making->call, SANDHOST_INVALID,
                     "%s cannot be the working directory of a bubblewrap sandbox: %s",
                     request->working_dir.data, reason);
  }
  return SANDHOST_OK;
}

int32_t bubblewrap_create(struct sandhost_call *call, struct sandhost_instance *instance,
                          const struct sandhost_create *request,
                          struct sandhost_sandbox **ret_sandbox) {
  struct making making = {.call = call, .instance = instance, .request = request};
  struct sandhost_sandbox *sandbox = NULL;
  int32_t status = check(&making);
  status = status == SANDHOST_OK ? prepare(&making) : status;
  status = status == SANDHOST_OK ? take_key(&making) : status;
  status = status == SANDHOST_OK ? make_group(&making) : status;
  status = status == SANDHOST_OK ? start(&making, &sandbox) : status;
  if (status == SANDHOST_OK) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a failing start never says OK */
    g_autofree char *ref = g_strdup_printf("bwrap:%d", (int)sandbox->guest.pid);
    report_fact(instance->host, call, SANDHOST_REPORT_REF, ref);
    sandbox->instance = instance;
    sandbox->key = g_steal_pointer(&making.key);
    sandbox->cgroup = g_steal_pointer(&making.cgroup);
    if (sandbox->cgroup) {
      cgroup_joined(sandbox->cgroup);
    }
    *ret_sandbox = sandbox;
  }
  if (making.cgroup) {
    (void)cgroup_remove(making.cgroup, END_GRACE);
    cgroup_free(making.cgroup);
  }
  instance_free_key(instance, making.key);
  g_free(making.key);
  g_free(making.working_dir);
  return status;
}
