/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.c: the provider that is no sandbox. Commands run on this machine as this user, in a working
 * directory that is used as it is; sandhost-guest runs them, so that limits, output and files work as in
 * any sandbox.
 */
#include "environment.h"
#include "guest-sandbox.h"
#include "guest-spawn.h"

#include "failure.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The guest kills what commands left running before it ends; only then it is killed itself. */
#define END_GRACE ((int64_t)5000000000)

/* The only state of the plugin, set once by the entry, before anything else runs. */
static const struct sandhost_host *host;

struct sandhost_instance { /* constant once open */
  char *guest;             /* path; NULL: there is none */
  char **environment;      /* of every command, "NAME=value" */
  gboolean create_working_dir;
};

struct sandhost_sandbox {
  struct guest_sandbox guest; /* first, as guest-sandbox.h wants it */
  char *asked_dir;            /* the working directory as the manifest has it */
  char *real_dir;             /* the same with its links resolved */
};

enum { OPTION_PASSTHROUGH, OPTION_INHERIT, OPTION_CREATE_DIR, OPTION_MAX_OUTPUT };

static const struct sandhost_option options[] = {
    [OPTION_PASSTHROUGH] = {.size = sizeof(struct sandhost_option),
                            .name = "environment_passthrough",
                            .type = SANDHOST_OPTION_LIST,
                            .help = "names of variables of this machine that commands get"},
    [OPTION_INHERIT] = {.size = sizeof(struct sandhost_option),
                        .name = "inherit_environment",
                        .type = SANDHOST_OPTION_BOOLEAN,
                        .fallback = "false",
                        .help = "give commands every variable of this machine"},
    [OPTION_CREATE_DIR] = {.size = sizeof(struct sandhost_option),
                           .name = "create_working_dir",
                           .type = SANDHOST_OPTION_BOOLEAN,
                           .fallback = "false",
                           .help = "create a missing working_dir instead of failing"},
    [OPTION_MAX_OUTPUT] = {.size = sizeof(struct sandhost_option),
                           .name = "max_output_bytes",
                           .type = SANDHOST_OPTION_INTEGER,
                           .flags = SANDHOST_OPTION_POSITIVE,
                           .fallback = "1000000",
                           .help = "how much output of a command is kept, per stream"},
};

static const struct sandhost_enforces enforces[] = {
    {SANDHOST_SETTING_NETWORK_ON, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_ENVIRONMENT, SANDHOST_LEVEL_ENFORCED},
};

/* ---- Instance --------------------------------------------------------------------------------- */

static int32_t local_open(struct sandhost_call *call, const struct sandhost_open *request,
                          struct sandhost_instance **ret_instance) {
  if (request->value_count != G_N_ELEMENTS(options)) {
    return fail_call(host, call, SANDHOST_INVALID, "%zu options were expected, %zu came",
                     G_N_ELEMENTS(options), request->value_count);
  }
  const struct sandhost_value *values = request->values;
  g_auto(GStrv) all = g_get_environ();
  struct sandhost_instance *instance = g_new0(struct sandhost_instance, 1);
  instance->guest = guest_program(request->guest_dir);
  instance->create_working_dir = values[OPTION_CREATE_DIR].integer != 0;
  instance->environment = values[OPTION_INHERIT].integer != 0
                              ? g_steal_pointer(&all)
                              : environment_select(all, values[OPTION_PASSTHROUGH].pairs,
                                                   values[OPTION_PASSTHROUGH].pair_count);
  *ret_instance = instance;
  return SANDHOST_OK;
}

static void local_close(struct sandhost_instance *instance) {
  g_strfreev(instance->environment);
  g_free(instance->guest);
  g_free(instance);
}

/* ---- Create ----------------------------------------------------------------------------------- */

