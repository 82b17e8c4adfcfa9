/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.h: an opened provider and its sandboxes, as the host uses them: every operation of the contract
 * with a call scope, the declared thread level kept, absent optional slots emulated, statuses made errors.
 *
 * Lock order: the level's lock is the only lock held while a provider's function runs.
 */
#ifndef SANDHOST_PROVIDER_SANDBOX_H
#define SANDHOST_PROVIDER_SANDBOX_H

#include "base/cancel.h"
#include "base/json.h"
#include "config/manifest.h"
#include "provider/registry.h"

/* Errors of providers: code is a SANDHOST_* status, the message the provider's own, made valid UTF-8, bounded and
 * without control characters. */
#define PROVIDER_ERROR (provider_error_quark())
GQuark provider_error_quark(void);
gboolean provider_error_is(const GError *error, gint32 status);

/* What else the provider said about its failure; all zero where it said nothing. */
typedef struct {
  const char *service_code; /* borrowed from the error; NULL */
  gint64 retry_after;       /* ns; 0: not asked for */
  gboolean may_have_happened;
  gboolean did_not_happen; /* it is certain that the operation has done nothing */
} ProviderErrorDetails;
ProviderErrorDetails provider_error_details(const GError *error);

/* For how long and for whom a call runs. */
typedef struct {
  gint64 deadline; /* CLOCK_MONOTONIC ns; INT64_MAX: none */
  Cancel *cancel;  /* borrowed; NULL: cannot be cancelled */
  void (*progress)(void *user,
                   const char *line); /* NULL: nobody waits. The line has no control characters */
  void *user;
} CallScope;

typedef struct ProviderInstance ProviderInstance;
typedef struct Sandbox Sandbox;

/* Checks the options against the provider's table and opens. Texts of behaviour 1.2 and 3.3:
 * "Unknown {provider} sandbox option(s): {sorted, comma separated}", "{provider} sandbox option '{name}' must be
 * ...", "The {provider} sandbox needs a '{name}' option". options may be NULL. CONFIG error for those. */
ProviderInstance *provider_instance_open(ProviderRegistry *registry, Provider *provider,
                                         JsonObject *options, GError **error);
void provider_instance_close(ProviderInstance *instance);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ProviderInstance, provider_instance_close)

const char *provider_instance_name(const ProviderInstance *instance);
/* FALSE: commands run on this machine (surface "host"). */
gboolean provider_instance_isolates(const ProviderInstance *instance);
gboolean provider_instance_is_test(const ProviderInstance *instance);
/* FALSE for none. */
gboolean provider_instance_executes(const ProviderInstance *instance);
/* The option max_output_bytes where the provider has it, else 1,000,000. */
guint64 provider_instance_max_output(const ProviderInstance *instance);
/* The options as they are in force, secrets as "[REDACTED]". Returns owned. */
JsonObject *provider_instance_options(const ProviderInstance *instance);

/* Adds a copy (owned by strings) of every text that an option declared secret holds, from wherever it came. */
void provider_instance_secrets(const ProviderInstance *instance, GPtrArray *strings);

/* What is enforced here and now: SANDHOST_LEVEL_*; ENFORCED for everything when nothing is declared. */
guint32 provider_instance_level(const ProviderInstance *instance, guint32 setting);
/* Why a declared setting is lowered on this machine; NULL. Borrowed. */
const char *provider_instance_lowered(const ProviderInstance *instance, guint32 setting);

/* The enforcement contract: behaviour 3.2, first unmet setting in its order. CONFIG error. A lowered one gets
 * " ({reason})" behind the advice. */
gboolean provider_instance_check(const ProviderInstance *instance, const Manifest *manifest,
                                 GError **error);

/* create. key is new for each sandbox; the same one only for a retry. */
Sandbox *sandbox_create(ProviderInstance *instance, const Manifest *manifest, const char *key,
                        const char *run_id, const CallScope *scope, GError **error);
/* terminate with a deadline of its own (30 s), then release. *error tells when terminate failed; the handle is
 * gone all the same. NULL sandbox: nothing. Waits for no running call: the caller has none. */
gboolean sandbox_end(Sandbox *take_sandbox, GError **error);
/* The same; slow (NULL: nobody is told) is called once, from this thread, where it takes SANDBOX_SLOW_END. */
#define SANDBOX_SLOW_END (5 * CLOCK_SECOND)
gboolean sandbox_end_telling(Sandbox *take_sandbox, void (*slow)(void *user), void *user,
                             GError **error);
