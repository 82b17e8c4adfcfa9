/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain-files.c: reading and writing one file.
 *
 * A file is put under a hidden name at the top of the working directory, which is a mount that nobody in the sandbox can
 * replace, and then moved to its place by the sandbox's own user. So readers see the old content or the new one, and a
 * link can lead the write nowhere that a command could not write itself.
 */
#include "plain.h"

#include "failure.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define PIECE ((size_t)64 * 1024)
#define MOST_TRIES 4

/* ---- Where ------------------------------------------------------------------------------------- */

/* The path of a file below the working directory. */
static int32_t find_below(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          struct sandhost_path path, char **ret_below) {
  int32_t status = plain_check_absolute(sandbox, call, "path of the file", path);
  if (status != SANDHOST_OK) {
    return status;
  }
  g_autofree char *below = plain_path_below(sandbox->working_dir, path);
  if (!below) {
    return plain_fail_outside(sandbox, call, path);
  }
  if (!*below) {
    return fail_call(sandbox->host, call, SANDHOST_INVALID, "the path is that of a folder");
  }
  *ret_below = g_steal_pointer(&below);
  return SANDHOST_OK;
}

static char *join(const char *root, const char *below) {
  return g_strdup_printf("%s%s%s", root, g_str_has_suffix(root, "/") ? "" : "/", below);
}

static int32_t fail_file(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         int32_t status, struct sandhost_path path, const char *why) {
  g_autofree char *text = plain_clean(path.data, path.length);
  return fail_call(sandbox->host, call, status, "%s%s", text, why);
}

/* ---- Reading ----------------------------------------------------------------------------------- */

struct reading {
  const struct sandhost_sink *sink;
  gboolean seen;
  enum tar_kind kind;
  gboolean is_whole;
  gboolean stopped;
};

static int32_t read_member(void *user, const struct tar_member *member) {
  struct reading *reading = user;
  if (reading->seen) {
    return SANDHOST_CANCELLED;
  }
  reading->seen = TRUE;
  reading->kind = member->kind;
  return member->kind == TAR_FILE ? SANDHOST_OK : SANDHOST_CANCELLED;
}

static int32_t read_content(void *user, const void *data, size_t length) {
  struct reading *reading = user;
  reading->stopped = reading->sink->write(reading->sink->user, data, length) != SANDHOST_OK;
  return reading->stopped ? SANDHOST_CANCELLED : SANDHOST_OK;
}

static int32_t read_end(void *user) {
  struct reading *reading = user;
  reading->is_whole = TRUE;
  return SANDHOST_OK;
}

/* *ret_is_link: nothing was read, it has to be followed. */
static int32_t read_once(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *below, struct sandhost_path asked,
                         const struct sandhost_sink *sink, gboolean *ret_is_link) {
  static const struct tar_events EVENTS = {
      .member = read_member, .content = read_content, .member_end = read_end};
  struct reading reading = {.sink = sink};
  enum archive_end end = ARCHIVE_MISSING;
  g_autofree char *path = join(sandbox->working_dir, below);
  int32_t status = plain_archive_get(sandbox, call, path, &EVENTS, &reading, &end);
  if (status != SANDHOST_OK) {
    return status;
  }
  if (end == ARCHIVE_MISSING) {
    return fail_file(sandbox, call, SANDHOST_NOT_FOUND, asked, ": No such file or directory");
  }
  if (end == ARCHIVE_TANGLED) {
    return plain_fail_outside(sandbox, call, asked);
  }
  if (reading.stopped) {
    return fail_call(sandbox->host, call, SANDHOST_CANCELLED, "the receiver of the file stopped");
  }
  if (reading.is_whole) {
    return SANDHOST_OK;
  }
  if (reading.seen && reading.kind == TAR_FILE) {
    return fail_file(sandbox, call, SANDHOST_CONFLICT, asked, " changed while it was read");
  }
  *ret_is_link = reading.seen && reading.kind == TAR_LINK;
  return *ret_is_link
             ? SANDHOST_OK
             : fail_file(sandbox, call, SANDHOST_INVALID, asked,
                         reading.seen && reading.kind == TAR_FOLDER ? ": Is a directory"
                                                                    : " is not a regular file");
}

/*
 * An engine packs no file whose name is not UTF-8, and does not say so. Such a file gets a second name, which the engine
 * can pack, for as long as it is read.
 */
