/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network-check.c: several addresses at once, since one may be filtered for a reason of its own. Isolated is only what
 * was definitely blocked everywhere; a check that went wrong proves nothing.
 */
#include "run/network-check.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"

#define PATIENCE (5 * CLOCK_SECOND)
/* The tries run side by side where the provider allows it, one after the other where not. */
#define CHECK_DEADLINE (45 * CLOCK_SECOND)

/* Public resolvers, which answer on these ports all over the world. */
static const struct {
  const char *address;
  guint32 port;
} TARGETS[] = {
    {"1.1.1.1", 80},  {"1.1.1.1", 443},
    {"8.8.8.8", 53},  {"2606:4700:4700::1111", 443},
    {"9.9.9.9", 443}, {"2001:4860:4860::8888", 53},
};

typedef struct {
  Sandbox *sandbox;
  const CallScope *scope;
  struct sandhost_probe probe;
  guint32 verdict; /* 0: none */
  GError *error;
} Try;

static void *try_one(void *data) {
  Try *one = data;
  sandbox_probe(one->sandbox, one->scope, &one->probe, &one->verdict, &one->error);
  return NULL;
}

static void try_all(Try tries[G_N_ELEMENTS(TARGETS)]) {
  pthread_t threads[G_N_ELEMENTS(TARGETS)];
  gboolean begun[G_N_ELEMENTS(TARGETS)];
  for (gsize i = 0; i < G_N_ELEMENTS(TARGETS); i++) {
    begun[i] = pthread_create(&threads[i], NULL, try_one, &tries[i]) == 0;
    if (!begun[i]) {
      try_one(&tries[i]);
    }
  }
  for (gsize i = 0; i < G_N_ELEMENTS(TARGETS); i++) {
    if (begun[i]) {
      pthread_join(threads[i], NULL);
    }
  }
}

static gboolean refuse_reached(const char *name, GError **error) {
  g_set_error(
      error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED,
      "The %s sandbox was created with no network access, but it still reached the internet: "
      "this account or plan does not enforce network isolation. Use a provider that does, allow "
      "the network in the manifest if the work needs it, or set the sandbox option "
      "verify_network_isolation=false to accept an unchecked sandbox.",
      name);
  return FALSE;
}

/* An emulated check says already what could not be checked; a provider's own failure does not. */
static gboolean refuse_unclear(const char *name, const GError *failure, GError **error) {
  g_autofree char *head = g_strdup_printf("The %s sandbox's network could not be checked: ", name);
  gboolean told = g_str_has_prefix(failure->message, head);
  gboolean no_python = provider_error_is(failure, SANDHOST_UNSUPPORTED);
  g_set_error(error, failure->domain, failure->code,
              "%s%s. %s the sandbox option verify_network_isolation=false to accept an unchecked "
              "sandbox.",
              told ? "" : head, failure->message,
              no_python ? "Use an image that has one, or set" : "Set");
  return FALSE;
}

static gboolean judge(const Try tries[G_N_ELEMENTS(TARGETS)], const char *name, GError **error) {
  const GError *failure = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS(TARGETS); i++) {
    if (tries[i].verdict == SANDHOST_PROBE_REACHED) {
      return refuse_reached(name, error);
    }
    if (!failure) {
      failure = tries[i].error;
    }
  }
  if (!failure) {
    return TRUE;
  }
  if (provider_error_is(failure, SANDHOST_CANCELLED)) {
    g_propagate_error(error, g_error_copy(failure));
    return FALSE;
  }
  return refuse_unclear(name, failure, error);
}

static gboolean try_from_inside(Sandbox *sandbox, const char *name, const CallScope *scope,
                                GError **error) {
  CallScope bounded = *scope;
  bounded.deadline = MIN(scope->deadline, clock_deadline(CHECK_DEADLINE));
  Try tries[G_N_ELEMENTS(TARGETS)];
  for (gsize i = 0; i < G_N_ELEMENTS(TARGETS); i++) {
    tries[i] = (Try){
        .sandbox = sandbox,
        .scope = &bounded,
        .probe = {.size = sizeof tries[i].probe,
                  .address = {.data = TARGETS[i].address, .length = strlen(TARGETS[i].address)},
                  .port = TARGETS[i].port,
                  .patience = PATIENCE},
    };
  }
  try_all(tries);
  gboolean ok = judge(tries, name, error);
  for (gsize i = 0; i < G_N_ELEMENTS(TARGETS); i++) {
    g_clear_error(&tries[i].error);
  }
  return ok;
}

gboolean network_check(Sandbox *sandbox, const ProviderInstance *instance, const Manifest *manifest,
                       const CallScope *scope, const char **ret_verdict, GError **error) {
  const char *reported = sandbox_network_isolation(sandbox);
  if (manifest->network) {
    *ret_verdict = reported ? reported : "not required";
    return TRUE;
  }
  if (provider_instance_level(instance, SANDHOST_SETTING_NETWORK_OFF) != SANDHOST_LEVEL_CHECKED) {
    *ret_verdict = reported;
    return TRUE;
  }
  g_autoptr(JsonObject) options = provider_instance_options(instance);
  if (!json_get_bool(options, "verify_network_isolation", TRUE)) {
    *ret_verdict = "unchecked";
    return TRUE;
  }
  if (!try_from_inside(sandbox, provider_instance_name(instance), scope, error)) {
    return FALSE;
  }
  *ret_verdict = "checked";
  return TRUE;
}
