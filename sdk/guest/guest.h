/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest.h: the state of sandhost-guest, and what its parts call of each other.
 *
 * One thread, the loop, owns the control stream, the commands and the keepers. A file operation
 * runs in a thread of its own (worker.h). Everything that both touch (the table of requests,
 * credits, the outgoing queue) is guarded by one lock, guest_lock; the loop holds it while it
 * dispatches, and no system call that can block is made under it.
 */
#ifndef SANDHOST_GUEST_GUEST_H
#define SANDHOST_GUEST_GUEST_H

#include <pthread.h>
#include <sandhost/guest-protocol-private.h>
#include <sandhost/provider.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

extern pthread_mutex_t guest_lock;

/* ---- Requests -------------------------------------------------------------------------------- */

struct request {
  uint32_t id;
  uint8_t operation;
  int64_t credit; /* DATA bytes that the host will still take */
  /* Called by the loop under the lock. */
  void (*data)(struct request *request, const unsigned char *data, size_t length);
  void (*end)(struct request *request);
  void (*credited)(struct request *request);
  void (*cancel)(struct request *request);
};

struct request *request_find(uint32_t id);
/* 0, or -1 when the table is full. */
int request_add(struct request *request);
void request_remove(struct request *request);
/* Calls credited for every request: the queue has room again. */
void request_wake_all(void);

/* ---- The stream (stream.c) ------------------------------------------------------------------- */

/* More than this in the queue, and nothing but answers is added. */
#define STREAM_ROOM (1u << 20)

int stream_init(int in, int out);
/* Queues one frame; writes at once what the other side takes. Under the lock; never fails, never
 * blocks. */
void stream_send(uint8_t kind, uint8_t channel, uint32_t request, const void *payload,
                 size_t length);
/* Queues DONE with an operation's results behind the message. */
void stream_done(uint32_t request, int32_t status, const char *message, const void *results,
                 size_t length);
void stream_credit(uint32_t request, size_t bytes);
/* Whether the queue has room for data. */
int stream_has_room(void);
/* The loop's part. -1: the stream is over. */
int stream_receive(void);
int stream_flush(void);
int stream_in_fd(void);
int stream_out_fd(void);
/* Whether something waits to be written. */
int stream_is_pending(void);

/* Opens a request whose parameters are complete; under the lock. */
void guest_open(uint32_t id, uint8_t operation, const unsigned char *parameters, size_t length);

/* ---- The loop (loop.c) ----------------------------------------------------------------------- */

struct source {
  int fd;
  uint32_t events; /* watched now; 0: not in the set */
  void (*ready)(struct source *source, uint32_t events);
};

int loop_init(void);
void loop_watch(struct source *source, uint32_t events);
/* Closes the descriptor, and frees the memory at container when this round is over. */
void loop_drop(struct source *source);
void loop_free_later(void *container);
/* Makes the loop look at the queue; from any thread. */
void loop_wake(void);
/* Runs until the stream ends. */
void loop_run(void);

/* ---- Commands (command.c), keepers (keeper.c) ------------------------------------------------ */

void command_open(uint32_t id, struct guest_reader *parameters);
void command_signal(struct request *request, int number);
/* Nanoseconds until the next limit passes; -1: there is none. */
int64_t command_next_deadline(void);
void command_check_deadlines(void);
/* A child of the guest that is no keeper has ended. */
void command_reaped(pid_t pid, int status, const struct rusage *usage);
/* Whether a command, or something that one left behind, may be changing files now; under the lock.
 * */
int command_any_alive(void);
/* Counts the commands so far; under the lock. */
uint64_t command_count(void);

int keeper_init(void);
/* Kills all that the guest ever started; the last thing it does. */
void keeper_kill_everything(void);
/* Hears what every keeper has said so far. */
void keeper_listen_all(void);
/* A child has ended: 1 when it was a keeper. */
int keeper_reaped(pid_t pid);
int keeper_is(pid_t pid);

/* ---- Memory (memory.c) ----------------------------------------------------------------------- */

void memory_init(void);
/* How often the kernel has killed something here for want of memory; 0 where that is not known. */
uint64_t memory_kills(void);

int64_t guest_now(void); /* CLOCK_MONOTONIC nanoseconds */
extern int guest_is_init;
extern int guest_null;                 /* /dev/null, or an empty pipe */
extern struct rlimit guest_file_limit; /* that of commands; the guest's own is higher */

#endif
