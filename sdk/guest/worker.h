/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h: an operation on files, in a thread of its own, written as plain blocking code. */
#ifndef SANDHOST_GUEST_WORKER_H
#define SANDHOST_GUEST_WORKER_H

#include "guest.h"

struct worker;

/* Does the whole operation and ends it with worker_done. */
typedef void (*worker_function)(struct worker *worker, struct guest_reader *parameters);

/* Starts the thread; under the lock. The parameters are copied. */
void worker_open(uint32_t id, uint8_t operation, const unsigned char *parameters, size_t length,
                 worker_function function);

/* The next bytes of the IN channel, waiting for them: the count, 0 at the end, -1 when cancelled.
 * */
ssize_t worker_read(struct worker *worker, void *bytes, size_t room);
/* Sends on the OUT channel, waiting for credit: 0, -1 when cancelled. */
int worker_write(struct worker *worker, const void *bytes, size_t length);
int worker_is_cancelled(struct worker *worker);
/* Whether no process that a command started is alive, which could be writing to files. */
int worker_is_alone(void);

/* Ends the operation: once, last. message is formatted; results may be NULL. */
void worker_done(struct worker *worker, int32_t status, const char *message);
void worker_done_results(struct worker *worker, const void *results, size_t length);
void worker_fail(struct worker *worker, int32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The operations. */
void file_read(struct worker *worker, struct guest_reader *parameters);
void file_write(struct worker *worker, struct guest_reader *parameters);
void tar_in(struct worker *worker, struct guest_reader *parameters);
void tar_out(struct worker *worker, struct guest_reader *parameters);
void changes_list(struct worker *worker, struct guest_reader *parameters);
void probe_connect(struct worker *worker, struct guest_reader *parameters);

#endif
