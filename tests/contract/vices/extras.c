/* SPDX-License-Identifier: Apache-2.0 */
/* extras.c: what the other provider has not: snapshots, sweep, a network that is switched; and its probe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vice.h"

static struct sandhost_text text_of(const char *string) {
  return (struct sandhost_text){string, strlen(string)};
}

static bool same(struct sandhost_text text, const char *string) {
  return text.length == strlen(string) && memcmp(text.data, string, text.length) == 0;
}

/* ---- Snapshots: a tar file in memory -------------------------------------------------------------------------------- */

struct kept {
  char id[32];
  char *tar;
  size_t length;
  struct kept *next;
};
static struct kept *snapshots; /* vice_lock */

static int32_t extras_snapshot(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  static int number;
  struct vice_passage passage;
  int32_t status = vice_enter(&passage, call, sandbox, "snapshot");
  struct kept *kept = calloc(1, sizeof *kept);
  if (status == SANDHOST_OK) {
    status = vice_run(call, sandbox->base, "tar -cf - .", NULL, 0, &kept->tar, &kept->length);
  }
  if (status == SANDHOST_OK && has_vice("brittle") &&
      vice_host->wait(call, -1, 0, VICE_MOMENT) == SANDHOST_CANCELLED) {
    status = vice_fail(call, SANDHOST_CANCELLED, "cancelled");
  }
  if (has_vice("brittle") && status == SANDHOST_CANCELLED && !passage.over) {
    status = SANDHOST_INTERNAL;
  }
  if (status != SANDHOST_OK) {
    free(kept->tar);
    free(kept);
    return vice_leave(&passage, status);
  }
  pthread_mutex_lock(&vice_lock);
  snprintf(kept->id, sizeof kept->id, "snapshot-%d", has_vice("overwriting") ? 1 : ++number);
  kept->next = snapshots;
  snapshots = kept;
  pthread_mutex_unlock(&vice_lock);
  vice_host->report(call, SANDHOST_REPORT_SNAPSHOT, text_of(kept->id));
  return vice_leave(&passage, SANDHOST_OK);
}

static int32_t extras_delete_snapshot(struct sandhost_call *call,
                                      struct sandhost_instance *instance, struct sandhost_text id) {
  (void)call;
  (void)instance;
  if (has_vice("immortal")) {
    return SANDHOST_OK;
  }
  pthread_mutex_lock(&vice_lock);
  struct kept **at = &snapshots;
  while (*at && !same(id, (*at)->id) && !has_vice("thorough")) {
    at = &(*at)->next;
  }
  for (struct kept *kept = *at; kept; kept = has_vice("thorough") ? *at : NULL) {
    *at = kept->next;
    free(kept->tar);
    free(kept);
  }
  pthread_mutex_unlock(&vice_lock);
  return SANDHOST_OK;
}

/* "dotless" and "fruitful" forget what is hidden, and what is empty. */
static void forget_some(struct sandhost_call *call, const struct sandhost_sandbox *sandbox) {
  if (has_vice("dotless")) {
    vice_run(call, sandbox->base, "rm -rf .[!.]*", NULL, 0, NULL, NULL);
  } else if (has_vice("fruitful")) {
    vice_run(call, sandbox->base, "find . -depth -type d -empty -exec rmdir {} \\;", NULL, 0, NULL,
             NULL);
  }
}

int32_t vice_restore(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                     struct sandhost_text snapshot) {
  if (snapshot.length == 0) {
    return SANDHOST_OK;
  }
  const struct kept *kept = snapshots;
  while (kept && !same(snapshot, kept->id)) {
    kept = kept->next;
  }
  if ((kept && has_vice("blank")) || (!kept && has_vice("inventive"))) {
    return SANDHOST_OK;
  }
  if (!kept) {
    return vice_fail(call, SANDHOST_NOT_FOUND, "no such snapshot");
  }
  int32_t status = vice_run(call, sandbox->base, "tar -xpf -", kept->tar, kept->length, NULL, NULL);
  forget_some(call, sandbox);
  return status;
}

/* ---- Sweep ----------------------------------------------------------------------------------------------------------------- */

static bool is_kept(const struct sandhost_sweep *request, const char *ref) {
  bool found = false;
  for (size_t i = 0; i < request->keep_count && !has_vice("greedy"); i++) {
    found = found || same(request->keep[i], ref);
  }
  return found;
}

static bool is_asked_for(const struct sandhost_sweep *request, const struct sandhost_sandbox *at,
                         int64_t age) {
  bool of_run = request->run_id.length == 0 || same(request->run_id, at->run_id) ||
                has_vice("indiscriminate");
  return of_run && (age >= request->min_age || has_vice("infanticide"));
}

static int32_t extras_sweep(struct sandhost_call *call, struct sandhost_instance *instance,
                            const struct sandhost_sweep *request,
                            const struct sandhost_orphan_sink *sink) {
  (void)instance;
  int32_t status = SANDHOST_OK;
  pthread_mutex_lock(&vice_lock);
  for (struct sandhost_sandbox *at = vice_all; at && status == SANDHOST_OK; at = at->next) {
    struct sandhost_orphan orphan = {.size = sizeof orphan, .ref = text_of(at->ref), .age = -1};
    orphan.age = vice_now() - at->born;
    if (at->ended || is_kept(request, at->ref) || !is_asked_for(request, at, orphan.age)) {
      continue;
    }
    orphan.age /= has_vice("hourglass") ? 1000000000 : 1;
    orphan.run_id = text_of(has_vice("anonymous") ? "" : at->run_id);
    if (!request->dry_run) {
      at->ended = !has_vice("boasting");
      orphan.removed = has_vice("boasting") || has_vice("bodiless") ||
                       vice_base->terminate(call, at->base) == SANDHOST_OK;
    }
    status = sink->orphan(sink->user, &orphan) == SANDHOST_OK ? SANDHOST_OK : SANDHOST_CANCELLED;
  }
  pthread_mutex_unlock(&vice_lock);
  return status;
}

