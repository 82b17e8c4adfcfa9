/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.h: optional operations made of the required ones, for providers that leave the slot empty. */
#ifndef SANDHOST_PROVIDER_EMULATE_H
#define SANDHOST_PROVIDER_EMULATE_H

#include "provider/job.h"

/* A job on a sandbox; NULL with *error LOST when it is gone. */
Job *sandbox_job(Sandbox *sandbox, const char *operation, const CallScope *scope, GError **error);

/* "the NAME sandbox {what}" with SANDHOST_UNSUPPORTED. Returns FALSE. */
gboolean sandbox_cannot(const Sandbox *sandbox, const char *what, GError **error);

/* As sandbox_upload and so on. */
gboolean emulate_upload(Sandbox *sandbox, const CallScope *scope, const struct sandhost_source *tar,
                        GError **error);
gboolean emulate_download(Sandbox *sandbox, const CallScope *scope,
                          const struct sandhost_path *names, gsize name_count,
                          const struct sandhost_sink *tar, GError **error);
gboolean emulate_changes(Sandbox *sandbox, const CallScope *scope,
                         const struct sandhost_changes *request,
                         const struct sandhost_entry_sink *sink, GError **error);
gboolean emulate_probe(Sandbox *sandbox, const CallScope *scope, const struct sandhost_probe *probe,
                       guint32 *ret_verdict, GError **error);

/* Runs a command for an emulation: its stdout goes to take in pieces (FALSE stops it), the first bytes of
 * stderr to *ret_stderr (owned, clean; NULL: not wanted). */
typedef struct {
  const char *const *argv; /* NULL-terminated */
  gint64 limit;
  gboolean (*take)(void *user, const char *data, gsize length);
  void *user;
} EmulatedCommand;
gboolean emulate_command(Sandbox *sandbox, const CallScope *scope, const EmulatedCommand *command,
                         struct sandhost_result *ret_result, char **ret_stderr, GError **error);

#endif
