/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c: threads for file operations, and their bounded ways in and out. */
#include "worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK (1024u * 1024u)           /* only what is used of it is ever there */
#define PIECE (128u * 1024u)            /* of one DATA frame */
#define CREDIT_BATCH (GUEST_WINDOW / 4) /* consumed bytes that are told together */

struct worker {
  struct request base;
  worker_function function;
  unsigned char *parameters;
  size_t parameters_length;
  pthread_cond_t changed; /* with guest_lock: input, credit, room, cancel */
  unsigned char *input;   /* received and not yet read: at most a window */
  size_t input_from;
  size_t input_to;
  size_t consumed; /* not yet credited */
  int ended;       /* END was received */
  int cancelled;
  int done;
};

static void worker_data(struct request *request, const unsigned char *data, size_t length) {
  struct worker *worker = (struct worker *)(void *)request;
  if (worker->ended || worker->input_to - worker->input_from + length > GUEST_WINDOW) {
    return; /* the host keeps its window; what it does not keep is not kept here */
  }
  if (worker->input_to + length > 2 * GUEST_WINDOW) {
    memmove(worker->input, worker->input + worker->input_from,
            worker->input_to - worker->input_from);
    worker->input_to -= worker->input_from;
    worker->input_from = 0;
  }
  memcpy(worker->input + worker->input_to, data, length);
  worker->input_to += length;
  pthread_cond_signal(&worker->changed);
}

static void worker_end(struct request *request) {
  struct worker *worker = (struct worker *)(void *)request;
  worker->ended = 1;
  pthread_cond_signal(&worker->changed);
}

static void worker_credited(struct request *request) {
  pthread_cond_signal(&((struct worker *)(void *)request)->changed);
}

static void worker_cancel(struct request *request) {
  struct worker *worker = (struct worker *)(void *)request;
  worker->cancelled = 1;
  pthread_cond_signal(&worker->changed);
}

static void worker_free(struct worker *worker) {
  pthread_cond_destroy(&worker->changed);
  free(worker->input);
  free(worker->parameters);
  free(worker);
}

static void *worker_main(void *data) {
  struct worker *worker = data;
  struct guest_reader reader = {.data = worker->parameters, .left = worker->parameters_length};
  worker->function(worker, &reader);
  worker_free(worker);
  return NULL;
}

static int start(struct worker *worker) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK);
  int failed = pthread_create(&thread, &attributes, worker_main, worker);
  pthread_attr_destroy(&attributes);
  return failed;
}

static int takes_input(uint8_t operation) {
  return operation == GUEST_WRITE_FILE || operation == GUEST_UPLOAD ||
         operation == GUEST_DOWNLOAD || operation == GUEST_CHANGES;
}

void worker_open(uint32_t id, uint8_t operation, const unsigned char *parameters, size_t length,
                 worker_function function) {
  struct worker *worker = calloc(1, sizeof *worker);
  if (!worker) {
    stream_done(id, SANDHOST_NO_MEMORY, "the guest has no memory left", NULL, 0);
    return;
  }
  worker->base = (struct request){.id = id,
                                  .operation = operation,
                                  .credit = GUEST_WINDOW,
                                  .data = worker_data,
                                  .end = worker_end,
                                  .credited = worker_credited,
                                  .cancel = worker_cancel};
  worker->function = function;
  pthread_cond_init(&worker->changed, NULL);
  worker->parameters = malloc(length + 1);
  worker->parameters_length = length;
  worker->input = takes_input(operation) ? malloc(2 * (size_t)GUEST_WINDOW) : NULL;
  if (!worker->parameters || (takes_input(operation) && !worker->input) ||
      request_add(&worker->base) < 0) {
    stream_done(id, SANDHOST_LIMIT, "the guest has too many requests open, or no memory", NULL, 0);
    worker_free(worker);
    return;
  }
  memcpy(worker->parameters, parameters, length);
  worker->ended = !worker->input;
  if (start(worker) != 0) {
    request_remove(&worker->base);
    stream_done(id, SANDHOST_LIMIT, "the sandbox allows no more threads", NULL, 0);
    worker_free(worker);
  }
}

ssize_t worker_read(struct worker *worker, void *bytes, size_t room) {
  ssize_t count = -1;
  pthread_mutex_lock(&guest_lock);
  while (!worker->cancelled && worker->input_from == worker->input_to && !worker->ended) {
    pthread_cond_wait(&worker->changed, &guest_lock);
  }
  if (!worker->cancelled) {
    size_t there = worker->input_to - worker->input_from;
    size_t take = there < room ? there : room;
    if (take > 0) {
      memcpy(bytes, worker->input + worker->input_from, take);
    }
    worker->input_from += take;
    worker->consumed += take;
    if (worker->input_from == worker->input_to) {
      worker->input_from = worker->input_to = 0;
    }
    if (worker->consumed >= CREDIT_BATCH && !worker->ended) {
      stream_credit(worker->base.id, worker->consumed);
      worker->consumed = 0;
    }
    count = (ssize_t)take;
  }
  pthread_mutex_unlock(&guest_lock);
  return count;
}

int worker_write(struct worker *worker, const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  pthread_mutex_lock(&guest_lock);
  while (length > 0 && !worker->cancelled) {
    if (worker->base.credit <= 0 || !stream_has_room()) {
      pthread_cond_wait(&worker->changed, &guest_lock);
      continue;
    }
    size_t piece = length < PIECE ? length : PIECE;
    if ((int64_t)piece > worker->base.credit) {
      piece = (size_t)worker->base.credit;
    }
    worker->base.credit -= (int64_t)piece;
    stream_send(GUEST_DATA, GUEST_OUT, worker->base.id, at, piece);
    at += piece;
    length -= piece;
  }
  int result = worker->cancelled ? -1 : 0;
  pthread_mutex_unlock(&guest_lock);
  return result;
}

int worker_is_cancelled(struct worker *worker) {
  pthread_mutex_lock(&guest_lock);
  int cancelled = worker->cancelled;
  pthread_mutex_unlock(&guest_lock);
  return cancelled;
}

int worker_is_alone(void) {
  pthread_mutex_lock(&guest_lock);
  int alone = !command_any_alive();
  pthread_mutex_unlock(&guest_lock);
  return alone;
}

static void finish(struct worker *worker, int32_t status, const char *message, const void *results,
                   size_t length) {
  pthread_mutex_lock(&guest_lock);
  if (!worker->done) {
    worker->done = 1;
    request_remove(&worker->base);
    if (worker->cancelled && status != SANDHOST_OK) {
      status = SANDHOST_CANCELLED;
    }
    stream_done(worker->base.id, status, message, results, length);
  }
  pthread_mutex_unlock(&guest_lock);
}

void worker_done(struct worker *worker, int32_t status, const char *message) {
  finish(worker, status, message, NULL, 0);
}

void worker_done_results(struct worker *worker, const void *results, size_t length) {
  finish(worker, SANDHOST_OK, NULL, results, length);
}

void worker_fail(struct worker *worker, int32_t status, const char *format, ...) {
  char text[GUEST_MAX_MESSAGE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  finish(worker, status, text, NULL, 0);
}