/* ---- The network ----------------------------------------------------------------------------------------------------------- */

int32_t vice_spare(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  char key[200];
  const struct sandhost_network network = {.size = sizeof network,
                                           .mode = sandbox->mode == SANDHOST_NETWORK_DENY
                                                       ? SANDHOST_NETWORK_ALLOW
                                                       : SANDHOST_NETWORK_DENY};
  snprintf(key, sizeof key, "%s-spare", sandbox->key);
  const struct sandhost_create request = {
      .size = sizeof request,
      .key = text_of(key),
      .run_id = text_of(sandbox->run_id),
      .working_dir = {sandbox->working_dir, strlen(sandbox->working_dir)},
      .network = &network};
  return sandbox->spare ? SANDHOST_OK : vice_make(call, &request, network.mode, &sandbox->spare);
}

static int32_t change_network(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              const struct sandhost_network *network) {
  if (vice_host->cancelled(call)) {
    bool late = vice_host->wait(call, -1, 0, 0) == SANDHOST_TIMEOUT;
    return vice_fail(call, late ? SANDHOST_TIMEOUT : SANDHOST_CANCELLED, "the call is over");
  }
  if (has_vice("fragile") && vice_host->wait(call, -1, 0, VICE_MOMENT) == SANDHOST_CANCELLED) {
    sandbox->ended = true;
    return vice_fail(call, SANDHOST_CANCELLED, "cancelled");
  }
  if (network->mode == sandbox->mode || has_vice("stuck")) {
    return SANDHOST_OK;
  }
  int32_t status = vice_spare(call, sandbox);
  if (status == SANDHOST_OK) {
    struct sandhost_sandbox *other = sandbox->spare;
    sandbox->spare = sandbox->base;
    sandbox->base = other;
    sandbox->mode = network->mode;
  }
  return status;
}

static int32_t extras_set_network(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                  const struct sandhost_network *network) {
  struct vice_passage passage;
  int32_t status = vice_enter(&passage, call, sandbox, "set_network_policy");
  return vice_leave(&passage,
                    status == SANDHOST_OK ? change_network(call, sandbox, network) : status);
}

static int32_t extras_probe(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_probe *request, uint32_t *ret_verdict) {
  struct vice_passage passage;
  int32_t status = vice_enter(&passage, call, sandbox, "probe");
  if (status == SANDHOST_OK) {
    status = vice_base->probe(call, sandbox->base, request, ret_verdict);
  }
  if (status == SANDHOST_OK && has_vice("hopeful")) {
    *ret_verdict = SANDHOST_PROBE_REACHED;
  }
  if (status == SANDHOST_OK && has_vice("hopeless")) {
    *ret_verdict = SANDHOST_PROBE_BLOCKED;
  }
  return vice_leave(&passage, status);
}

/* ---- What is enforced ------------------------------------------------------------------------------------------------------ */

#define MOST_SETTINGS 64

/* What the other provider declares, and behind it that there are snapshots. */
static void declare_snapshots(struct sandhost_provider *table) {
  static struct sandhost_enforces all[MOST_SETTINGS];
  size_t count =
      table->enforces_count < MOST_SETTINGS - 1 ? table->enforces_count : MOST_SETTINGS - 2;
  memcpy(all, table->enforces, count * sizeof *all);
  all[count++] = (struct sandhost_enforces){SANDHOST_SETTING_SNAPSHOT, SANDHOST_LEVEL_ENFORCED};
  if (has_vice("promising")) {
    all[count++] = (struct sandhost_enforces){SANDHOST_SETTING_SECRETS, SANDHOST_LEVEL_ENFORCED};
  }
  table->enforces = all;
  table->enforces_count = count;
}

static int32_t extras_enforces_now(struct sandhost_call *call, struct sandhost_instance *instance,
                                   uint32_t *levels, size_t count) {
  int32_t status = vice_base->enforces_now(call, instance, levels, vice_base->enforces_count);
  for (size_t i = vice_base->enforces_count; i < count; i++) {
    levels[i] = SANDHOST_LEVEL_ENFORCED;
  }
  if (has_vice("boastful")) {
    levels[count - 1] += 10;
  } else if (has_vice("secretive")) {
    levels[count - 1] = SANDHOST_LEVEL_CHECKED;
  } else if (has_vice("overrunning")) {
    levels[count] = SANDHOST_LEVEL_ENFORCED;
  } else if (has_vice("undecided")) {
    return vice_fail(call, SANDHOST_UNAVAILABLE, "nobody knows");
  }
  return status;
}

void vice_extras(struct sandhost_provider *table) {
  declare_snapshots(table);
  table->enforces_now = vice_base->enforces_now ? extras_enforces_now : NULL;
  table->snapshot = extras_snapshot;
  table->delete_snapshot = extras_delete_snapshot;
  table->sweep = extras_sweep;
  table->set_network_policy = extras_set_network;
  table->probe = vice_base->probe ? extras_probe : NULL;
}
