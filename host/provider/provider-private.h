/* SPDX-License-Identifier: Apache-2.0 */
/* provider-private.h: what a loaded provider, an instance and a sandbox are, for this room only. */
#ifndef SANDHOST_PROVIDER_PRIVATE_H
#define SANDHOST_PROVIDER_PRIVATE_H

#include "provider/call.h"
#include "provider/level.h"
#include "provider/options.h"

/* One per plugin and process; never freed, as the plugin stays mapped. */
struct Provider {
  struct sandhost_provider table; /* checked copy; its strings and arrays are copies as well */
  char *file;                     /* NULL: built in or linked in */
  gboolean executes;              /* FALSE for none */
  Level level;                    /* SANDHOST_THREADS_PLUGIN */
  pthread_mutex_t starting;       /* guards the two below; held while start runs */
  gboolean started;               /* start was called, whatever it said */
  GError *start_error;
};

struct ProviderInstance {
  gint refs; /* the opener's, one per sandbox, one per running job */
  Provider *provider;
  TestCommands *tests; /* owned reference */
  struct sandhost_instance *theirs;
  OptionValues *values;
  Level level;         /* SANDHOST_THREADS_INSTANCE */
  guint32 *levels;     /* in force, one per declared enforces */
  GHashTable *lowered; /* setting -> owned sentence */
};

struct Sandbox {
  gint refs; /* the creator's, one per running job */
  ProviderInstance *instance;
  struct sandhost_sandbox *theirs; /* NULL: released */
  struct Job *ending;              /* terminate, begun early; NULL */
  Level level;                     /* SANDHOST_THREADS_SANDBOX */
  gboolean terminated;             /* terminate was called; set by its worker */
  guint absent; /* atomic: SLOT_* bits of the slots that this sandbox turned out not to have */
  pthread_mutex_t lock; /* guards lost */
  char *lost;           /* once set it stays; "" where no reason was told */
  char *ref, *image, *network, *working_dir;
};

/* Optional slots that are emulated where they are absent. */
#define SLOT_UPLOAD 0x1u
#define SLOT_DOWNLOAD 0x2u
#define SLOT_CHANGES 0x4u
#define SLOT_PROBE 0x8u

void provider_instance_unref(ProviderInstance *instance);
void sandbox_unref(Sandbox *sandbox);

/* Remembers that the sandbox is gone; the first reason counts. */
void sandbox_mark_lost(Sandbox *sandbox, const char *reason);

/* The lock that the declared level puts around a call. */
Level *provider_level(Provider *provider, ProviderInstance *instance, Sandbox *sandbox);

/* Calls start once per process. */
gboolean provider_start(Provider *provider, TestCommands *tests, GError **error);

TestCommands *test_commands_new(void);
TestCommands *test_commands_ref(TestCommands *commands);
void test_commands_unref(TestCommands *commands);
void test_commands_add(TestCommands *commands, const char *name, LocalTestHandler handler,
                       void *user);
/* Runs the handler of a name; FALSE when there is none. */
gboolean test_commands_run(TestCommands *commands, const char *name, const char *const *argv,
                           int *ret_exit_code, char **ret_stdout, char **ret_stderr);

TestCommands *provider_registry_tests(ProviderRegistry *registry);

/* The entries of the built-in providers. */
const struct sandhost_provider *builtin_none_entry(const struct sandhost_host *host);
const struct sandhost_provider *builtin_local_test_entry(const struct sandhost_host *host);

#endif
