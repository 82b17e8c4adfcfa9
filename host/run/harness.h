/* SPDX-License-Identifier: Apache-2.0 */
/* harness.h: a configuration made ready to run: policy loaded, provider opened, contract checked. Whatever can be
 * refused without starting anything is refused here. Immutable once made; used by any number of runs and threads. */
#ifndef SANDHOST_RUN_HARNESS_H
#define SANDHOST_RUN_HARNESS_H

#include "config/config.h"
#include "governance/policy.h"
#include "privacy/privacy.h"
#include "provider/sandbox.h"

typedef struct {
  Config *config;             /* owned */
  ProviderRegistry *registry; /* borrowed */
  Policy *policy;             /* NULL: not governed */
  ProviderInstance *instance; /* NULL: no sandbox is configured */
  char *files_dir;            /* where the workspace was, links resolved, before any command ran */
  GPtrArray *guarded;         /* files that no command may write (guarded.h) */
  Privacy *privacy; /* knows every credential of the configuration, provider and process */
} Harness;

/* Takes config. registry must outlive it. Errors: CONFIG and the texts of behaviour 1 to 4. */
Harness *harness_new(Config *take_config, ProviderRegistry *registry, GError **error);
void harness_free(Harness *harness);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Harness, harness_free)

/* Registers what the configuration registers. Then its provider with its options, opened and not held against the
 * manifest, for who asks the provider itself; NULL with *error unset when none is configured. */
gboolean harness_register(const Config *config, ProviderRegistry *registry, GError **error);
ProviderInstance *harness_provider(const Config *config, ProviderRegistry *registry,
                                   GError **error);

/* The policy of a configuration that is governed, with its budgets. examples: as for policy_new_trying. Returns owned. */
Policy *harness_policy(const Config *config, GPtrArray *examples, GError **error);

/* Whether there is an execute tool (behaviour 1.4); where not, *error says why and what to do (CONFIG). */
gboolean harness_executes(const Harness *harness, GError **error);

/* The warnings of behaviour 9.2: [{code, message}]. Returns owned. */
JsonObject *harness_warnings(const Harness *harness);

/* What the record keeps of it: agent_name, governance, provider, harness. Returns owned. */
JsonObject *harness_header(const Harness *harness);

#endif
