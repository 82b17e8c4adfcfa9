/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive-copy.c: GET of one archive in a thread, PUT of another in the caller's, and a bounded
 * buffer between them.
 *
 * Either side may fail first, and then ends the other: the failure of the one that was ended says
 * nothing. So each side's failure is held back until it is known which was the cause. Nobody waits
 * on the buffer with a time limit: the requests have theirs, and wake the other side when they end.
 */
#include "archive-copy.h"

#include "call-relay.h"
#include "failure.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#define SECOND ((int64_t)1000000000)
/* An engine writes a large archive to a slow disk, or looks for a folder in it, without a word. */
#define COPY_SILENCE (300 * SECOND)
#define BUFFER ((size_t)256 * 1024)

/* One copy. */
struct copying {
  const struct archive_copy *copy; /* constant, as is all down to relay */
  TarFilter *filter;               /* the getting thread's */
  uint64_t taken;                  /* bytes of the archive so far; the getting thread's */
  struct call_relay relay;         /* the getting thread's own call */
  int32_t sink_status;             /* what stopped it from here; SANDHOST_OK: nothing */
  int32_t get_status;              /* of the getting thread; read once it is joined */

  pthread_mutex_t lock; /* guards what follows; nothing else is taken under it */
  pthread_cond_t changed;
  char *buffer;
  size_t begin;
  size_t length;
  gboolean whole;  /* the archive has ended properly */
  gboolean broken; /* it never will */
  gboolean closed; /* nobody reads any more */
};

/* ---- The buffer ------------------------------------------------------------------------------- */

/* FALSE: nobody reads any more. */
static gboolean buffer_write(void *user, const void *data, size_t length) {
  struct copying *copying = user;
  const char *at = data;
  pthread_mutex_lock(&copying->lock);
  while (length > 0 && !copying->closed) {
    size_t end = (copying->begin + copying->length) % BUFFER;
    size_t part = MIN(MIN(BUFFER - copying->length, BUFFER - end), length);
    if (part == 0) {
      pthread_cond_wait(&copying->changed, &copying->lock);
      continue;
    }
    memcpy(copying->buffer + end, at, part);
    copying->length += part;
    at += part;
    length -= part;
    pthread_cond_signal(&copying->changed);
  }
  gboolean open = !copying->closed;
  pthread_mutex_unlock(&copying->lock);
  return open;
}

/* The source of the PUT. */
static int64_t buffer_read(void *user, void *buffer, size_t length) {
  struct copying *copying = user;
  pthread_mutex_lock(&copying->lock);
  while (copying->length == 0 && !copying->whole && !copying->broken) {
    pthread_cond_wait(&copying->changed, &copying->lock);
  }
  size_t part = MIN(MIN(copying->length, BUFFER - copying->begin), length);
  gboolean broken = copying->broken;
  if (!broken) {
    memcpy(buffer, copying->buffer + copying->begin, part);
    copying->begin = (copying->begin + part) % BUFFER;
    copying->length -= part;
    pthread_cond_signal(&copying->changed);
  }
  pthread_mutex_unlock(&copying->lock);
  return broken ? -1 : (int64_t)part;
}

/* ---- Getting ---------------------------------------------------------------------------------- */

/* The sink of the GET. */
static int32_t take_archive(void *user, const void *data, size_t length) {
  struct copying *copying = user;
  struct sandhost_call *call = call_relay_call(&copying->relay);
  copying->taken += length;
  if (copying->taken > copying->copy->max_bytes) {
    copying->sink_status = fail_call(&call_relay_host, call, SANDHOST_LIMIT,
                                     "the folder %s holds more than %" G_GUINT64_FORMAT
                                     " bytes, files with holes counted in full",
                                     copying->copy->from_path, copying->copy->max_bytes);
    return copying->sink_status;
  }
  enum tar_filter_result result = tar_filter_take(copying->filter, data, length);
  if (result == TAR_FILTER_BROKEN) {
    copying->sink_status = fail_call(&call_relay_host, call, SANDHOST_PROTOCOL,
                                     "the engine's archive of %s is none of files and folders",
                                     copying->copy->from_path);
  }
  return result == TAR_FILTER_OK ? SANDHOST_OK : SANDHOST_CANCELLED;
}

static char *archive_path(const char *container, const char *path) {
  g_autofree char *escaped = engine_escape(path);
  return g_strdup_printf("/containers/%s/archive?path=%s", container, escaped);
}

