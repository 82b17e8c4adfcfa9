/* SPDX-License-Identifier: Apache-2.0 */
/* bubblewrap-advice.c: each reason why bwrap makes no sandbox gets one line that says what to do. */
#include "../../plugins/bubblewrap/advice.c"

#include <glib/gstdio.h>

/* A made-up /proc/sys with one setting; owned by the caller, who removes it. */
static char *sys_with(const char *file, const char *value) {
  char *sys = g_dir_make_tmp("sandhost-sys-XXXXXX", NULL);
  g_assert_nonnull(sys);
  if (file) {
    g_autofree char *path = g_build_filename(sys, file, NULL);
    g_autofree char *folder = g_path_get_dirname(path);
    g_assert_cmpint(g_mkdir(folder, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, value, -1, NULL));
  }
  return sys;
}

static void remove_sys(const char *sys, const char *file) {
  if (file) {
    g_autofree char *path = g_build_filename(sys, file, NULL);
    g_autofree char *folder = g_path_get_dirname(path);
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(g_rmdir(folder), ==, 0);
  }
  g_assert_cmpint(g_rmdir(sys), ==, 0);
}

static void expect(const char *complaint, const char *file, const char *value,
                   const char *expected) {
  g_autofree char *sys = sys_with(file, value);
  g_autofree char *advice = advice_for_complaint(complaint, "/usr/bin/bwrap", sys);
  g_assert_cmpstr(advice, ==, expected);
  remove_sys(sys, file);
}

static void test_debian_switch(void) {
  expect("bwrap: No permissions to create new namespace", "kernel/unprivileged_userns_clone", "0\n",
         "bubblewrap may not make a sandbox: user namespaces are off; turn them on with: sysctl -w "
         "kernel.unprivileged_userns_clone=1 (No permissions to create new namespace)");
}

static void test_no_namespaces_left(void) {
  expect("bwrap: Creating new namespace failed: No space left on device",
         "user/max_user_namespaces", "0\n",
         "bubblewrap may not make a sandbox: user namespaces are off; turn them on with: sysctl -w "
         "user.max_user_namespaces=15000 (Creating new namespace failed: No space left on device)");
}

static void test_apparmor(void) {
  expect("bwrap: setting up uid map: Permission denied",
         "kernel/apparmor_restrict_unprivileged_userns", "1\n",
         "bubblewrap may not make a sandbox: AppArmor restricts user namespaces; give bwrap a "
         "profile that allows them, as sandhost-bubblewrap(5) says, or: sysctl -w "
         "kernel.apparmor_restrict_unprivileged_userns=0 (setting up uid map: Permission denied)");
}

static void test_settings_that_allow(void) {
  expect("bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
         "kernel/unprivileged_userns_clone", "1\n",
         "bubblewrap may not make a sandbox: the container or a security policy that sandhost runs "
         "under forbids namespaces or mounts (Can't mount proc on /newroot/proc: Operation not "
         "permitted)");
}

static void test_no_room(void) {
  expect("bwrap: Creating new namespace failed: Resource temporarily unavailable",
         "kernel/unprivileged_userns_clone", "1\n",
         "bubblewrap found no room for another process: the limit of this user's processes (ulimit "
         "-u) "
         "is reached (Creating new namespace failed: Resource temporarily unavailable)");
}

static void test_other_complaints(void) {
  expect("bwrap: Unknown option --size", NULL, NULL,
         "bubblewrap (/usr/bin/bwrap) is too old, version 0.7 or newer is needed: Unknown option "
         "--size");
  expect("bwrap: Can't find source path /usr: No such file or directory", NULL, NULL,
         "bubblewrap could not make the sandbox: Can't find source path /usr: No such file or "
         "directory");
  expect("", NULL, NULL,
         "bubblewrap (/usr/bin/bwrap) ended without a word before the sandbox was there");
}

static void test_missing(void) {
  g_autofree char *searched = advice_for_missing(NULL);
  g_assert_cmpstr(searched, ==,
                  "bubblewrap is not installed; install it with: apt install bubblewrap");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/bubblewrap-advice/debian-switch", test_debian_switch);
  g_test_add_func("/bubblewrap-advice/no-namespaces-left", test_no_namespaces_left);
  g_test_add_func("/bubblewrap-advice/apparmor", test_apparmor);
  g_test_add_func("/bubblewrap-advice/settings-that-allow", test_settings_that_allow);
  g_test_add_func("/bubblewrap-advice/no-room", test_no_room);
  g_test_add_func("/bubblewrap-advice/other-complaints", test_other_complaints);
  g_test_add_func("/bubblewrap-advice/missing", test_missing);
  return g_test_run();
}
