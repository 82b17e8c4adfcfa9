/* SPDX-License-Identifier: Apache-2.0 */
/* guest-transfers.c: tar in, tar out, and what has changed. */
#include "guest-raw.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statfs.h>

/* Names that any file may have. */
static const char *const ODD_NAMES[] = {
    "plain",
    "with space",
    "new\nline",
    "\xc3\xa4\xc3\xb6\xe2\x82\xac",
    "not utf-8 \xff\xfe\x80",
    "deep/er/file",
    "-dash",
    "back\\slash",
    "equal=sign",
    /* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one name in three lines */
    "200 bytes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxxxxxxxx",
    "200 \xc3\xa4 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxxxxxxx/\xff xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
};

/* ---- Tar ------------------------------------------------------------------------------------- */

static la_ssize_t collect(struct archive *tar, void *user, const void *bytes, size_t length) {
  (void)tar;
  g_byte_array_append(user, bytes, (guint)length);
  return (la_ssize_t)length;
}

static struct archive *tar_begin(GByteArray *into) {
  struct archive *tar = archive_write_new();
  archive_write_set_format_pax_restricted(tar);
  g_assert_cmpint(archive_write_set_options(tar, "hdrcharset=BINARY"), ==, ARCHIVE_OK);
  archive_write_set_bytes_per_block(tar, 0);
  g_assert_cmpint(archive_write_open(tar, into, NULL, collect, NULL), ==, ARCHIVE_OK);
  return tar;
}

static void tar_add(struct archive *tar, const char *name, unsigned type, unsigned mode,
                    const char *content) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_copy_pathname(entry, name);
  archive_entry_set_filetype(entry, type);
  archive_entry_set_perm(entry, (mode_t)mode);
  archive_entry_set_size(entry, content ? (la_int64_t)strlen(content) : 0);
  if (type == AE_IFLNK) {
    archive_entry_copy_symlink(entry, "plain");
    archive_entry_set_size(entry, 0);
  }
  g_assert_cmpint(archive_write_header(tar, entry), >=, ARCHIVE_WARN);
  if (content && type == AE_IFREG) {
    g_assert_cmpint(archive_write_data(tar, content, strlen(content)), ==,
                    (la_ssize_t)strlen(content));
  }
  archive_entry_free(entry);
}

static void tar_end(struct archive *tar) {
  g_assert_cmpint(archive_write_close(tar), ==, ARCHIVE_OK);
  archive_write_free(tar);
}

static void send_within_window(struct raw *raw, uint32_t id, const unsigned char *data,
                               size_t length) {
  struct raw_answer *answer = raw_answer(raw, id);
  for (size_t at = 0; at < length && !answer->done;) {
    size_t may = GUEST_WINDOW + (size_t)answer->credited - at;
    if (may == 0) {
      g_assert_true(raw_step(raw));
      continue;
    }
    size_t part = MIN(may, length - at);
    raw_send_data(raw, id, data + at, part);
    at += part;
  }
}

static struct raw_answer *upload_bytes(struct raw *raw, uint32_t id, const char *root,
                                       const unsigned char *data, size_t length) {
  raw_open_texts(raw, id, GUEST_UPLOAD, root, NULL);
  send_within_window(raw, id, data, length);
  raw_send_end(raw, id);
  return raw_wait(raw, id);
}

static struct raw_answer *upload(struct raw *raw, uint32_t id, GByteArray *tar) {
  return upload_bytes(raw, id, raw->dir, tar->data, tar->len);
}

static struct raw_answer *upload_one(struct raw *raw, uint32_t id, const char *name, unsigned type,
                                     const char *content) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct archive *tar = tar_begin(bytes);
  tar_add(tar, name, type, 0644, content);
  tar_end(tar);
  return upload(raw, id, bytes);
}

/* The names, each ended by NUL: the tar stream is in the answer. */
static struct raw_answer *download(struct raw *raw, uint32_t id, const char *const *names,
                                   size_t count) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  for (size_t i = 0; i < count; i++) {
    g_byte_array_append(bytes, (const unsigned char *)names[i], (guint)strlen(names[i]) + 1);
  }
  raw_open_texts(raw, id, GUEST_DOWNLOAD, raw->dir, NULL);
  send_within_window(raw, id, bytes->data, bytes->len);
  raw_send_end(raw, id);
  return raw_wait(raw, id);
}

