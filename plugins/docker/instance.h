/* SPDX-License-Identifier: Apache-2.0 */
/* instance.h: the provider's instance (one configured engine) and its sandboxes (one container each). */
#ifndef SANDHOST_DOCKER_INSTANCE_H
#define SANDHOST_DOCKER_INSTANCE_H

#include "engine.h"
#include "image.h"

#include <pthread.h>
#include <string.h>

enum docker_path { DOCKER_PATH_AUTO, DOCKER_PATH_GUEST, DOCKER_PATH_PLAIN };

/*
 * Every call of the contract is handed on as a CallRelay (call-relay.h), so that what ended a container is told in
 * one place; host is therefore the relay's table everywhere in this plugin.
 */
struct sandhost_instance {
  const struct sandhost_host *host; /* constant, as is all down to guest_dir */
  Engine *engine;
  char *image; /* option */
  uint32_t uid;
  uint32_t gid;
  uint64_t workdir_size;
  uint64_t tmp_size;
  uint64_t pids_limit;
  gboolean may_pull;
  gboolean network_switchable;
  char *runtime; /* NULL: the engine's own */
  enum docker_path path;
  char *guest_dir; /* folder of sandhost-guest-MACHINE; NULL: none installed */

  pthread_mutex_t lock; /* guards what follows */
  char *
      guest_volume; /* name of the engine's volume that holds the guest, once it is known to be filled */
  gboolean
      guest_readable; /* the engine's runtime has to read the guest to run it, as gVisor does */
  unsigned verified;  /* VERIFIED_*: what a container was looked at for, and what was in force */
};

/* Whether a runtime of that name (NULL: the engine's own) is gVisor's, as far as a name tells. */
static inline gboolean runtime_is_gvisor(const char *name) {
  return name && strstr(name, "runsc");
}

struct sandhost_sandbox {
  struct sandhost_instance *instance; /* borrowed */
  const struct sandhost_host *host;
  char *id;  /* of the container */
  char *key; /* the host's */
  char *run_id;
  char *working_dir;
  GPtrArray *environment; /* of char *, "NAME=value": what the manifest adds */
  GuestClient *client;    /* NULL: the plain path serves this sandbox */
  int stream_fd;          /* the client's; only where there is one */
  ByteChannel *lifeline;  /* the plain path's: while it is open, the container lives; NULL */

  pthread_mutex_t lock; /* guards what follows */
  char *lost_reason;
  gboolean gone; /* removed, or known to be */
  int64_t
      memory_told; /* the engine's time when a command was last told to have used up the memory; 0: never */
};

/* ---- create.c ---- */
int32_t docker_create(struct sandhost_call *call, struct sandhost_instance *instance,
                      const struct sandhost_create *request, struct sandhost_sandbox **ret_sandbox);

/* ---- container.c: what a container is doing, and its end ---- */

/* Why the container is gone or dead, from the engine, in words for a person ("the container was removed", "its memory
 * was used up", "its main process ended with signal 9"). Owned. NULL: it lives. Sets no error. */
char *container_end_reason(struct sandhost_sandbox *sandbox, struct sandhost_call *call);
/* Removes a container by id or name with its volumes; one that is gone is no error. */
int32_t container_remove(Engine *engine, struct sandhost_call *call, const char *id);
/* The same when something failed or the call is over: quietly, with a deadline of its own. */
int32_t container_clean_up(struct sandhost_instance *instance, struct sandhost_call *call,
                           const char *id);
/* The same for one that the engine was asked for and whose answer never came: it may be made yet, so it is waited for, as
 * long as a call that is over may take; after that the failure is said to have happened, perhaps. */
int32_t container_clean_up_unheard(struct sandhost_instance *instance, struct sandhost_call *call,
                                   const char *name);
/* Whether it is 64 hexadecimal digits, as the engine's ids are. */
gboolean container_is_id(const char *text);
int32_t docker_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox);
void docker_release(struct sandhost_sandbox *sandbox);

/* ---- network.c, snapshot.c, sweep.c ---- */
int32_t docker_set_network_policy(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                  const struct sandhost_network *network);
int32_t docker_snapshot(struct sandhost_call *call, struct sandhost_sandbox *sandbox);
int32_t docker_delete_snapshot(struct sandhost_call *call, struct sandhost_instance *instance,
                               struct sandhost_text id);
/* Fills the working directory of a running container from the snapshot that its image is; nothing where the image is none. */
int32_t snapshot_restore(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *image_id);
int32_t docker_sweep(struct sandhost_call *call, struct sandhost_instance *instance,
                     const struct sandhost_sweep *request, const struct sandhost_orphan_sink *sink);

/* ---- plain.c: the contract's operations without a guest, through the engine's exec and archive calls ---- */
int32_t plain_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                      const struct sandhost_execute *request,
                      const struct sandhost_observer *observer, struct sandhost_result *ret_result);
int32_t plain_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                        struct sandhost_path path, const struct sandhost_sink *sink);
int32_t plain_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                         struct sandhost_path path, uint32_t mode,
                         const struct sandhost_source *source);
int32_t plain_upload(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                     struct sandhost_path dir, const struct sandhost_source *tar);
int32_t plain_download(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                       struct sandhost_path dir, const struct sandhost_path *names,
                       size_t name_count, const struct sandhost_sink *tar);
int32_t plain_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                      const struct sandhost_changes *request,
                      const struct sandhost_entry_sink *sink);
int32_t plain_signal(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                     uint64_t execution, int32_t signal);

/* Labels on containers, guest volumes' helpers and snapshots. */
#define DOCKER_LABEL_SANDBOX "omnicoreagent.sandbox"
#define DOCKER_LABEL_SESSION "omnicoreagent.session"
#define DOCKER_LABEL_RUN "omnicoreagent.run"

#endif
