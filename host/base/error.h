/* SPDX-License-Identifier: Apache-2.0 */
/* error.h: the one GError domain of the rooms above the providers. A provider's failure has a domain of
 * its own (provider/sandbox.h), since its code is a status of the contract. */
#ifndef SANDHOST_BASE_ERROR_H
#define SANDHOST_BASE_ERROR_H

#include <glib.h>

#define SANDHOST_ERROR (sandhost_error_quark())
GQuark sandhost_error_quark(void);

typedef enum {
  SANDHOST_ERROR_CONFIG,        /* the configuration or the command line makes no sense: exit 2 */
  SANDHOST_ERROR_POLICY_DENIED, /* a deny rule, or a person, said no */
  SANDHOST_ERROR_UNKNOWN_CAPABILITY, /* strict policy and no rule */
  SANDHOST_ERROR_APPROVAL_REQUIRED,  /* an ask and nobody to answer it */
  SANDHOST_ERROR_APPROVAL_EXPIRED,   /* an ask that was not answered in time */
  SANDHOST_ERROR_SANDBOX_REQUIRED,   /* the policy wants a sandbox and this is none */
  SANDHOST_ERROR_BUDGET_EXCEEDED,    /* a budget has no room for it */
  SANDHOST_ERROR_POLICY_EVALUATION,  /* deciding failed: never allows */
  SANDHOST_ERROR_RECORD,             /* the record could not be written or read */
  SANDHOST_ERROR_WORKSPACE,          /* the workspace could not be read or written */
  SANDHOST_ERROR_NOT_FOUND,          /* no such run, provider, file */
  SANDHOST_ERROR_CONFLICT,           /* somebody else was first, or the time for it is over */
  SANDHOST_ERROR_CANCELLED,
  SANDHOST_ERROR_FAILED, /* anything else */
} SandhostError;

/* The error code that a refusal carries to the model (behaviour 4.7): "policy_denied", ... ; NULL for an
 * error that is no refusal. Constant. */
const char *sandhost_error_governance_code(const GError *error);

#endif
