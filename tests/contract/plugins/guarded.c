/* SPDX-License-Identifier: Apache-2.0 */
/* guarded.c: asks a service for a sandbox without a network, whose word is checked from inside. GUARDED_PROBE says what
 * the check finds: blocked (the default), reached, or ipv6 (only that is reached), unclear, half (some unclear),
 * unsupported. Commands: as sh -c gives them, all succeed. */
#include "good.h"

static const struct sandhost_enforces enforces[] = {
    {SANDHOST_SETTING_NETWORK_OFF, SANDHOST_LEVEL_CHECKED},
    {SANDHOST_SETTING_NETWORK_ON, SANDHOST_LEVEL_ENFORCED},
};

static const struct sandhost_option options[] = {
    {.size = sizeof options[0],
     .name = "verify_network_isolation",
     .type = SANDHOST_OPTION_BOOLEAN,
     .fallback = "true",
     .help = "Whether the network is tried from inside"},
    {.size = sizeof options[0],
     .name = "api_key",
     .type = SANDHOST_OPTION_TEXT,
     .flags = SANDHOST_OPTION_SECRET,
     .environment = "GUARDED_API_KEY",
     .help = "The key of the service"},
};

static int32_t guarded_create(struct sandhost_call *call, struct sandhost_instance *instance,
                              const struct sandhost_create *request,
                              struct sandhost_sandbox **ret_sandbox) {
  (void)instance;
  good_log("create");
  struct sandhost_sandbox *sandbox = calloc(1, sizeof *sandbox);
  sandbox->working_dir = strndup(request->working_dir.data, request->working_dir.length);
  good_host->report(call, SANDHOST_REPORT_REF, request->key);
  *ret_sandbox = sandbox;
  return SANDHOST_OK;
}

static int32_t guarded_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               const struct sandhost_execute *request,
                               const struct sandhost_observer *observer,
                               struct sandhost_result *ret_result) {
  (void)call;
  (void)sandbox;
  (void)observer;
  good_log("execute");
  ret_result->ended = SANDHOST_ENDED_EXIT;
  ret_result->exit_code = strcmp(request->argv[0].data, "sh") == 0 ? 0 : 127;
  return SANDHOST_OK;
}

static int32_t guarded_probe(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             const struct sandhost_probe *request, uint32_t *ret_verdict) {
  (void)sandbox;
  const char *found = getenv("GUARDED_PROBE");
  int is_ipv6 = memchr(request->address.data, ':', request->address.length) != NULL;
  found = found ? found : "blocked";
  if (strcmp(found, "unclear") == 0 || (strcmp(found, "half") == 0 && is_ipv6)) {
    return good_fail(call, SANDHOST_INTERNAL, "the guest fell over");
  }
  if (strcmp(found, "unsupported") == 0) {
    return good_fail(call, SANDHOST_UNSUPPORTED, "not here");
  }
  *ret_verdict = strcmp(found, "reached") == 0 || (strcmp(found, "ipv6") == 0 && is_ipv6)
                     ? SANDHOST_PROBE_REACHED
                     : SANDHOST_PROBE_BLOCKED;
  return SANDHOST_OK;
}

GOOD_PLUGIN("guarded", table.enforces = enforces; table.enforces_count = 2; table.options = options;
            table.option_count = 2; table.option_size = sizeof options[0];
            table.create = guarded_create; table.execute = guarded_execute;
            table.probe = guarded_probe)
