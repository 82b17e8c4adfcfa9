/* SPDX-License-Identifier: Apache-2.0 */
/* recorded.h: what the commands that look into the record share. */
#ifndef SANDHOST_CLI_RECORDED_H
#define SANDHOST_CLI_RECORDED_H

#include "record/record.h"

/* Opens a record that is there, to be read alone where it cannot be written; NULL path: the default one. A file that is not there is not made: NOT_FOUND. */
Record *recorded_open(const char *path, GError **error);
/* The id of the run that is meant; NULL: the newest. Owned. */
char *recorded_run(Record *record, const char *wanted, GError **error);
/* Text or JSON, with a newline, on stdout. FALSE: the other end is gone. */
gboolean recorded_print(const char *text);
gboolean recorded_print_json(JsonObject *value);

#endif
