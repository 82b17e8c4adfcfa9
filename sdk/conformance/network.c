/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c: a listener on every address of this machine hands each caller a word that nobody else knows; what comes out
 * of a sandbox with that word in it was connected.
 *
 * Which address a sandbox reaches depends on its kind: one that shares this machine's network has the loopback, a container
 * on a bridge has the bridge's own address or any other of this machine. So all are tried.
 */
#include "network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Machines with many bridges have many addresses, and each that is silent costs a wait. */
#define MAX_ADDRESSES 12u
#define PATIENCE_SECONDS 5

gboolean declares_setting(const struct sandhost_provider *table, guint32 setting) {
  for (gsize i = 0; i < table->enforces_count; i++) {
    if (table->enforces[i].setting == setting) {
      return table->enforces[i].level > SANDHOST_LEVEL_NONE;
    }
  }
  return table->enforces_count == 0;
}

/* ---- The listener -------------------------------------------------------------------------------------------------- */

typedef struct {
  int socket;
  int stop; /* eventfd */
  guint port;
  char word[32];
  GThread *thread;
  GPtrArray *addresses; /* of char *: numeric, this machine's; loopback last */
} Listener;

/* Like a web server's answer, so that any program will do. The caller's last words are read, or it would be told of a
 * reset in the place of what it was sent. */
static void answer(const Listener *listener, int caller) {
  char rest[512];
  struct pollfd more = {.fd = caller, .events = POLLIN};
  g_autofree char *text = g_strdup_printf("HTTP/1.0 200 OK\r\nContent-Length: %zu\r\n\r\n%s\n",
                                          strlen(listener->word) + 1, listener->word);
  if (send(caller, text, strlen(text), MSG_NOSIGNAL) < 0) {
    return;
  }
  shutdown(caller, SHUT_WR);
  while (poll(&more, 1, 1000) == 1 && read(caller, rest, sizeof rest) > 0) {
  }
}

static gpointer serve(gpointer data) {
  const Listener *listener = data;
  for (;;) {
    struct pollfd watched[] = {{.fd = listener->stop, .events = POLLIN},
                               {.fd = listener->socket, .events = POLLIN}};
    if (poll(watched, G_N_ELEMENTS(watched), -1) > 0 && watched[0].revents) {
      return NULL;
    }
    /* cppcheck-suppress nullPointer; accept4(2) takes none where nobody asks who it is */
    int caller = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC);
    if (caller >= 0) {
      answer(listener, caller);
      close(caller);
    }
  }
}

static GPtrArray *own_addresses(void) {
  GPtrArray *addresses = g_ptr_array_new_with_free_func(g_free);
  struct ifaddrs *all = NULL;
  if (getifaddrs(&all) == 0) {
    for (const struct ifaddrs *at = all; at && addresses->len < MAX_ADDRESSES; at = at->ifa_next) {
      char text[INET_ADDRSTRLEN];
      if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_UP) &&
          !(at->ifa_flags & IFF_LOOPBACK)) {
        const struct sockaddr_in *address = (const void *)at->ifa_addr;
        inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
        g_ptr_array_add(addresses, g_strdup(text));
      }
    }
    freeifaddrs(all);
  }
  g_ptr_array_add(addresses, g_strdup("127.0.0.1"));
  return addresses;
}

static void listener_stop(Listener *listener) {
  if (listener->thread) {
    eventfd_write(listener->stop, 1);
    g_thread_join(listener->thread);
  }
  if (listener->socket >= 0) {
    close(listener->socket);
  }
  if (listener->stop >= 0) {
    close(listener->stop);
  }
  g_ptr_array_unref(listener->addresses);
}

static gboolean listener_start(Listener *listener, Verdict *verdict) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t length = sizeof address;
  *listener = (Listener){.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                         .stop = eventfd(0, EFD_CLOEXEC),
                         .addresses = own_addresses()};
  g_snprintf(listener->word, sizeof listener->word, "word-%08x%08x", g_random_int(),
             g_random_int());
  if (listener->socket < 0 || listener->stop < 0 ||
      bind(listener->socket, (const void *)&address, sizeof address) != 0 ||
      listen(listener->socket, 16) != 0 ||
      getsockname(listener->socket, (void *)&address, &length) != 0) {
    untried(verdict, "this machine lets nobody listen");
    listener_stop(listener);
    return FALSE;
  }
  listener->port = ntohs(address.sin_port);
  listener->thread = g_thread_new("listener", serve, listener);
  return TRUE;
}

/* ---- From inside ----------------------------------------------------------------------------------------------------- */

/* Every program that can connect, until one does. Needs no argument, since not every provider hands one to a script. */
#define CONNECT                                                                                    \
  "unset http_proxy HTTP_PROXY all_proxy ALL_PROXY\n"                                              \
  "try() { command -v \"$1\" > /dev/null 2>&1 || return 1; echo tried; \"$@\" 2> /dev/null; }\n"   \
  "try python3 -c \"import socket; s = socket.create_connection(('$a', $p), 5); "                  \
  "print(s.recv(200).decode())\" ||\n"                                                             \
  "try bash -c \"exec 3<>/dev/tcp/$a/$p && cat <&3\" ||\n"                                         \
  "try nc \"$a\" \"$p\" < /dev/null || try busybox nc \"$a\" \"$p\" < /dev/null ||\n"              \
  "try wget -q -O - \"http://$a:$p/\" || try curl -s \"http://$a:$p/\" ||\n"                       \
  "try perl -MIO::Socket::INET -e \"print IO::Socket::INET->new('$a:$p')->getline\"\n"             \
  "true\n"

