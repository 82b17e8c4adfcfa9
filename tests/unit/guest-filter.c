/* SPDX-License-Identifier: Apache-2.0 */
/* guest-filter.c: the system calls that the guest, when it is asked to, refuses to all that it starts. */
#include "guest-raw.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define NUMBER_IO_URING_SETUP 425

static void begin(struct raw *raw, gboolean is_filtered) {
  g_autofree char *program = raw_program();
  const char *const argv[] = {program, is_filtered ? "--filter" : NULL, NULL};
  memset(raw, 0, sizeof *raw);
  raw_spawn(raw, argv);
  raw_send_hello(raw, GUEST_MAGIC, GUEST_VERSION);
  g_assert_cmpuint(raw_take_hello(raw), ==, GUEST_VERSION);
}

/* What a call answers in a command: 0, or errno. */
static int call(struct raw *raw, const char *arguments) {
  static uint32_t id;
  g_autofree char *program =
      g_strdup_printf("print syscall(%s) < 0 ? $! + 0 : 0, \"\\n\"", arguments);
  raw_execute(raw, ++id,
              (struct raw_command){.argv = (const char *const[]){"perl", "-e", program, NULL}});
  const struct raw_answer *answer = raw_wait(raw, id);
  g_assert_cmpint(answer->exit_code, ==, 0);
  return (int)g_ascii_strtoll(answer->out->str, NULL, 10);
}

static void assert_call(struct raw *raw, int expected, const char *format, ...) G_GNUC_PRINTF(3, 4);
static void assert_call(struct raw *raw, int expected, const char *format, ...) {
  va_list list;
  va_start(list, format);
  g_autofree char *arguments = g_strdup_vprintf(format, list);
  va_end(list);
  int got = call(raw, arguments);
  if (got != expected) {
    g_error("syscall(%s): %s instead of %s", arguments, g_strerror(got), g_strerror(expected));
  }
}

static void test_refused(void) {
  struct raw raw;
  begin(&raw, TRUE);
  assert_call(&raw, EPERM, "%d, 1, 0", NUMBER_IO_URING_SETUP);
  assert_call(&raw, EPERM, "%d, 0, 0, 0, 0, 0", SYS_keyctl);
  assert_call(&raw, EPERM, "%d, 0, 0, 0", SYS_bpf);
  assert_call(&raw, EPERM, "%d, 0, 0, 0, 0, 0", SYS_mount);
  assert_call(&raw, EPERM, "%d, %d", SYS_unshare, 0x10000000);
  assert_call(&raw, EPERM, "%d, %d, 0, 0, 0, 0", SYS_clone, 0x10000000);
  assert_call(&raw, ENOSYS, "%d, 0, 0", 435); /* clone3 */
  assert_call(&raw, EPERM, "%d, 0, %d, my $x = 'x'", SYS_ioctl, TIOCSTI);
  assert_call(&raw, EPERM, "%d, 0, %d, my $x = 'x'", SYS_ioctl, TIOCLINUX);
  assert_call(&raw, EPERM, "%d, 0, %d, my $x = pack('i', 13)", SYS_ioctl, TIOCSETD);
  assert_call(&raw, EPERM, "%d, 0x200, 0", SYS_fanotify_init);
  raw_end(&raw);
}

static void test_sockets(void) {
  struct raw raw;
  begin(&raw, TRUE);
  for (int family = 1; family < 50; family++) {
    gboolean good = family == AF_UNIX || family == AF_INET || family == AF_NETLINK;
    if (family != AF_INET6) { /* which the machine may lack */
      assert_call(&raw, good ? 0 : EAFNOSUPPORT, "%d, %d, %d, 0", SYS_socket, family,
                  family == AF_NETLINK ? 3 : 1);
    }
  }
  assert_call(&raw, EPROTONOSUPPORT, "%d, %d, 3, 16", SYS_socket, AF_NETLINK);
  assert_call(&raw, EAFNOSUPPORT, "%d, 40, 1, 0, my $x = '12345678'", SYS_socketpair);
  assert_call(&raw, 0, "%d, 1, 1, 0, my $x = '12345678'", SYS_socketpair);
  raw_end(&raw);
}

