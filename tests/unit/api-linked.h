/* SPDX-License-Identifier: Apache-2.0 */
/* api-linked.h: a provider that a program links in. Included once, by api.c. */
#ifndef SANDHOST_TESTS_API_LINKED_H
#define SANDHOST_TESTS_API_LINKED_H

#include <string.h>

#include <glib.h>
#include <sandhost/provider.h>

static int32_t linked_open(struct sandhost_call *call, const struct sandhost_open *request,
                           struct sandhost_instance **ret_instance) {
  (void)call;
  (void)request;
  *ret_instance = (struct sandhost_instance *)g_malloc(1);
  return SANDHOST_OK;
}

static void linked_close(struct sandhost_instance *instance) {
  g_free(instance);
}

static int32_t linked_create(struct sandhost_call *call, struct sandhost_instance *instance,
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
static int32_t linked_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
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

static int32_t linked_read(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                           struct sandhost_path path, const struct sandhost_sink *sink) {
  (void)call;
  (void)sandbox;
  (void)path;
  (void)sink;
  return SANDHOST_NOT_FOUND;
}

static int32_t linked_write(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            struct sandhost_path path, uint32_t mode,
                            const struct sandhost_source *source) {
  (void)call;
  (void)sandbox;
  (void)path;
  (void)mode;
  (void)source;
  return SANDHOST_OK;
}

static int32_t linked_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  (void)call;
  (void)sandbox;
  return SANDHOST_OK;
}

static void linked_release(struct sandhost_sandbox *sandbox) {
  g_free(sandbox);
}

static const struct sandhost_provider *linked_entry(const struct sandhost_host *host) {
  static const struct sandhost_provider table = {
      .size = sizeof table,
      .minor = SANDHOST_ABI_MINOR,
      .threads = SANDHOST_THREADS_PARALLEL,
      .name = "linked",
      .version = "1",
      .summary = "prints where it is",
      .open = linked_open,
      .close = linked_close,
      .create = linked_create,
      .execute = linked_execute,
      .read_file = linked_read,
      .write_file = linked_write,
      .terminate = linked_terminate,
      .release = linked_release,
  };
  linked_host = host;
  return &table;
}

#endif
