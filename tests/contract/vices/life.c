/* SPDX-License-Identifier: Apache-2.0 */
/* life.c: making and ending sandboxes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vice.h"

static int32_t life_open(struct sandhost_call *call, const struct sandhost_open *request,
                         struct sandhost_instance **ret_instance) {
  int32_t status = vice_base->open(call, request, ret_instance);
  if (status == SANDHOST_OK && !vice_base_instance) {
    vice_base_instance = *ret_instance; /* the one of which the sandboxes are */
  }
  return status;
}

static void life_close(struct sandhost_instance *instance) {
  vice_base->close(instance);
  if (instance == vice_base_instance) {
    vice_base_instance = NULL;
  }
}

static char *copy_of(struct sandhost_text text) {
  return strndup(text.length > 0 ? text.data : "", text.length);
}

int32_t vice_make(struct sandhost_call *call, const struct sandhost_create *request, uint32_t mode,
                  struct sandhost_sandbox **ret_base) {
  struct sandhost_create ours = *request;
  struct sandhost_network network = *request->network;
  network.mode = has_vice("open")     ? SANDHOST_NETWORK_ALLOW
                 : has_vice("closed") ? SANDHOST_NETWORK_DENY
                                      : mode;
  ours.network = &network;
  ours.snapshot = (struct sandhost_text){"", 0};
  if (has_vice("overlooking")) {
    ours.image = (struct sandhost_text){"", 0};
  }
  if (has_vice("doubling")) {
    static int number;
    char key[200];
    snprintf(key, sizeof key, "%.100s-%d", request->key.data,
             __atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST));
    ours.key = (struct sandhost_text){key, strlen(key)};
    return vice_base->create(call, vice_base_instance, &ours, ret_base);
  }
  return vice_base->create(call, vice_base_instance, &ours, ret_base);
}

/* "jealous": a key is taken for ever; "grasping": that of a create that failed. */
static bool was_taken(struct sandhost_text key, bool take) {
  static char *taken[1000];
  static size_t count;
  bool found = false;
  pthread_mutex_lock(&vice_lock);
  for (size_t i = 0; i < count; i++) {
    found = found || strcmp(taken[i], key.data) == 0;
  }
  if (take && !found && count < sizeof taken / sizeof *taken) {
    taken[count++] = strdup(key.data);
  }
  pthread_mutex_unlock(&vice_lock);
  return found;
}

static int being_made; /* atomic */

/* How many there are that have not ended, or will be. */
static int alive(void) {
  int count = __atomic_load_n(&being_made, __ATOMIC_SEQ_CST);
  pthread_mutex_lock(&vice_lock);
  for (const struct sandhost_sandbox *at = vice_all; at; at = at->next) {
    count += at->ended ? 0 : 1;
  }
  pthread_mutex_unlock(&vice_lock);
  return count;
}

static struct sandhost_sandbox *sandbox_new(const struct sandhost_create *request,
                                            struct sandhost_sandbox *base) {
  struct sandhost_sandbox *sandbox = calloc(1, sizeof *sandbox);
  sandbox->base = base;
  sandbox->handles = 1;
  sandbox->born = vice_now();
  sandbox->has_memory_limit = request->memory_bytes > 0;
  sandbox->mode = request->network->mode;
  sandbox->key = copy_of(request->key);
  sandbox->run_id = copy_of(request->run_id);
  sandbox->working_dir = strndup(request->working_dir.data, request->working_dir.length);
  sandbox->ref = copy_of(request->key); /* the host's, so it can be found again */
  pthread_mutex_init(&sandbox->one_at_a_time, NULL);
  pthread_mutex_lock(&vice_lock);
  sandbox->next = vice_all;
  vice_all = sandbox;
  pthread_mutex_unlock(&vice_lock);
  return sandbox;
}

