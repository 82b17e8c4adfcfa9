/* SPDX-License-Identifier: Apache-2.0 */
/* bubblewrap-sight.c: what a command in a bubblewrap sandbox sees of the machine, and what not. */
#include "bubblewrap-fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* ---- Commands --------------------------------------------------------------------------------- */

static void test_hello(void) {
  struct box box = box_new();
  g_auto(Ran) ran = plugin_run(box.sandbox, "echo hello; echo problem >&2; pwd");
  g_assert_cmpstr(ran.out, ==, "hello\n/workspace\n");
  g_assert_cmpstr(ran.err, ==, "problem\n");
  g_assert_cmpint(ran.result.exit_code, ==, 0);
  box_end(&box);
}

static void test_exit_codes(void) {
  struct box box = box_new();
  g_auto(Ran) three = plugin_run(box.sandbox, "exit 3");
  g_assert_cmpuint(three.result.ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_cmpint(three.result.exit_code, ==, 3);
  g_auto(Ran) killed = plugin_run(box.sandbox, "kill -TERM $$");
  g_assert_cmpuint(killed.result.ended, ==, SANDHOST_ENDED_SIGNAL);
  g_assert_cmpint(killed.result.signal, ==, SIGTERM);
  g_assert_cmpint(killed.result.exit_code, ==, 128 + SIGTERM);
  const char *const missing[] = {"no-such-program", NULL};
  g_auto(Ran) none = plugin_run_argv(box.sandbox, missing, 0);
  g_assert_cmpuint(none.result.ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_cmpint(none.result.exit_code, ==, 127);
  box_end(&box);
}

static void test_stdin_is_empty(void) {
  struct box box = box_new();
  plugin_expect(box.sandbox, "cat; readlink /proc/self/fd/0", "/dev/null\n");
  box_end(&box);
}

static void test_files_in_and_out(void) {
  struct box box = box_new();
  g_autofree char *message = NULL;
  g_autofree char *content = NULL;
  g_autofree char *outside = NULL;
  g_assert_cmpint(plugin_write(box.sandbox, "/workspace/a/b.txt", "text\n", &message), ==,
                  SANDHOST_OK);
  plugin_expect(box.sandbox, "cat a/b.txt; echo back > c.txt", "text\n");
  g_assert_cmpint(plugin_read(box.sandbox, "/workspace/c.txt", &content), ==, SANDHOST_OK);
  g_assert_cmpstr(content, ==, "back\n");
  g_assert_cmpint(plugin_read(box.sandbox, "/etc/passwd", &outside), ==, SANDHOST_INVALID);
  g_assert_cmpstr(outside, ==, "Path /etc/passwd is outside the sandbox working directory");
  box_end(&box);
}

/* ---- Identity --------------------------------------------------------------------------------- */

static void test_user_inside(void) {
  struct box box = box_new();
  plugin_expect(box.sandbox, "id -u; id -g; id -un; id -gn; uname -n; echo ~",
                "1000\n1000\nsandbox\nsandbox\nsandbox\n/tmp\n");
  plugin_expect(box.sandbox, "grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs)' /proc/self/status",
                "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
                "CapBnd:\t0000000000000000\nNoNewPrivs:\t1\n");
  box_end(&box);
}

static void test_user_outside(void) {
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct sandhost_sandbox *sandbox = NULL;
  g_autofree char *message = NULL;
  g_autofree char *ref = NULL;
  plugin_try_create(instance, &(struct wish){0}, &sandbox, &message, &ref);
  g_assert_cmpstr(message, ==, NULL);
  plugin_expect(sandbox,
                "sleep 1000 >/dev/null 2>&1 & until grep -q sleep /proc/$!/comm; do :; done; "
                "echo started",
                "started\n");
  const unsigned int expected = geteuid() == 0 ? 65534u : geteuid();
  g_autofree char *line =
      g_strdup_printf("\nUid:\t%u\t%u\t%u\t%u\n", expected, expected, expected, expected);
  GArray *tree = tree_of(pid_of_ref(ref));
  g_assert_cmpuint(tree->len, >=, 3); /* bwrap, the guest, sleep */
  gboolean found_sleep = FALSE;
  for (guint i = 0; i < tree->len; i++) {
    g_autofree char *path = g_strdup_printf("/proc/%d/status", g_array_index(tree, int, i));
    g_autofree char *status = NULL;
    g_assert_true(g_file_get_contents(path, &status, NULL, NULL));
    g_assert_nonnull(strstr(status, line));
    found_sleep |= g_str_has_prefix(status, "Name:\tsleep\n");
  }
  g_assert_true(found_sleep);
  plugin_end(sandbox);
  wait_until_gone(tree);
  g_array_unref(tree);
  plugin->close(instance);
  plugin_stop();
}

static void test_no_more_namespaces(void) {
  struct box box = box_new();
  g_auto(Ran) ran = plugin_run(box.sandbox, "unshare -U true");
  g_assert_cmpint(ran.result.exit_code, !=, 0);
  box_end(&box);
}

/* ---- Variables and descriptors ---------------------------------------------------------------- */

static int compare_lines(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *sorted_lines(const char *text) {
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  qsort(lines, g_strv_length(lines), sizeof *lines, compare_lines);
  return g_strjoinv("\n", lines);
}

static void test_environment_is_exact(void) {
  const struct sandhost_pair pairs[] = {
      {.name = fake_to_text("LD_PRELOAD"), .value = fake_to_text("/nowhere.so")},
      {.name = fake_to_text("GREETING"), .value = fake_to_text("a b=c\nd")},
      {.name = fake_to_text("LANG"), .value = fake_to_text("C")},
  };
  g_setenv("SANDHOST_TEST_SECRET", "do not tell", TRUE);
  struct box box =
      box_with(&(struct settings){0}, &(struct wish){.environment = pairs, .environment_count = 3});
  const char *const argv[] = {"env", NULL};
  g_auto(Ran) ran = plugin_run_argv(box.sandbox, argv, 0);
  g_autofree char *sorted = sorted_lines(ran.out);
  g_assert_cmpstr(sorted, ==,
                  "\nGREETING=a b=c\nHOME=/tmp\nLANG=C\nLD_PRELOAD=/nowhere.so\n"
                  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
                  "PWD=/workspace\nd");
  box_end(&box);
  g_unsetenv("SANDHOST_TEST_SECRET");
}

static void test_variables_are_not_in_the_command_line(void) {
  const struct sandhost_pair pair = {.name = fake_to_text("TOKEN"),
                                     .value = fake_to_text("very-secret-value")};
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct sandhost_sandbox *sandbox = NULL;
  g_autofree char *ref = NULL;
  const struct wish wish = {.environment = &pair, .environment_count = 1};
  g_assert_cmpint(plugin_try_create(instance, &wish, &sandbox, NULL, &ref), ==, SANDHOST_OK);
  g_autofree char *path = g_strdup_printf("/proc/%d/cmdline", pid_of_ref(ref));
  g_autofree char *text = NULL;
  gsize length = 0;
  g_assert_true(g_file_get_contents(path, &text, &length, NULL));
  g_assert_nonnull(memmem(text, length, "bwrap", 5));
  g_assert_null(memmem(text, length, "secret", 6));
  plugin_expect(sandbox, "echo $TOKEN", "very-secret-value\n");
  plugin_end(sandbox);
  plugin->close(instance);
  plugin_stop();
}

static void test_no_descriptor_comes_along(void) {
  int leak = open("/dev/null", O_RDONLY); /* inheritable, on purpose */
  int high = fcntl(leak, F_DUPFD, 100);
  struct box box = box_new();
  const char *const argv[] = {"ls", "/proc/self/fd", NULL};
  g_auto(Ran) ran = plugin_run_argv(box.sandbox, argv, 0);
  g_assert_cmpstr(ran.out, ==, "0\n1\n2\n3\n"); /* 3 is the folder that ls reads */
  box_end(&box);
  close(leak);
  close(high);
}

/* ---- Files of the machine --------------------------------------------------------------------- */

static void test_files_of_the_machine_are_hidden(void) {
  struct box box = box_new();
  plugin_expect(box.sandbox,
                "for p in /root /home /run /srv /opt /mnt /media /sys /boot /work /etc/shadow "
                "/etc/gshadow /etc/sudoers /etc/ssh /etc/ssl/private /etc/hostname /etc/fstab "
                "/run/dbus /var/run/docker.sock /var/lib /etc/machine-id /oldroot; do "
                "[ ! -e $p ] || echo $p; done",
                "");
  plugin_expect(box.sandbox, "ls -A /tmp /workspace /dev/shm /var",
                "/dev/shm:\n\n/tmp:\n\n/var:\ntmp\n\n/workspace:\n");
  box_end(&box);
}

static void test_system_is_read_only(void) {
  struct box box = box_new();
  plugin_expect(box.sandbox,
                "for d in / /usr /usr/bin /etc /etc/ssl /etc/alternatives /dev /var /lib; do "
                "[ -d $d ] || continue; (: > $d/x) 2>/dev/null && echo wrote $d; done; "
                "for f in /etc/passwd /etc/hosts /usr/bin/env; do "
                "(: >> $f) 2>/dev/null && echo wrote $f; done; true",
                "");
  plugin_expect(box.sandbox,
                "for d in /tmp /workspace /dev/shm /var/tmp; do : > $d/x || echo $d; done", "");
  plugin_expect(box.sandbox, "stat -c '%a %U' /workspace /tmp / /etc /etc/ssl/",
                "700 sandbox\n1777 sandbox\n755 sandbox\n755 sandbox\n755 sandbox\n");
  box_end(&box);
}

static void test_names_of_users_and_hosts(void) {
  struct box box = box_new();
  plugin_expect(box.sandbox, "getent passwd sandbox; getent group sandbox",
                "sandbox:x:1000:1000:sandbox:/tmp:/bin/sh\nsandbox:x:1000:\n");
  plugin_expect(box.sandbox, "getent hosts localhost >/dev/null && echo known", "known\n");
  box_end(&box);
}

static void test_the_guest_is_closed(void) {
  struct box box = box_new();
  plugin_expect(box.sandbox,
                "for f in environ maps mem exe fd/0 fd/3; do "
                "cat /proc/1/$f >/dev/null 2>&1 && echo read $f; done; "
                "ls /proc/1/fd 2>/dev/null; readlink /proc/1/exe; true",
                "");
  box_end(&box);
}

static void test_nothing_of_the_machine_runs_here(void) {
  struct box box = box_new();
  /* The guest, its keeper at most twice, sh, ls. */
  g_auto(Ran) ran = plugin_run(box.sandbox, "ls -d /proc/[0-9]* | wc -l");
  g_assert_cmpint(g_ascii_strtoll(ran.out, NULL, 10), <, 12);
  box_end(&box);
}

/* ---- Network ---------------------------------------------------------------------------------- */

/* A listener of the machine on loopback; returns its descriptor. */
static int listen_on_loopback(uint16_t *ret_port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint(bind(fd, (struct sockaddr *)&address, length), ==, 0);
  g_assert_cmpint(listen(fd, 1), ==, 0);
  g_assert_cmpint(getsockname(fd, (struct sockaddr *)&address, &length), ==, 0);
  *ret_port = ntohs(address.sin_port);
  return fd;
}

static char *interfaces_of(const char *text) {
  GString *names = g_string_new(NULL);
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  for (size_t i = 0; lines[i]; i++) {
    char *colon = strchr(lines[i], ':');
    if (colon) {
      *colon = '\0';
      g_string_append_printf(names, "%s ", g_strstrip(lines[i]));
    }
  }
  return g_string_free(names, FALSE);
}

static Ran connect_to(struct sandhost_sandbox *sandbox, uint16_t port) {
  g_autofree char *script = g_strdup_printf("exec 3<>/dev/tcp/127.0.0.1/%u", port);
  const char *const argv[] = {"bash", "-c", script, NULL};
  return plugin_run_argv(sandbox, argv, 0);
}

static void test_network_off(void) {
  struct box box = box_new();
  g_auto(Ran) list = plugin_run(box.sandbox, "cat /proc/net/dev");
  g_autofree char *names = interfaces_of(list.out);
  g_assert_cmpstr(names, ==, "lo ");
  uint16_t port = 0;
  int listener = listen_on_loopback(&port);
  g_auto(Ran) ran = connect_to(box.sandbox, port);
  g_assert_cmpint(ran.result.exit_code, !=, 0);
  close(listener);
  struct sandhost_call call;
  uint32_t verdict = 0;
  struct sandhost_probe probe = {.size = sizeof probe,
                                 .address = fake_to_text("192.0.2.1"),
                                 .port = 80,
                                 .patience = PLUGIN_SECOND};
  fake_call_init(&call);
  g_assert_cmpint(plugin->probe(&call, box.sandbox, &probe, &verdict), ==, SANDHOST_OK);
  g_assert_cmpuint(verdict, ==, SANDHOST_PROBE_BLOCKED);
  fake_call_clear(&call);
  box_end(&box);
}

static void test_loopback_inside_works(void) {
  struct box box = box_new();
  const char *const argv[] = {"python3", "-c",
                              "import socket, threading\n"
                              "s = socket.create_server(('127.0.0.1', 0))\n"
                              "c = socket.create_connection(('localhost', s.getsockname()[1]))\n"
                              "print('connected')",
                              NULL};
  g_auto(Ran) ran = plugin_run_argv(box.sandbox, argv, 0);
  if (ran.result.exit_code == 127) {
    box_end(&box);
    plugin_skip("no python3 on this machine");
    return;
  }
  g_assert_cmpstr(ran.out, ==, "connected\n");
  box_end(&box);
}

static void test_network_on(void) {
  struct box box = box_with(&(struct settings){0}, &(struct wish){.network = TRUE});
  g_autofree char *here = NULL;
  g_assert_true(g_file_get_contents("/proc/net/dev", &here, NULL, NULL));
  g_autofree char *here_names = interfaces_of(here);
  g_auto(Ran) list = plugin_run(box.sandbox, "cat /proc/net/dev");
  g_autofree char *names = interfaces_of(list.out);
  g_assert_cmpstr(names, ==, here_names);
  uint16_t port = 0;
  int listener = listen_on_loopback(&port);
  g_auto(Ran) ran = connect_to(box.sandbox, port);
  g_assert_cmpint(ran.result.exit_code, ==, 0);
  close(listener);
  g_autofree char *resolv = NULL;
  if (g_file_get_contents("/etc/resolv.conf", &resolv, NULL, NULL)) {
    plugin_expect(box.sandbox, "cat /etc/resolv.conf", resolv);
  }
  box_end(&box);
}

/* ---- Working directories ---------------------------------------------------------------------- */

static void test_working_dirs(void) {
  static const struct {
    const char *asked;
    const char *got;
  } dirs[] = {
      {"/tmp", "/tmp"},         {"/tmp/a/b", "/tmp/a/b"}, {"/home/me/project/", "/home/me/project"},
      {"//srv///x", "/srv/x"},  {"/var/tmp", "/var/tmp"}, {"/var/lib/x y", "/var/lib/x y"},
      {"/run/app", "/run/app"}, {"/work", "/work"}};
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++) {
    struct sandhost_sandbox *sandbox =
        plugin_create(instance, &(struct wish){.working_dir = dirs[i].asked});
    g_autofree char *expected = g_strdup_printf("%s\n", dirs[i].got);
    plugin_expect(sandbox, "pwd -P; echo x > file; [ -s file ]", expected);
    plugin_end(sandbox);
  }
  plugin->close(instance);
  plugin_stop();
}

static void test_refused_working_dirs(void) {
  static const char system_files[] = "it would hide system files that commands need";
  static const struct {
    const char *dir;
    const char *reason;
  } dirs[] = {{"/", "it is the root folder"},
              {"///", "it is the root folder"},
              {"/usr", system_files},
              {"/usr/local/x", system_files},
              {"/proc", system_files},
              {"/dev/shm/x", system_files},
              {"/etc", system_files},
              {"/sys/x", system_files},
              {"/lib64", system_files},
              {"/bin/x", system_files},
              {"/var", system_files},
              {"/workspace/../etc", "it has a . or .. component"},
              {"/workspace/./x", "it has a . or .. component"}};
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++) {
    struct sandhost_sandbox *sandbox = NULL;
    g_autofree char *message = NULL;
    g_autofree char *expected =
        g_strdup_printf("%s cannot be the working directory of a bubblewrap sandbox: %s",
                        dirs[i].dir, dirs[i].reason);
    g_assert_cmpint(plugin_try_create(instance, &(struct wish){.working_dir = dirs[i].dir},
                                      &sandbox, &message, NULL),
                    ==, SANDHOST_INVALID);
    g_assert_cmpstr(message, ==, expected);
  }
  plugin->close(instance);
  plugin_stop();
}

static const struct {
  const char *name;
  void (*test)(void);
} tests[] = {
    {"hello", test_hello},
    {"exit-codes", test_exit_codes},
    {"stdin-is-empty", test_stdin_is_empty},
    {"files-in-and-out", test_files_in_and_out},
    {"user-inside", test_user_inside},
    {"user-outside", test_user_outside},
    {"no-more-namespaces", test_no_more_namespaces},
    {"environment-is-exact", test_environment_is_exact},
    {"variables-are-not-in-the-command-line", test_variables_are_not_in_the_command_line},
    {"no-descriptor-comes-along", test_no_descriptor_comes_along},
    {"files-of-the-machine-are-hidden", test_files_of_the_machine_are_hidden},
    {"system-is-read-only", test_system_is_read_only},
    {"names-of-users-and-hosts", test_names_of_users_and_hosts},
    {"the-guest-is-closed", test_the_guest_is_closed},
    {"nothing-of-the-machine-runs-here", test_nothing_of_the_machine_runs_here},
    {"network-off", test_network_off},
    {"loopback-inside-works", test_loopback_inside_works},
    {"network-on", test_network_on},
    {"working-dirs", test_working_dirs},
    {"refused-working-dirs", test_refused_working_dirs},
};

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  plugin_load("bubblewrap");
  for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
    plugin_add_test(tests[i].name, &tests[i].test);
  }
  int result = g_test_run();
  plugin_unload();
  return result;
}