static int32_t read_renamed(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                            const char *below, struct sandhost_path asked,
                            const struct sandhost_sink *sink) {
  struct plain_mark mark;
  char temporary[64];
  const char *slash = strrchr(below, '/');
  const char *name = slash ? slash + 1 : below;
  if (!plain_mark_make(&mark)) {
    return fail_call(sandbox->host, call, SANDHOST_INTERNAL, "there is no randomness");
  }
  g_snprintf(temporary, sizeof temporary, ".sandhost-%.16s", mark.nonce);
  g_autofree char *folder = plain_encode(sandbox->working_dir, strlen(sandbox->working_dir));
  g_autofree char *parent = plain_encode(below, slash ? (size_t)(slash - below) : 0);
  g_autofree char *encoded = plain_encode(name, strlen(name));
  const char *arguments[] = {folder, parent, encoded, temporary, NULL};
  g_autofree char *said = NULL;
  int32_t status = plain_run_script(sandbox, call, plain_script_link, arguments, &said);
  if (status != SANDHOST_OK) {
    return status;
  }
  g_strchomp(said);
  if (strcmp(said, "outside") == 0) {
    return plain_fail_outside(sandbox, call, asked);
  }
  if (strcmp(said, "irregular") == 0) {
    return fail_file(sandbox, call, SANDHOST_INVALID, asked, " is not a regular file");
  }
  if (strcmp(said, "done") != 0) {
    return strcmp(said, "missing") == 0
               ? fail_file(sandbox, call, SANDHOST_NOT_FOUND, asked, ": No such file or directory")
               : fail_file(sandbox, call, SANDHOST_UNSUPPORTED, asked,
                           " has a name that the engine cannot pack");
  }
  gboolean is_link = FALSE;
  status = read_once(sandbox, call, temporary, asked, sink, &is_link);
  plain_drop_file(sandbox, call, sandbox->working_dir, temporary);
  return status;
}

int32_t plain_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                        struct sandhost_path path, const struct sandhost_sink *sink) {
  g_autofree char *below = NULL;
  int32_t status = plain_check_size(sandbox, call, "sink", sink->size,
                                    CONTRACT_FIRST_SIZE(struct sandhost_sink, write));
  if (status == SANDHOST_OK) {
    status = find_below(sandbox, call, path, &below);
  }
  if (status == SANDHOST_OK && !g_utf8_validate(below, -1, NULL)) {
    return read_renamed(sandbox, call, below, path, sink);
  }
  gboolean resolve = status == SANDHOST_OK && strchr(below, '/') != NULL;
  for (int i = 0; status == SANDHOST_OK && i < MOST_TRIES; i++) {
    if (resolve) {
      char *resolved = NULL;
      status = plain_resolve(sandbox, call, sandbox->working_dir, below, &path, &resolved);
      if (status != SANDHOST_OK) {
        break;
      }
      g_free(below);
      below = resolved;
    }
    resolve = FALSE;
    if (!*below) { /* a link to the folder itself */
      return fail_file(sandbox, call, SANDHOST_INVALID, path, ": Is a directory");
    }
    status = read_once(sandbox, call, below, path, sink, &resolve);
    if (!resolve) {
      return status;
    }
  }
  return status == SANDHOST_OK ? plain_fail_outside(sandbox, call, path) : status;
}

/* ---- Putting ----------------------------------------------------------------------------------- */

struct put {
  const struct sandhost_sandbox *sandbox;
  GPtrArray *folders; /* names, for entries before the file's; or NULL */
  const char *name;
  uint32_t mode;
  const struct spool *content;
  gboolean begun;
  uint64_t offset;
};

static int begin_put(struct put *put, struct tar_source *source) {
  const struct sandhost_instance *instance = put->sandbox->instance;
  int failed = 0;
  for (guint i = 0; !failed && put->folders && i < put->folders->len; i++) {
    failed = tar_source_folder(source, put->folders->pdata[i], instance->uid, instance->gid);
  }
  put->begun = TRUE;
  return failed || tar_source_file(source, put->name, put->content->length, put->mode,
                                   instance->uid, instance->gid, 0) < 0
             ? -1
             : 1;
}

static int step_put(void *user, struct tar_source *source) {
  struct put *put = user;
  char piece[PIECE];
  if (!put->begun) {
    return begin_put(put, source);
  }
  ssize_t count = spool_read(put->content, put->offset, piece, sizeof piece);
  if (count <= 0) {
    return (int)count;
  }
  put->offset += (uint64_t)count;
  return tar_source_data(source, piece, (size_t)count) < 0 ? -1 : 1;
}

static int32_t put_at(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                      const char *folder, struct put *put) {
  struct tar_source source;
  tar_source_init(&source, step_put, put);
  int32_t status = plain_archive_put(sandbox, call, folder, &source.source, NULL);
  tar_source_clear(&source);
  return status;
}

int32_t plain_put_file(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                       const char *folder, const char *name, uint32_t mode,
                       const struct spool *content) {
  struct put put = {.sandbox = sandbox, .name = name, .mode = mode, .content = content};
  return put_at(sandbox, call, folder, &put);
}

/* ---- Writing ----------------------------------------------------------------------------------- */

struct writing {
  struct sandhost_sandbox *sandbox;
  struct sandhost_call *call;
  struct sandhost_path asked;
  char *parent; /* below the working directory; owned, as is name */
  char *name;
  char temporary[64];
};

