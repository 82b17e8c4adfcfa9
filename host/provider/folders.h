/* SPDX-License-Identifier: Apache-2.0 */
/* folders.h: where this program was put, and the folders that follow from it. */
#ifndef SANDHOST_PROVIDER_FOLDERS_H
#define SANDHOST_PROVIDER_FOLDERS_H

#include <glib.h>

/* The folders of SANDHOST_PLUGIN_PATH, then the installed one. NULL-terminated, owned. */
char **folders_of_providers(void);

/* The folder of the guest programs; "" where there is none. Owned. */
char *folder_of_guests(void);

#endif
