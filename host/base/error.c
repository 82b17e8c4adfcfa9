/* SPDX-License-Identifier: Apache-2.0 */
/* error.c: the error domain, and the codes that a model sees. */
#include "base/error.h"

GQuark sandhost_error_quark(void) {
  return g_quark_from_static_string("sandhost-error");
}

const char *sandhost_error_governance_code(const GError *error) {
  if (!error || error->domain != SANDHOST_ERROR) {
    return NULL;
  }
  switch ((SandhostError)error->code) {
  case SANDHOST_ERROR_POLICY_DENIED:
    return "policy_denied";
  case SANDHOST_ERROR_UNKNOWN_CAPABILITY:
    return "unknown_capability";
  case SANDHOST_ERROR_APPROVAL_REQUIRED:
    return "approval_required";
  case SANDHOST_ERROR_APPROVAL_EXPIRED:
    return "approval_expired";
  case SANDHOST_ERROR_SANDBOX_REQUIRED:
    return "sandbox_required";
  case SANDHOST_ERROR_BUDGET_EXCEEDED:
    return "budget_exceeded";
  case SANDHOST_ERROR_POLICY_EVALUATION:
    return "policy_evaluation_error";
  default:
    return NULL;
  }
}
