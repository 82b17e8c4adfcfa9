/* SPDX-License-Identifier: Apache-2.0 */
/* builtin-none.c: the provider none: a policy without a sandbox. It opens and makes nothing. */
#include "provider/provider-private.h"
#include "provider/text.h"

static int32_t none_open(struct sandhost_call *call, const struct sandhost_open *request,
                         struct sandhost_instance **ret_instance) {
  static const char only = 0; /* an address; there is nothing to keep */
  (void)call;
  (void)request;
  *ret_instance = (struct sandhost_instance *)(gsize)&only;
  return SANDHOST_OK;
}

static void none_close(struct sandhost_instance *instance) {
  (void)instance;
}

static int32_t refuse(struct sandhost_call *call) {
  return call_host_table.fail(call, SANDHOST_UNSUPPORTED,
                              text_of("the provider none runs no commands; choose another one"));
}

static int32_t none_create(struct sandhost_call *call, struct sandhost_instance *instance,
                           const struct sandhost_create *request,
                           struct sandhost_sandbox **ret_sandbox) {
  (void)instance;
  (void)request;
  (void)ret_sandbox;
  return refuse(call);
}

static int32_t none_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_execute *request,
                            const struct sandhost_observer *observer,
                            struct sandhost_result *ret_result) {
  (void)sandbox;
  (void)request;
  (void)observer;
  (void)ret_result;
  return refuse(call);
}

static int32_t none_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              struct sandhost_path path, const struct sandhost_sink *sink) {
  (void)sandbox;
  (void)path;
  (void)sink;
  return refuse(call);
}

static int32_t none_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               struct sandhost_path path, uint32_t mode,
                               const struct sandhost_source *source) {
  (void)sandbox;
  (void)path;
  (void)mode;
  (void)source;
  return refuse(call);
}

static int32_t none_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  (void)call;
  (void)sandbox;
  return SANDHOST_OK;
}

static void none_release(struct sandhost_sandbox *sandbox) {
  (void)sandbox;
}

const struct sandhost_provider *builtin_none_entry(const struct sandhost_host *host) {
  static const struct sandhost_provider table = {
      .size = sizeof table,
      .minor = SANDHOST_ABI_MINOR,
      .threads = SANDHOST_THREADS_PARALLEL,
      .name = "none",
      .version = "built in",
      .summary = "a policy without a sandbox: there is no execute tool",
      .open = none_open,
      .close = none_close,
      .create = none_create,
      .execute = none_execute,
      .read_file = none_read_file,
      .write_file = none_write_file,
      .terminate = none_terminate,
      .release = none_release,
  };
  (void)host;
  return &table;
}
