/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: the folders, files and variables of a sandbox. */
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define USER_ID "1000"
/* A larger file of /etc is left out rather than copied into memory for each sandbox. */
#define MAX_COPY ((off_t)1 << 20)

/* Folders of the machine that programs need besides /usr. No pattern may match one with secrets. */
static const char *const folder_patterns[] = {
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/fonts",
    "/etc/java-[0-9]*-openjdk",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates/extracted",
};

/* Files of the machine, in any sandbox and in those with a network. */
static const char *const file_patterns[] = {
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld-musl-*.path",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/os-release",
    "/etc/lsb-release",
    "/etc/debian_version",
    "/etc/mime.types",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssl/openssl.cnf",
    "/etc/python3*/sitecustomize.py",
};
static const char *const network_files[] = {"/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf"};

/* Top-level folders that hold the programs; links into /usr on most machines. */
static const char *const program_folders[] = {"/bin",   "/sbin",  "/lib",
                                              "/lib32", "/lib64", "/libx32"};

/* Files that are made up. */
struct made_file {
  const char *path;
  const char *content;
};
static const struct made_file made_files[] = {
    {"/etc/passwd", "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
                    "sandbox:x:" USER_ID ":" USER_ID ":sandbox:/tmp:/bin/sh\n"
                    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"/etc/group", "root:x:0:\nsandbox:x:" USER_ID ":\nnogroup:x:65534:\n"},
    {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                           "networks: files\nprotocols: files\nservices: files\nethers: files\n"},
};
static const struct made_file made_hosts = {
    "/etc/hosts", "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n"};

struct Layout {
  uint64_t tmp_size;
  uint64_t workdir_size;
  GByteArray *head;                       /* arguments before the variables */
  GByteArray *tail;                       /* after them, up to the working directory */
  GPtrArray *files;                       /* paths to copy into each sandbox; owned strings */
  GHashTable *folders;                    /* made so far in tail; owned strings */
  GPtrArray *sources;                     /* paths that are mounted; owned strings, then NULL */
  int made_fds[G_N_ELEMENTS(made_files)]; /* memory with their content; -1: none could be had */
  int made_hosts_fd;
};

/* ---- Arguments -------------------------------------------------------------------------------- */

static void add(GByteArray *arguments, const char *first, ...) G_GNUC_NULL_TERMINATED;

static void add(GByteArray *arguments, const char *first, ...) {
  va_list rest;
  va_start(rest, first);
  for (const char *argument = first; argument; argument = va_arg(rest, const char *)) {
    g_byte_array_append(arguments, (const guint8 *)argument, (guint)strlen(argument) + 1);
  }
  va_end(rest);
}

/* A private folder in memory. */
static void add_memory(GByteArray *arguments, const char *path, const char *mode, uint64_t size) {
  char bytes[32];
  g_snprintf(bytes, sizeof bytes, "%" G_GUINT64_FORMAT, size);
  add(arguments, "--perms", mode, "--size", bytes, "--tmpfs", path, NULL);
}

/* The folders above path, which bwrap would make for its own user only; those in made, which may be NULL, are there. */
static void add_parents(GByteArray *arguments, const char *path, GHashTable *made) {
  for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    g_autofree char *parent = g_strndup(path, (gsize)(slash - path));
    if (!made || g_hash_table_add(made, g_strdup(parent))) {
      add(arguments, "--dir", parent, NULL);
    }
  }
}

/* A folder of the machine, at its own place. */
static void add_mount(Layout *layout, const char *option, const char *path) {
  add(layout->tail, option, path, path, NULL);
  g_ptr_array_add(layout->sources, g_strdup(path));
}

/* ---- What the machine has --------------------------------------------------------------------- */

/* Where path is a link that leads to something below /usr, that; owned. */
static char *target_in_usr(const char *path) {
  char *target = realpath(path, NULL);
  if (target && g_str_has_prefix(target, "/usr/")) {
    return target;
  }
  free(target);
  return NULL;
}

static gboolean is_link(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

/* Calls use for every path that matches a pattern. */
static void for_each_match(Layout *layout, const char *const *patterns, size_t count,
                           void (*use)(Layout *layout, const char *path)) {
  for (size_t i = 0; i < count; i++) {
    glob_t found;
    if (glob(patterns[i], GLOB_NOSORT, NULL, &found) == 0) {
      for (size_t j = 0; j < found.gl_pathc; j++) {
        use(layout, found.gl_pathv[j]);
      }
      globfree(&found);
    }
  }
}

static void use_folder(Layout *layout, const char *path) {
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
    add_parents(layout->tail, path, layout->folders);
    add_mount(layout, "--ro-bind-try", path);
  }
}

static void use_file(Layout *layout, const char *path) {
  if (is_link(path)) {
    char *target = target_in_usr(path);
    if (target) {
      add_parents(layout->tail, path, layout->folders);
      add(layout->tail, "--symlink", target, path, NULL);
      free(target);
      return;
    }
  }
  add_parents(layout->tail, path, layout->folders);
  g_ptr_array_add(layout->files, g_strdup(path));
}

