/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate-probe.c: tries a connection with the sandbox's own python. Only a definite answer counts: a python that
 * is broken, killed or made to lie by silence says nothing about the network.
 */
#include <arpa/inet.h>
#include <string.h>

#include "base/clock.h"
#include "provider/emulate.h"
#include "provider/text.h"

/* Works with Python 2.7 and 3. Prints one word; whatever else happens prints none. */
static const char SCRIPT[] =
    "import errno, socket, sys\n"
    "address, port, patience = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])\n"
    "family = socket.AF_INET6 if ':' in address else socket.AF_INET\n"
    "blocked = [getattr(errno, name) for name in ('ENETUNREACH', 'EHOSTUNREACH', 'ENETDOWN',\n"
    "    'EHOSTDOWN', 'EPERM', 'EACCES', 'ETIMEDOUT', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EAGAIN',\n"
    "    'EINPROGRESS')]\n"
    "try:\n"
    "    s = socket.socket(family, socket.SOCK_STREAM)\n"
    "    s.settimeout(patience)\n"
    "    s.connect((address, port))\n"
    "    word = 'reached'\n"
    "except socket.timeout:\n"
    "    word = 'blocked'\n"
    "except (OSError, socket.error) as e:\n"
    "    word = 'reached' if e.errno == errno.ECONNREFUSED else (\n"
    "        'blocked' if e.errno in blocked else 'unclear')\n"
    "sys.stdout.write('sandhost-probe ' + word + '\\n')\n"
    "sys.stdout.flush()\n";

#define MAX_ANSWER 256u

static gboolean take(void *user, const char *data, gsize length) {
  GString *answer = user;
  g_string_append_len(answer, data, (gssize)MIN(length, MAX_ANSWER - answer->len));
  return TRUE;
}

/* Tells whether there is such a program in *ret_there. */
static gboolean try_with(Sandbox *sandbox, const CallScope *scope, const char *python,
                         const struct sandhost_probe *probe, GString *answer, gboolean *ret_there,
                         GError **error) {
  g_autofree char *address = g_strndup(probe->address.data, probe->address.length);
  g_autofree char *port = g_strdup_printf("%u", probe->port);
  g_autofree char *patience =
      g_strdup_printf("%" G_GINT64_FORMAT ".%03d", probe->patience / CLOCK_SECOND,
                      (int)(probe->patience % CLOCK_SECOND / CLOCK_MILLISECOND));
  const char *const argv[] = {python, "-c", SCRIPT, address, port, patience, NULL};
  const EmulatedCommand command = {
      .argv = argv,
      .limit = probe->patience + 10 * CLOCK_SECOND, /* a python may start slowly */
      .take = take,
      .user = answer,
  };
  struct sandhost_result result = {0};
  if (!emulate_command(sandbox, scope, &command, &result, NULL, error)) {
    return FALSE;
  }
  *ret_there = !(result.ended == SANDHOST_ENDED_EXIT && result.exit_code == 127);
  if (result.ended != SANDHOST_ENDED_EXIT || result.exit_code != 0) {
    g_string_truncate(answer, 0);
  }
  return TRUE;
}

/* What a native probe refuses as well; above all, no name is looked up. */
static gboolean makes_sense(const struct sandhost_probe *probe) {
  guint8 room[16];
  g_autofree char *address = g_strndup(probe->address.data, probe->address.length);
  gboolean numeric =
      inet_pton(AF_INET, address, room) == 1 || inet_pton(AF_INET6, address, room) == 1;
  return numeric && strlen(address) == probe->address.length && probe->port >= 1 &&
         probe->port <= 65535 && probe->patience >= 0;
}

gboolean emulate_probe(Sandbox *sandbox, const CallScope *scope, const struct sandhost_probe *probe,
                       guint32 *ret_verdict, GError **error) {
  static const char *const pythons[] = {"python3", "python"};
  const char *name = provider_instance_name(sandbox->instance);
  g_autoptr(GString) answer = g_string_new(NULL);
  gboolean there = FALSE;
  if (!makes_sense(probe)) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_INVALID,
                "%s: the address, port or patience of the probe makes no sense", name);
    return FALSE;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(pythons) && !there; i++) {
    if (!try_with(sandbox, scope, pythons[i], probe, answer, &there, error)) {
      return FALSE;
    }
  }
  if (!there) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED,
                "The %s sandbox's network could not be checked: the image has no python to run the "
                "check with",
                name);
    return FALSE;
  }
  if (strcmp(answer->str, "sandhost-probe reached\n") == 0) {
    *ret_verdict = SANDHOST_PROBE_REACHED;
  } else if (strcmp(answer->str, "sandhost-probe blocked\n") == 0) {
    *ret_verdict = SANDHOST_PROBE_BLOCKED;
  } else {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_INTERNAL,
                "The %s sandbox's network could not be checked: the check gave no clear answer",
                name);
    return FALSE;
  }
  return TRUE;
}
