/* SPDX-License-Identifier: Apache-2.0 */
/* cli.c: options, messages and exit codes, the same for every command. */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/error.h"
#include "base/shown.h"

char *cli_one_line(const char *text) {
  g_autofree char *line = g_strdup(text ? text : "");
  for (char *at = line; *at; at++) {
    if (g_ascii_iscntrl(*at)) {
      *at = ' ';
    }
  }
  return shown_text(line);
}

void cli_complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_autofree char *line = cli_one_line(text);
  fprintf(stderr, "sandhost: %s\n", line);
}

int cli_fail(const GError *error) {
  g_autofree char *message = descriptors_explain(error->message);
  cli_complain("%s", message);
  if (g_error_matches(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFLICT) &&
      strstr(error->message, " is still waiting for ")) {
    return EXIT_WAITING;
  }
  return g_error_matches(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG) ? EXIT_USAGE : EXIT_SANDHOST;
}

int cli_fail_resume(const GError *error) {
  int code = cli_fail(error);
  return strstr(error->message, " is still waiting for ") ? EXIT_WAITING : code;
}

/* What the command line gives is bytes: GLib would read them by the locale, which is none, so that a name such as Zoë could
 * not be given. They are kept as they are, and are UTF-8 or refused. Returns owned, zero-ended. */
static GOptionEntry *take_bytes(const GOptionEntry *entries) {
  gsize count = 0;
  while (entries[count].long_name) {
    count++;
  }
  GOptionEntry *taken = g_new0(GOptionEntry, count + 1);
  for (gsize i = 0; i < count; i++) {
    taken[i] = entries[i];
    if (entries[i].arg == G_OPTION_ARG_STRING) {
      taken[i].arg = G_OPTION_ARG_FILENAME;
    } else if (entries[i].arg == G_OPTION_ARG_STRING_ARRAY) {
      taken[i].arg = G_OPTION_ARG_FILENAME_ARRAY;
    }
  }
  return taken;
}

