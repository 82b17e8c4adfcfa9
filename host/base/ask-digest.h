/* SPDX-License-Identifier: Apache-2.0 */
/* ask-digest.h: what exactly a person's yes is good for, as one number: the thing that was asked for and the call that it
 * was asked for with. Who asks computes it, and who verifies the record computes it again. */
#ifndef SANDHOST_BASE_ASK_DIGEST_H
#define SANDHOST_BASE_ASK_DIGEST_H

#include "base/json.h"

/* Of any JSON, whatever the order of its keys. Returns owned. */
char *ask_digest_json(JsonObject *value);

/* asked: as approval_asked (governance/approvals.h) has it; argv_digest: of the command, NULL where none is asked about.
 * Returns owned. */
char *ask_digest(JsonObject *asked, JsonObject *arguments, const char *argv_digest);

#endif