/* Begins the terminate that sandbox_end then waits for. No other call on the sandbox is made in between. */
void sandbox_end_begin(Sandbox *sandbox);

/* attach: adopts a living sandbox by its ref; what it holds is in working_dir. PROVIDER_ERROR NOT_FOUND when it is
 * gone, UNSUPPORTED when the provider cannot. Ends through sandbox_end as any other. */
Sandbox *sandbox_attach(ProviderInstance *instance, const char *ref, const char *working_dir,
                        const CallScope *scope, GError **error);

/* ---- Left-overs ---- */

typedef struct {
  char *ref;    /* one line of text without control characters */
  char *run_id; /* the same; NULL: unknown */
  gint64 age;   /* ns; -1: unknown */
  gboolean removed;
} Orphan;
void orphan_free(Orphan *orphan);

typedef struct {
  const char *run_id;      /* only sandboxes of this run; NULL: of any */
  const char *const *keep; /* refs that are never touched, NULL-terminated; NULL: none */
  gint64 min_age;          /* ns: younger ones are left alone */
  gboolean dry_run;        /* list only */
} SweepRequest;

/* FALSE: the provider has no sweep, since nothing of it outlives the host. */
gboolean provider_instance_sweeps(const ProviderInstance *instance);
/* sweep. Appends what the provider lists to orphans, an array of Orphan, also what it told before it failed. What it
 * tells is checked: a sandbox of another run, a removed one that was to stay, a ref that is no text are
 * PROVIDER_ERROR PROTOCOL. Without a sweep: TRUE, and nothing is listed. */
gboolean provider_instance_sweep(ProviderInstance *instance, const SweepRequest *request,
                                 GPtrArray *orphans, const CallScope *scope, GError **error);
/* delete_snapshot; a missing one is no error. */
gboolean provider_instance_delete_snapshot(ProviderInstance *instance, const char *id,
                                           const CallScope *scope, GError **error);

/* ---- A sandbox ---- */

/* Facts reported by create, borrowed; NULL where not told. */
const char *sandbox_ref(const Sandbox *sandbox);
const char *sandbox_image(const Sandbox *sandbox);
const char *sandbox_network_isolation(const Sandbox *sandbox);
const char *sandbox_working_dir(const Sandbox *sandbox);
/* The reason once a call said LOST, else NULL. */
const char *sandbox_lost_reason(const Sandbox *sandbox);

/* The operations; arguments and results are the contract's. A refused slot: PROVIDER_ERROR with
 * SANDHOST_UNSUPPORTED and a text that says what to do instead. */
gboolean sandbox_execute(Sandbox *sandbox, const CallScope *scope,
                         const struct sandhost_execute *request,
                         const struct sandhost_observer *observer,
                         struct sandhost_result *ret_result, GError **error);
gboolean sandbox_read_file(Sandbox *sandbox, const CallScope *scope, const char *path,
                           const struct sandhost_sink *sink, GError **error);
gboolean sandbox_write_file(Sandbox *sandbox, const CallScope *scope, const char *path,
                            guint32 mode, const struct sandhost_source *source, GError **error);
gboolean sandbox_set_network_policy(Sandbox *sandbox, const CallScope *scope,
                                    const struct sandhost_network *network, GError **error);
char *sandbox_snapshot(Sandbox *sandbox, const CallScope *scope, GError **error);
gboolean sandbox_signal(Sandbox *sandbox, const CallScope *scope, guint64 execution,
                        int signal_number, GError **error);
/* Below the working directory; native where the provider has the slot, else emulated through the required ones. A
 * slot that says UNSUPPORTED before it has touched its stream is from then on taken for absent in this sandbox. */
gboolean sandbox_upload(Sandbox *sandbox, const CallScope *scope, const struct sandhost_source *tar,
                        GError **error);
gboolean sandbox_download(Sandbox *sandbox, const CallScope *scope,
                          const struct sandhost_path *names, gsize name_count,
                          const struct sandhost_sink *tar, GError **error);
gboolean sandbox_changes(Sandbox *sandbox, const CallScope *scope,
                         const struct sandhost_known *known, gsize known_count,
                         guint64 max_hash_bytes, const struct sandhost_entry_sink *sink,
                         GError **error);
gboolean sandbox_probe(Sandbox *sandbox, const CallScope *scope, const struct sandhost_probe *probe,
                       guint32 *ret_verdict, GError **error);

#endif