/* Name and content, one after the other. */
static GPtrArray *untar(const GString *bytes) {
  GPtrArray *found = g_ptr_array_new_with_free_func(g_free);
  struct archive *tar = archive_read_new();
  struct archive_entry *entry;
  archive_read_support_format_tar(tar);
  g_assert_cmpint(archive_read_open_memory(tar, bytes->str, bytes->len), ==, ARCHIVE_OK);
  int result;
  while ((result = archive_read_next_header(tar, &entry)) == ARCHIVE_OK || result == ARCHIVE_WARN) {
    size_t size = (size_t)archive_entry_size(entry);
    char *content = g_malloc0(size + 1);
    g_ptr_array_add(found, g_strdup(archive_entry_pathname(entry)));
    g_assert_cmpint(archive_read_data(tar, content, size), ==, (la_ssize_t)size);
    g_ptr_array_add(found, content);
    g_assert_cmpuint(archive_entry_filetype(entry), ==, AE_IFREG);
  }
  g_assert_cmpint(result, ==, ARCHIVE_EOF);
  archive_read_free(tar);
  return found;
}

static void upload_odd_names(struct raw *raw, uint32_t id) {
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct archive *tar = tar_begin(bytes);
  for (size_t i = 0; i < G_N_ELEMENTS(ODD_NAMES); i++) {
    tar_add(tar, ODD_NAMES[i], AE_IFREG, 0644, ODD_NAMES[i]);
  }
  tar_end(tar);
  struct raw_answer *answer = upload(raw, id, bytes);
  g_assert_cmpstr(answer->message, ==, "");
  g_assert_cmpint(answer->status, ==, SANDHOST_OK);
}

static void test_round_trip(void) {
  struct raw raw;
  raw_begin(&raw);
  upload_odd_names(&raw, 1);
  for (size_t i = 0; i < G_N_ELEMENTS(ODD_NAMES); i++) {
    g_autofree char *path = raw_path(&raw, ODD_NAMES[i]);
    g_autofree char *content = NULL;
    g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, ODD_NAMES[i]);
  }
  struct raw_answer *answer = download(&raw, 2, ODD_NAMES, G_N_ELEMENTS(ODD_NAMES));
  g_assert_cmpstr(answer->message, ==, "");
  g_autoptr(GPtrArray) found = untar(answer->out);
  g_assert_cmpuint(found->len, ==, 2 * G_N_ELEMENTS(ODD_NAMES));
  for (size_t i = 0; i < G_N_ELEMENTS(ODD_NAMES); i++) {
    g_assert_cmpstr(found->pdata[2 * i], ==, ODD_NAMES[i]);
    g_assert_cmpstr(found->pdata[2 * i + 1], ==, ODD_NAMES[i]);
  }
  raw_end(&raw);
}

static void test_large_round_trip(void) {
  struct raw raw;
  raw_begin(&raw);
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  struct archive *tar = tar_begin(bytes);
  g_autofree char *content = g_strnfill(300000, 'c');
  for (int i = 0; i < 20; i++) {
    g_ptr_array_add(names, g_strdup_printf("folder%d/file%d", i % 3, i));
    tar_add(tar, names->pdata[i], AE_IFREG, 0644, content);
  }
  tar_end(tar);
  g_assert_cmpint(upload(&raw, 1, bytes)->status, ==, SANDHOST_OK);
  struct raw_answer *answer = download(&raw, 2, (const char *const *)names->pdata, names->len);
  g_autoptr(GPtrArray) found = untar(answer->out);
  g_assert_cmpuint(found->len, ==, 40);
  for (size_t i = 0; i < 20; i++) {
    g_assert_cmpstr(found->pdata[2 * i], ==, names->pdata[i]);
    g_assert_cmpstr(found->pdata[2 * i + 1], ==, content);
  }
  raw_end(&raw);
}