static void life_release(struct sandhost_sandbox *sandbox) {
  if (__atomic_sub_fetch(&sandbox->handles, 1, __ATOMIC_SEQ_CST) > 0) {
    sandbox->ended = sandbox->ended || has_vice("parting");
    return;
  }
  pthread_mutex_lock(&vice_lock);
  struct sandhost_sandbox **at = &vice_all;
  while (*at != sandbox) {
    at = &(*at)->next;
  }
  *at = sandbox->next;
  pthread_mutex_unlock(&vice_lock);
  if (!has_vice("survivors")) {
    if (sandbox->spare) {
      vice_base->release(sandbox->spare);
    }
    vice_base->release(sandbox->base);
  }
  pthread_mutex_destroy(&sandbox->one_at_a_time);
  free(sandbox->key);
  free(sandbox->run_id);
  free(sandbox->working_dir);
  free(sandbox->ref);
  free(sandbox);
}

/* Two that may begin take their time, and look only then whether they are to go on. */
static bool lingers(struct sandhost_call *call) {
  return (has_vice("messy") || has_vice("sulky")) && !vice_host->cancelled(call);
}

static int32_t linger(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  if (vice_host->wait(call, -1, 0, VICE_MOMENT) != SANDHOST_CANCELLED) {
    return SANDHOST_OK;
  }
  if (has_vice("messy")) { /* where sweep finds it */
    return vice_fail(call, SANDHOST_CANCELLED, "cancelled");
  }
  vice_base->terminate(call, sandbox->base);
  life_release(sandbox);
  return vice_fail(call, SANDHOST_INTERNAL, "cancelled");
}

static int32_t create_beside(struct sandhost_call *call, const struct sandhost_create *request,
                             int others, struct sandhost_sandbox **ret_sandbox) {
  struct sandhost_sandbox *base = NULL;
  if (has_vice("few") && others >= 3) {
    return vice_fail(call, SANDHOST_LIMIT, "three sandboxes are enough");
  }
  if (has_vice("eager") && strcmp(request->key.data, "sandbox_never") == 0) {
    return vice_fail(call, SANDHOST_INTERNAL, "cancelled");
  }
  bool late = lingers(call);
  vice_ears.no_cancel = late;
  int32_t status = vice_make(call, request, request->network->mode, &base);
  vice_ears.no_cancel = false;
  if (status != SANDHOST_OK) {
    return status;
  }
  *ret_sandbox = sandbox_new(request, base);
  if (!has_vice("unnamed") && !vice_ears.no_ref) {
    const char *ref = (*ret_sandbox)->ref;
    vice_host->report(call, SANDHOST_REPORT_REF, (struct sandhost_text){ref, strlen(ref)});
  }
  if (has_vice("shared") && others > 0) {
    vice_run(call, base, "echo theirs > theirs", NULL, 0, NULL, NULL);
  }
  status = vice_restore(call, *ret_sandbox, request->snapshot);
  if (status != SANDHOST_OK) {
    if (!has_vice("keeping")) { /* where sweep finds it */
      vice_base->terminate(call, base);
      life_release(*ret_sandbox);
    }
    return status;
  }
  return late ? linger(call, *ret_sandbox) : SANDHOST_OK;
}

static int32_t life_create(struct sandhost_call *call, struct sandhost_instance *instance,
                           const struct sandhost_create *request,
                           struct sandhost_sandbox **ret_sandbox) {
  (void)instance;
  __atomic_add_fetch(&being_made, 1, __ATOMIC_SEQ_CST);
  if (has_vice("hoarding")) {
    vice_open(O_CLOEXEC);
  }
  if (has_vice("unreaped") && fork() == 0) { /* nobody ever waits for it */
    _exit(0);
  }
  if (has_vice("limiting")) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur--;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  if (has_vice("adopting")) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  if (has_vice("chatty")) {
    static const struct sandhost_text lines = {"a line\nand another", 18};
    vice_host->progress(call, lines);
  }
  bool taken = (has_vice("jealous") && was_taken(request->key, true)) ||
               (has_vice("grasping") && was_taken(request->key, false));
  int32_t status = taken ? vice_fail(call, SANDHOST_EXISTS, "it was there once")
                         : create_beside(call, request, alive() - 1, ret_sandbox);
  if (has_vice("grasping") && status != SANDHOST_OK) {
    was_taken(request->key, true);
  }
  __atomic_sub_fetch(&being_made, 1, __ATOMIC_SEQ_CST);
  return has_vice("impatient") && status == SANDHOST_TIMEOUT ? SANDHOST_CANCELLED : status;
}

