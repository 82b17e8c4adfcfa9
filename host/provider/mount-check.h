/* SPDX-License-Identifier: Apache-2.0 */
/* mount-check.h: folders of this machine that are never mounted into a sandbox (behaviour 13.3). */
#ifndef SANDHOST_PROVIDER_MOUNT_CHECK_H
#define SANDHOST_PROVIDER_MOUNT_CHECK_H

#include <glib.h>

/* provider is the name for the refusal of what is no path. The source with its links resolved: what is to be mounted, and nothing else. Owned; NULL with a CONFIG
 * error such as "{source} must not be mounted into a sandbox: it is the host root". */
char *mount_check(const char *provider, const char *source, GError **error);

#endif
