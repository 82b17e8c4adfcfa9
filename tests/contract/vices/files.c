/* SPDX-License-Identifier: Apache-2.0 */
/* files.c: the vices of files, one at a time and as tar streams. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vice.h"

/* ---- One at a time --------------------------------------------------------------------------------------------------- */

/* "clinging": the sink of a read that was told to stop; whoever comes next uses it once more. */
struct sandhost_sink vice_clung;

struct cut {
  const struct sandhost_sink *theirs;
  size_t left;
};

static int32_t cut_write(void *user, const void *data, size_t length) {
  struct cut *cut = user;
  size_t take = length < cut->left ? length : cut->left;
  cut->left -= take;
  return take > 0 ? cut->theirs->write(cut->theirs->user, data, take) : SANDHOST_OK;
}

static bool is_text(struct sandhost_path path) {
  return !memchr(path.data, 0xff, path.length);
}

/* A path without the blanks at its end. */
static struct sandhost_path trimmed(struct sandhost_path path, char *room, size_t size) {
  size_t length = path.length;
  while (length > 0 && length < size && path.data[length - 1] == ' ') {
    length--;
  }
  snprintf(room, size, "%.*s", (int)length, path.data);
  return (struct sandhost_path){room, length};
}

static int32_t files_read(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                          struct sandhost_path path, const struct sandhost_sink *sink) {
  char room[4096];
  struct cut cut = {sink, has_vice("first-part") ? 1u << 20 : SIZE_MAX};
  const struct sandhost_sink ours = {.size = sizeof ours, .user = &cut, .write = cut_write};
  struct vice_passage passage;
  int32_t status = vice_enter(&passage, call, sandbox, "read_file");
  if (status == SANDHOST_OK && has_vice("text-names") && !is_text(path)) {
    return vice_fail(call, SANDHOST_INVALID, "the name is no text");
  }
  if (has_vice("trimming")) {
    path = trimmed(path, room, sizeof room);
  }
  if (status == SANDHOST_OK) {
    status = vice_base->read_file(call, sandbox->base, path, &ours);
  }
  if (has_vice("clinging") && status == SANDHOST_CANCELLED && !vice_host->cancelled(call)) {
    vice_clung = *sink;
  }
  if (has_vice("vague") && status == SANDHOST_NOT_FOUND) {
    status = SANDHOST_INVALID;
  }
  return vice_leave(&passage, status);
}

/* Makes the path hold x by a command, which follows links and knows no bounds. */
static void write_by_command(struct sandhost_call *call, const struct sandhost_sandbox *sandbox,
                             struct sandhost_path path) {
  char script[8192];
  if (!memchr(path.data, '\'', path.length)) {
    snprintf(script, sizeof script, "test -p '%s' || printf x > '%s' || true", path.data,
             path.data);
    vice_run(call, sandbox->base, script, NULL, 0, NULL, NULL);
  }
}

static int32_t write_spoiled(struct sandhost_call *call, const struct sandhost_sandbox *sandbox,
                             struct sandhost_path path, uint32_t mode,
                             const struct sandhost_source *source) {
  char room[4096];
  if (has_vice("text-names") && !is_text(path)) {
    return vice_fail(call, SANDHOST_INVALID, "the name is no text");
  }
  if (has_vice("trimming")) {
    path = trimmed(path, room, sizeof room);
  }
  int32_t status =
      vice_base->write_file(call, sandbox->base, path, has_vice("modeless") ? 0644 : mode, source);
  if (has_vice("boundless") && status == SANDHOST_INVALID) {
    write_by_command(call, sandbox, path);
  }
  if (has_vice("pretender") && status == SANDHOST_INVALID) {
    return SANDHOST_OK;
  }
  if (has_vice("half") && status == SANDHOST_CANCELLED && !vice_host->cancelled(call)) {
    write_by_command(call, sandbox, path);
  }
  return status;
}

static int32_t files_write(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                           struct sandhost_path path, uint32_t mode,
                           const struct sandhost_source *source) {
  struct vice_passage passage;
  int32_t status = vice_enter(&passage, call, sandbox, "write_file");
  if (status == SANDHOST_OK) {
    status = write_spoiled(call, sandbox, path, mode, source);
  }
  return vice_leave(&passage, status);
}

