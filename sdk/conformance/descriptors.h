/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.h: which are open in this process. */
#ifndef SANDHOST_CONFORMANCE_DESCRIPTORS_H
#define SANDHOST_CONFORMANCE_DESCRIPTORS_H

#include <glib.h>

/* Where what ends in a thread of the provider, or as its child, is looked for again. */
#define PATIENCE_TRIES 200
#define PATIENCE_STEP 10000 /* microseconds */

/* How many, without standard input, output and error; keeps_only: only those that an exec keeps. */
guint descriptors_open(gboolean keeps_only);
/* How many more there are than before, once it has become quiet. */
guint descriptors_grown(gboolean keeps_only, guint before);

#endif