static void test_upload_modes(void) {
  struct raw raw;
  struct stat facts;
  raw_begin(&raw);
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct archive *tar = tar_begin(bytes);
  tar_add(tar, "empty/folder/", AE_IFDIR, 0700, NULL);
  tar_add(tar, "bin/run", AE_IFREG, 06755, "#!");
  tar_add(tar, "./", AE_IFDIR, 0700, NULL); /* as "tar c ." has them */
  tar_add(tar, "./bin/run", AE_IFREG, 0500, "again");
  tar_end(tar);
  g_assert_cmpint(upload(&raw, 1, bytes)->status, ==, SANDHOST_OK);
  g_autofree char *run = raw_path(&raw, "bin/run");
  g_autofree char *folder = raw_path(&raw, "empty/folder");
  g_assert_cmpint(stat(run, &facts), ==, 0);
  g_assert_cmpuint(facts.st_mode & 07777, ==, 0500);
  g_assert_cmpint(facts.st_size, ==, 5);
  g_assert_cmpint(stat(folder, &facts), ==, 0);
  g_assert_cmpuint(facts.st_mode, ==, S_IFDIR | 0755);
  raw_end(&raw);
}

static void test_upload_refused(void) {
  static const struct {
    const char *name;
    unsigned type;
  } MEMBERS[] = {{"/absolute", AE_IFREG}, {"../out", AE_IFREG}, {"a/../../out", AE_IFREG},
                 {"a//b", AE_IFREG},      {".//a", AE_IFREG},   {"a/./b", AE_IFREG},
                 {"link", AE_IFLNK},      {"fifo", AE_IFIFO},   {"device", AE_IFCHR},
                 {"..", AE_IFDIR},        {"/", AE_IFDIR},      {"x/../y/", AE_IFDIR}};
  struct raw raw;
  raw_begin(&raw);
  for (uint32_t i = 0; i < G_N_ELEMENTS(MEMBERS); i++) {
    struct raw_answer *answer = upload_one(&raw, i + 1, MEMBERS[i].name, MEMBERS[i].type,
                                           MEMBERS[i].type == AE_IFREG ? "content" : NULL);
    g_assert_cmpint(answer->status, ==, SANDHOST_INVALID);
    g_assert_nonnull(strstr(answer->message, "in the tar stream is no file or folder below"));
  }
  g_assert_cmpstr(raw_run(&raw, 100, "ls -A")->out->str, ==, "");
  raw_end(&raw);
}

/* What a command has put in the way does not lead an upload out. */
static void test_upload_through_link(void) {
  struct raw raw;
  raw_begin(&raw);
  g_autofree char *link = raw_path(&raw, "link");
  g_autofree char *file = raw_path(&raw, "file");
  g_assert_cmpint(symlink("/tmp", link), ==, 0);
  g_assert_cmpint(symlink("/tmp/sandhost-must-not-be", file), ==, 0);
  g_assert_cmpint(upload_one(&raw, 1, "link/sandhost-must-not-be", AE_IFREG, "content")->status, ==,
                  SANDHOST_INVALID);
  g_assert_cmpint(upload_one(&raw, 2, "file", AE_IFREG, "content")->status, ==, SANDHOST_OK);
  g_assert_false(g_file_test("/tmp/sandhost-must-not-be", G_FILE_TEST_EXISTS));
  g_assert_false(g_file_test(file, G_FILE_TEST_IS_SYMLINK));
  raw_end(&raw);
}

