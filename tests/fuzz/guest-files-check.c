/* SPDX-License-Identifier: Apache-2.0 */
/* guest-files-check.c: reads the files by plain calls, below the folder that the guest worked in. */
#include "guest-files-check.h"

#include "scratch.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sandhost/guest-protocol-private.h>
#include <sandhost/provider.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHA256_LENGTH 32u
#define MOST_DEPTH 256 /* of what the guest lists */

/* ---- Files ------------------------------------------------------------------------------------- */

/* The regular file at a path; NULL: there is none. Owned. */
static GByteArray *read_at(int folder, const char *path) {
  struct stat facts;
  unsigned char bytes[4096];
  ssize_t count = 0;
  int fd = openat(folder, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &facts) < 0 || !S_ISREG(facts.st_mode)) {
    if (fd >= 0) {
      close(fd);
    }
    return NULL;
  }
  GByteArray *content = g_byte_array_new();
  while ((count = read(fd, bytes, sizeof bytes)) > 0) {
    g_byte_array_append(content, bytes, (guint)count);
  }
  close(fd);
  return content;
}

static int is_content(const char *path, const GByteArray *content) {
  g_autoptr(GByteArray) there = read_at(scratch_folder(), path);
  return there && there->len == content->len &&
         (content->len == 0 || memcmp(there->data, content->data, content->len) == 0);
}

/* ---- Tar streams ------------------------------------------------------------------------------- */

struct member {
  char *path; /* owned */
  GByteArray *content;
};

static void member_clear(void *data) {
  struct member *member = data;
  g_free(member->path);
  g_byte_array_unref(member->content);
}

static struct archive *open_tar(const void *bytes, size_t length) {
  struct archive *tar = archive_read_new();
  archive_read_support_format_tar(tar);
  (void)archive_read_open_memory(tar, bytes, length);
  return tar;
}

/* All regular files of a stream that can be read to its end, and has no other members than these and folders. Owned. */
static GArray *members_of(const void *bytes, size_t length) {
  GArray *members = g_array_new(FALSE, FALSE, sizeof(struct member));
  struct archive *tar = open_tar(bytes, length);
  struct archive_entry *entry = NULL;
  int result = ARCHIVE_OK;
  g_array_set_clear_func(members, member_clear);
  while ((result = archive_read_next_header(tar, &entry)) == ARCHIVE_OK || result == ARCHIVE_WARN) {
    const void *block = NULL;
    size_t part = 0;
    la_int64_t offset = 0;
    check(archive_entry_filetype(entry) == AE_IFREG || archive_entry_filetype(entry) == AE_IFDIR);
    check(!archive_entry_hardlink(entry));
    if (archive_entry_filetype(entry) != AE_IFREG) {
      continue;
    }
    const char *name = archive_entry_pathname(entry);
    while (name && g_str_has_prefix(name, "./")) { /* "./a" is the same file as "a" */
      name += 2;
    }
    struct member member = {.path = g_strdup(name), .content = g_byte_array_new()};
    while (archive_read_data_block(tar, &block, &part, &offset) == ARCHIVE_OK) {
      check(offset == (la_int64_t)member.content->len); /* no holes */
      g_byte_array_append(member.content, block, (guint)part);
    }
    g_array_append_val(members, member);
  }
  check(result == ARCHIVE_EOF);
  archive_read_free(tar);
  return members;
}

void check_unpacked(const uint8_t *tar, size_t length) {
  g_autoptr(GArray) members = members_of(tar, length);
  g_autoptr(GHashTable) later = g_hash_table_new(g_str_hash, g_str_equal);
  for (guint i = members->len; i-- > 0;) {
    const struct member *member = &g_array_index(members, struct member, i);
    check(member->path);
    if (g_hash_table_add(later, member->path)) {
      check(is_content(member->path, member->content));
    }
  }
}