static int32_t get_archive(struct copying *copying) {
  const struct archive_copy *copy = copying->copy;
  struct sandhost_call *call = call_relay_call(&copying->relay);
  /* The content of the folder, with the folder itself as ".": its name does not matter on the
   * other side. */
  g_autofree char *content = g_strconcat(copy->from_path, "/.", NULL);
  g_autofree char *path = archive_path(copy->from, content);
  struct sandhost_sink sink = {.size = sizeof sink, .user = copying, .write = take_archive};
  struct engine_request request = {
      .method = "GET", .path = path, .sink = &sink, .silence = COPY_SILENCE};
  g_autofree char *what = g_strdup_printf("cannot read the folder %s", copy->from_path);
  int32_t status = engine_ask(copy->engine, call, &request, 0, what, NULL);
  if (copying->sink_status != SANDHOST_OK) {
    return copying->sink_status;
  }
  if (status == SANDHOST_OK && !tar_filter_is_whole(copying->filter)) {
    status = fail_call(&call_relay_host, call, SANDHOST_CONFLICT,
                       "the engine's archive of %s has no end: something changed a file while it "
                       "was read; try again when no command runs",
                       copy->from_path);
  }
  return status;
}

static void *get_main(void *data) {
  struct copying *copying = data;
  copying->get_status = get_archive(copying);
  pthread_mutex_lock(&copying->lock);
  if (copying->get_status == SANDHOST_OK) {
    copying->whole = TRUE;
  } else {
    copying->broken = TRUE;
  }
  pthread_cond_signal(&copying->changed);
  pthread_mutex_unlock(&copying->lock);
  return NULL;
}

/* ---- Putting ---------------------------------------------------------------------------------- */

static int32_t put_archive(struct copying *copying, struct sandhost_call *call) {
  const struct archive_copy *copy = copying->copy;
  g_autofree char *path = archive_path(copy->to, copy->to_path);
  struct sandhost_source source = {.size = sizeof source, .user = copying, .read = buffer_read};
  struct engine_request request = {
      .method = "PUT", .path = path, .upload = &source, .silence = COPY_SILENCE};
  g_autofree char *what = g_strdup_printf("cannot write the folder %s", copy->to_path);
  return engine_ask(copy->engine, call, &request, 0, what, NULL);
}

/* 0, or an errno. The program's signals are for its own threads. */
static int start_thread(struct copying *copying, pthread_t *ret_thread) {
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  int error = pthread_create(ret_thread, NULL, get_main, copying);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return error;
}

/* Both are over: the failure that was the cause becomes the call's. */
static int32_t conclude(struct copying *copying, struct sandhost_call *call, int32_t put_status,
                        const char *put_failure) {
  const struct sandhost_host *host = copying->copy->host;
  /* A GET that was stopped because the PUT had ended is no cause, nor is a PUT whose source
   * broke. */
  gboolean get_was_stopped = copying->get_status != SANDHOST_OK && put_status != SANDHOST_OK &&
                             copying->get_status == SANDHOST_CANCELLED && copying->closed;
  if (copying->get_status != SANDHOST_OK && !get_was_stopped) {
    const char *text = copying->relay.failure;
    return fail_call(host, call, copying->get_status, "%s", text ? text : "cancelled");
  }
  if (put_status != SANDHOST_OK) {
    return fail_call(host, call, put_status, "%s", put_failure ? put_failure : "cancelled");
  }
  return SANDHOST_OK;
}

static int32_t run_copy(struct copying *copying, struct sandhost_call *call) {
  const struct archive_copy *copy = copying->copy;
  pthread_t thread;
  int error = start_thread(copying, &thread);
  if (error) {
    return fail_call_errno(copy->host, call, SANDHOST_NO_MEMORY, error, "cannot start a thread");
  }
  g_auto(CallRelay) put_relay = {.host = copy->host, .call = call, .quiet = TRUE};
  int32_t put_status = put_archive(copying, call_relay_call(&put_relay));
  pthread_mutex_lock(&copying->lock);
  /* closed tells a GET that was ended from one that had failed before. */
  copying->closed = !copying->broken;
  pthread_cond_signal(&copying->changed);
  pthread_mutex_unlock(&copying->lock);
  pthread_join(thread, NULL);
  return conclude(copying, call, put_status, put_relay.failure);
}

int32_t archive_copy(const struct archive_copy *copy, struct sandhost_call *call) {
  struct copying copying = {.copy = copy,
                            .relay = {.host = copy->host, .call = call, .quiet = TRUE},
                            .buffer = g_malloc(BUFFER)};
  pthread_mutex_init(&copying.lock, NULL);
  pthread_cond_init(&copying.changed, NULL);
  copying.filter = tar_filter_new(copy->owner, buffer_write, &copying);
  int32_t status = run_copy(&copying, call);
  tar_filter_free(copying.filter);
  call_relay_clear(&copying.relay);
  pthread_cond_destroy(&copying.changed);
  pthread_mutex_destroy(&copying.lock);
  g_free(copying.buffer);
  return status;
}
