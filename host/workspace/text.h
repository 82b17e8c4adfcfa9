/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: what counts as text: valid UTF-8 without NUL (behaviour 7.3, 8.1). */
#ifndef SANDHOST_WORKSPACE_TEXT_H
#define SANDHOST_WORKSPACE_TEXT_H

#include <glib.h>

/* Empty content is text. */
gboolean text_is_utf8(const void *data, gsize length);

/* Whether data may be the beginning of a longer text: as text_is_utf8, but the last character may
 * be cut. */
gboolean text_may_begin(const void *data, gsize length);

#endif
