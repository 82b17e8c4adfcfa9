/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vice.h: a provider that keeps the whole contract, around another one, and breaks one clause of it where it is told to.
 *
 * VICE_BASE names the file of the provider around which it is; VICE the vice (none: it is without fault). What the other
 * provider has not (snapshots, sweep, a network that can be switched) is here, so that the vices can spoil it. Each vice
 * is a few lines behind has_vice("NAME"); tests/contract/suite-fails.sh has the list, and which check finds which.
 */
#ifndef SANDHOST_CONTRACT_VICE_H
#define SANDHOST_CONTRACT_VICE_H

#include <pthread.h>
#include <sandhost/provider.h>
#include <stdbool.h>
#include <string.h>

extern const struct sandhost_host *vice_host;        /* the suite's */
extern const struct sandhost_provider *vice_base;    /* the other provider */
extern struct sandhost_instance *vice_base_instance; /* the first that is open */

bool has_vice(const char *name);

struct sandhost_sandbox {
  struct sandhost_sandbox *base;  /* of the other provider, as is spare */
  struct sandhost_sandbox *spare; /* the same with the other network, once it was switched; NULL */
  uint32_t mode;                  /* base's network */
  char *key, *run_id, *working_dir, *ref;
  bool ended;    /* terminated or swept */
  bool uploaded; /* something was */
  bool has_memory_limit;
  int64_t born;
  int handles; /* one more for each attach; atomic */
  int terminations;
  int running; /* commands; atomic */
  pthread_mutex_t one_at_a_time;
  struct sandhost_sandbox *next; /* of all that are not released */
};

int64_t vice_now(void); /* CLOCK_MONOTONIC */

/* fail(status, message). */
int32_t vice_fail(struct sandhost_call *call, int32_t status, const char *message);
/* What the other provider does not hear of the call, nor the host of it, while the thread's present call lasts. */
struct vice_ears {
  bool no_cancel, no_deadline;
  bool no_error;       /* fail is not passed on */
  bool no_lost_reason; /* nor SANDHOST_REPORT_LOST */
  bool no_ref;         /* nor SANDHOST_REPORT_REF */
};
extern _Thread_local struct vice_ears vice_ears;

/* SANDHOST_LOST, with a reason, where it has ended. */
int32_t vice_look(struct sandhost_call *call, const struct sandhost_sandbox *sandbox);

/* sh -c script in the other provider's sandbox; its stdin is input, its stdout is appended to *output (malloc); both may be
 * NULL. The status, or SANDHOST_INTERNAL where it does not exit with 0. */
int32_t vice_run(struct sandhost_call *call, struct sandhost_sandbox *base, const char *script,
                 const char *input, size_t input_length, char **output, size_t *output_length);

/* The same, without input and output, whether the call is over or not. */
void vice_run_anyway(struct sandhost_call *call, struct sandhost_sandbox *base, const char *script);

/* An operation on its way through the wrapper. */
struct vice_passage {
  struct sandhost_call *call;
  struct sandhost_sandbox *sandbox;
  bool reads, writes; /* it is read_file, write_file */
  bool over;          /* its call was, when it came */
  bool ended;         /* the sandbox was */
};
/* Begins it: as vice_look. */
int32_t vice_enter(struct vice_passage *passage, struct sandhost_call *call,
                   struct sandhost_sandbox *sandbox, const char *operation);
/* Ends it, with what it is to return. */
int32_t vice_leave(const struct vice_passage *passage, int32_t status);

/* How long some take in addition, so that a cancel on the way comes before they are done; ns. */
#define VICE_MOMENT ((int64_t)200000000)

/* Opens a file and forgets it; flags: O_CLOEXEC or none. */
void vice_open(int flags);

/* A sink whose operation has returned; write is NULL where there is none. */
extern struct sandhost_sink vice_clung;

/* The operations, by file. */
void vice_life(struct sandhost_provider *table);
void vice_commands(struct sandhost_provider *table);
void vice_files(struct sandhost_provider *table);
void vice_extras(struct sandhost_provider *table);
/* Around all of them: "THING-in-OPERATION" does to the process what no provider may, in that one. */
void vice_manners(struct sandhost_provider *table);
void vice_misbehave(const char *operation);
/* A sandbox of the snapshot's files; empty: none. */
int32_t vice_restore(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                     struct sandhost_text snapshot);
/* create of the other provider with the network. */
int32_t vice_make(struct sandhost_call *call, const struct sandhost_create *request, uint32_t mode,
                  struct sandhost_sandbox **ret_base);
/* Makes sure of the spare one. Two sandboxes, of which one has the network, stand in the place of one that is switched; files
 * stay where they were, which nobody asks about here. */
int32_t vice_spare(struct sandhost_call *call, struct sandhost_sandbox *sandbox);
/* All that are not released; hold the lock. */
extern pthread_mutex_t vice_lock;
extern struct sandhost_sandbox *vice_all;

#endif
