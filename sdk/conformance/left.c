/* SPDX-License-Identifier: Apache-2.0 */
/* left.c: what a sweep finds of a create that failed. */
#include "left.h"

static void note_left(gpointer data, gpointer user) {
  g_string_append_printf(user, " %s", (const char *)data);
}

static int32_t take_orphan(void *user, const struct sandhost_orphan *orphan) {
  g_ptr_array_add(user, g_strndup(orphan->ref.data, orphan->ref.length));
  return SANDHOST_OK;
}

void want_none_left(Subject *subject, gboolean certain, Verdict *verdict) {
  g_autoptr(GPtrArray) refs = g_ptr_array_new_with_free_func(g_free);
  const struct sandhost_sweep request = {
      .size = sizeof request, .run_id = as_text(subject->run_id), .dry_run = certain};
  const struct sandhost_orphan_sink sink = {
      .size = sizeof sink, .user = refs, .orphan = take_orphan};
  struct sandhost_call call;
  if (!subject->table->sweep) {
    return;
  }
  call_init(&call, 60);
  subject->table->sweep(&call, subject->instance, &request, &sink);
  call_clear(&call);
  if (certain && refs->len > 0) {
    g_autoptr(GString) names = g_string_new(NULL);
    g_ptr_array_foreach(refs, note_left, names);
    wrong(verdict, "a create that failed left%s", names->str);
  }
}