static void use_program_folder(Layout *layout, const char *path) {
  char target[PATH_MAX];
  ssize_t length = readlink(path, target, sizeof target - 1);
  if (length > 0) {
    target[length] = '\0';
    add(layout->tail, "--symlink", target, path, NULL);
  } else if (access(path, F_OK) == 0) {
    add_mount(layout, "--ro-bind", path);
  }
}

static int memory_file(const char *name, const char *content) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  size_t length = strlen(content);
  if (fd < 0) {
    return -1;
  }
  if (write(fd, content, length) != (ssize_t)length ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
    close(fd);
    return -1;
  }
  return fd;
}

/* ---- Life ------------------------------------------------------------------------------------- */

static void fill_head(GByteArray *head) {
  add(head, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts",
      "--unshare-cgroup-try", "--uid", USER_ID, "--gid", USER_ID, "--hostname", "sandbox",
      "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL", "--clearenv",
      "--seccomp", G_STRINGIFY(LAYOUT_FILTER_FD), NULL);
  add(head, "--setenv", "HOME", "/tmp", "--setenv", "PATH",
      "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "--setenv", "LANG", "C.UTF-8",
      NULL);
}

static void fill_tail(Layout *layout) {
  GByteArray *tail = layout->tail;
  add_mount(layout, "--ro-bind", "/usr");
  for (size_t i = 0; i < G_N_ELEMENTS(program_folders); i++) {
    use_program_folder(layout, program_folders[i]);
  }
  add(tail, "--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", NULL);
  /* Settings of namespaces belong to whoever made these: outside, that is the commands' own user. */
  add(tail, "--ro-bind-try", "/proc/sys", "/proc/sys", NULL);
  /* It lists the keys of the user, who is not another one for being in a namespace. */
  if (access("/proc/keys", F_OK) == 0) {
    add(tail, "--ro-bind", "/dev/null", "/proc/keys", NULL);
  }
  add_memory(tail, "/dev/shm", "1777", layout->tmp_size);
  add(tail, "--dir", "/var", NULL);
  add_parents(tail, "/etc/", layout->folders);
  for_each_match(layout, folder_patterns, G_N_ELEMENTS(folder_patterns), use_folder);
  for_each_match(layout, file_patterns, G_N_ELEMENTS(file_patterns), use_file);
}

Layout *layout_new(uint64_t tmp_size, uint64_t workdir_size) {
  Layout *layout = g_new0(Layout, 1);
  layout->tmp_size = tmp_size;
  layout->workdir_size = workdir_size;
  layout->head = g_byte_array_new();
  layout->tail = g_byte_array_new();
  layout->files = g_ptr_array_new_with_free_func(g_free);
  layout->folders = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  layout->sources = g_ptr_array_new_with_free_func(g_free);
  fill_head(layout->head);
  fill_tail(layout);
  g_ptr_array_add(layout->sources, NULL);
  for (size_t i = 0; i < G_N_ELEMENTS(made_files); i++) {
    layout->made_fds[i] = memory_file("sandhost-etc", made_files[i].content);
  }
  layout->made_hosts_fd = memory_file("sandhost-etc", made_hosts.content);
  return layout;
}

void layout_free(Layout *layout) {
  if (!layout) {
    return;
  }
  for (size_t i = 0; i < G_N_ELEMENTS(made_files); i++) {
    if (layout->made_fds[i] >= 0) {
      close(layout->made_fds[i]);
    }
  }
  if (layout->made_hosts_fd >= 0) {
    close(layout->made_hosts_fd);
  }
  g_byte_array_unref(layout->head);
  g_byte_array_unref(layout->tail);
  g_ptr_array_unref(layout->files);
  g_hash_table_unref(layout->folders);
  g_ptr_array_unref(layout->sources);
  g_free(layout);
}

const char *const *layout_sources(const Layout *layout) {
  return (const char *const *)layout->sources->pdata;
}

/* ---- One sandbox ------------------------------------------------------------------------------ */

struct copies {
  GByteArray *arguments;
  int *fds;
  size_t count;
};

/* Takes fd; what is no file that can be copied is left out. */
static void copy_fd(struct copies *copies, int take_fd, const char *path) {
  struct stat info;
  char number[16];
  if (take_fd < 0) {
    return;
  }
  if (copies->count == LAYOUT_MAX_FILES || fstat(take_fd, &info) < 0 || !S_ISREG(info.st_mode) ||
      info.st_size > MAX_COPY) {
    close(take_fd);
    return;
  }
  g_snprintf(number, sizeof number, "%zu", LAYOUT_FIRST_FILE_FD + copies->count);
  copies->fds[copies->count++] = take_fd;
  add(copies->arguments, "--perms", "0444", "--file", number, path, NULL);
}

static void copy_file(struct copies *copies, const char *path) {
  copy_fd(copies, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), path);
}

