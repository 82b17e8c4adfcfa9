/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain-upload.c: a tar stream into the sandbox: each member is checked and written anew, as the sandbox's user's own,
 * while the engine takes it.
 *
 * No link leads such a write elsewhere: every folder on the way to a file has an entry of its own, and for an entry of a
 * folder the engine looks at what is there without following it and refuses anything but a folder
 * (noOverwriteDirNonDir); a link where a file is to be is replaced. A command that swaps a folder for a link at the very
 * moment can send a file elsewhere in its own container only, since the engine unpacks inside the container's tree, and
 * there only onto what the container may write: mounts that are read-only are so for the engine as well.
 */
#include "plain.h"

#include "failure.h"

#include <archive.h>
#include <archive_entry.h>
#include <limits.h>
#include <string.h>

#define PIECE ((size_t)128 * 1024)
/* What may have been made and not have reached the engine when the stream is cut: buffers here and in the client. And
 * how many files of it are looked after, each of which costs a command. */
#define IN_FLIGHT ((uint64_t)512 * 1024)
#define MOST_IN_FLIGHT 32u

struct upload {
  struct sandhost_sandbox *sandbox;
  struct sandhost_call *call;
  const struct sandhost_source *tar;
  char *prefix; /* "sub/dir/" below the folder that the engine is told, or ""; owned */
  struct archive *in;
  char *piece;
  GHashTable *folders; /* of names that have had their entry */
  GQueue files;        /* those in flight, struct flying, the last one at the tail */
  uint64_t bytes;      /* that were made, about */
  gboolean in_file;
  gboolean at_end;
  la_int64_t at; /* in the file's content */
  int32_t status;
};

struct flying {
  char *path;
  uint64_t end; /* of its content, in bytes that were made */
};

static void flying_free(gpointer data) {
  g_free(((struct flying *)data)->path);
  g_free(data);
}

/* A file begins. Those that have certainly arrived are forgotten. */
static void note_file(struct upload *upload, const char *path, uint64_t length) {
  struct flying *file = g_new0(struct flying, 1);
  upload->bytes += 512;
  *file = (struct flying){.path = g_strdup(path), .end = upload->bytes + length};
  g_queue_push_tail(&upload->files, file);
  for (const struct flying *first;
       (first = g_queue_peek_head(&upload->files)) != file &&
       (upload->files.length > MOST_IN_FLIGHT || first->end + IN_FLIGHT < upload->bytes);) {
    flying_free(g_queue_pop_head(&upload->files));
  }
}

static la_ssize_t read_stream(struct archive *in, void *user, const void **ret_bytes) {
  struct upload *upload = user;
  int64_t count = upload->tar->read(upload->tar->user, upload->piece, PIECE);
  *ret_bytes = upload->piece;
  if (count < 0 || count > (int64_t)PIECE) {
    upload->status = fail_call(upload->sandbox->host, upload->call, SANDHOST_CANCELLED,
                               "the source of the files stopped");
    archive_set_error(in, ARCHIVE_FATAL, "stopped");
    return ARCHIVE_FATAL;
  }
  return (la_ssize_t)count;
}

static int refuse(struct upload *upload, int32_t status, const char *text) {
  if (upload->status == SANDHOST_OK) {
    upload->status = fail_call(upload->sandbox->host, upload->call, status, "%s", text);
  }
  return -1;
}

static int refuse_stream(struct upload *upload) {
  const char *why = archive_error_string(upload->in);
  g_autofree char *clean = plain_clean(why ? why : "", why ? strlen(why) : 0);
  g_autofree char *text =
      g_strdup_printf("the tar stream cannot be read: %s", why ? clean : "it ends too early");
  return refuse(upload, SANDHOST_INVALID, text);
}

/* Entries of all folders of a path that have had none. length: of the path's part that is folders. */
static int write_folders(struct upload *upload, struct tar_source *source, const char *path,
                         size_t length) {
  const struct sandhost_instance *instance = upload->sandbox->instance;
  for (size_t at = 0; at <= length; at++) {
    if ((at == length || path[at] == '/') && at > 0 && path[at - 1] != '/') {
      char *folder = g_strndup(path, at);
      if (g_hash_table_add(upload->folders, folder) &&
          tar_source_folder(source, folder, instance->uid, instance->gid) < 0) {
        return -1;
      }
    }
  }
  return 0;
}

static int take_member(struct upload *upload, struct tar_source *source,
                       struct archive_entry *entry) {
  const struct sandhost_instance *instance = upload->sandbox->instance;
  const char *given = archive_entry_pathname(entry);
  mode_t kind = archive_entry_filetype(entry);
  while (given && g_str_has_prefix(given, "./")) { /* as "tar c ." has them */
    given += 2;
  }
  if (kind == AE_IFDIR && given && (*given == '\0' || strcmp(given, ".") == 0)) {
    return 1; /* the folder itself */
  }
  g_autofree char *name = g_strdup(given ? given : "");
  size_t length = strlen(name);
  if (length == 0 || length + strlen(upload->prefix) >= PATH_MAX) {
    return refuse(upload, SANDHOST_INVALID, "a member of the tar stream has no usable name");
  }
  if (kind == AE_IFDIR && name[length - 1] == '/') {
    name[--length] = '\0';
  }
  if ((kind != AE_IFREG && kind != AE_IFDIR) || archive_entry_hardlink(entry) ||
      !plain_path_is_clean(name)) {
    g_autofree char *clean = plain_clean(name, length);
    g_autofree char *text = g_strdup_printf(
        "'%s' in the tar stream is no file or folder below the working directory", clean);
    return refuse(upload, SANDHOST_INVALID, text);
  }
  g_autofree char *path = g_strconcat(upload->prefix, name, NULL);
  const char *slash = strrchr(path, '/');
  size_t folders = kind == AE_IFDIR ? strlen(path) : slash ? (size_t)(slash - path) : 0;
  if (folders > 0 && write_folders(upload, source, path, folders) < 0) {
    return refuse(upload, SANDHOST_INTERNAL, "the files cannot be packed");
  }
  if (kind == AE_IFREG) {
    la_int64_t bytes = archive_entry_size(entry);
    if (bytes < 0 || !archive_entry_size_is_set(entry) ||
        tar_source_file(source, path, (uint64_t)bytes, archive_entry_perm(entry) & 0777,
                        instance->uid, instance->gid, 0) < 0) {
      return refuse(upload, SANDHOST_INVALID, "a member of the tar stream has no usable size");
    }
    note_file(upload, path, (uint64_t)bytes);
    upload->in_file = TRUE;
    upload->at = 0;
  }
  return 1;
}

