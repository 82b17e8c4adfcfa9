/* SPDX-License-Identifier: Apache-2.0 */
/* vice.c: the entry, and what the vices share. */
#include "vice.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct sandhost_host *vice_host;
const struct sandhost_provider *vice_base;
struct sandhost_instance *vice_base_instance;
pthread_mutex_t vice_lock = PTHREAD_MUTEX_INITIALIZER;
struct sandhost_sandbox *vice_all;

bool has_vice(const char *name) {
  const char *vice = getenv("VICE");
  return vice && strcmp(vice, name) == 0;
}

int64_t vice_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int32_t vice_fail(struct sandhost_call *call, int32_t status, const char *message) {
  return vice_host->fail(call, status,
                         (struct sandhost_text){.data = message, .length = strlen(message)});
}

_Thread_local struct vice_ears vice_ears;

int32_t vice_look(struct sandhost_call *call, const struct sandhost_sandbox *sandbox) {
  static const struct sandhost_text why = {"it was ended", 12};
  if (!sandbox->ended) {
    return SANDHOST_OK;
  }
  vice_host->report(call, SANDHOST_REPORT_LOST, why);
  return vice_fail(call, SANDHOST_LOST, "the sandbox is gone");
}

void vice_open(int flags) {
  int fd = open("/dev/null", O_RDONLY | flags);
  (void)fd;
}

/* ---- Commands of our own --------------------------------------------------------------------------------------------- */

struct own_run {
  const char *input;
  size_t input_left;
  char **output;
  size_t *output_length;
};

static void own_started(void *user, uint64_t execution) {
  (void)user;
  (void)execution;
}

static int32_t own_output(void *user, uint32_t stream, const void *data, size_t length) {
  const struct own_run *run = user;
  if (stream == SANDHOST_STDOUT && run->output) {
    char *longer = realloc(*run->output, *run->output_length + length + 1);
    if (!longer) {
      abort();
    }
    *run->output = longer;
    memcpy(longer + *run->output_length, data, length);
    *run->output_length += length;
    longer[*run->output_length] = '\0';
  }
  return SANDHOST_OK;
}

static int64_t own_input(void *user, void *buffer, size_t length) {
  struct own_run *run = user;
  size_t take = run->input_left < length ? run->input_left : length;
  memcpy(buffer, run->input, take);
  run->input += take;
  run->input_left -= take;
  return (int64_t)take;
}

static int32_t no_input_fd(void *user) {
  (void)user;
  return -1;
}

int32_t vice_run(struct sandhost_call *call, struct sandhost_sandbox *base, const char *script,
                 const char *input, size_t input_length, char **output, size_t *output_length) {
  const struct sandhost_text words[] = {{"sh", 2}, {"-c", 2}, {script, strlen(script)}};
  struct own_run run = {input, input_length, output, output_length};
  const struct sandhost_execute request = {.size = sizeof request,
                                           .argv = words,
                                           .argc = 3,
                                           .flags = input ? SANDHOST_EXECUTE_STDIN : 0};
  const struct sandhost_observer observer = {.size = sizeof observer,
                                             .user = &run,
                                             .started = own_started,
                                             .output = own_output,
                                             .input = input ? own_input : NULL,
                                             .input_fd = input ? no_input_fd : NULL};
  struct sandhost_result result = {.size = sizeof result};
  int32_t status = vice_base->execute(call, base, &request, &observer, &result);
  if (status == SANDHOST_OK && (result.ended != SANDHOST_ENDED_EXIT || result.exit_code != 0)) {
    return vice_fail(call, SANDHOST_INTERNAL, "a command of the wrapper failed");
  }
  return status;
}

void vice_run_anyway(struct sandhost_call *call, struct sandhost_sandbox *base,
                     const char *script) {
  const struct vice_ears before = vice_ears;
  vice_ears = (struct vice_ears){.no_cancel = true, .no_deadline = true, .no_error = true};
  vice_run(call, base, script, NULL, 0, NULL, NULL);
  vice_ears = before;
}

/* ---- What the other provider has for a host --------------------------------------------------------------------------- */

/* "unnamed": nobody hears a sandbox's name. */
static void their_report(struct sandhost_call *call, uint32_t kind, struct sandhost_text value) {
  bool name = kind == SANDHOST_REPORT_REF && (has_vice("unnamed") || vice_ears.no_ref);
  if (!name && !(kind == SANDHOST_REPORT_LOST && vice_ears.no_lost_reason)) {
    vice_host->report(call, kind, value);
  }
}

static int32_t their_fail(struct sandhost_call *call, int32_t status,
                          struct sandhost_text message) {
  return vice_ears.no_error ? status : vice_host->fail(call, status, message);
}

static int64_t their_deadline(const struct sandhost_call *call) {
  return vice_ears.no_deadline ? INT64_MAX : vice_host->deadline(call);
}

static int32_t their_cancelled(const struct sandhost_call *call) {
  return vice_ears.no_cancel ? 0 : vice_host->cancelled(call);
}

static int32_t their_cancel_fd(const struct sandhost_call *call) {
  return vice_ears.no_cancel ? -1 : vice_host->cancel_fd(call);
}

/* ---- The entry ------------------------------------------------------------------------------------------------------- */

static void __attribute__((constructor)) when_loaded(void) {
  vice_misbehave("loading");
}

typedef const struct sandhost_provider *(*entry_function)(const struct sandhost_host *host);

const struct sandhost_provider *sandhost_provider_1(const struct sandhost_host *host) {
  static struct sandhost_provider table;
  static struct sandhost_host theirs;
  const char *file = getenv("VICE_BASE");
  void *module = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  void *symbol = module ? dlsym(module, SANDHOST_ENTRY_NAME) : NULL;
  entry_function entry = NULL;
  if (!symbol) {
    return NULL;
  }
  memcpy(&entry, &symbol, sizeof entry);
  vice_host = host;
  theirs = *host;
  theirs.report = their_report;
  theirs.fail = their_fail;
  theirs.deadline = their_deadline;
  theirs.cancelled = their_cancelled;
  theirs.cancel_fd = their_cancel_fd;
  vice_base = entry(&theirs);
  table = *vice_base;
  table.name = "vice";
  table.summary = "keeps the contract but for one clause";
  vice_life(&table);
  vice_commands(&table);
  vice_files(&table);
  vice_extras(&table);
  vice_manners(&table);
  vice_misbehave("entry");
  return &table;
}
