/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linked-provider.h: a provider that a program links in, in one file. Its operations serve any table:
 * LINKED_PROVIDER(NAME, SUMMARY) initialises one, to which a test adds what it is about.
 */
#ifndef TEST_LINKED_PROVIDER_H
#define TEST_LINKED_PROVIDER_H

#include <string.h>

#include <glib.h>
#include <sandhost/provider.h>

static inline int32_t linked_open(struct sandhost_call *call, const struct sandhost_open *request,
                                  struct sandhost_instance **ret_instance) {
  (void)call;
  (void)request;
  *ret_instance = (struct sandhost_instance *)g_malloc(1);
  return SANDHOST_OK;
}

static inline void linked_close(struct sandhost_instance *instance) {
  g_free(instance);
}

static inline int32_t linked_create(struct sandhost_call *call, struct sandhost_instance *instance,
                                    const struct sandhost_create *request,
                                    struct sandhost_sandbox **ret_sandbox) {
  (void)call;
  (void)instance;
  (void)request;
  *ret_sandbox = (struct sandhost_sandbox *)g_malloc(1);
  return SANDHOST_OK;
}

static const struct sandhost_host *linked_host; /* set by the entry, which is asked once */

/* Prints, and for the command "wait" comes back only when it is cancelled. */
static inline int32_t linked_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                     const struct sandhost_execute *request,
                                     const struct sandhost_observer *observer,
                                     struct sandhost_result *ret_result) {
  (void)sandbox;
  observer->output(observer->user, SANDHOST_STDOUT, "linked in", 9);
  if (strcmp(request->argv[2].data, "wait") == 0) {
    int32_t status = linked_host->wait(call, -1, 0, -1);
    return linked_host->fail(call, status, (struct sandhost_text){.data = "gone", .length = 4});
  }
  ret_result->ended = SANDHOST_ENDED_EXIT;
  ret_result->stdout_bytes = 9;
  return SANDHOST_OK;
}

static inline int32_t linked_read(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                  struct sandhost_path path, const struct sandhost_sink *sink) {
  (void)call;
  (void)sandbox;
  (void)path;
  (void)sink;
  return SANDHOST_NOT_FOUND;
}

static inline int32_t linked_write(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                   struct sandhost_path path, uint32_t mode,
                                   const struct sandhost_source *source) {
  (void)call;
  (void)sandbox;
  (void)path;
  (void)mode;
  (void)source;
  return SANDHOST_OK;
}

static inline int32_t linked_terminate(struct sandhost_call *call,
                                       struct sandhost_sandbox *sandbox) {
  (void)call;
  (void)sandbox;
  return SANDHOST_OK;
}

static inline void linked_release(struct sandhost_sandbox *sandbox) {
  g_free(sandbox);
}

#define LINKED_PROVIDER(NAME, SUMMARY)                                                             \
  .size = sizeof(struct sandhost_provider), .minor = SANDHOST_ABI_MINOR,                           \
  .threads = SANDHOST_THREADS_PARALLEL, .name = (NAME), .version = "1", .summary = (SUMMARY),      \
  .open = linked_open, .close = linked_close, .create = linked_create, .execute = linked_execute,  \
  .read_file = linked_read, .write_file = linked_write, .terminate = linked_terminate,             \
  .release = linked_release

static inline const struct sandhost_provider *linked_entry(const struct sandhost_host *host) {
  static const struct sandhost_provider table = {LINKED_PROVIDER("linked", "prints where it is")};
  linked_host = host;
  return &table;
}

#endif