/* Where the next name is that is member; NULL: it was not asked for behind at. */
static const char *find_name(const char *at, const char *end, const char *member) {
  while (at < end) {
    size_t length = strnlen(at, (size_t)(end - at));
    if (at + length < end && strcmp(at, member) == 0) {
      return at + length + 1;
    }
    at += length + 1;
  }
  return NULL;
}

void check_packed(const GByteArray *tar, const uint8_t *names, size_t length, int is_disturbed) {
  const char *at = (const char *)names;
  const char *end = at + length;
  g_autoptr(GArray) members = members_of(tar->data, tar->len);
  for (guint i = 0; i < members->len; i++) {
    const struct member *member = &g_array_index(members, struct member, i);
    check(member->path);
    at = find_name(at, end, member->path);
    check(at);
    check(is_disturbed || is_content(member->path, member->content));
  }
}

/* ---- Lists ------------------------------------------------------------------------------------- */

struct told {
  uint32_t kind;
  uint32_t flags;
  uint64_t bytes;
  uint32_t mode;
  uint8_t sha256[SHA256_LENGTH];
};

/* The entries by path. Owned. */
static GHashTable *told_of(const struct listed *listed) {
  GHashTable *all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  struct guest_reader reader = {.data = listed->output->data, .left = listed->output->len};
  while (reader.left > 0) {
    size_t length = 0;
    struct told *told = g_new0(struct told, 1);
    told->kind = guest_read_u32(&reader);
    told->flags = guest_read_u32(&reader);
    told->bytes = guest_read_u64(&reader);
    (void)guest_read_u64(&reader);
    told->mode = guest_read_u32(&reader);
    const uint8_t *sha256 = guest_read_raw(&reader, SHA256_LENGTH);
    const char *path = guest_read_bytes(&reader, &length);
    if (reader.bad) { /* what is cancelled may end anywhere */
      check(!listed->is_whole);
      g_free(told);
      break;
    }
    check(length > 0 && length < PATH_MAX && !memchr(path, '\0', length));
    memcpy(told->sha256, sha256, SHA256_LENGTH);
    char *own = g_strndup(path, length);
    check(own[0] != '/' && own[0] != '.' && !strstr(own, "/.") && !strstr(own, "//"));
    check(g_hash_table_insert(all, own, told));
  }
  return all;
}

/* What was said to be known of a path, the first time; NULL: nothing. */
static const uint8_t *known_of(const struct listed *listed, const char *path) {
  struct guest_reader reader = {.data = listed->known, .left = listed->known_length};
  while (reader.left > 0 && !reader.bad) {
    size_t length = 0;
    const char *name = guest_read_bytes(&reader, &length);
    const uint8_t *sha256 = guest_read_raw(&reader, SHA256_LENGTH);
    if (sha256 && length == strlen(path) && memcmp(name, path, length) == 0) {
      return sha256;
    }
  }
  return NULL;
}

static void hash(const GByteArray *content, uint8_t ret_sha256[SHA256_LENGTH]) {
  gsize length = SHA256_LENGTH;
  g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
  g_checksum_update(sum, content->data, (gssize)content->len);
  g_checksum_get_digest(sum, ret_sha256, &length);
}

/* One walk. */
struct looking {
  const struct listed *listed;
  GHashTable *told; /* what is left of it was told and is not there */
};

static void look_at_file(const struct looking *looking, int folder, const char *name,
                         const struct stat *facts, const char *path) {
  const struct listed *listed = looking->listed;
  const struct told *told = g_hash_table_lookup(looking->told, path);
  const uint8_t *known = known_of(listed, path);
  const int too_large = listed->max_hash && (uint64_t)facts->st_size > listed->max_hash;
  uint8_t sha256[SHA256_LENGTH];
  g_autoptr(GByteArray) content = read_at(folder, name);
  check(content);
  hash(content, sha256);
  if (!told) {
    check(!listed->is_whole || (!too_large && known && memcmp(known, sha256, sizeof sha256) == 0));
    return;
  }
  check(told->kind == SANDHOST_KIND_FILE && told->bytes == (uint64_t)facts->st_size &&
        told->mode == (facts->st_mode & 0777));
  check(((told->flags & SANDHOST_ENTRY_SHA256) == 0) == too_large);
  check(too_large || (memcmp(told->sha256, sha256, sizeof sha256) == 0 &&
                      (!known || memcmp(known, sha256, sizeof sha256) != 0)));
  (void)g_hash_table_remove(looking->told, path);
}

