/* SPDX-License-Identifier: Apache-2.0 */
/* instance.h: the provider's instance and sandbox. */
#ifndef SANDHOST_BUBBLEWRAP_INSTANCE_H
#define SANDHOST_BUBBLEWRAP_INSTANCE_H

#include "cgroup.h"
#include "guest-sandbox.h"
#include "layout.h"
#include "spawner.h"

#include <semaphore.h>

struct sandhost_instance {
  const struct sandhost_host *host; /* constant, as is all down to guest_fd */
  char *bwrap_option;               /* NULL: to be searched for */
  uint64_t workdir_size;
  uint64_t tmp_size;
  uint64_t pids_limit;
  char *guest;  /* path; NULL: there is none */
  int guest_fd; /* the same program, opened as a path; or -1 */

  sem_t starts; /* one for each create that may have a sandbox's files open */

  pthread_mutex_t lock; /* guards what follows; what is made once stays and is constant then */
  CgroupPlace *place;
  Layout *layout;
  Spawner *spawner;
  int filter_fd; /* seccomp.h; -1: not made yet */
  char *bwrap;
  gboolean swept;
  gboolean disable_userns; /* until bwrap says that it cannot */
  GHashTable *keys;        /* of the sandboxes that are there; each is its sandbox's own string */
};

struct sandhost_sandbox {
  struct guest_sandbox guest;         /* first, as guest-sandbox.h wants it */
  Cgroup *cgroup;                     /* owned; NULL: no limit needs one. Constant */
  struct sandhost_instance *instance; /* constant, as is key */
  char *key;                          /* owned; NULL: none was given */
};

/* Where control groups can be made; looked for once. Borrowed. */
const CgroupPlace *instance_place(struct sandhost_instance *instance);

/* Notes that a sandbox of this key is there, and borrows the string. FALSE: there is one of that key already. */
gboolean instance_take_key(struct sandhost_instance *instance, char *key);
/* The key may be used again. No error where this string was not noted, or no longer is; NULL is allowed. */
void instance_free_key(struct sandhost_instance *instance, const char *key);

/* The contract's create. */
int32_t bubblewrap_create(struct sandhost_call *call, struct sandhost_instance *instance,
                          const struct sandhost_create *request,
                          struct sandhost_sandbox **ret_sandbox);

#endif