static gboolean is_text(const GOptionEntry *entry) {
  if (entry->arg == G_OPTION_ARG_STRING) {
    const char *text = *(char **)entry->arg_data;
    return !text || g_utf8_validate(text, -1, NULL);
  }
  char **list = entry->arg == G_OPTION_ARG_STRING_ARRAY ? *(char ***)entry->arg_data : NULL;
  for (gsize i = 0; list && list[i]; i++) {
    if (!g_utf8_validate(list[i], -1, NULL)) {
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean check_texts(const GOptionEntry *entries) {
  for (const GOptionEntry *entry = entries; entry->long_name; entry++) {
    if (!is_text(entry)) {
      cli_complain("--%s must be valid UTF-8", entry->long_name);
      return FALSE;
    }
  }
  return TRUE;
}

/* strict: the first word that is no option is the last that is looked at. */
static gboolean parse(int *argc, char ***argv, const char *usage, const char *summary,
                      const GOptionEntry *entries, gboolean strict) {
  g_autoptr(GError) error = NULL;
  g_autofree char *name = g_strdup_printf("sandhost %s", (*argv)[0]);
  GOptionContext *context = g_option_context_new(usage);
  g_set_prgname(name);
  g_option_context_set_summary(context, summary);
  g_option_context_set_strict_posix(context, strict);
  g_autofree GOptionEntry *taken = take_bytes(entries);
  g_option_context_add_main_entries(context, taken, NULL);
  gboolean ok = g_option_context_parse(context, argc, argv, &error);
  g_option_context_free(context);
  if (!ok) {
    cli_complain("%s; %s --help tells the options", error->message, name);
    return FALSE;
  }
  if (!check_texts(entries)) {
    return FALSE;
  }
  if (*argc > 1 && strcmp((*argv)[1], "--") == 0) {
    (*argv)[1] = (*argv)[0];
    (*argv)++;
    (*argc)--;
  }
  return TRUE;
}

gboolean cli_parse(int *argc, char ***argv, const char *usage, const char *summary,
                   const GOptionEntry *entries) {
  return parse(argc, argv, usage, summary, entries, TRUE);
}

gboolean cli_parse_mixed(int *argc, char ***argv, const char *usage, const char *summary,
                         const GOptionEntry *entries) {
  return parse(argc, argv, usage, summary, entries, FALSE);
}

void cli_run_options_clear(CliRunOptions *options) {
  g_free(options->config);
  g_free(options->workspace);
  g_free(options->provider);
  g_free(options->record);
  g_free(options->session);
  g_free(options->agent);
}

int cli_exit_code(const ExecuteOutcome *outcome) {
  switch (outcome->end) {
  case EXECUTE_FINISHED:
  case EXECUTE_TIMED_OUT:
    return outcome->exit_code;
  case EXECUTE_DENIED:
    return EXIT_DENIED;
  case EXECUTE_WAITING:
    return EXIT_WAITING;
  case EXECUTE_REJECTED:
    return EXIT_USAGE;
  case EXECUTE_CANCELLED:
    return 128 + (cli_caught_signal() ? cli_caught_signal() : SIGPIPE);
  case EXECUTE_LOST:
  case EXECUTE_FAILED:
  case EXECUTE_UNKNOWN:
    return EXIT_SANDHOST;
  }
  return EXIT_SANDHOST;
}

const char *cli_run_status(const ExecuteOutcome *outcome) {
  switch (outcome->end) {
  case EXECUTE_CANCELLED:
    return "cancelled";
  case EXECUTE_FAILED:
  case EXECUTE_WAITING:
  case EXECUTE_UNKNOWN:
    return "failed";
  default:
    return "completed"; /* the run did its work; how the command ended is the command's matter */
  }
}

/* atomic: errno of the first write that failed */
static gint stdout_fault;
static gint stderr_fault;

int cli_stdout_fault(void) {
  if (fflush(stdout) != 0 || ferror(stdout)) {
    g_atomic_int_compare_and_exchange(&stdout_fault, 0, errno ? errno : EIO);
  }
  int fault = g_atomic_int_get(&stdout_fault);
  return fault == EPIPE ? 0 : fault;
}

int cli_stderr_fault(void) {
  int fault = g_atomic_int_get(&stderr_fault);
  return fault == EPIPE ? 0 : fault;
}

char *cli_output_fault(void) {
  int out = cli_stdout_fault();
  int fault = out ? out : cli_stderr_fault();
  return fault ? g_strdup_printf("could not write standard %s: %s", out ? "output" : "error",
                                 g_strerror(fault))
               : NULL;
}

static gboolean note_fault(int fd, int fault) {
  if (fd == STDOUT_FILENO) {
    g_atomic_int_compare_and_exchange(&stdout_fault, 0, fault);
  } else if (fd == STDERR_FILENO) {
    g_atomic_int_compare_and_exchange(&stderr_fault, 0, fault);
  }
  return FALSE;
}

gboolean cli_write(int fd, const void *data, gsize length) {
  const char *at = data;
  while (length > 0) {
    ssize_t written = write(fd, at, length);
    if (written > 0) {
      at += written;
      length -= (gsize)written;
    } else if (written < 0 && errno == EAGAIN) {
      struct pollfd ready = {.fd = fd, .events = POLLOUT};
      poll(&ready, 1, -1);
    } else if (written < 0 && errno != EINTR) {
      return note_fault(fd, errno);
    }
  }
  return TRUE;
}

gboolean cli_put_stdout(void *user, const void *data, gsize length) {
  (void)user;
  return cli_write(STDOUT_FILENO, data, length);
}

void cli_tell_shortened(gint64 timeout, gint64 most) {
  g_autofree char *line = execute_shortened(timeout, most);
  if (line) {
    cli_complain("%s", line);
  }
}

gboolean cli_number(const char *option, const char *text, gint64 least, gint64 most,
                    gint64 *ret_number) {
  gint64 number = 0;
  if (!g_ascii_string_to_signed(text, 10, least, most, &number, NULL)) {
    cli_complain("%s must be a whole number between %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT
                 ", got '%s'",
                 option, least, most, text);
    return FALSE;
  }
  *ret_number = number;
  return TRUE;
}
