/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.c: a complete sandbox provider, to be copied and changed. Here: its table, instances and the life of a
 * sandbox; example.h says what is where.
 *
 * Commands run as ordinary processes of this machine, in a folder that exists. That is not isolation, so it declares
 * what is true: commands run on this machine (SANDHOST_PROVIDER_HOST_SURFACE), the network cannot be cut, an
 * environment can be set. The host refuses every manifest that asks for more.
 *
 * It needs nothing but libc and sandhost/provider.h, and leaves out every optional operation.
 */
#include "example.h"

#include "keeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const struct sandhost_host *host;

struct sandhost_instance {
  char *path; /* "PATH=..." */
};

/* ---- Telling what went wrong ------------------------------------------------------------------------------ */

static struct sandhost_text text(const char *string) {
  struct sandhost_text result = {string, strlen(string)};
  return result;
}

int32_t fail(struct sandhost_call *call, int32_t status, const char *what, int error) {
  char message[512];
  snprintf(message, sizeof message, "%s%s%s", what, error ? ": " : "",
           error ? strerror(error) : "");
  return host->fail(call, status, text(message));
}

int32_t check_call(struct sandhost_call *call) {
  if (now() >= host->deadline(call)) {
    return fail(call, SANDHOST_TIMEOUT, "the time is over", 0);
  }
  return host->cancelled(call) ? fail(call, SANDHOST_CANCELLED, "cancelled", 0) : SANDHOST_OK;
}

int32_t fail_lost(struct sandhost_call *call, const struct sandhost_sandbox *sandbox) {
  host->report(call, SANDHOST_REPORT_LOST, text(sandbox->gone));
  return fail(call, SANDHOST_LOST, sandbox->gone, 0);
}

int32_t check_alive(struct sandhost_call *call, const struct sandhost_sandbox *sandbox) {
  if (!sandbox->gone) {
    return check_call(call);
  }
  const struct sandhost_failure nothing_done = {
      .size = sizeof nothing_done, .service_code = {"", 0}, .may_have_happened = 0};
  host->fail_details(call, &nothing_done);
  return fail_lost(call, sandbox);
}

int32_t status_of(int error) {
  switch (error) {
  case ENOENT:
    return SANDHOST_NOT_FOUND;
  case ENOTDIR: /* a file or a link where a folder should be */
  case EISDIR:
  case ELOOP:
  case EINVAL:
    return SANDHOST_INVALID;
  case EACCES:
  case EPERM:
  case EROFS:
    return SANDHOST_DENIED;
  case ENOSPC:
  case EDQUOT:
  case EMFILE:
  case ENFILE:
  case EAGAIN: /* too many processes */
    return SANDHOST_LIMIT;
  case ENOMEM:
    return SANDHOST_NO_MEMORY;
  default:
    return SANDHOST_INTERNAL;
  }
}

int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * SECOND + time.tv_nsec;
}

/* ---- Instances -------------------------------------------------------------------------------------------- */

/* The host has checked the values against the table at the end of this file: there is one for each. */
static int32_t example_open(struct sandhost_call *call, const struct sandhost_open *request,
                            struct sandhost_instance **ret_instance) {
  const struct sandhost_value *path = &request->values[0];
  struct sandhost_instance *instance = calloc(1, sizeof *instance);
  if (!instance || asprintf(&instance->path, "PATH=%s", path->text.data) < 0) {
    free(instance);
    return fail(call, SANDHOST_NO_MEMORY, "no memory for an instance", 0);
  }
  *ret_instance = instance;
  return SANDHOST_OK;
}

static void example_close(struct sandhost_instance *instance) {
  free(instance->path);
  free(instance);
}

/* ---- Environments ----------------------------------------------------------------------------------------- */

void free_environment(char **take_environment) {
  for (char **pair = take_environment; pair && *pair; pair++) {
    free(*pair);
  }
  free(take_environment);
}

/* Whether a NAME=value string is of one of the pairs. */
static int is_of(const char *string, const struct sandhost_pair *pairs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (strncmp(string, pairs[i].name.data, pairs[i].name.length) == 0 &&
        string[pairs[i].name.length] == '=') {
      return 1;
    }
  }
  return 0;
}

char **make_environment(const char *const *base, const struct sandhost_pair *pairs, size_t count) {
  size_t have = 0;
  while (base[have]) {
    have++;
  }
  char **made = calloc(have + count + 1, sizeof *made);
  size_t used = 0;
  int ok = made != NULL;
  for (size_t i = 0; ok && i < count; i++, used += (size_t)ok) {
    ok = asprintf(&made[used], "%s=%s", pairs[i].name.data, pairs[i].value.data) >= 0;
  }
  for (size_t i = 0; ok && i < have; i++) {
    if (!is_of(base[i], pairs, count)) {
      ok = (made[used] = strdup(base[i])) != NULL;
      used += (size_t)ok;
    }
  }
  if (made && !ok) {
    made[used] = NULL; /* what a failed asprintf leaves there is nobody's */
    free_environment(made);
    made = NULL;
  }
  return made;
}

/* ---- Sandboxes -------------------------------------------------------------------------------------------- */

static void example_release(struct sandhost_sandbox *sandbox) {
  keepers_release(sandbox->keepers);
  free_environment(sandbox->environment);
  free(sandbox->working_dir);
  free(sandbox);
}

