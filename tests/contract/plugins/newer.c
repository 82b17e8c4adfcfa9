/* SPDX-License-Identifier: Apache-2.0 */
/* newer.c: comes from a later minor, with a larger table and larger options. */
#include "good.h"

struct later_provider {
  struct sandhost_provider now;
  void *later[4];
};

struct later_option {
  struct sandhost_option now;
  const char *later;
};

static const struct later_option options[] = {
    {.now =
         {.size = sizeof options[0], .name = "first", .type = SANDHOST_OPTION_TEXT, .help = "One"},
     .later = "x"},
    {.now =
         {.size = sizeof options[0], .name = "second", .type = SANDHOST_OPTION_TEXT, .help = "Two"},
     .later = "y"},
};

const struct sandhost_provider *sandhost_provider_1(const struct sandhost_host *host) {
  static struct later_provider table;
  good_host = host;
  table.now = good_table("newer");
  table.now.size = sizeof table;
  table.now.minor = 99;
  table.now.options = &options[0].now;
  table.now.option_count = 2;
  table.now.option_size = sizeof options[0];
  table.later[3] = &table;
  return &table.now;
}