/* Runs the script that moves the file. */
static int32_t run_place(const struct writing *writing, struct sandhost_call *call,
                         char **ret_said) {
  const char *root = writing->sandbox->working_dir;
  g_autofree char *folder = plain_encode(root, strlen(root));
  g_autofree char *parent = plain_encode(writing->parent, strlen(writing->parent));
  g_autofree char *name = plain_encode(writing->name, strlen(writing->name));
  const char *arguments[] = {folder, parent, name, writing->temporary, NULL};
  return plain_run_script(writing->sandbox, call, plain_script_place, arguments, ret_said);
}

/* Takes what a failed put left. */
static void drop_temporary(const struct writing *writing) {
  plain_drop_file(writing->sandbox, writing->call, writing->sandbox->working_dir,
                  writing->temporary);
}

static int32_t put_bare(const struct writing *writing, uint32_t mode, const struct spool *content) {
  g_autofree char *resolved = NULL;
  g_autofree char *name = NULL;
  g_autoptr(GPtrArray) folders = g_ptr_array_new_with_free_func(g_free);
  int32_t status = plain_resolve(writing->sandbox, writing->call, writing->sandbox->working_dir,
                                 writing->parent, &writing->asked, &resolved);
  if (status != SANDHOST_OK) {
    return status;
  }
  for (const char *slash = resolved; *resolved && slash; slash = strchr(slash + 1, '/')) {
    if (slash > resolved) {
      g_ptr_array_add(folders, g_strndup(resolved, (gsize)(slash - resolved)));
    }
  }
  if (*resolved) {
    g_ptr_array_add(folders, g_strdup(resolved));
  }
  name = *resolved ? g_strdup_printf("%s/%s", resolved, writing->name) : g_strdup(writing->name);
  struct put put = {.sandbox = writing->sandbox,
                    .folders = folders,
                    .name = name,
                    .mode = mode,
                    .content = content};
  return put_at(writing->sandbox, writing->call, writing->sandbox->working_dir, &put);
}

static int32_t place(const struct writing *writing, uint32_t mode, const struct spool *content) {
  struct sandhost_sandbox *sandbox = writing->sandbox;
  struct sandhost_call *call = writing->call;
  g_autofree char *said = NULL;
  int32_t status = run_place(writing, call, &said);
  if (status != SANDHOST_OK) {
    drop_temporary(writing);
    return status;
  }
  g_strchomp(said);
  if (strcmp(said, "done") == 0) {
    return SANDHOST_OK;
  }
  if (strcmp(said, "outside") == 0) {
    return plain_fail_outside(sandbox, call, writing->asked);
  }
  if (strcmp(said, "directory") == 0) {
    return fail_file(sandbox, call, SANDHOST_INVALID, writing->asked, ": Is a directory");
  }
  if (strcmp(said, "irregular") == 0) {
    return fail_file(sandbox, call, SANDHOST_INVALID, writing->asked, " is not a regular file");
  }
  if (strcmp(said, "folder") == 0) {
    return fail_file(sandbox, call, SANDHOST_NOT_FOUND, writing->asked, ": Not a directory");
  }
  if (strcmp(said, "denied") == 0) {
    return fail_file(sandbox, call, SANDHOST_DENIED, writing->asked, ": Permission denied");
  }
  if (strcasestr(said, "temporarily unavailable")) {
    drop_temporary(writing);
    return fail_call(sandbox->host, call, SANDHOST_LIMIT,
                     "the sandbox cannot start a process: Resource temporarily unavailable");
  }
  /* No shell, or no programs to move a file with. */
  return put_bare(writing, mode, content);
}

int32_t plain_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                         struct sandhost_path path, uint32_t mode,
                         const struct sandhost_source *source) {
  g_autofree char *below = NULL;
  g_auto(Spool) spool = SPOOL_NONE;
  struct plain_mark mark;
  int32_t status = plain_check_size(sandbox, call, "source", source->size,
                                    CONTRACT_FIRST_SIZE(struct sandhost_source, read));
  if (status == SANDHOST_OK) {
    status = find_below(sandbox, call, path, &below);
  }
  if (status == SANDHOST_OK) {
    status = spool_fill(&spool, sandbox, call, source);
  }
  if (status == SANDHOST_OK && !plain_mark_make(&mark)) {
    status = fail_call(sandbox->host, call, SANDHOST_INTERNAL, "there is no randomness");
  }
  if (status != SANDHOST_OK) {
    return status;
  }
  char *slash = strrchr(below, '/');
  struct writing writing = {.sandbox = sandbox,
                            .call = call,
                            .asked = path,
                            .parent = g_strndup(below, slash ? (gsize)(slash - below) : 0),
                            .name = g_strdup(slash ? slash + 1 : below)};
  g_snprintf(writing.temporary, sizeof writing.temporary, ".sandhost-%.16s", mark.nonce);
  status =
      plain_put_file(sandbox, call, sandbox->working_dir, writing.temporary, mode & 0777, &spool);
  if (status == SANDHOST_OK) {
    status = place(&writing, mode & 0777, &spool);
  } else if (status != SANDHOST_LOST) {
    drop_temporary(&writing);
  }
  g_free(writing.parent);
  g_free(writing.name);
  return status;
}