/* A folder that holds what cannot be listed. */
static void look_at_unread(const struct looking *looking, const char *path) {
  const struct told *told = g_hash_table_lookup(looking->told, path);
  check(told ? told->kind == SANDHOST_KIND_FILE && told->flags == SANDHOST_ENTRY_UNREAD_FOLDER
             : !looking->listed->is_whole);
  (void)g_hash_table_remove(looking->told, path);
}

static void walk(struct looking *looking, int folder, const char *path, int depth);

static void look_at_folder(struct looking *looking, int folder, const char *name, const char *path,
                           int depth) {
  struct stat facts;
  int inner = depth < MOST_DEPTH
                  ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                  : -1;
  if (inner < 0) {
    look_at_unread(looking, path);
    return;
  }
  if (fstatat(inner, ".git", &facts, AT_SYMLINK_NOFOLLOW) == 0) {
    const struct told *told = g_hash_table_lookup(looking->told, path);
    check(told ? told->kind == SANDHOST_KIND_CHECKOUT : !looking->listed->is_whole);
    (void)g_hash_table_remove(looking->told, path);
    close(inner);
    return;
  }
  walk(looking, inner, path, depth + 1);
}

/* Takes the folder's descriptor. */
static void walk(struct looking *looking, int folder, const char *path, int depth) {
  DIR *list = fdopendir(folder);
  struct dirent *entry = NULL;
  int is_cut = 0;
  check(list);
  while ((entry = readdir(list)) != NULL) {
    struct stat facts;
    g_autofree char *inner =
        *path ? g_strdup_printf("%s/%s", path, entry->d_name) : g_strdup(entry->d_name);
    is_cut |= entry->d_name[0] != '.' && strlen(inner) >= PATH_MAX;
    if (entry->d_name[0] == '.' || strlen(inner) >= PATH_MAX ||
        fstatat(folder, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) < 0) {
      continue;
    }
    if (S_ISREG(facts.st_mode)) {
      look_at_file(looking, folder, entry->d_name, &facts, inner);
    } else if (S_ISDIR(facts.st_mode)) {
      look_at_folder(looking, folder, entry->d_name, inner, depth);
    }
  }
  closedir(list);
  if (is_cut) {
    look_at_unread(looking, path);
  }
}

void check_listed(const struct listed *listed) {
  g_autoptr(GHashTable) told = told_of(listed);
  const guint count = g_hash_table_size(told);
  check(listed->max_entries == 0 || count <= listed->max_entries);
  if (listed->is_disturbed) {
    return;
  }
  struct looking looking = {.listed = listed, .told = told};
  walk(&looking, openat(scratch_folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", 0);
  check(g_hash_table_size(told) == 0);
}

/* ---- What is left ------------------------------------------------------------------------------ */

#define TEMPORARY ".sandhost-"

/* Takes the folder's descriptor. */
static void look_for_temporary(int folder, int depth) {
  DIR *list = fdopendir(folder);
  struct dirent *entry = NULL;
  check(list);
  while ((entry = readdir(list)) != NULL) {
    check(!g_str_has_prefix(entry->d_name, TEMPORARY));
    int inner =
        strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || depth >= MOST_DEPTH
            ? -1
            : openat(folder, entry->d_name,
                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (inner >= 0) {
      look_for_temporary(inner, depth + 1);
    }
  }
  closedir(list);
}

void check_no_temporary(const uint8_t *data, size_t size) {
  if (!memmem(data, size, TEMPORARY, strlen(TEMPORARY))) {
    look_for_temporary(openat(scratch_folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0);
  }
}
