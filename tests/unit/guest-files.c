/* SPDX-License-Identifier: Apache-2.0 */
/* guest-files.c: single files below a folder and no others, and the probe. */
#include "guest-raw.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

static struct raw_answer *read_file(struct raw *raw, uint32_t id, const char *path) {
  raw_open_texts(raw, id, GUEST_READ_FILE, raw->dir, path);
  return raw_wait(raw, id);
}

static void open_write(struct raw *raw, uint32_t id, const char *path, uint32_t mode) {
  g_autoptr(GByteArray) parameters = g_byte_array_new();
  raw_put_text(parameters, raw->dir);
  raw_put_text(parameters, path);
  raw_put_u32(parameters, mode);
  raw_open(raw, id, GUEST_WRITE_FILE, parameters);
}

static struct raw_answer *write_file(struct raw *raw, uint32_t id, const char *path,
                                     const char *content) {
  open_write(raw, id, path, 0640);
  raw_send_data(raw, id, content, strlen(content));
  raw_send_end(raw, id);
  return raw_wait(raw, id);
}

static void check_outside(const struct raw *raw, const struct raw_answer *answer,
                          const char *path) {
  g_autofree char *text =
      g_strdup_printf("Path %s/%s is outside the sandbox working directory", raw->dir, path);
  g_assert_cmpint(answer->status, ==, SANDHOST_INVALID);
  g_assert_cmpstr(answer->message, ==, text);
}

static void test_read(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_put_file(&raw, "deep/er/file", "content");
  g_autofree char *link = raw_path(&raw, "link");
  g_assert_cmpint(symlink("deep/er", link), ==, 0);
  g_assert_cmpstr(read_file(&raw, 1, "deep/er/file")->out->str, ==, "content");
  g_assert_cmpint(raw_answer(&raw, 1)->status, ==, SANDHOST_OK);
  g_assert_cmpstr(read_file(&raw, 2, "deep/../deep//./er/file")->out->str, ==, "content");
  g_assert_cmpstr(read_file(&raw, 3, "link/file")->out->str, ==, "content");
  raw_end(&raw);
}

static void test_read_large(void) {
  struct raw raw;
  raw_begin(&raw);
  g_autofree char *content = g_strnfill(5000000, 'c');
  raw_put_file(&raw, "large", content);
  g_assert_cmpstr(read_file(&raw, 1, "large")->out->str, ==, content);
  raw_end(&raw);
}

