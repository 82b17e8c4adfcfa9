/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweeper.c: its sandboxes outlive the host. Each is a file of the folder: the name is the ref, the content the run,
 * the time of change its age. Commands as sh -c gives them: hang, anything else succeeds.
 *
 * The option fault makes sweep break its word: other-run, no-ref, control, kept, dry, many, unnamed; or fail: stuck; and
 * create: slow (until cancelled), nap (1.2 seconds), unpulled.
 */
#include "good.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>

enum { OPTION_FOLDER, OPTION_FAULT, OPTION_PULL, OPTION_COUNT };

static const struct sandhost_option options[OPTION_COUNT] = {
    {.size = sizeof options[0],
     .name = "folder",
     .type = SANDHOST_OPTION_TEXT,
     .environment = "SWEEPER_FOLDER",
     .help = "Where the sandboxes are"},
    {.size = sizeof options[0],
     .name = "fault",
     .type = SANDHOST_OPTION_TEXT,
     .environment = "SWEEPER_FAULT",
     .help = "What goes wrong"},
    {.size = sizeof options[0],
     .name = "pull",
     .type = SANDHOST_OPTION_TEXT,
     .fallback = "if_missing",
     .choices = "if_missing|never",
     .help = "When an image is pulled"},
};

/* A file's owner, kept beside good.h's own: the first of the two lists finds it by address. */
struct owned {
  const void *owner;
  char *text[OPTION_COUNT]; /* of an instance; of a sandbox text[0] is its file */
  struct owned *next;
};
static struct owned *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct owned *owned_new(const void *owner) {
  struct owned *owned = calloc(1, sizeof *owned);
  owned->owner = owner;
  pthread_mutex_lock(&lock);
  owned->next = all;
  all = owned;
  pthread_mutex_unlock(&lock);
  return owned;
}

static struct owned *owned_by(const void *owner) {
  pthread_mutex_lock(&lock);
  struct owned *owned = all;
  while (owned && owned->owner != owner) {
    owned = owned->next;
  }
  pthread_mutex_unlock(&lock);
  return owned;
}

static void owned_free(const void *owner) {
  pthread_mutex_lock(&lock);
  struct owned **at = &all;
  while (*at && (*at)->owner != owner) {
    at = &(*at)->next;
  }
  struct owned *owned = *at;
  if (owned) {
    *at = owned->next;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
      free(owned->text[i]);
    }
    free(owned);
  }
  pthread_mutex_unlock(&lock);
}

static const char *option_of(const struct sandhost_instance *instance, int option) {
  const struct owned *owned = owned_by(instance);
  return owned && owned->text[option] ? owned->text[option] : "";
}

static int has_fault(const struct sandhost_instance *instance, const char *fault) {
  return strcmp(option_of(instance, OPTION_FAULT), fault) == 0;
}

static int32_t sweeper_open(struct sandhost_call *call, const struct sandhost_open *request,
                            struct sandhost_instance **ret_instance) {
  int32_t status = good_open(call, request, ret_instance);
  struct owned *owned = owned_new(*ret_instance);
  for (size_t i = 0; i < request->value_count; i++) {
    owned->text[i] = request->values[i].set
                         ? strndup(request->values[i].text.data, request->values[i].text.length)
                         : NULL;
  }
  return status;
}

static void sweeper_close(struct sandhost_instance *instance) {
  owned_free(instance);
  good_close(instance);
}

static int32_t sweeper_create(struct sandhost_call *call, struct sandhost_instance *instance,
                              const struct sandhost_create *request,
                              struct sandhost_sandbox **ret_sandbox) {
  if (has_fault(instance, "slow")) {
    good_host->progress(call, good_text("pulling layer 1 of 2"));
    good_host->progress(call, good_text("pulling layer 2 of 2"));
    return good_hang(call);
  }
  if (has_fault(instance, "unpulled") && strcmp(option_of(instance, OPTION_PULL), "never") == 0) {
    return good_fail(call, SANDHOST_NOT_FOUND, "there is no image tiny");
  }
  if (has_fault(instance, "nap")) {
    good_host->wait(call, -1, 0, 1200000000);
  }
  int32_t status = good_create(call, instance, request, ret_sandbox);
  const char *folder = option_of(instance, OPTION_FOLDER);
  if (*folder) {
    char *file = NULL;
    if (asprintf(&file, "%s/%.*s", folder, (int)request->key.length, request->key.data) >= 0) {
      FILE *out = fopen(file, "we");
      if (out) {
        fprintf(out, "%.*s", (int)request->run_id.length, request->run_id.data);
        fclose(out);
      }
      owned_new(*ret_sandbox)->text[0] = file;
    }
  }
  good_host->report(call, SANDHOST_REPORT_REF, request->key);
  return status;
}

static int32_t sweeper_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               const struct sandhost_execute *request,
                               const struct sandhost_observer *observer,
                               struct sandhost_result *ret_result) {
  (void)sandbox;
  if (observer->started) {
    observer->started(observer->user, 1);
  }
  ret_result->ended = SANDHOST_ENDED_EXIT;
  return request->argc == 3 && strcmp(request->argv[2].data, "hang") == 0 ? good_hang(call)
                                                                          : SANDHOST_OK;
}

