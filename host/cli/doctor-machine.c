/* SPDX-License-Identifier: Apache-2.0 */
/* doctor-machine.c: what the kernel and the installation give; each asked by doing it, where that leaves nothing. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"

static gboolean has_user_namespaces(void) {
  pid_t child = fork();
  if (child == 0) {
    _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return FALSE;
    }
  }
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const char *control_groups(void) {
  struct statfs about;
  if (statfs("/sys/fs/cgroup", &about) < 0) {
    return "none";
  }
  if ((guint64)about.f_type == CGROUP2_SUPER_MAGIC) {
    return "v2";
  }
  return g_file_test("/sys/fs/cgroup/memory", G_FILE_TEST_IS_DIR) ||
                 g_file_test("/sys/fs/cgroup/pids", G_FILE_TEST_IS_DIR)
             ? "v1"
             : "none";
}

static gboolean has_openat2(void) {
  const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
  int fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how);
  if (fd >= 0) {
    close(fd);
  }
  return fd >= 0;
}

/* The folder that exists nearest above path. Owned. */
static char *existing_folder(const char *path) {
  char *folder = g_path_get_dirname(path);
  while (!g_file_test(folder, G_FILE_TEST_EXISTS) && strcmp(folder, "/") != 0 &&
         strcmp(folder, ".") != 0) {
    char *above = g_path_get_dirname(folder);
    g_free(folder);
    folder = above;
  }
  return folder;
}

/* Whether something can be made in the folder; found out by doing it, which access does not tell of every file system. 0 or
 * an errno. */
static int try_folder(const char *folder) {
  g_autofree char *made = g_build_filename(folder, ".sandhost-doctor-XXXXXX", NULL);
  if (!g_mkdtemp(made)) {
    return errno;
  }
  rmdir(made);
  return 0;
}

/* A record that is not there yet is not made for the sake of asking. Owned; NULL: all is well. */
static char *record_fault(const char *path) {
  if (g_file_test(path, G_FILE_TEST_EXISTS)) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Record) record = record_open(path, &error);
    return record ? NULL : g_strdup(error->message);
  }
  g_autofree char *folder = existing_folder(path);
  int fault = try_folder(folder);
  return fault ? g_strdup_printf("it cannot be made in %s: %s", folder, g_strerror(fault)) : NULL;
}

Machine machine_look(const char *guest_dir, char *take_record) {
  struct utsname names;
  Machine machine = {.record = take_record, .control_groups = control_groups()};
  if (uname(&names) < 0) {
    memset(&names, 0, sizeof names);
  }
  machine.kernel = g_strdup_printf("%s %s %s", names.sysname, names.release, names.machine);
  g_autofree char *program = g_strdup_printf("sandhost-guest-%s", names.machine);
  machine.guest = g_build_filename(*guest_dir ? guest_dir : "/", program, NULL);
  machine.has_guest = *guest_dir && g_file_test(machine.guest, G_FILE_TEST_IS_EXECUTABLE);
  machine.record_fault = record_fault(machine.record);
  machine.user_namespaces = has_user_namespaces();
  machine.seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
  machine.openat2 = has_openat2();
  return machine;
}

void machine_clear(Machine *machine) {
  g_free(machine->guest);
  g_free(machine->record);
  g_free(machine->record_fault);
  g_free(machine->kernel);
}

JsonObject *machine_json(const Machine *machine) {
  JsonObject *object = json_object_new_object();
  json_add_text(object, "kernel", machine->kernel);
  json_add_bool(object, "user_namespaces", machine->user_namespaces);
  json_add_text(object, "control_groups", machine->control_groups);
  json_add_bool(object, "seccomp", machine->seccomp);
  json_add_bool(object, "openat2", machine->openat2);
  json_add_text(object, "guest", machine->guest);
  json_add_bool(object, "guest_present", machine->has_guest);
  json_add_text(object, "record", machine->record);
  json_add_text(object, "record_error", machine->record_fault);
  return object;
}