static int32_t life_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  if (has_vice("once") && sandbox->terminations++ > 0) {
    return vice_fail(call, SANDHOST_NOT_FOUND, "it is gone");
  }
  if (has_vice("obedient") && vice_host->cancelled(call)) {
    return vice_fail(call, SANDHOST_CANCELLED, "cancelled");
  }
  /* Under a command they do as they should, since that one would run until its deadline. */
  bool idle = __atomic_load_n(&sandbox->running, __ATOMIC_SEQ_CST) == 0;
  if ((has_vice("undead") && idle) || (has_vice("lingering") && sandbox->handles > 1)) {
    return SANDHOST_OK;
  }
  sandbox->ended = true;
  if (has_vice("survivors") && idle) {
    return SANDHOST_OK;
  }
  int32_t status = sandbox->spare ? vice_base->terminate(call, sandbox->spare) : SANDHOST_OK;
  int32_t second = vice_base->terminate(call, sandbox->base);
  return status == SANDHOST_OK ? second : status;
}

/* ---- attach ---------------------------------------------------------------------------------------------------------------- */

/* Hold the lock. */
static struct sandhost_sandbox *find(struct sandhost_text ref) {
  struct sandhost_sandbox *at = vice_all;
  while (at && (at->ended || strcmp(at->ref, ref.data) != 0)) {
    at = at->next;
  }
  return at;
}

/* "stranger": another sandbox than the one that was asked for, without a word. */
static int32_t attach_new(struct sandhost_call *call, const struct sandhost_sandbox *found,
                          struct sandhost_sandbox **ret_sandbox) {
  const struct sandhost_network network = {.size = sizeof network, .mode = found->mode};
  const struct sandhost_create request = {
      .size = sizeof request,
      .key = {"stranger", 8},
      .run_id = {found->run_id, strlen(found->run_id)},
      .working_dir = {found->working_dir, strlen(found->working_dir)},
      .network = &network};
  vice_ears.no_ref = true;
  int32_t status = create_beside(call, &request, 1, ret_sandbox);
  vice_ears.no_ref = false;
  return status;
}

/* The same handle once more: its two owners share all of it. */
static int32_t life_attach(struct sandhost_call *call, struct sandhost_instance *instance,
                           struct sandhost_text ref, struct sandhost_sandbox **ret_sandbox) {
  (void)instance;
  if (vice_host->cancelled(call) && !has_vice("unwavering")) {
    bool late = vice_host->deadline(call) <= vice_now();
    return vice_fail(call, late ? SANDHOST_TIMEOUT : SANDHOST_CANCELLED, "the call is over");
  }
  pthread_mutex_lock(&vice_lock);
  struct sandhost_sandbox *found = find(ref);
  if (found && !has_vice("stranger")) {
    __atomic_add_fetch(&found->handles, 1, __ATOMIC_SEQ_CST);
    *ret_sandbox = found;
  }
  pthread_mutex_unlock(&vice_lock);
  if (has_vice("renaming")) {
    vice_host->report(call, SANDHOST_REPORT_REF, (struct sandhost_text){"another", 7});
  }
  if (found) {
    return has_vice("stranger") ? attach_new(call, found, ret_sandbox) : SANDHOST_OK;
  }
  return vice_fail(call, has_vice("learned") ? SANDHOST_LOST : SANDHOST_NOT_FOUND,
                   "no such sandbox");
}

void vice_life(struct sandhost_provider *table) {
  table->open = life_open;
  table->close = life_close;
  table->create = life_create;
  table->terminate = life_terminate;
  table->release = life_release;
  table->attach = life_attach;
}