static int32_t sweeper_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  const struct owned *owned = owned_by(sandbox);
  if (owned) {
    unlink(owned->text[0]);
  }
  return good_terminate(call, sandbox);
}

static void sweeper_release(struct sandhost_sandbox *sandbox) {
  owned_free(sandbox);
  good_release(sandbox);
}

static int32_t sweeper_attach(struct sandhost_call *call, struct sandhost_instance *instance,
                              struct sandhost_text ref, struct sandhost_sandbox **ret_sandbox) {
  char *file = NULL;
  if (asprintf(&file, "%s/%.*s", option_of(instance, OPTION_FOLDER), (int)ref.length, ref.data) <
      0) {
    return good_fail(call, SANDHOST_NO_MEMORY, "no memory");
  }
  if (access(file, F_OK) < 0) {
    free(file);
    return good_fail(call, SANDHOST_NOT_FOUND, "it is gone");
  }
  *ret_sandbox = calloc(1, sizeof **ret_sandbox);
  owned_new(*ret_sandbox)->text[0] = file;
  return SANDHOST_OK;
}

/* ---- sweep ------------------------------------------------------------------------------------- */

static int is_kept(const struct sandhost_sweep *request, const char *ref) {
  for (size_t i = 0; i < request->keep_count; i++) {
    if (request->keep[i].length == strlen(ref) &&
        memcmp(request->keep[i].data, ref, request->keep[i].length) == 0) {
      return 1;
    }
  }
  return 0;
}

static int64_t age_of(const char *file) {
  struct stat about;
  struct timespec now;
  if (stat(file, &about) < 0) {
    return -1;
  }
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)(now.tv_sec - about.st_mtim.tv_sec) * 1000000000;
}

static int32_t sweep_one(const struct sandhost_instance *instance,
                         const struct sandhost_sweep *request,
                         const struct sandhost_orphan_sink *sink, const char *file,
                         const char *ref) {
  char run[300] = "";
  FILE *in = fopen(file, "re");
  if (in) {
    run[fread(run, 1, sizeof run - 1, in)] = '\0';
    fclose(in);
  }
  struct sandhost_orphan orphan = {
      .size = sizeof orphan, .ref = good_text(ref), .run_id = good_text(run), .age = age_of(file)};
  int other = request->run_id.length > 0 && strcmp(request->run_id.data, run) != 0;
  if ((other && !has_fault(instance, "other-run")) ||
      (is_kept(request, ref) && !has_fault(instance, "kept")) || orphan.age < request->min_age) {
    return SANDHOST_OK;
  }
  if (has_fault(instance, "no-ref")) {
    orphan.ref.length = 0;
  } else if (has_fault(instance, "control")) {
    orphan.ref = good_text("a\033[31mb");
  } else if (has_fault(instance, "unnamed")) {
    orphan.run_id = good_text("two\nlines");
  }
  orphan.removed = has_fault(instance, "dry") ||
                   (!request->dry_run && !has_fault(instance, "stuck") && unlink(file) == 0);
  int32_t status = SANDHOST_OK;
  for (long i = has_fault(instance, "many") ? 200000 : 1; i > 0 && status == SANDHOST_OK; i--) {
    status = sink->orphan(sink->user, &orphan);
  }
  return status;
}

static int32_t sweeper_sweep(struct sandhost_call *call, struct sandhost_instance *instance,
                             const struct sandhost_sweep *request,
                             const struct sandhost_orphan_sink *sink) {
  const char *folder = option_of(instance, OPTION_FOLDER);
  DIR *dir = opendir(*folder ? folder : "/nonexistent");
  int32_t status = SANDHOST_OK;
  const struct dirent *entry = NULL;
  good_log(request->dry_run ? "sweep dry" : "sweep");
  while (dir && status == SANDHOST_OK && (entry = readdir(dir))) {
    char *file = NULL;
    if (entry->d_name[0] != '.' && asprintf(&file, "%s/%s", folder, entry->d_name) >= 0) {
      status = sweep_one(instance, request, sink, file, entry->d_name);
      free(file);
    }
  }
  if (dir) {
    closedir(dir);
  }
  return status == SANDHOST_OK ? SANDHOST_OK : good_fail(call, SANDHOST_CANCELLED, "stopped");
}

static int32_t sweeper_snapshot(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  (void)sandbox;
  good_host->report(call, SANDHOST_REPORT_SNAPSHOT, good_text("snap-1"));
  return SANDHOST_OK;
}

static int32_t sweeper_delete_snapshot(struct sandhost_call *call,
                                       struct sandhost_instance *instance,
                                       struct sandhost_text id) {
  (void)instance;
  good_log(id.data);
  return strcmp(id.data, "locked") == 0 ? good_fail(call, SANDHOST_DENIED, "it is locked")
                                        : SANDHOST_OK;
}

GOOD_PLUGIN("sweeper", table.options = options; table.option_count = OPTION_COUNT;
            table.option_size = sizeof options[0]; table.open = sweeper_open;
            table.close = sweeper_close; table.create = sweeper_create;
            table.execute = sweeper_execute; table.terminate = sweeper_terminate;
            table.release = sweeper_release; table.attach = sweeper_attach;
            table.sweep = sweeper_sweep; table.snapshot = sweeper_snapshot;
            table.delete_snapshot = sweeper_delete_snapshot)