/* Asking for one is enough to load its code, whatever the upper bits of an argument are. */
static void test_rare_protocols(void) {
  struct raw raw;
  begin(&raw, TRUE);
  const int families[] = {AF_INET, AF_INET6};
  const int protocols[] = {33, 115, 132, 136, 256}; /* DCCP, L2TP, SCTP, UDP-Lite, SMC */
  const int types[] = {4, 5, 6, 10, 6 | SOCK_CLOEXEC};
  for (size_t i = 0; i < G_N_ELEMENTS(families); i++) {
    for (size_t j = 0; j < G_N_ELEMENTS(protocols); j++) {
      assert_call(&raw, EPROTONOSUPPORT, "%d, %d, 1, %d", SYS_socket, families[i], protocols[j]);
      assert_call(&raw, EPROTONOSUPPORT, "%d, %d, 2, %d | (1 << 32)", SYS_socket, families[i],
                  protocols[j]);
    }
    for (size_t j = 0; j < G_N_ELEMENTS(types); j++) {
      assert_call(&raw, ESOCKTNOSUPPORT, "%d, %d, %d, 0", SYS_socket, families[i], types[j]);
    }
  }
  assert_call(&raw, 0, "%d, %d, 5, 0", SYS_socket, AF_UNIX);
  assert_call(&raw, 0, "%d, %d, 1, 6", SYS_socket, AF_INET);
  assert_call(&raw, 0, "%d, %d, 2, 17", SYS_socket, AF_INET);
  raw_end(&raw);
}

static void test_personalities(void) {
  struct raw raw;
  begin(&raw, TRUE);
  assert_call(&raw, EPERM, "%d, 0x0400000", SYS_personality); /* READ_IMPLIES_EXEC */
  assert_call(&raw, EPERM, "%d, 0x0440000", SYS_personality);
  assert_call(&raw, EPERM, "%d, 3", SYS_personality);
  assert_call(&raw, 0, "%d, 0x0040008", SYS_personality);
  assert_call(&raw, 0, "%d, 0xffffffff", SYS_personality);
  raw_end(&raw);
}

/* The guest has the commands' own user: the kernel would let them have it. */
static void test_limits_of_others(void) {
  struct raw raw;
  begin(&raw, TRUE);
  const char *limit = "my $x = pack('QQ', 100, 100)";
  assert_call(&raw, EPERM, "%d, getppid, 4, %s, 0", SYS_prlimit64, limit);
  assert_call(&raw, EPERM, "%d, getppid, 4, %s, my $y = 'x' x 16", SYS_prlimit64, limit);
  assert_call(&raw, 0, "%d, getppid, 4, 0, my $y = 'x' x 16", SYS_prlimit64);
  assert_call(&raw, 0, "%d, 0, 6, 0, my $y = 'x' x 16", SYS_prlimit64);
  assert_call(&raw, 0, "%d, 0, 7, %s, 0", SYS_prlimit64, limit);
  raw_end(&raw);
}

/* Without being asked, none of it: other providers have filters of their own. */
static void test_only_when_asked(void) {
  struct raw raw;
  begin(&raw, FALSE);
  assert_call(&raw, 0, "%d, getppid, 4, 0, my $y = 'x' x 16", SYS_prlimit64);
  assert_call(&raw, 0, "%d, $$ + 0, 7, my $x = pack('QQ', 100, 100), 0", SYS_prlimit64);
  raw_end(&raw);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/filter/refused", test_refused);
  g_test_add_func("/guest/filter/sockets", test_sockets);
  g_test_add_func("/guest/filter/rare-protocols", test_rare_protocols);
  g_test_add_func("/guest/filter/personalities", test_personalities);
  g_test_add_func("/guest/filter/limits-of-others", test_limits_of_others);
  g_test_add_func("/guest/filter/only-when-asked", test_only_when_asked);
  return g_test_run();
}
