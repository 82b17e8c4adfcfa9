/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities.h: what can be asked about at all (behaviour 4.9), and where it can happen (4.5). */
#ifndef SANDHOST_GOVERNANCE_CAPABILITIES_H
#define SANDHOST_GOVERNANCE_CAPABILITIES_H

#include <glib.h>

/* The parts that the target of a request may have. */
typedef enum {
  TARGET_NONE = 0,
  TARGET_PATH = 1 << 0,
  TARGET_HOST = 1 << 1,
  TARGET_RESOURCE = 1 << 2,
  TARGET_TOOL = 1 << 3,
  TARGET_SERVER = 1 << 4,
  TARGET_ANY = (1 << 5) - 1,
} TargetParts;

/* Whether a capability or, with wildcards, any that the glob matches is known; *ret_parts (may be NULL) is all that their
 * targets may have. Of some families not every name is known: what begins like one counts. */
gboolean capability_is_known(const char *glob, TargetParts *ret_parts);
/* The known one that is most like it; NULL: none is near. Constant. */
const char *capability_near(const char *name);

/* Every execution surface, NULL-terminated. */
extern const char *const CAPABILITY_SURFACES[];

#endif