/* bwrap reads from where a descriptor stands, so each sandbox needs one that nobody else reads. */
static void copy_made(struct copies *copies, int made_fd, const char *path) {
  char self[32];
  g_snprintf(self, sizeof self, "/proc/self/fd/%d", made_fd);
  copy_fd(copies, made_fd < 0 ? -1 : open(self, O_RDONLY | O_CLOEXEC), path);
}

static void add_files(const Layout *layout, gboolean network, struct copies *copies) {
  for (size_t i = 0; i < G_N_ELEMENTS(made_files); i++) {
    copy_made(copies, layout->made_fds[i], made_files[i].path);
  }
  if (network) {
    for (size_t i = 0; i < G_N_ELEMENTS(network_files); i++) {
      copy_file(copies, network_files[i]);
    }
  } else {
    copy_made(copies, layout->made_hosts_fd, made_hosts.path);
  }
  for (guint i = 0; i < layout->files->len; i++) {
    copy_file(copies, g_ptr_array_index(layout->files, i));
  }
}

static void add_variable(GByteArray *arguments, const struct sandhost_pair *pair) {
  static const guint8 nul = 0;
  add(arguments, "--setenv", NULL);
  g_byte_array_append(arguments, (const guint8 *)pair->name.data, (guint)pair->name.length);
  g_byte_array_append(arguments, &nul, 1);
  if (pair->value.length > 0) {
    g_byte_array_append(arguments, (const guint8 *)pair->value.data, (guint)pair->value.length);
  }
  g_byte_array_append(arguments, &nul, 1);
}

static void add_private_folders(const Layout *layout, GByteArray *arguments, const char *dir) {
  if (strcmp(dir, "/tmp") == 0) {
    add_memory(arguments, "/tmp", "1777", layout->workdir_size);
  } else {
    add_memory(arguments, "/tmp", "1777", layout->tmp_size);
    add_parents(arguments, dir, NULL);
    add_memory(arguments, dir, "0700", layout->workdir_size);
  }
  if (!g_str_has_prefix(dir, "/var/tmp")) {
    add(arguments, "--symlink", "/tmp", "/var/tmp", NULL);
  }
}

GByteArray *layout_arguments(const Layout *layout, const struct layout_wish *wish,
                             int ret_fds[LAYOUT_MAX_FILES], size_t *ret_count) {
  GByteArray *arguments = g_byte_array_sized_new(8192);
  struct copies copies = {.arguments = arguments, .fds = ret_fds};
  if (!wish->network) {
    add(arguments, "--unshare-net", NULL);
  }
  if (wish->disable_userns) {
    add(arguments, "--disable-userns", NULL);
  }
  g_byte_array_append(arguments, layout->head->data, layout->head->len);
  for (size_t i = 0; i < wish->environment_count; i++) {
    add_variable(arguments, &wish->environment[i]);
  }
  g_byte_array_append(arguments, layout->tail->data, layout->tail->len);
  add_files(layout, wish->network, &copies);
  add_private_folders(layout, arguments, wish->working_dir);
  add(arguments, "--remount-ro", "/", "--chdir", wish->working_dir, NULL);
  *ret_count = copies.count;
  return arguments;
}

/* ---- The working directory -------------------------------------------------------------------- */

/* Where the first component alone decides. */
static gboolean is_system_folder(const char *dir) {
  static const char *const others[] = {"/usr", "/etc", "/proc", "/dev", "/sys", "/boot"};
  const char *slash = strchr(dir + 1, '/');
  size_t length = slash ? (size_t)(slash - dir) : strlen(dir);
  for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
    if (strlen(others[i]) == length && strncmp(dir, others[i], length) == 0) {
      return TRUE;
    }
  }
  for (size_t i = 0; i < G_N_ELEMENTS(program_folders); i++) {
    if (strlen(program_folders[i]) == length && strncmp(dir, program_folders[i], length) == 0) {
      return TRUE;
    }
  }
  return FALSE;
}

char *layout_check_working_dir(struct sandhost_path dir, char **ret_reason) {
  g_autofree char *text = g_strndup(dir.data, dir.length);
  g_auto(GStrv) parts = g_strsplit(text, "/", -1);
  g_autoptr(GString) clean = g_string_new(NULL);
  for (size_t i = 0; parts[i]; i++) {
    if (strcmp(parts[i], ".") == 0 || strcmp(parts[i], "..") == 0) {
      *ret_reason = g_strdup("it has a . or .. component");
      return NULL;
    }
    if (strlen(parts[i]) > NAME_MAX) {
      *ret_reason = g_strdup("a component of it is too long");
      return NULL;
    }
    if (parts[i][0]) {
      g_string_append_printf(clean, "/%s", parts[i]);
    }
  }
  if (clean->len == 0) {
    *ret_reason = g_strdup("it is the root folder");
    return NULL;
  }
  if (is_system_folder(clean->str) || strcmp(clean->str, "/var") == 0) {
    *ret_reason = g_strdup("it would hide system files that commands need");
    return NULL;
  }
  return g_string_free(g_steal_pointer(&clean), FALSE);
}