static void test_read_refused(void) {
  struct raw raw;
  raw_begin(&raw);
  g_autofree char *out = raw_path(&raw, "out");
  g_autofree char *loop = raw_path(&raw, "loop");
  g_autofree char *fifo = raw_path(&raw, "fifo");
  g_autofree char *socket_path = raw_path(&raw, "socket");
  g_assert_cmpint(symlink("/etc", out), ==, 0);
  g_assert_cmpint(symlink("loop", loop), ==, 0);
  g_assert_cmpint(mkfifo(fifo, 0644), ==, 0);
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  g_strlcpy(name.sun_path, socket_path, sizeof name.sun_path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint(bind(fd, (struct sockaddr *)&name, sizeof name), ==, 0);
  check_outside(&raw, read_file(&raw, 1, "../x"), "../x");
  check_outside(&raw, read_file(&raw, 2, "a/../../x"), "a/../../x");
  check_outside(&raw, read_file(&raw, 3, "out/passwd"), "out/passwd");
  check_outside(&raw, read_file(&raw, 4, "loop"), "loop");
  g_assert_cmpint(read_file(&raw, 5, "none")->status, ==, SANDHOST_NOT_FOUND);
  const char *const special[] = {"fifo", "socket"};
  for (uint32_t i = 0; i < G_N_ELEMENTS(special); i++) {
    g_autofree char *text = g_strdup_printf("%s/%s is not a regular file", raw.dir, special[i]);
    const struct raw_answer *answer = read_file(&raw, 10 + i, special[i]);
    g_assert_cmpint(answer->status, ==, SANDHOST_INVALID);
    g_assert_cmpstr(answer->message, ==, text);
  }
  raw_put_file(&raw, "folder/file", "");
  g_assert_cmpint(read_file(&raw, 20, "folder")->status, ==, SANDHOST_INVALID);
  close(fd);
  raw_end(&raw);
}

/* Without a root, links lead where they lead. */
static void test_read_anywhere(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_put_file(&raw, "file", "content");
  g_autofree char *file = raw_path(&raw, "file");
  g_autofree char *link = raw_path(&raw, "link");
  g_assert_cmpint(symlink(file, link), ==, 0);
  raw_open_texts(&raw, 1, GUEST_READ_FILE, "", link);
  g_assert_cmpstr(raw_wait(&raw, 1)->out->str, ==, "content");
  raw_end(&raw);
}

static void test_read_cancelled(void) {
  struct raw raw;
  raw_begin(&raw);
  raw.keeps_credit = TRUE;
  g_autofree char *content = g_strnfill(3 * GUEST_WINDOW, 'c');
  raw_put_file(&raw, "large", content);
  raw_open_texts(&raw, 1, GUEST_READ_FILE, raw.dir, "large");
  raw_wait_output(&raw, 1, GUEST_WINDOW);
  raw_send_cancel(&raw, 1);
  g_assert_cmpint(raw_wait(&raw, 1)->status, ==, SANDHOST_CANCELLED);
  g_assert_cmpuint(raw_answer(&raw, 1)->out->len, ==, GUEST_WINDOW);
  raw_end(&raw);
}

static void check_content(const struct raw *raw, const char *name, const char *expected) {
  g_autofree char *path = raw_path(raw, name);
  g_autofree char *content = NULL;
  g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
  g_assert_cmpstr(content, ==, expected);
}

static void test_write(void) {
  struct raw raw;
  struct stat facts;
  raw_begin(&raw);
  g_assert_cmpint(write_file(&raw, 1, "new/folder/file", "first")->status, ==, SANDHOST_OK);
  check_content(&raw, "new/folder/file", "first");
  g_assert_cmpint(write_file(&raw, 2, "new/folder/file", "second")->status, ==, SANDHOST_OK);
  check_content(&raw, "new/folder/file", "second");
  g_assert_cmpint(write_file(&raw, 3, "new/../up", "third")->status, ==, SANDHOST_OK);
  check_content(&raw, "up", "third");
  g_autofree char *path = raw_path(&raw, "new/folder/file");
  g_assert_cmpint(stat(path, &facts), ==, 0);
  g_assert_cmpuint(facts.st_mode & 07777, ==, 0640);
  g_autofree char *link = raw_path(&raw, "link");
  g_assert_cmpint(symlink("new", link), ==, 0);
  g_assert_cmpint(write_file(&raw, 4, "link/other", "by a link")->status, ==, SANDHOST_OK);
  check_content(&raw, "new/other", "by a link");
  raw_end(&raw);
}

static void test_write_large(void) {
  struct raw raw;
  raw_begin(&raw);
  g_autofree char *content = g_strnfill(3 * GUEST_WINDOW + 17, 'c');
  size_t length = strlen(content);
  open_write(&raw, 1, "large", 0644);
  for (size_t at = 0; at < length;) {
    size_t may = GUEST_WINDOW + (size_t)raw_answer(&raw, 1)->credited - at;
    if (may == 0) {
      g_assert_true(raw_step(&raw));
      continue;
    }
    size_t part = MIN(may, length - at);
    raw_send_data(&raw, 1, content + at, part);
    at += part;
  }
  raw_send_end(&raw, 1);
  g_assert_cmpint(raw_wait(&raw, 1)->status, ==, SANDHOST_OK);
  check_content(&raw, "large", content);
  raw_end(&raw);
}

static void test_write_refused(void) {
  struct raw raw;
  raw_begin(&raw);
  g_autofree char *out = raw_path(&raw, "out");
  g_autofree char *file = raw_path(&raw, "away");
  g_assert_cmpint(symlink("/tmp", out), ==, 0);
  g_assert_cmpint(symlink("/tmp/sandhost-must-not-be", file), ==, 0);
  raw_put_file(&raw, "folder/file", "");
  check_outside(&raw, write_file(&raw, 1, "../x", ""), "../x");
  check_outside(&raw, write_file(&raw, 2, "out/sandhost-must-not-be", ""),
                "out/sandhost-must-not-be");
  check_outside(&raw, write_file(&raw, 3, "away", ""), "away");
  g_assert_cmpint(write_file(&raw, 4, "folder", "")->status, ==, SANDHOST_INVALID);
  g_assert_false(g_file_test("/tmp/sandhost-must-not-be", G_FILE_TEST_EXISTS));
  raw_end(&raw);
}

/* No end, no file, and nothing left of what had come. */
static void test_write_cancelled(void) {
  struct raw raw;
  raw_begin(&raw);
  open_write(&raw, 1, "never", 0644);
  raw_send_data(&raw, 1, "half", 4);
  raw_send_cancel(&raw, 1);
  g_assert_cmpint(raw_wait(&raw, 1)->status, ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(raw_run(&raw, 2, "ls -A")->out->str, ==, "");
  raw_end(&raw);
}

/* ---- Probe ----------------------------------------------------------------------------------- */

static void open_probe(struct raw *raw, uint32_t id, const char *address, uint32_t port,
                       uint64_t patience) {
  g_autoptr(GByteArray) parameters = g_byte_array_new();
  raw_put_text(parameters, address);
  raw_put_u32(parameters, port);
  raw_put_u64(parameters, patience);
  raw_open(raw, id, GUEST_PROBE, parameters);
}

static int listen_on_loopback(uint32_t *ret_port, int backlog) {
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof name;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint(bind(fd, (struct sockaddr *)&name, size), ==, 0);
  if (backlog >= 0) {
    g_assert_cmpint(listen(fd, backlog), ==, 0);
  }
  g_assert_cmpint(getsockname(fd, (struct sockaddr *)&name, &size), ==, 0);
  *ret_port = ntohs(name.sin_port);
  return fd;
}

static void test_probe(void) {
  struct raw raw;
  uint32_t open_port;
  uint32_t closed_port;
  raw_begin(&raw);
  int listening = listen_on_loopback(&open_port, 4);
  int bound = listen_on_loopback(&closed_port, -1);
  open_probe(&raw, 1, "127.0.0.1", open_port, RAW_SECOND);
  g_assert_cmpint(raw_wait(&raw, 1)->status, ==, SANDHOST_OK);
  g_assert_cmpuint(raw_answer(&raw, 1)->verdict, ==, SANDHOST_PROBE_REACHED);
  open_probe(&raw, 2, "127.0.0.1", closed_port, RAW_SECOND);
  g_assert_cmpuint(raw_wait(&raw, 2)->verdict, ==, SANDHOST_PROBE_REACHED);
  open_probe(&raw, 3, "localhost", open_port, RAW_SECOND);
  g_assert_cmpint(raw_wait(&raw, 3)->status, ==, SANDHOST_INVALID);
  open_probe(&raw, 4, "127.0.0.1", 65536, RAW_SECOND);
  g_assert_cmpint(raw_wait(&raw, 4)->status, ==, SANDHOST_INVALID);
  close(listening);
  close(bound);
  raw_end(&raw);
}

/* A full backlog never answers: silence until patience ends, or a cancel. */
static void test_probe_silence(void) {
  struct raw raw;
  uint32_t port;
  raw_begin(&raw);
  int listening = listen_on_loopback(&port, 0);
  struct sockaddr_in name = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int filling[4];
  for (size_t i = 0; i < G_N_ELEMENTS(filling); i++) {
    filling[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)connect(filling[i], (struct sockaddr *)&name, sizeof name); /* some will wait for ever */
  }
  open_probe(&raw, 1, "127.0.0.1", port, 100 * RAW_MILLISECOND);
  g_assert_cmpuint(raw_wait(&raw, 1)->verdict, ==, SANDHOST_PROBE_BLOCKED);
  open_probe(&raw, 2, "127.0.0.1", port, 3600 * RAW_SECOND);
  raw_send_cancel(&raw, 2);
  g_assert_cmpint(raw_wait(&raw, 2)->status, ==, SANDHOST_CANCELLED);
  for (size_t i = 0; i < G_N_ELEMENTS(filling); i++) {
    close(filling[i]);
  }
  close(listening);
  raw_end(&raw);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/files/read", test_read);
  g_test_add_func("/guest/files/read-large", test_read_large);
  g_test_add_func("/guest/files/read-refused", test_read_refused);
  g_test_add_func("/guest/files/read-anywhere", test_read_anywhere);
  g_test_add_func("/guest/files/read-cancelled", test_read_cancelled);
  g_test_add_func("/guest/files/write", test_write);
  g_test_add_func("/guest/files/write-large", test_write_large);
  g_test_add_func("/guest/files/write-refused", test_write_refused);
  g_test_add_func("/guest/files/write-cancelled", test_write_cancelled);
  g_test_add_func("/guest/files/probe", test_probe);
  g_test_add_func("/guest/files/probe-silence", test_probe_silence);
  return g_test_run();
}