static int32_t resolve_dir(struct sandhost_call *call, const struct sandhost_instance *instance,
                           const char *dir, char **ret_real_dir) {
  struct stat info;
  if (instance->create_working_dir && g_mkdir_with_parents(dir, 0777) < 0) {
    return fail_call_errno(host, call, SANDHOST_DENIED, errno,
                           "the local sandbox's working directory %s cannot be created", dir);
  }
  char *real_dir = realpath(dir, NULL);
  if (!real_dir && errno == ENOENT) {
    return fail_call(host, call, SANDHOST_NOT_FOUND,
                     "The local sandbox's working directory %s does not exist; create it, set "
                     "sandbox_manifest.working_dir to one that does, or set the option "
                     "create_working_dir=true",
                     dir);
  }
  if (!real_dir) {
    return fail_call_errno(host, call, errno == EACCES ? SANDHOST_DENIED : SANDHOST_INVALID, errno,
                           "the local sandbox's working directory %s cannot be used", dir);
  }
  if (stat(real_dir, &info) < 0 || !S_ISDIR(info.st_mode)) {
    free(real_dir);
    return fail_call(host, call, SANDHOST_INVALID,
                     "the local sandbox's working directory %s is not a directory", dir);
  }
  *ret_real_dir = real_dir;
  return SANDHOST_OK;
}

static int32_t start_guest(struct sandhost_call *call, const struct sandhost_instance *instance,
                           const struct sandhost_create *request, const char *dir,
                           struct guest_process *ret_process) {
  if (!instance->guest) {
    return fail_call(host, call, SANDHOST_UNAVAILABLE,
                     "the program sandhost-guest for this machine is not installed");
  }
  g_auto(GStrv) environment =
      environment_add(instance->environment, request->environment, request->environment_count);
  const char *const argv[] = {instance->guest, NULL};
  const struct guest_spawn_options spawn_options = {.cwd = dir};
  int error = guest_spawn(argv, (const char *const *)environment, &spawn_options, &ret_process->pid,
                          &ret_process->pidfd, &ret_process->stream_fd, &ret_process->error_fd);
  if (error < 0) {
    return fail_call_errno(host, call, error == -EACCES ? SANDHOST_DENIED : SANDHOST_UNAVAILABLE,
                           -error, "cannot start %s in %s", instance->guest, dir);
  }
  return SANDHOST_OK;
}

static int32_t greet(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  g_autofree char *complaint = NULL;
  int32_t status = guest_sandbox_greet(&sandbox->guest, call, NULL, &complaint);
  if (complaint) {
    return fail_call(host, call, SANDHOST_UNAVAILABLE, "sandhost-guest ended at once: %s",
                     complaint[0] ? complaint : "without a word");
  }
  return status;
}

static void local_release(struct sandhost_sandbox *sandbox) {
  guest_sandbox_clear(&sandbox->guest);
  g_free(sandbox->asked_dir);
  free(sandbox->real_dir);
  g_free(sandbox);
}

static int32_t local_create(struct sandhost_call *call, struct sandhost_instance *instance,
                            const struct sandhost_create *request,
                            struct sandhost_sandbox **ret_sandbox) {
  struct guest_process process;
  char *real_dir = NULL;
  int32_t status = guest_sandbox_check_create(host, call, request, 0);
  if (status != SANDHOST_OK) {
    return status;
  }
  g_autofree char *dir = g_strndup(request->working_dir.data, request->working_dir.length);
  status = resolve_dir(call, instance, dir, &real_dir);
  if (status != SANDHOST_OK) {
    return status;
  }
  status = start_guest(call, instance, request, real_dir, &process);
  if (status != SANDHOST_OK) {
    free(real_dir);
    return status;
  }
  struct sandhost_sandbox *sandbox = g_new0(struct sandhost_sandbox, 1);
  guest_sandbox_init(&sandbox->guest, host, &process, real_dir, END_GRACE);
  sandbox->asked_dir = g_steal_pointer(&dir);
  sandbox->real_dir = real_dir;
  status = greet(call, sandbox);
  if (status != SANDHOST_OK) {
    local_release(sandbox);
    return status;
  }
  g_autofree char *ref = g_strdup_printf("local:%d", (int)sandbox->guest.pid);
  report_fact(host, call, SANDHOST_REPORT_REF, ref);
  *ret_sandbox = sandbox;
  return SANDHOST_OK;
}

static int32_t local_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  return guest_sandbox_end(&sandbox->guest, call);
}

