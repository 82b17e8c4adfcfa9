/* SPDX-License-Identifier: Apache-2.0 */
/* lowered.c: declares, and then keeps less on this machine; starts and stops. */
#include "good.h"

static const struct sandhost_enforces enforces[] = {
    {SANDHOST_SETTING_NETWORK_OFF, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_NETWORK_ON, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_MEMORY, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_CPU, SANDHOST_LEVEL_FORWARDED},
};

static const struct sandhost_option options[] = {
    {.size = sizeof options[0],
     .name = "count",
     .type = SANDHOST_OPTION_INTEGER,
     .fallback = "600",
     .environment = "LOWERED_COUNT",
     .help = "A number"},
    {.size = sizeof options[0],
     .name = "base_url",
     .type = SANDHOST_OPTION_TEXT,
     .flags = SANDHOST_OPTION_REQUIRED,
     .help = "Where"},
    {.size = sizeof options[0],
     .name = "token",
     .type = SANDHOST_OPTION_TEXT,
     .flags = SANDHOST_OPTION_SECRET,
     .help = "A secret"},
    {.size = sizeof options[0],
     .name = "pull",
     .type = SANDHOST_OPTION_TEXT,
     .fallback = "if_missing",
     .choices = "if_missing|never",
     .help = "When"},
    {.size = sizeof options[0],
     .name = "room",
     .type = SANDHOST_OPTION_SIZE,
     .flags = SANDHOST_OPTION_POSITIVE,
     .fallback = "1g",
     .help = "How much"},
    {.size = sizeof options[0],
     .name = "quick",
     .type = SANDHOST_OPTION_BOOLEAN,
     .help = "Yes or no"},
    {.size = sizeof options[0],
     .name = "names",
     .type = SANDHOST_OPTION_LIST,
     .help = "Some names"},
    {.size = sizeof options[0],
     .name = "headers",
     .type = SANDHOST_OPTION_MAP,
     .flags = SANDHOST_OPTION_SECRET,
     .help = "Some pairs"},
    {.size = sizeof options[0],
     .name = "max_output_bytes",
     .type = SANDHOST_OPTION_INTEGER,
     .flags = SANDHOST_OPTION_POSITIVE,
     .fallback = "1000000",
     .help = "Output kept"},
};

static int32_t now(struct sandhost_call *call, struct sandhost_instance *instance, uint32_t *levels,
                   size_t count) {
  (void)instance;
  (void)count;
  levels[1] = 99; /* raising is not heard */
  levels[2] = SANDHOST_LEVEL_NONE;
  good_host->report(call, SANDHOST_REPORT_LOWERED + SANDHOST_SETTING_MEMORY,
                    good_text("there is no memory controller"));
  return SANDHOST_OK;
}

static int32_t start(struct sandhost_call *call, const struct sandhost_host *host) {
  (void)call;
  (void)host;
  good_log("start");
  return SANDHOST_OK;
}

static void stop(void) {
  good_log("stop");
}

GOOD_PLUGIN("lowered", table.enforces = enforces; table.enforces_count = 4; table.options = options;
            table.option_count = sizeof options / sizeof options[0];
            table.option_size = sizeof options[0]; table.enforces_now = now; table.start = start;
            table.stop = stop)
