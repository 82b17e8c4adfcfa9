/* SPDX-License-Identifier: Apache-2.0 */
/* record-prune.h: sandhost record prune. */
#ifndef SANDHOST_CLI_RECORD_PRUNE_H
#define SANDHOST_CLI_RECORD_PRUNE_H

int cli_record_prune(int argc, char **argv);

#endif
