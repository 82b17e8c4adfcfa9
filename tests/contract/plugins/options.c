/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: declares one option twice. */
#include "good.h"

static const struct sandhost_option options[] = {
    {.size = sizeof options[0], .name = "size", .type = SANDHOST_OPTION_SIZE, .help = "A size"},
    {.size = sizeof options[0], .name = "size", .type = SANDHOST_OPTION_TEXT, .help = "A text"},
};

GOOD_PLUGIN("options", table.options = options; table.option_count = 2;
            table.option_size = sizeof options[0])