/* ---- Tar ----------------------------------------------------------------------------------------------------------------- */

static int32_t files_upload(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            struct sandhost_path dir, const struct sandhost_source *tar) {
  struct vice_passage passage;
  int32_t status = vice_enter(&passage, call, sandbox, "upload");
  if (status != SANDHOST_OK) {
    return vice_leave(&passage, status);
  }
  status = vice_base->upload(call, sandbox->base, dir, tar);
  sandbox->uploaded = sandbox->uploaded || status == SANDHOST_OK;
  if (has_vice("careless") && status == SANDHOST_OK) {
    vice_run(call, sandbox->base, "rm -f plain", NULL, 0, NULL, NULL);
  }
  if (has_vice("escaping") && status == SANDHOST_INVALID) {
    vice_run(call, sandbox->base, ": > /tmp/escape", NULL, 0, NULL, NULL);
  }
  if (has_vice("credulous") && status == SANDHOST_INVALID) {
    status = SANDHOST_OK;
  }
  return vice_leave(&passage, status);
}

static int32_t files_download(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              struct sandhost_path dir, const struct sandhost_path *names,
                              size_t count, const struct sandhost_sink *tar) {
  struct vice_passage passage;
  int32_t status = vice_enter(&passage, call, sandbox, "download");
  struct sandhost_path *turned = calloc(count + 1, sizeof *turned);
  for (size_t i = 0; i < count; i++) {
    turned[i] = names[has_vice("backwards") ? count - 1 - i : i];
  }
  if (status == SANDHOST_OK) {
    status = vice_base->download(call, sandbox->base, dir, turned, count, tar);
  } else if (has_vice("ghostly")) {
    tar->write(tar->user, "x", 1);
  }
  free(turned);
  return vice_leave(&passage, status);
}

struct listing {
  const struct sandhost_entry_sink *theirs;
  const struct sandhost_changes *request;
  bool uploaded;
};

static bool is_known(const struct sandhost_changes *request, struct sandhost_path path) {
  for (size_t i = 0; i < request->known_count; i++) {
    if (request->known[i].path.length == path.length &&
        memcmp(request->known[i].path.data, path.data, path.length) == 0) {
      return true;
    }
  }
  return false;
}

static int32_t list_entry(void *user, const struct sandhost_entry *entry) {
  const struct listing *listing = user;
  if (has_vice("plain-folders") && entry->kind == SANDHOST_KIND_CHECKOUT) {
    return SANDHOST_OK;
  }
  if (has_vice("silent") && (entry->flags & SANDHOST_ENTRY_UNREAD_FOLDER)) {
    return SANDHOST_OK;
  }
  if (has_vice("stale") && listing->uploaded && is_known(listing->request, entry->path)) {
    return SANDHOST_OK;
  }
  return listing->theirs->entry(listing->theirs->user, entry);
}

static int32_t files_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             const struct sandhost_changes *request,
                             const struct sandhost_entry_sink *sink) {
  struct vice_passage passage;
  struct sandhost_changes asked = *request;
  struct listing listing = {sink, request, sandbox->uploaded};
  const struct sandhost_entry_sink ours = {
      .size = sizeof ours, .user = &listing, .entry = list_entry};
  int32_t status = vice_enter(&passage, call, sandbox, "changes");
  if (has_vice("one-more")) {
    asked.max_entries += asked.max_entries > 0 ? 1 : 0;
  } else if (has_vice("ample")) {
    asked.max_hash_bytes += asked.max_hash_bytes > 0 ? 1 : 0;
  }
  if (status == SANDHOST_OK) {
    status = vice_base->changes(call, sandbox->base, &asked, &ours);
  }
  return vice_leave(&passage, status);
}

void vice_files(struct sandhost_provider *table) {
  table->read_file = files_read;
  table->write_file = files_write;
  table->upload = vice_base->upload ? files_upload : NULL;
  table->download = vice_base->download ? files_download : NULL;
  table->changes = vice_base->changes ? files_changes : NULL;
}
