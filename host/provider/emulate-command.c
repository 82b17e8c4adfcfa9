/* SPDX-License-Identifier: Apache-2.0 */
/* emulate-command.c: a command of the host's own in the sandbox, with its output taken as a stream. */
#include <string.h>

#include "provider/emulate.h"
#include "provider/text.h"

/* Of stderr a message needs no more. */
#define MAX_STDERR 1024u
#define MAX_ARGUMENTS 64u

typedef struct {
  const EmulatedCommand *command;
  GString *stderr_text;
} Listening;

static int32_t listen(void *user, uint32_t stream, const void *data, size_t length) {
  Listening *listening = user;
  if (stream == SANDHOST_STDERR) {
    gsize room = MAX_STDERR - listening->stderr_text->len;
    g_string_append_len(listening->stderr_text, data, (gssize)MIN(room, length));
    return SANDHOST_OK;
  }
  const EmulatedCommand *command = listening->command;
  return command->take(command->user, data, length) ? SANDHOST_OK : SANDHOST_CANCELLED;
}

gboolean emulate_command(Sandbox *sandbox, const CallScope *scope, const EmulatedCommand *command,
                         struct sandhost_result *ret_result, char **ret_stderr, GError **error) {
  struct sandhost_text argv[MAX_ARGUMENTS];
  gsize argc = 0;
  while (argc < MAX_ARGUMENTS && command->argv[argc]) {
    argv[argc] = text_of(command->argv[argc]);
    argc++;
  }
  /* Names are bytes to the tools of the C locale. */
  const struct sandhost_pair environment[] = {
      {.name = text_of("LC_ALL"), .value = text_of("C")},
  };
  const struct sandhost_execute request = {
      .size = sizeof request,
      .argv = argv,
      .argc = argc,
      .environment = environment,
      .environment_count = G_N_ELEMENTS(environment),
      .limit = command->limit,
  };
  g_autoptr(GString) stderr_text = g_string_new(NULL);
  Listening listening = {.command = command, .stderr_text = stderr_text};
  const struct sandhost_observer observer = {
      .size = sizeof observer, .user = &listening, .output = listen};
  if (!sandbox_execute(sandbox, scope, &request, &observer, ret_result, error)) {
    return FALSE;
  }
  if (ret_stderr) {
    *ret_stderr =
        text_clean((struct sandhost_text){.data = stderr_text->str, .length = stderr_text->len});
  }
  return TRUE;
}
