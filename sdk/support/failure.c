/* SPDX-License-Identifier: Apache-2.0 */
/* failure.c: formats into the call's error and its reports. */
#include "failure.h"

#include <stdarg.h>
#include <string.h>

static struct sandhost_text text_of(const char *string) {
  return (struct sandhost_text){.data = string, .length = strlen(string)};
}

int32_t fail_call(const struct sandhost_host *host, struct sandhost_call *call, int32_t status,
                  const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *message = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  return host->fail(call, status, text_of(message));
}

int32_t fail_call_errno(const struct sandhost_host *host, struct sandhost_call *call,
                        int32_t status, int error_number, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *what = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_autofree char *message = g_strdup_printf("%s: %s", what, g_strerror(error_number));
  return host->fail(call, status, text_of(message));
}

void report_fact(const struct sandhost_host *host, struct sandhost_call *call, uint32_t kind,
                 const char *value) {
  host->report(call, kind, text_of(value));
}
