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
  int32_t status = take > 0 ? cut->theirs->write(cut->theirs->user, data, take) : SANDHOST_OK;
  if (has_vice("insistent") && status != SANDHOST_OK) {
    cut->theirs->write(cut->theirs->user, data, take);
  }
  return status;
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
  if (has_vice("fingering") && status == SANDHOST_OK) {
    vice_run(call, sandbox->base, "touch old", NULL, 0, NULL, NULL);
  }
  if (has_vice("clinging") && status == SANDHOST_CANCELLED && !vice_host->cancelled(call)) {
    vice_clung = *sink;
  }
  if (has_vice("linkless") && strstr(path.data, "/way/")) {
    status = SANDHOST_NOT_FOUND;
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
  mode = has_vice("modeless") ? 0644 : has_vice("unlocking") ? mode | 0200 : mode;
  int32_t status = vice_base->write_file(call, sandbox->base, path, mode, source);
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
  if (has_vice("queueing")) {
    pthread_mutex_lock(&sandbox->one_at_a_time);
  }
  if (status == SANDHOST_OK) {
    status = write_spoiled(call, sandbox, path, mode, source);
  }
  if (has_vice("queueing")) {
    pthread_mutex_unlock(&sandbox->one_at_a_time);
  }
  return vice_leave(&passage, status);
}

/* ---- Tar ----------------------------------------------------------------------------------------------------------------- */

/* A stream of so much is one of files, not of what no stream may hold. */
#define MUCH 50000

struct counted {
  const struct sandhost_source *theirs;
  int64_t bytes;
};

static int64_t count_read(void *user, void *buffer, size_t length) {
  struct counted *counted = user;
  int64_t count = counted->theirs->read(counted->theirs->user, buffer, length);
  counted->bytes += count > 0 ? count : 0;
  return count;
}

static int32_t files_upload(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            struct sandhost_path dir, const struct sandhost_source *tar) {
  struct vice_passage passage;
  int32_t status = vice_enter(&passage, call, sandbox, "upload");
  if (status != SANDHOST_OK) {
    return vice_leave(&passage, status);
  }
  struct counted counted = {tar, 0};
  const struct sandhost_source ours = {.size = sizeof ours, .user = &counted, .read = count_read};
  status = vice_base->upload(call, sandbox->base, dir, &ours);
  sandbox->uploaded = sandbox->uploaded || status == SANDHOST_OK;
  if (has_vice("careless") && status == SANDHOST_OK) {
    vice_run(call, sandbox->base, "rm -f plain", NULL, 0, NULL, NULL);
  }
  if (has_vice("escaping") && status == SANDHOST_INVALID) {
    vice_run(call, sandbox->base, ": > /tmp/escape", NULL, 0, NULL, NULL);
  }
  if (has_vice("flattening") && status == SANDHOST_OK) {
    vice_run(call, sandbox->base, "chmod -f 644 tool; true", NULL, 0, NULL, NULL);
  }
  if (has_vice("content") && status == SANDHOST_INVALID && counted.bytes > MUCH) {
    status = SANDHOST_OK;
  }
  if (has_vice("credulous") && status == SANDHOST_INVALID && counted.bytes <= MUCH) {
    status = SANDHOST_OK;
  }
  return vice_leave(&passage, status);
}

/* "muttering": each Q of a content becomes a q; there is none in a name. */
static int32_t mutter(void *user, const void *data, size_t length) {
  const struct sandhost_sink *theirs = user; /* a copy */
  char *changed = malloc(length + 1);
  memcpy(changed, data, length);
  for (size_t i = 0; i < length; i++) {
    changed[i] = changed[i] == 'Q' ? 'q' : changed[i];
  }
  int32_t status = theirs->write(theirs->user, changed, length);
  free(changed);
  return status;
}

static int32_t files_download(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              struct sandhost_path dir, const struct sandhost_path *names,
                              size_t count, const struct sandhost_sink *tar) {
  struct vice_passage passage;
  int32_t status = vice_enter(&passage, call, sandbox, "download");
  struct sandhost_path *turned = calloc(count + 1, sizeof *turned);
  struct sandhost_sink theirs = *tar;
  const struct sandhost_sink muttering = {
      .size = sizeof muttering, .user = &theirs, .write = mutter};
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    turned[kept] = names[has_vice("backwards") ? count - 1 - i : i];
    kept += has_vice("terse") && turned[kept].length > 100 ? 0 : 1;
  }
  if (status == SANDHOST_OK) {
    status = vice_base->download(call, sandbox->base, dir, turned, kept,
                                 has_vice("muttering") ? &muttering : tar);
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

static size_t depth_of(struct sandhost_path path) {
  size_t depth = 0;
  for (size_t i = 0; i < path.length; i++) {
    depth += path.data[i] == '/';
  }
  return depth;
}

static void spoil_entry(struct sandhost_entry *entry) {
  if (has_vice("sevenfold")) {
    memset(entry->sha256, 7, sizeof entry->sha256);
  } else if (has_vice("seconds")) {
    entry->mtime /= 1000000000;
  } else if (has_vice("typed")) {
    entry->mode |= 0100000;
  } else if (has_vice("uniform")) {
    entry->mode = 0644;
  } else if (has_vice("undersized")) {
    entry->size = 24;
  }
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
  if (has_vice("shallow") && depth_of(entry->path) > 6) {
    return SANDHOST_OK;
  }
  struct sandhost_entry spoiled = *entry;
  spoil_entry(&spoiled);
  return listing->theirs->entry(listing->theirs->user, &spoiled);
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