/* Whether a command connected; *tried: some program was there to try it. */
static gboolean connects(Box *box, const Listener *listener, const char *address, gboolean *tried,
                         Verdict *verdict) {
  Ran ran;
  g_autofree char *script = g_strdup_printf("a=%s p=%u\n" CONNECT, address, listener->port);
  run_script(box, script, &(RunOptions){.limit = PATIENCE_SECONDS * 4}, &ran);
  gboolean reached = strstr(ran.out->str, listener->word) != NULL;
  *tried = *tried || strstr(ran.out->str, "tried") != NULL;
  if (ran.status != SANDHOST_OK) {
    wrong(verdict, "a command that connects failed with %s: %s", status_name(ran.status),
          ran.message ? ran.message : "");
  }
  ran_clear(&ran);
  return reached;
}

/* What probe says of an address; 0: the slot is not there, or not in this sandbox. */
static guint32 probed(Box *box, const char *address, guint port, Verdict *verdict) {
  guint32 told = 0;
  struct sandhost_call call;
  const struct sandhost_probe probe = {.size = sizeof probe,
                                       .address = as_text(address),
                                       .port = port,
                                       .patience = PATIENCE_SECONDS * SECOND};
  if (!box->subject->table->probe) {
    return 0;
  }
  call_init(&call, 60);
  gint32 status = box->subject->table->probe(&call, box->handle, &probe, &told);
  if (status == SANDHOST_UNSUPPORTED) {
    told = 0;
  } else if (status != SANDHOST_OK) {
    wrong(verdict, "probe of %s failed with %s", address, status_name(status));
  } else if (told != SANDHOST_PROBE_REACHED && told != SANDHOST_PROBE_BLOCKED) {
    wrong(verdict, "probe of %s gave the verdict %u, which is none", address, told);
  }
  call_clear(&call);
  return told;
}

typedef enum { ROUTE_UNKNOWN, ROUTE_NONE, ROUTE_SOME } Route;

static Route route_of(Box *box) {
  Ran ran;
  run_script(box,
             "test -r /proc/net/route || { echo unknown; exit 0; }\n"
             "while read -r name rest; do\n"
             "  case $name in Iface | '') ;; *) echo some; exit 0;; esac\n"
             "done < /proc/net/route\n"
             "echo none\n",
             NULL, &ran);
  Route route = strcmp(ran.out->str, "none\n") == 0   ? ROUTE_NONE
                : strcmp(ran.out->str, "some\n") == 0 ? ROUTE_SOME
                                                      : ROUTE_UNKNOWN;
  ran_clear(&ran);
  return route;
}

/* A name of the internet, which no file of the sandbox can hold. */
#define RESOLVE                                                                                    \
  "name=example.com\n"                                                                             \
  "try() { command -v \"$1\" > /dev/null 2>&1 && \"$@\" > /dev/null 2>&1 && echo resolved; }\n"    \
  "try getent ahosts $name || try nslookup $name ||\n"                                             \
  "try python3 -c \"import socket; socket.getaddrinfo('$name', 80)\"\n"                            \
  "true\n"

static void want_no_names(Box *box, Verdict *verdict) {
  Ran ran;
  run_script(box, RESOLVE, &(RunOptions){.limit = PATIENCE_SECONDS * 4}, &ran);
  if (strstr(ran.out->str, "resolved")) {
    wrong(verdict, "a command resolved the name example.com");
  }
  ran_clear(&ran);
}

void want_network_off(Box *box, Verdict *verdict) {
  Listener listener;
  gboolean tried = FALSE;
  if (route_of(box) == ROUTE_SOME) {
    wrong(verdict, "/proc/net/route of the sandbox shows a route");
  }
  if (!listener_start(&listener, verdict)) {
    return;
  }
  for (guint i = 0; i < listener.addresses->len && !verdict->wrong; i++) {
    const char *address = g_ptr_array_index(listener.addresses, i);
    if (connects(box, &listener, address, &tried, verdict)) {
      wrong(verdict, "a command connected to this machine at %s", address);
    }
    /* The sandbox's own loopback answers there, and says nothing of a way out. */
    if (strcmp(address, "127.0.0.1") != 0 &&
        probed(box, address, listener.port, verdict) == SANDHOST_PROBE_REACHED) {
      wrong(verdict, "probe reached this machine at %s", address);
    }
  }
  if (probed(box, "1.1.1.1", 80, verdict) == SANDHOST_PROBE_REACHED) {
    wrong(verdict, "probe reached 1.1.1.1");
  }
  listener_stop(&listener);
  want_no_names(box, verdict);
  if (!tried) {
    untried(verdict, "no program in the sandbox can try a connection");
  }
}

void want_network_on(Box *box, Verdict *verdict) {
  Listener listener;
  gboolean tried = FALSE;
  const char *reached = NULL;
  if (!listener_start(&listener, verdict)) {
    return;
  }
  for (guint i = 0; i < listener.addresses->len && !reached; i++) {
    const char *address = g_ptr_array_index(listener.addresses, i);
    reached = connects(box, &listener, address, &tried, verdict) ? address : NULL;
  }
  if (reached && probed(box, reached, listener.port, verdict) == SANDHOST_PROBE_BLOCKED) {
    wrong(verdict, "probe says that %s is blocked, to which a command connected", reached);
  }
  if (!reached && route_of(box) == ROUTE_NONE) {
    wrong(verdict, "no command connects to this machine, and the sandbox has no route");
  } else if (!tried) {
    untried(verdict, "no program in the sandbox can try a connection");
  } else if (!reached) {
    untried(verdict, "no address of this machine is reached from the sandbox");
  }
  listener_stop(&listener);
}
