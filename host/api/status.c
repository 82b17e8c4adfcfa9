/* SPDX-License-Identifier: Apache-2.0 */
/* status.c: errors, texts and sized structs on their way between the program and the rooms. */
#include <stdlib.h>
#include <string.h>

#include "api/api-private.h"
#include "base/build.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/forked.h"
#include "base/repr.h"
#include "provider/sandbox.h"

/* No struct of ours gets that long: a larger size was never set. */
#define MAX_SIZED (1u << 20)

/* All members of the structs that a program fills are of this size: half a pointer is none. */
#define MEMBER sizeof(void *)

static int status_of(const GError *error) {
  if (error->domain == PROVIDER_ERROR) {
    return error->code == SANDHOST_CANCELLED ? SANDHOST_STATUS_CANCELLED : SANDHOST_STATUS_PROVIDER;
  }
  if (error->domain != SANDHOST_ERROR) {
    return SANDHOST_STATUS_FAILED;
  }
  switch ((SandhostError)error->code) {
  case SANDHOST_ERROR_CONFIG:
    return SANDHOST_STATUS_CONFIG;
  case SANDHOST_ERROR_POLICY_DENIED:
  case SANDHOST_ERROR_UNKNOWN_CAPABILITY:
  case SANDHOST_ERROR_APPROVAL_REQUIRED:
  case SANDHOST_ERROR_APPROVAL_EXPIRED:
  case SANDHOST_ERROR_SANDBOX_REQUIRED:
  case SANDHOST_ERROR_BUDGET_EXCEEDED:
  case SANDHOST_ERROR_POLICY_EVALUATION:
    return SANDHOST_STATUS_DENIED;
  case SANDHOST_ERROR_RECORD:
    return SANDHOST_STATUS_RECORD;
  case SANDHOST_ERROR_WORKSPACE:
    return SANDHOST_STATUS_WORKSPACE;
  case SANDHOST_ERROR_NOT_FOUND:
    return SANDHOST_STATUS_NOT_FOUND;
  case SANDHOST_ERROR_CONFLICT:
    return SANDHOST_STATUS_STATE;
  case SANDHOST_ERROR_CANCELLED:
    return SANDHOST_STATUS_CANCELLED;
  case SANDHOST_ERROR_FAILED:
    return SANDHOST_STATUS_FAILED;
  }
  return SANDHOST_STATUS_FAILED;
}

int api_refuse(int status, const char *text, char **ret_error) {
  if (ret_error) {
    char *line = g_utf8_make_valid(text, -1);
    repr_line(line);
    *ret_error = line;
  }
  return status;
}

int api_fail(const GError *error, char **ret_error) {
  g_autofree char *told = descriptors_explain(error->message);
  return api_refuse(status_of(error), told, ret_error);
}

int api_fail_argument(const GError *error, char **ret_error) {
  gboolean argument = g_error_matches(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  return api_refuse(argument ? SANDHOST_STATUS_INVALID : status_of(error), error->message,
                    ret_error);
}

gboolean api_is_inherited(guint generation) {
  return generation != forked_generation();
}

int api_refuse_inherited(char **ret_error) {
  return api_refuse(SANDHOST_STATUS_STATE,
                    "the handle belongs to the process that this one was forked from; a child "
                    "opens its own host",
                    ret_error);
}

gboolean api_take_object(const char *what, const char *text, JsonObject **ret_object,
                         GError **error) {
  g_autoptr(GError) failure = NULL;
  if (!text) {
    *ret_object = NULL;
    return TRUE;
  }
  g_autoptr(JsonObject) object =
      json_parse(what, text, strnlen(text, (gsize)JSON_MAX_BYTES + 1), &failure);
  if (failure) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
  }
  if (!json_object_is_type(object, json_type_object)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "%s must be a JSON object", what);
    return FALSE;
  }
  *ret_object = g_steal_pointer(&object);
  return TRUE;
}

void api_give(JsonObject *value, char **ret_text) {
  if (ret_text) {
    *ret_text = json_text(value);
  }
}

gboolean api_take_sized(const void *given, size_t least, void *ret_own, size_t size) {
  size_t given_size = 0;
  memcpy(&given_size, given, sizeof given_size);
  if (given_size < least || given_size > MAX_SIZED || given_size % MEMBER != 0) {
    return FALSE;
  }
  const char *bytes = given;
  for (size_t i = size; i < given_size; i++) {
    if (bytes[i] != 0) {
      return FALSE;
    }
  }
  memset(ret_own, 0, size);
  memcpy(ret_own, given, MIN(size, given_size));
  return TRUE;
}

void sandhost_free(void *text) {
  free(text); /* GLib's texts are malloc's since 2.46 */
}

const char *sandhost_version(void) {
  return SANDHOST_VERSION;
}