/* ---- Paths below the working directory -------------------------------------------------------- */

/* The same path with the working directory's links resolved, as the guest knows it. *ret_text owns what the
 * result borrows. */
static struct sandhost_path resolved(const struct sandhost_sandbox *sandbox,
                                     struct sandhost_path path, char **ret_text) {
  size_t length = strlen(sandbox->asked_dir);
  while (length > 0 && sandbox->asked_dir[length - 1] == '/') {
    length--;
  }
  if (path.length >= PATH_MAX || path.length < length ||
      strncmp(path.data, sandbox->asked_dir, length) != 0 ||
      (path.length > length && path.data[length] != '/')) {
    return path;
  }
  *ret_text =
      g_strdup_printf("%s%.*s", sandbox->real_dir, (int)(path.length - length), path.data + length);
  return (struct sandhost_path){.data = *ret_text, .length = strlen(*ret_text)};
}

static int32_t local_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             const struct sandhost_execute *request,
                             const struct sandhost_observer *observer,
                             struct sandhost_result *ret_result) {
  g_autofree char *text = NULL;
  if (request->size < offsetof(struct sandhost_execute, environment) || request->cwd.length == 0) {
    return guest_sandbox_execute(call, sandbox, request, observer, ret_result);
  }
  struct sandhost_execute copy = {0};
  memcpy(&copy, request, MIN(request->size, sizeof copy));
  copy.size = MIN(request->size, sizeof copy);
  copy.cwd = resolved(sandbox, request->cwd, &text);
  return guest_sandbox_execute(call, sandbox, &copy, observer, ret_result);
}

static int32_t local_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               struct sandhost_path path, const struct sandhost_sink *sink) {
  g_autofree char *text = NULL;
  return guest_sandbox_read_file(call, sandbox, resolved(sandbox, path, &text), sink);
}

static int32_t local_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                struct sandhost_path path, uint32_t mode,
                                const struct sandhost_source *source) {
  g_autofree char *text = NULL;
  return guest_sandbox_write_file(call, sandbox, resolved(sandbox, path, &text), mode, source);
}

static int32_t local_upload(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            struct sandhost_path dir, const struct sandhost_source *tar) {
  g_autofree char *text = NULL;
  return guest_sandbox_upload(call, sandbox, resolved(sandbox, dir, &text), tar);
}

static int32_t local_download(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              struct sandhost_path dir, const struct sandhost_path *names,
                              size_t name_count, const struct sandhost_sink *tar) {
  g_autofree char *text = NULL;
  return guest_sandbox_download(call, sandbox, resolved(sandbox, dir, &text), names, name_count,
                                tar);
}

static int32_t local_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             const struct sandhost_changes *request,
                             const struct sandhost_entry_sink *sink) {
  g_autofree char *text = NULL;
  struct sandhost_changes copy = {0};
  memcpy(&copy, request, MIN(request->size, sizeof copy));
  copy.size = MIN(request->size, sizeof copy);
  copy.root = resolved(sandbox, copy.root, &text);
  return guest_sandbox_changes(call, sandbox, &copy, sink);
}

/* ---- The table -------------------------------------------------------------------------------- */

static const struct sandhost_provider table = {
    .size = sizeof(struct sandhost_provider),
    .minor = SANDHOST_ABI_MINOR,
    .threads = SANDHOST_THREADS_PARALLEL,
    .flags = SANDHOST_PROVIDER_HOST_SURFACE,
    .name = "local",
    .version = "0.1.0",
    .summary = "this machine itself, not isolated; only where the machine is the boundary already",
    .options = options,
    .option_count = G_N_ELEMENTS(options),
    .option_size = sizeof(struct sandhost_option),
    .enforces = enforces,
    .enforces_count = G_N_ELEMENTS(enforces),
    .open = local_open,
    .close = local_close,
    .create = local_create,
    .execute = local_execute,
    .read_file = local_read_file,
    .write_file = local_write_file,
    .terminate = local_terminate,
    .release = local_release,
    .upload = local_upload,
    .download = local_download,
    .changes = local_changes,
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
