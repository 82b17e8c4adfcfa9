/* SPDX-License-Identifier: Apache-2.0 */
/* failure.h: sandhost_host.fail with a format, for plugins in C with GLib. */
#ifndef SANDHOST_SUPPORT_FAILURE_H
#define SANDHOST_SUPPORT_FAILURE_H

#include <glib.h>
#include <sandhost/provider.h>

/* Sets the call's error and returns status. */
int32_t fail_call(const struct sandhost_host *host, struct sandhost_call *call, int32_t status,
                  const char *format, ...) G_GNUC_PRINTF(4, 5);

/* The same, with ": " and strerror(error_number) behind it. */
int32_t fail_call_errno(const struct sandhost_host *host, struct sandhost_call *call,
                        int32_t status, int error_number, const char *format, ...)
    G_GNUC_PRINTF(5, 6);

/* Reports a fact (SANDHOST_REPORT_*) given as a C string. */
void report_fact(const struct sandhost_host *host, struct sandhost_call *call, uint32_t kind,
                 const char *value);

#endif