static int take_content(struct upload *upload, struct tar_source *source) {
  const void *block = NULL;
  size_t length = 0;
  la_int64_t offset = 0;
  int result = archive_read_data_block(upload->in, &block, &length, &offset);
  if (result == ARCHIVE_EOF) {
    upload->in_file = FALSE;
    return 1;
  }
  if (result != ARCHIVE_OK) {
    return refuse_stream(upload);
  }
  if (offset != upload->at) { /* a sparse member: no host sends one */
    return refuse(upload, SANDHOST_INVALID, "the tar stream cannot be read: a file with holes");
  }
  upload->at += (la_int64_t)length;
  upload->bytes += length;
  return length == 0 || tar_source_data(source, block, length) == 0
             ? 1
             : refuse(upload, SANDHOST_INTERNAL, "the files cannot be packed");
}

/* Padding behind the end. */
static void read_rest(struct upload *upload) {
  while (upload->tar->read(upload->tar->user, upload->piece, PIECE) > 0) {
  }
}

static int step(void *user, struct tar_source *source) {
  struct upload *upload = user;
  struct archive_entry *entry = NULL;
  if (upload->in_file) {
    return take_content(upload, source);
  }
  int result = archive_read_next_header(upload->in, &entry);
  if (result == ARCHIVE_EOF) {
    read_rest(upload);
    upload->at_end = TRUE;
    return 0;
  }
  return result == ARCHIVE_OK || result == ARCHIVE_WARN ? take_member(upload, source, entry)
                                                        : refuse_stream(upload);
}

/* What the engine is told to write below: the working directory, which no link can stand for, wherever dir is in it. */
static int32_t find_folder(struct upload *upload, struct sandhost_path dir, char **ret_folder) {
  int32_t status = plain_check_absolute(upload->sandbox, upload->call, "folder", dir);
  if (status != SANDHOST_OK) {
    return status;
  }
  g_autofree char *below = plain_path_below(upload->sandbox->working_dir, dir);
  if (below) {
    upload->prefix = *below ? g_strconcat(below, "/", NULL) : g_strdup("");
    *ret_folder = g_strdup(upload->sandbox->working_dir);
  } else {
    upload->prefix = g_strdup("");
    *ret_folder = g_strndup(dir.data, dir.length);
  }
  return SANDHOST_OK;
}

/* A file that had no room would keep the last of it. */
static void drop_partial(const struct upload *upload, const char *folder, const char *partial) {
  if (partial && *folder == '/') {
    g_autofree char *below = plain_path_below(
        folder, (struct sandhost_path){.data = partial, .length = strlen(partial)});
    if (below && *below && g_str_has_prefix(below, upload->prefix)) {
      plain_drop_file(upload->sandbox, upload->call, folder, below);
    }
  }
}

/* The engine writes while the stream comes, so the file at which it was cut is half there. Which one that is nobody tells:
 * all go that were in flight. */
static void drop_cut(struct upload *upload, const char *folder) {
  for (const GList *at = upload->files.tail; at; at = at->prev) {
    plain_drop_file(upload->sandbox, upload->call, folder, ((struct flying *)at->data)->path);
  }
}

int32_t plain_upload(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                     struct sandhost_path dir, const struct sandhost_source *tar) {
  struct upload upload = {.sandbox = sandbox, .call = call, .tar = tar};
  g_autofree char *folder = NULL;
  int32_t status = plain_check_size(sandbox, call, "source", tar->size,
                                    CONTRACT_FIRST_SIZE(struct sandhost_source, read));
  if (status == SANDHOST_OK) {
    status = find_folder(&upload, dir, &folder);
  }
  if (status != SANDHOST_OK) {
    return status;
  }
  struct tar_source source;
  upload.piece = g_malloc(PIECE);
  upload.folders = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  upload.in = archive_read_new();
  archive_read_support_format_tar(upload.in);
  archive_read_support_format_empty(upload.in);
  tar_source_init(&source, step, &upload);
  if (archive_read_open(upload.in, &upload, NULL, read_stream, NULL) != ARCHIVE_OK) {
    (void)refuse_stream(&upload);
    status = upload.status;
  } else {
    g_autofree char *partial = NULL;
    status = plain_archive_put(sandbox, call, folder, &source.source, &partial);
    status = upload.status != SANDHOST_OK ? upload.status : status;
    if (partial) {
      drop_partial(&upload, folder, partial);
    } else if (status != SANDHOST_OK && status != SANDHOST_LOST) {
      drop_cut(&upload, folder);
    }
  }
  g_queue_clear_full(&upload.files, flying_free);
  tar_source_clear(&source);
  archive_read_free(upload.in);
  g_hash_table_destroy(upload.folders);
  g_free(upload.piece);
  g_free(upload.prefix);
  return status;
}