/* Whether the machine has what a sandbox needs; else an error with a way out. */
static int32_t check_machine(struct sandhost_call *call, const char *working_dir) {
  struct stat status;
  if (access("/proc/thread-self/children", R_OK) != 0) { /* see keeper.c */
    return fail(
        call, SANDHOST_UNAVAILABLE,
        "this machine does not list the children of a process; mount /proc, or use a kernel with "
        "CONFIG_PROC_CHILDREN",
        0);
  }
  if (stat(working_dir, &status) != 0) {
    return fail(
        call, status_of(errno),
        "the working directory cannot be used; create it, or set sandbox_manifest.working_dir "
        "to one that exists",
        errno);
  }
  if (!S_ISDIR(status.st_mode)) {
    return fail(call, SANDHOST_INVALID, "the working directory is not a directory", 0);
  }
  return access(working_dir, W_OK | X_OK) == 0
             ? SANDHOST_OK
             : fail(call, status_of(errno), "the working directory is not writable", errno);
}

/* The host refuses a manifest that asks for what the table does not declare; another host may not. */
static int32_t check_kept(struct sandhost_call *call, const struct sandhost_create *request) {
  const struct sandhost_network *network = request->network;
  int asks = request->image.length > 0 || request->snapshot.length > 0 ||
             request->mount_count > 0 || request->cpu_millis > 0 || request->memory_bytes > 0 ||
             request->lifetime > 0 || request->gpu || network->allowed_count > 0 ||
             network->denied_count > 0 || network->mode != SANDHOST_NETWORK_ALLOW;
  return asks ? fail(call, SANDHOST_UNSUPPORTED,
                     "an ordinary process of this machine has the machine's files, network and "
                     "resources, and no others",
                     0)
              : SANDHOST_OK;
}

static int32_t example_create(struct sandhost_call *call, struct sandhost_instance *instance,
                              const struct sandhost_create *request,
                              struct sandhost_sandbox **ret_sandbox) {
  const char *const base[] = {instance->path, "HOME=/tmp", "LANG=C.UTF-8", NULL};
  size_t length = request->working_dir.length;
  int32_t status = check_kept(call, request);
  if (status != SANDHOST_OK) {
    return status;
  }
  while (length > 1 && request->working_dir.data[length - 1] == '/') {
    length--;
  }
  struct sandhost_sandbox *sandbox = calloc(1, sizeof *sandbox);
  if (!sandbox || !(sandbox->working_dir = strndup(request->working_dir.data, length)) ||
      !(sandbox->environment =
            make_environment(base, request->environment, request->environment_count))) {
    if (sandbox) {
      example_release(sandbox);
    }
    return fail(call, SANDHOST_NO_MEMORY, "no memory for a sandbox", 0);
  }
  status = check_machine(call, sandbox->working_dir);
  if (status != SANDHOST_OK) {
    example_release(sandbox);
    return status;
  }
  /* Facts go out through report: here the name of the sandbox. A service has one of its own for it. */
  host->report(call, SANDHOST_REPORT_REF, request->key);
  *ret_sandbox = sandbox;
  return SANDHOST_OK;
}

/* The folder was there before the sandbox, and stays. */
static int32_t example_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  sandbox->gone = "the sandbox was terminated";
  for (struct keeper *keeper = sandbox->keepers; keeper; keeper = keeper->next) {
    keeper_end(keeper);
  }
  keepers_collect(&sandbox->keepers, host->deadline(call));
  return sandbox->keepers ? fail(call, SANDHOST_TIMEOUT, "processes of the sandbox do not end", 0)
                          : SANDHOST_OK;
}

/* ---- The table ---------------------------------------------------------------------------------------------- */

static const struct sandhost_option options[] = {
    {
        .size = sizeof(struct sandhost_option),
        .name = "path",
        .type = SANDHOST_OPTION_TEXT,
        .fallback = "/usr/local/bin:/usr/bin:/bin",
        .help = "Where programs are looked for, separated by :",
    },
    {
        .size = sizeof(struct sandhost_option),
        .name = "max_output_bytes",
        .type = SANDHOST_OPTION_INTEGER,
        .flags = SANDHOST_OPTION_POSITIVE,
        .fallback = "1000000",
        .help = "Output kept per stream; the rest is cut",
    },
};

/* What is not listed here is not kept, and a manifest that asks for it is refused before anything starts. */
static const struct sandhost_enforces enforces[] = {
    {SANDHOST_SETTING_NETWORK_ON, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_ENVIRONMENT, SANDHOST_LEVEL_ENFORCED},
};

static const struct sandhost_provider provider = {
    .size = sizeof provider,
    .minor = SANDHOST_ABI_MINOR,
    .threads =
        SANDHOST_THREADS_SANDBOX, /* a sandbox's keepers are not guarded: one call at a time */
    .flags = SANDHOST_PROVIDER_HOST_SURFACE,
    .name = "example",
    .version = "1.0",
    .summary = "runs commands in a folder of this machine, to show how a provider is written",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .option_size = sizeof options[0],
    .enforces = enforces,
    .enforces_count = sizeof enforces / sizeof enforces[0],
    .open = example_open,
    .close = example_close,
    .create = example_create,
    .execute = example_execute,
    .read_file = example_read_file,
    .write_file = example_write_file,
    .terminate = example_terminate,
    .release = example_release,
};

const struct sandhost_provider *sandhost_provider_1(const struct sandhost_host *given) {
  host = given;
  return &provider;
}