static void test_upload_broken(void) {
  struct raw raw;
  raw_begin(&raw);
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  struct archive *tar = tar_begin(bytes);
  g_autofree char *content = g_strnfill(100000, 'c');
  tar_add(tar, "file", AE_IFREG, 0644, content);
  tar_end(tar);
  const unsigned char noise[2048] = {1, 2, 3};
  g_assert_cmpint(upload_bytes(&raw, 1, raw.dir, bytes->data, 50000)->status, ==, SANDHOST_INVALID);
  g_assert_cmpint(upload_bytes(&raw, 2, raw.dir, noise, sizeof noise)->status, ==,
                  SANDHOST_INVALID);
  g_assert_cmpint(upload_bytes(&raw, 3, "/no/such/folder", bytes->data, bytes->len)->status, ==,
                  SANDHOST_NOT_FOUND);
  g_assert_cmpstr(raw_run(&raw, 4, "ls -A")->out->str, ==, "");
  raw_open_texts(&raw, 5, GUEST_UPLOAD, raw.dir, NULL);
  raw_send_data(&raw, 5, bytes->data, 50000);
  raw_send_cancel(&raw, 5);
  g_assert_cmpint(raw_wait(&raw, 5)->status, ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(raw_run(&raw, 6, "ls -A")->out->str, ==, "");
  raw_end(&raw);
}

static void test_download_leaves_out(void) {
  static const char *const NAMES[] = {"none",       "fifo",        "folder",      "link",
                                      "../outside", "/etc/passwd", "folder/file", ""};
  struct raw raw;
  raw_begin(&raw);
  raw_put_file(&raw, "folder/file", "content");
  g_autofree char *link = raw_path(&raw, "link");
  g_autofree char *fifo = raw_path(&raw, "fifo");
  g_assert_cmpint(symlink("folder/file", link), ==, 0);
  g_assert_cmpint(mkfifo(fifo, 0644), ==, 0);
  struct raw_answer *answer = download(&raw, 1, NAMES, G_N_ELEMENTS(NAMES));
  g_assert_cmpint(answer->status, ==, SANDHOST_OK);
  g_autoptr(GPtrArray) found = untar(answer->out);
  g_assert_cmpuint(found->len, ==, 2);
  g_assert_cmpstr(found->pdata[0], ==, "folder/file");
  g_assert_cmpstr(found->pdata[1], ==, "content");
  raw_end(&raw);
}

/* ---- Changes --------------------------------------------------------------------------------- */

struct listed {
  uint32_t kind;
  uint32_t flags;
  uint64_t size;
  int64_t mtime;
  uint32_t mode;
  unsigned char sha256[32];
};

static void put_known(GByteArray *known, const char *path, const char *content) {
  g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
  unsigned char digest[32];
  gsize length = sizeof digest;
  g_checksum_update(sum, (const unsigned char *)content, -1);
  g_checksum_get_digest(sum, digest, &length);
  raw_put_text(known, path);
  g_byte_array_append(known, digest, sizeof digest);
}

/* Path to struct listed. */
static GHashTable *take_list(const GString *bytes) {
  GHashTable *list = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  struct guest_reader reader = {.data = (const unsigned char *)bytes->str, .left = bytes->len};
  while (reader.left > 0) {
    struct listed *entry = g_new0(struct listed, 1);
    size_t length;
    entry->kind = guest_read_u32(&reader);
    entry->flags = guest_read_u32(&reader);
    entry->size = guest_read_u64(&reader);
    entry->mtime = (int64_t)guest_read_u64(&reader);
    entry->mode = guest_read_u32(&reader);
    const unsigned char *sha256 = guest_read_raw(&reader, 32);
    const char *path = guest_read_bytes(&reader, &length);
    g_assert_false(reader.bad);
    memcpy(entry->sha256, sha256, 32);
    g_assert_true(g_hash_table_insert(list, g_strndup(path, length), entry));
  }
  return list;
}

static struct raw_answer *ask_changes(struct raw *raw, uint32_t id, const char *root,
                                      const GByteArray *known, uint64_t max_hash,
                                      uint64_t max_entries) {
  g_autoptr(GByteArray) parameters = g_byte_array_new();
  raw_put_text(parameters, root);
  raw_put_u64(parameters, max_hash);
  raw_put_u64(parameters, max_entries);
  raw_open(raw, id, GUEST_CHANGES, parameters);
  if (known) {
    send_within_window(raw, id, known->data, known->len);
  }
  raw_send_end(raw, id);
  return raw_wait(raw, id);
}

static GHashTable *changes(struct raw *raw, uint32_t id, const GByteArray *known) {
  struct raw_answer *answer = ask_changes(raw, id, raw->dir, known, 0, 0);
  g_assert_cmpint(answer->status, ==, SANDHOST_OK);
  return take_list(answer->out);
}

static void check_sha256(const struct listed *entry, const char *content) {
  g_autoptr(GByteArray) expected = g_byte_array_new();
  put_known(expected, "", content);
  g_assert_nonnull(entry);
  g_assert_cmpuint(entry->kind, ==, SANDHOST_KIND_FILE);
  g_assert_cmpuint(entry->flags, ==, SANDHOST_ENTRY_SHA256);
  g_assert_cmpuint(entry->size, ==, strlen(content));
  g_assert_true(memcmp(entry->sha256, expected->data + 4, 32) == 0);
}

static void test_changes(void) {
  struct raw raw;
  struct stat facts;
  raw_begin(&raw);
  upload_odd_names(&raw, 1);
  g_autoptr(GHashTable) all = changes(&raw, 2, NULL);
  g_assert_cmpuint(g_hash_table_size(all), ==, G_N_ELEMENTS(ODD_NAMES));
  g_autoptr(GByteArray) known = g_byte_array_new();
  for (size_t i = 0; i < G_N_ELEMENTS(ODD_NAMES); i++) {
    check_sha256(g_hash_table_lookup(all, ODD_NAMES[i]), ODD_NAMES[i]);
    put_known(known, ODD_NAMES[i], ODD_NAMES[i]);
  }
  g_autoptr(GHashTable) none = changes(&raw, 3, known);
  g_assert_cmpuint(g_hash_table_size(none), ==, 0);
  raw_run(&raw, 4,
          "printf other > plain; chmod 600 plain; echo new > created; rm ./-dash; "
          "touch 'with space'");
  g_autoptr(GHashTable) some = changes(&raw, 5, known);
  g_assert_cmpuint(g_hash_table_size(some), ==, 2);
  const struct listed *plain = g_hash_table_lookup(some, "plain");
  check_sha256(plain, "other");
  check_sha256(g_hash_table_lookup(some, "created"), "new\n");
  g_autofree char *path = raw_path(&raw, "plain");
  g_assert_cmpint(stat(path, &facts), ==, 0);
  g_assert_cmpuint(plain->mode, ==, 0600);
  g_assert_cmpint(plain->mtime, ==,
                  (int64_t)facts.st_mtim.tv_sec * 1000000000 + facts.st_mtim.tv_nsec);
  raw_end(&raw);
}

/* A change that leaves size and time as they were is seen, whatever was remembered. */
static void test_changes_in_disguise(void) {
  struct raw raw;
  raw_begin(&raw);
  g_autoptr(GByteArray) known = g_byte_array_new();
  put_known(known, "file", "content");
  g_assert_cmpint(upload_one(&raw, 1, "file", AE_IFREG, "content")->status, ==, SANDHOST_OK);
  for (uint32_t i = 0; i < 20; i++) {
    g_autoptr(GHashTable) before = changes(&raw, 10 * i + 11, known);
    g_assert_cmpuint(g_hash_table_size(before), ==, 0);
    raw_run(&raw, 10 * i + 12, "touch -r file stamp; printf CONTENT > file; touch -r stamp file");
    g_autoptr(GByteArray) stamp_known = g_byte_array_new();
    put_known(stamp_known, "file", "content");
    put_known(stamp_known, "stamp", "");
    g_autoptr(GHashTable) after = changes(&raw, 10 * i + 13, stamp_known);
    g_assert_cmpuint(g_hash_table_size(after), ==, 1);
    check_sha256(g_hash_table_lookup(after, "file"), "CONTENT");
    raw_run(&raw, 10 * i + 14, "printf content > file; rm stamp");
  }
  raw_end(&raw);
}

/* On a memory file system, a change through a mapping shows in no time of change. */
static void test_changes_by_mapping(void) {
  struct raw raw;
  raw_begin(&raw);
  g_autofree char *memory = raw_path(&raw, "memory");
  g_autofree char *path = raw_path(&raw, "memory/file");
  g_assert_cmpint(g_mkdir(memory, 0755), ==, 0);
  if (mount("none", memory, "tmpfs", 0, NULL) < 0) {
    g_test_skip("no file system can be mounted here");
    raw_end(&raw);
    return;
  }
  g_autoptr(GByteArray) known = g_byte_array_new();
  put_known(known, "file", "content");
  g_assert_true(g_file_set_contents(path, "content", -1, NULL));
  g_usleep(20000); /* the clock tick of the file is over: what is read now is remembered */
  for (uint32_t id = 1; id <= 2; id++) {
    struct raw_answer *answer = ask_changes(&raw, id, memory, known, 0, 0);
    g_assert_cmpint(answer->status, ==, SANDHOST_OK);
    g_assert_cmpuint(answer->out->len, ==, 0);
  }
  int fd = open(path, O_RDWR | O_CLOEXEC);
  volatile char *bytes = mmap(NULL, 7, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  g_assert_true(bytes != MAP_FAILED);
  g_assert_cmpint(bytes[1], ==, 'o');
  bytes[0] = 'C';
  munmap((void *)(uintptr_t)bytes, 7);
  close(fd);
  struct raw_answer *answer = ask_changes(&raw, 3, memory, known, 0, 0);
  g_autoptr(GHashTable) list = take_list(answer->out);
  g_assert_cmpint(umount2(memory, MNT_DETACH), ==, 0);
  check_sha256(g_hash_table_lookup(list, "file"), "Content");
  raw_end(&raw);
}

static void test_changes_skips(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_put_file(&raw, "seen", "1");
  raw_put_file(&raw, ".hidden", "1");
  raw_put_file(&raw, ".folder/file", "1");
  raw_put_file(&raw, "folder/.hidden", "1");
  raw_put_file(&raw, "checkout/.git/HEAD", "1");
  raw_put_file(&raw, "checkout/source/file", "1");
  raw_put_file(&raw, "deep/worktree/.git", "gitdir: elsewhere");
  raw_put_file(&raw, "deep/worktree/file", "1");
  raw_put_file(&raw, ".git/config", "of the top itself");
  g_autofree char *fifo = raw_path(&raw, "fifo");
  g_autofree char *link = raw_path(&raw, "link");
  g_autofree char *folder_link = raw_path(&raw, "folder-link");
  g_assert_cmpint(mkfifo(fifo, 0644), ==, 0);
  g_assert_cmpint(symlink("seen", link), ==, 0);
  g_assert_cmpint(symlink("/etc", folder_link), ==, 0);
  g_autoptr(GHashTable) list = changes(&raw, 1, NULL);
  g_assert_cmpuint(g_hash_table_size(list), ==, 3);
  check_sha256(g_hash_table_lookup(list, "seen"), "1");
  const char *const checkouts[] = {"checkout", "deep/worktree"};
  for (size_t i = 0; i < G_N_ELEMENTS(checkouts); i++) {
    const struct listed *entry = g_hash_table_lookup(list, checkouts[i]);
    g_assert_nonnull(entry);
    g_assert_cmpuint(entry->kind, ==, SANDHOST_KIND_CHECKOUT);
    g_assert_cmpuint(entry->flags, ==, 0);
  }
  raw_end(&raw);
}

static void test_changes_bounds(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_put_file(&raw, "small", "12345");
  raw_put_file(&raw, "large", "123456");
  struct raw_answer *answer = ask_changes(&raw, 1, raw.dir, NULL, 5, 0);
  g_autoptr(GHashTable) list = take_list(answer->out);
  check_sha256(g_hash_table_lookup(list, "small"), "12345");
  const struct listed *large = g_hash_table_lookup(list, "large");
  g_assert_cmpuint(large->flags, ==, 0);
  g_assert_cmpuint(large->size, ==, 6);
  answer = ask_changes(&raw, 2, raw.dir, NULL, 0, 1);
  g_assert_cmpint(answer->status, ==, SANDHOST_LIMIT);
  g_autoptr(GHashTable) first = take_list(answer->out);
  g_assert_cmpuint(g_hash_table_size(first), ==, 1);
  answer = ask_changes(&raw, 3, raw.dir, NULL, 0, 2);
  g_assert_cmpint(answer->status, ==, SANDHOST_OK);
  answer = ask_changes(&raw, 4, "/no/such/folder", NULL, 0, 0);
  g_assert_cmpint(answer->status, ==, SANDHOST_NOT_FOUND);
  raw_end(&raw);
}

static void test_changes_odd_times(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_put_file(&raw, "future", "1");
  raw_put_file(&raw, "past", "1");
  g_autofree char *future = raw_path(&raw, "future");
  g_autofree char *past = raw_path(&raw, "past");
  const struct timespec far[2] = {{.tv_sec = 15000000000}, {.tv_sec = 15000000000}};
  const struct timespec before[2] = {{.tv_sec = -1000}, {.tv_sec = -1000}};
  g_assert_cmpint(utimensat(AT_FDCWD, future, far, 0), ==, 0);
  g_assert_cmpint(utimensat(AT_FDCWD, past, before, 0), ==, 0);
  g_autoptr(GHashTable) list = changes(&raw, 1, NULL);
  check_sha256(g_hash_table_lookup(list, "future"), "1");
  g_assert_cmpint(((struct listed *)g_hash_table_lookup(list, "past"))->mtime, ==, -1000000000000);
  static const char *const NAMES[] = {"future", "past"};
  g_autoptr(GPtrArray) found = untar(download(&raw, 2, NAMES, 2)->out);
  g_assert_cmpuint(found->len, ==, 4);
  raw_end(&raw);
}

/* Makes a file so many folders deep, and removes it with them, whatever a path can say. */
static void make_deep(const struct raw *raw, int depth) {
  int folder = open(raw->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < depth; i++) {
    g_assert_cmpint(mkdirat(folder, "f", 0755), ==, 0);
    int inner = openat(folder, "f", O_PATH | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(inner, >=, 0);
    close(folder);
    folder = inner;
  }
  int file = openat(folder, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  g_assert_cmpint(write(file, "deep", 4), ==, 4);
  close(file);
  close(folder);
}

static void test_changes_deep(void) {
  struct raw raw;
  raw_begin(&raw);
  make_deep(&raw, 200);
  g_autoptr(GHashTable) list = changes(&raw, 1, NULL);
  g_assert_cmpuint(g_hash_table_size(list), ==, 1);
  raw_run(&raw, 2, "rm -rf f");
  /* Deeper than is looked at, and than a path can say: it ends all the same, and says where. */
  make_deep(&raw, 3000);
  g_autoptr(GHashTable) cut = changes(&raw, 3, NULL);
  GHashTableIter entries;
  gpointer entry = NULL;
  g_hash_table_iter_init(&entries, cut);
  g_assert_true(g_hash_table_iter_next(&entries, NULL, &entry));
  g_assert_cmpuint(((struct listed *)entry)->flags, ==, SANDHOST_ENTRY_UNREAD_FOLDER);
  g_assert_cmpuint(g_hash_table_size(cut), ==, 1);
  raw_run(&raw, 4, "rm -rf f");
  raw_end(&raw);
}

static void test_changes_malformed(void) {
  struct raw raw;
  raw_begin(&raw);
  g_autoptr(GByteArray) known = g_byte_array_new();
  put_known(known, "file", "content");
  g_byte_array_set_size(known, known->len - 1);
  g_assert_cmpint(ask_changes(&raw, 1, raw.dir, known, 0, 0)->status, ==, SANDHOST_INVALID);
  raw_end(&raw);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/transfers/round-trip", test_round_trip);
  g_test_add_func("/guest/transfers/large-round-trip", test_large_round_trip);
  g_test_add_func("/guest/transfers/upload-modes", test_upload_modes);
  g_test_add_func("/guest/transfers/upload-refused", test_upload_refused);
  g_test_add_func("/guest/transfers/upload-through-link", test_upload_through_link);
  g_test_add_func("/guest/transfers/upload-broken", test_upload_broken);
  g_test_add_func("/guest/transfers/download-leaves-out", test_download_leaves_out);
  g_test_add_func("/guest/transfers/changes", test_changes);
  g_test_add_func("/guest/transfers/changes-in-disguise", test_changes_in_disguise);
  g_test_add_func("/guest/transfers/changes-by-mapping", test_changes_by_mapping);
  g_test_add_func("/guest/transfers/changes-skips", test_changes_skips);
  g_test_add_func("/guest/transfers/changes-bounds", test_changes_bounds);
  g_test_add_func("/guest/transfers/changes-odd-times", test_changes_odd_times);
  g_test_add_func("/guest/transfers/changes-deep", test_changes_deep);
  g_test_add_func("/guest/transfers/changes-malformed", test_changes_malformed);
  return g_test_run();
}
