/* SPDX-License-Identifier: Apache-2.0 */
/* support-real-guest.c: the client and sandhost-guest itself, as an ordinary child of the test. */
#include <archive.h>
#include <archive_entry.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fake-guest.h"
#include "guest-spawn.h"

struct guest {
  char *dir; /* its working directory, a fresh one */
  pid_t pid;
  int pidfd;
  int error_fd;
  GuestClient *client;
};

static gboolean guest_begin(struct guest *guest) {
  g_autofree char *program = guest_program(fake_to_path(TEST_GUEST_DIR));
  if (!program) {
    g_test_skip("sandhost-guest is not built");
    return FALSE;
  }
  const char *const argv[] = {program, NULL};
  const char *const envp[] = {"PATH=/usr/bin:/bin", "BASE=of the guest", NULL};
  int stream;
  struct sandhost_call call;
  gboolean is_init = 7;
  guest->dir = g_dir_make_tmp("sandhost-guest-XXXXXX", NULL);
  struct guest_spawn_options options = {.cwd = guest->dir};
  g_assert_cmpint(
      guest_spawn(argv, envp, &options, &guest->pid, &guest->pidfd, &stream, &guest->error_fd), ==,
      0);
  guest->client = guest_client_new(&fake_host, byte_channel_for_fds(stream, stream), guest->dir);
  fake_call_init(&call);
  g_assert_cmpint(guest_client_greet(guest->client, &call, &is_init), ==, SANDHOST_OK);
  g_assert_false(is_init);
  fake_call_clear(&call);
  return TRUE;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
  (void)status;
  (void)kind;
  (void)where;
  return remove(path);
}

/* The end of the stream ends the guest. */
static void guest_end(struct guest *guest) {
  int status;
  guest_client_free(guest->client);
  g_assert_cmpint(waitpid(guest->pid, &status, 0), ==, guest->pid);
  g_assert_true(WIFEXITED(status));
  close(guest->pidfd);
  close(guest->error_fd);
  g_assert_cmpint(nftw(guest->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), ==, 0);
  g_free(guest->dir);
}

/* ---- Commands -------------------------------------------------------------------------------- */

struct shell { /* one run of sh -c */
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_execute request;
  struct sandhost_text argv[3];
  struct sandhost_result result;
};

static void shell_begin(struct shell *shell, const char *script) {
  memset(shell, 0, sizeof *shell);
  fake_call_init(&shell->call);
  fake_observed_init(&shell->seen);
  shell->argv[0] = fake_to_text("sh");
  shell->argv[1] = fake_to_text("-c");
  shell->argv[2] = fake_to_text(script);
  shell->request =
      (struct sandhost_execute){.size = sizeof shell->request, .argv = shell->argv, .argc = 3};
  shell->result.size = sizeof shell->result;
}

static int32_t shell_run(struct shell *shell, GuestClient *client) {
  struct sandhost_observer observer = fake_observer(&shell->seen);
  return guest_client_execute(client, &shell->call, &shell->request, &observer, &shell->result);
}

static void shell_end(struct shell *shell) {
  fake_observed_clear(&shell->seen);
  fake_call_clear(&shell->call);
}

static void check_shell(GuestClient *client, const char *script, uint32_t ended, int exit_code,
                        const char *out, const char *err) {
  struct shell shell;
  shell_begin(&shell, script);
  g_assert_cmpint(shell_run(&shell, client), ==, SANDHOST_OK);
  g_assert_cmpuint(shell.result.ended, ==, ended);
  g_assert_cmpint(shell.result.exit_code, ==, exit_code);
  g_assert_cmpstr(shell.seen.out->str, ==, out);
  g_assert_cmpstr(shell.seen.err->str, ==, err);
  g_assert_cmpint(shell.seen.started, ==, 1);
  g_assert_cmpuint(shell.result.stdout_bytes, ==, strlen(out));
  g_assert_cmpuint(shell.result.stderr_bytes, ==, strlen(err));
  g_assert_cmpint(shell.result.duration, >, 0);
  shell_end(&shell);
}

static void test_execute(void) {
  struct guest guest;
  if (!guest_begin(&guest)) {
    return;
  }
  g_autofree char *dir = g_strconcat(guest.dir, "\n", NULL);
  check_shell(guest.client, "true", SANDHOST_ENDED_EXIT, 0, "", "");
  check_shell(guest.client, "echo hello; echo bad >&2; exit 3", SANDHOST_ENDED_EXIT, 3, "hello\n",
              "bad\n");
  check_shell(guest.client, "kill -TERM $$", SANDHOST_ENDED_SIGNAL, 143, "", "");
  check_shell(guest.client, "pwd", SANDHOST_ENDED_EXIT, 0, dir, "");
  check_shell(guest.client, "cat", SANDHOST_ENDED_EXIT, 0, "", "");
  guest_end(&guest);
}

static void test_environment(void) {
  struct guest guest;
  struct shell shell;
  struct sandhost_pair pair = {fake_to_text("MINE"), fake_to_text("a b=c")};
  if (!guest_begin(&guest)) {
    return;
  }
  shell_begin(&shell, "echo \"$BASE/$MINE\"; pwd");
  shell.request.environment = &pair;
  shell.request.environment_count = 1;
  shell.request.cwd = fake_to_path("/usr");
  g_assert_cmpint(shell_run(&shell, guest.client), ==, SANDHOST_OK);
  g_assert_cmpstr(shell.seen.out->str, ==, "of the guest/a b=c\n/usr\n");
  shell_end(&shell);
  guest_end(&guest);
}

static void test_not_found(void) {
  struct guest guest;
  struct shell shell;
  if (!guest_begin(&guest)) {
    return;
  }
  shell_begin(&shell, "");
  shell.argv[0] = fake_to_text("no-such-program");
  shell.request.argc = 1;
  g_assert_cmpint(shell_run(&shell, guest.client), ==, SANDHOST_OK);
  g_assert_cmpuint(shell.result.ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_cmpint(shell.result.exit_code, ==, 127);
  g_assert_cmpstr(shell.seen.err->str, ==,
                  "sandhost: no-such-program: No such file or directory\n");
  shell_end(&shell);
  guest_end(&guest);
}

static void test_limit(void) {
  struct guest guest;
  struct shell shell;
  if (!guest_begin(&guest)) {
    return;
  }
  shell_begin(&shell, "echo begun; sleep 1000");
  shell.request.limit = 100 * FAKE_MILLISECOND;
  g_assert_cmpint(shell_run(&shell, guest.client), ==, SANDHOST_OK);
  g_assert_cmpuint(shell.result.ended, ==, SANDHOST_ENDED_LIMIT);
  g_assert_cmpint(shell.result.exit_code, ==, 137);
  g_assert_cmpstr(shell.seen.out->str, ==, "begun\n");
  shell_end(&shell);
  guest_end(&guest);
}

static void test_max_output(void) {
  struct guest guest;
  struct shell shell;
  if (!guest_begin(&guest)) {
    return;
  }
  shell_begin(&shell, "head -c 3000000 /dev/zero");
  shell.request.max_output_bytes = 1000000;
  g_assert_cmpint(shell_run(&shell, guest.client), ==, SANDHOST_OK);
  g_assert_cmpuint(shell.seen.out->len, ==, 1000000);
  g_assert_cmpuint(shell.result.stdout_bytes, ==, 3000000);
  shell_end(&shell);
  guest_end(&guest);
}

static void test_large_command(void) {
  struct guest guest;
  struct shell shell;
  if (!guest_begin(&guest)) {
    return;
  }
  g_autofree char *comment = g_strnfill(3000000, 'x');
  g_autofree char *script = g_strconcat("echo before\n# ", comment, "\necho after $0\n", NULL);
  shell_begin(&shell, script);
  g_assert_cmpint(shell_run(&shell, guest.client), ==, SANDHOST_OK);
  g_assert_cmpstr(shell.seen.err->str, ==, "");
  g_assert_cmpstr(shell.seen.out->str, ==, "before\nafter sh\n");
  shell_end(&shell);
  guest_end(&guest);
}

static void signal_it(void *user, uint64_t execution) {
  struct sandhost_call call;
  fake_call_init(&call);
  g_assert_cmpint(guest_client_signal(user, &call, execution, 15), ==, SANDHOST_OK);
  fake_call_clear(&call);
}

static int32_t ignore_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)user;
  (void)stream;
  (void)data;
  (void)length;
  return SANDHOST_OK;
}

static void test_signal(void) {
  struct guest guest;
  struct shell shell;
  if (!guest_begin(&guest)) {
    return;
  }
  shell_begin(&shell, "sleep 1000");
  struct sandhost_observer observer = {
      .size = sizeof observer, .user = guest.client, .started = signal_it, .output = ignore_output};
  g_assert_cmpint(
      guest_client_execute(guest.client, &shell.call, &shell.request, &observer, &shell.result), ==,
      SANDHOST_OK);
  g_assert_cmpuint(shell.result.ended, ==, SANDHOST_ENDED_SIGNAL);
  g_assert_cmpint(shell.result.signal, ==, 15);
  shell_end(&shell);
  guest_end(&guest);
}

/* ---- Cancel, input --------------------------------------------------------------------------- */

static int32_t stop_output(void *user, uint32_t stream, const void *data, size_t length) {
  size_t *left = user;
  (void)stream;
  (void)data;
  *left -= MIN(*left, length);
  return *left > 0 ? SANDHOST_OK : SANDHOST_LIMIT;
}

/* A kill passes a pipe that is full, and the guest is as good as before. */
static void test_stop_endless_output(void) {
  struct guest guest;
  struct shell shell;
  size_t left = 5000000;
  if (!guest_begin(&guest)) {
    return;
  }
  shell_begin(&shell, "yes");
  struct sandhost_observer observer = {
      .size = sizeof observer, .user = &left, .output = stop_output};
  g_assert_cmpint(
      guest_client_execute(guest.client, &shell.call, &shell.request, &observer, &shell.result), ==,
      SANDHOST_CANCELLED);
  shell_end(&shell);
  check_shell(guest.client, "echo on", SANDHOST_ENDED_EXIT, 0, "on\n", "");
  guest_end(&guest);
}

static void cancel_it(void *user, uint64_t execution) {
  (void)execution;
  fake_call_cancel(user);
}

static void test_cancel(void) {
  struct guest guest;
  struct shell shell;
  if (!guest_begin(&guest)) {
    return;
  }
  shell_begin(&shell, "sleep 1000 & setsid sleep 1000 & wait");
  struct sandhost_observer observer = {
      .size = sizeof observer, .user = &shell.call, .started = cancel_it, .output = ignore_output};
  g_assert_cmpint(
      guest_client_execute(guest.client, &shell.call, &shell.request, &observer, &shell.result), ==,
      SANDHOST_CANCELLED);
  g_assert_null(guest_client_lost_reason(guest.client));
  shell_end(&shell);
  guest_end(&guest);
}

struct input {
  struct fake_observed seen;
  size_t left;
};

static int64_t give_input(void *user, void *buffer, size_t length) {
  struct input *input = user;
  size_t part = MIN(length, input->left);
  memset(buffer, 'i', part);
  input->left -= part;
  return (int64_t)part;
}

static int32_t no_input_fd(void *user) {
  (void)user;
  return -1;
}

static void run_with_input(GuestClient *client, const char *script, size_t length,
                           const char *expected) {
  struct shell shell;
  struct input input = {.left = length};
  fake_observed_init(&input.seen);
  shell_begin(&shell, script);
  shell.request.flags = SANDHOST_EXECUTE_STDIN;
  struct sandhost_observer observer = fake_observer(&input.seen);
  observer.input = give_input;
  observer.input_fd = no_input_fd;
  g_assert_cmpint(
      guest_client_execute(client, &shell.call, &shell.request, &observer, &shell.result), ==,
      SANDHOST_OK);
  g_assert_cmpstr(input.seen.out->str, ==, expected);
  g_assert_cmpint(shell.result.exit_code, ==, 0);
  shell_end(&shell);
  fake_observed_clear(&input.seen);
}

static void test_input(void) {
  struct guest guest;
  if (!guest_begin(&guest)) {
    return;
  }
  run_with_input(guest.client, "wc -c", 5000000, "5000000\n");
  run_with_input(guest.client, "wc -c", 0, "0\n");
  run_with_input(guest.client, "head -c 3", 5000000, "iii");
  run_with_input(guest.client, "exec <&-; echo closed", 5000000, "closed\n");
  guest_end(&guest);
}

/* ---- Many, and much -------------------------------------------------------------------------- */

static gpointer run_many(gpointer data) {
  for (int i = 0; i < 25; i++) {
    check_shell(data, "echo out; echo err >&2", SANDHOST_ENDED_EXIT, 0, "out\n", "err\n");
  }
  return NULL;
}

static void test_parallel(void) {
  struct guest guest;
  GThread *threads[8];
  if (!guest_begin(&guest)) {
    return;
  }
  for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
    threads[i] = g_thread_new("many", run_many, guest.client);
  }
  for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
    g_thread_join(threads[i]);
  }
  guest_end(&guest);
}

static int32_t count_output(void *user, uint32_t stream, const void *data, size_t length) {
  uint64_t *counted = user;
  (void)stream;
  (void)data;
  *counted += length;
  return SANDHOST_OK;
}

static void test_much_output(void) {
  struct guest guest;
  struct shell shell;
  uint64_t counted = 0;
  if (!guest_begin(&guest)) {
    return;
  }
  shell_begin(&shell, "head -c 200000000 /dev/zero");
  struct sandhost_observer observer = {
      .size = sizeof observer, .user = &counted, .output = count_output};
  int64_t began = fake_now();
  g_assert_cmpint(
      guest_client_execute(guest.client, &shell.call, &shell.request, &observer, &shell.result), ==,
      SANDHOST_OK);
  int64_t took = fake_now() - began;
  g_assert_cmpuint(counted, ==, 200000000);
  g_test_message("%.0f MB/s", 200e3 / ((double)took / 1e6));
  shell_end(&shell);
  guest_end(&guest);
}

/* ---- Files ----------------------------------------------------------------------------------- */

struct bytes {
  GByteArray *data;
  size_t at;
};

static int32_t keep(void *user, const void *data, size_t length) {
  struct bytes *bytes = user;
  g_byte_array_append(bytes->data, data, (guint)length);
  return SANDHOST_OK;
}

static int64_t give(void *user, void *buffer, size_t length) {
  struct bytes *bytes = user;
  size_t part = MIN(length, bytes->data->len - bytes->at);
  memcpy(buffer, bytes->data->data + bytes->at, part);
  bytes->at += part;
  return (int64_t)part;
}

static int32_t read_file(GuestClient *client, struct sandhost_call *call, const char *path,
                         struct bytes *bytes) {
  struct sandhost_sink sink = {.size = sizeof sink, .user = bytes, .write = keep};
  return guest_client_read_file(client, call, fake_to_path(path), &sink);
}

static void test_files(void) {
  struct guest guest;
  struct sandhost_call call;
  struct bytes in = {.data = g_byte_array_new()};
  struct bytes out = {.data = g_byte_array_new()};
  struct sandhost_source source = {.size = sizeof source, .user = &in, .read = give};
  if (!guest_begin(&guest)) {
    g_byte_array_unref(in.data);
    g_byte_array_unref(out.data);
    return;
  }
  g_autofree char *path = g_build_filename(guest.dir, "new", "folder", "file", NULL);
  g_byte_array_set_size(in.data, 5000000);
  memset(in.data->data, 'f', in.data->len);
  fake_call_init(&call);
  g_assert_cmpint(guest_client_write_file(guest.client, &call, fake_to_path(path), 0751, &source),
                  ==, SANDHOST_OK);
  g_assert_cmpint(read_file(guest.client, &call, path, &out), ==, SANDHOST_OK);
  g_assert_cmpuint(out.data->len, ==, in.data->len);
  g_assert_true(memcmp(out.data->data, in.data->data, out.data->len) == 0);
  struct stat status;
  g_assert_cmpint(stat(path, &status), ==, 0);
  g_assert_cmpuint(status.st_mode & 07777, ==, 0751);
  fake_call_clear(&call);
  g_byte_array_unref(in.data);
  g_byte_array_unref(out.data);
  guest_end(&guest);
}

static void check_read_fails(GuestClient *client, const char *dir, const char *name,
                             int32_t expected) {
  g_autofree char *path = g_build_filename(dir, name, NULL);
  struct sandhost_call call;
  struct bytes out = {.data = g_byte_array_new()};
  fake_call_init(&call);
  g_assert_cmpint(read_file(client, &call, path, &out), ==, expected);
  g_assert_cmpuint(out.data->len, ==, 0);
  g_assert_nonnull(call.message);
  if (expected == SANDHOST_INVALID && g_str_has_prefix(name, "link")) {
    g_assert_true(g_str_has_suffix(call.message, " is outside the sandbox working directory"));
  }
  fake_call_clear(&call);
  g_byte_array_unref(out.data);
}

static void test_files_that_are_none(void) {
  struct guest guest;
  if (!guest_begin(&guest)) {
    return;
  }
  check_shell(guest.client, "ln -s /etc/passwd link; ln -s /etc linked; mkfifo fifo; mkdir folder",
              SANDHOST_ENDED_EXIT, 0, "", "");
  check_read_fails(guest.client, guest.dir, "missing", SANDHOST_NOT_FOUND);
  check_read_fails(guest.client, guest.dir, "link", SANDHOST_INVALID);
  check_read_fails(guest.client, guest.dir, "linked/passwd", SANDHOST_INVALID);
  check_read_fails(guest.client, guest.dir, "fifo", SANDHOST_INVALID);
  check_read_fails(guest.client, guest.dir, "folder", SANDHOST_INVALID);
  guest_end(&guest);
}

/* ---- Tar streams and changes ----------------------------------------------------------------- */

static const char *const odd_names[] = {"plain.txt", "dir/with space", "dir/new\nline",
                                        "\xc3\xa9t\xc3\xa9.csv", "not\xff utf-8"};

static GByteArray *make_tar(void) {
  GByteArray *tar = g_byte_array_set_size(g_byte_array_new(), 1 << 20);
  size_t used = 0;
  struct archive *archive = archive_write_new();
  g_assert_cmpint(archive_write_set_format_pax(archive), ==, ARCHIVE_OK);
  g_assert_cmpint(archive_write_set_options(archive, "hdrcharset=BINARY"), ==, ARCHIVE_OK);
  g_assert_cmpint(archive_write_open_memory(archive, tar->data, tar->len, &used), ==, ARCHIVE_OK);
  for (size_t i = 0; i < G_N_ELEMENTS(odd_names); i++) {
    struct archive_entry *entry = archive_entry_new();
    archive_entry_copy_pathname(entry, odd_names[i]);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0640);
    archive_entry_set_size(entry, (la_int64_t)strlen(odd_names[i]));
    g_assert_cmpint(archive_write_header(archive, entry), ==, ARCHIVE_OK);
    g_assert_cmpint(archive_write_data(archive, odd_names[i], strlen(odd_names[i])), ==,
                    (la_ssize_t)strlen(odd_names[i]));
    archive_entry_free(entry);
  }
  g_assert_cmpint(archive_write_close(archive), ==, ARCHIVE_OK);
  archive_write_free(archive);
  return g_byte_array_set_size(tar, (guint)used);
}

static void check_tar(const GByteArray *tar) {
  struct archive *archive = archive_read_new();
  struct archive_entry *entry;
  g_assert_cmpint(archive_read_support_format_tar(archive), ==, ARCHIVE_OK);
  g_assert_cmpint(archive_read_open_memory(archive, tar->data, tar->len), ==, ARCHIVE_OK);
  for (size_t i = 0; i < G_N_ELEMENTS(odd_names); i++) {
    char content[100];
    g_assert_cmpint(archive_read_next_header(archive, &entry), <=, ARCHIVE_OK);
    g_assert_cmpstr(archive_entry_pathname(entry), ==, odd_names[i]);
    g_assert_cmpuint(archive_entry_perm(entry), ==, 0640);
    la_ssize_t length = archive_read_data(archive, content, sizeof content);
    g_assert_cmpint(length, ==, (la_ssize_t)strlen(odd_names[i]));
    g_assert_true(memcmp(content, odd_names[i], (size_t)length) == 0);
  }
  g_assert_cmpint(archive_read_next_header(archive, &entry), ==, ARCHIVE_EOF);
  archive_read_free(archive);
}

struct listed {
  struct sandhost_known known[16];
  char *paths[16];
  size_t count;
};

static int32_t list_entry(void *user, const struct sandhost_entry *entry) {
  struct listed *listed = user;
  g_assert_cmpuint(listed->count, <, G_N_ELEMENTS(listed->known));
  g_assert_cmpuint(entry->kind, ==, SANDHOST_KIND_FILE);
  g_assert_cmpuint(entry->flags, ==, SANDHOST_ENTRY_SHA256);
  struct sandhost_known *known = &listed->known[listed->count];
  listed->paths[listed->count] = g_strndup(entry->path.data, entry->path.length);
  known->path = fake_to_path(listed->paths[listed->count]);
  memcpy(known->sha256, entry->sha256, sizeof known->sha256);
  listed->count++;
  return SANDHOST_OK;
}

static int compare_known(const void *left, const void *right) {
  const struct sandhost_known *a = left;
  const struct sandhost_known *b = right;
  return strcmp(a->path.data, b->path.data);
}

static void listed_clear(struct listed *listed) {
  for (size_t i = 0; i < listed->count; i++) {
    g_free(listed->paths[i]);
  }
  *listed = (struct listed){0};
}

/* Lists what is not as known says. */
static void list_changes(const struct guest *guest, const struct listed *known,
                         struct listed *ret_listed) {
  struct sandhost_entry_sink sink = {.size = sizeof sink, .user = ret_listed, .entry = list_entry};
  struct sandhost_changes request = {.size = sizeof request,
                                     .root = fake_to_path(guest->dir),
                                     .known = known->known,
                                     .known_count = known->count};
  struct sandhost_call call;
  fake_call_init(&call);
  *ret_listed = (struct listed){0};
  g_assert_cmpint(guest_client_changes(guest->client, &call, &request, &sink), ==, SANDHOST_OK);
  qsort(ret_listed->known, ret_listed->count, sizeof ret_listed->known[0], compare_known);
  fake_call_clear(&call);
}

static void test_tar_and_changes(void) {
  struct guest guest;
  struct sandhost_call call;
  if (!guest_begin(&guest)) {
    return;
  }
  struct bytes in = {.data = make_tar()};
  struct bytes out = {.data = g_byte_array_new()};
  struct sandhost_source source = {.size = sizeof source, .user = &in, .read = give};
  struct sandhost_sink sink = {.size = sizeof sink, .user = &out, .write = keep};
  fake_call_init(&call);
  g_assert_cmpint(guest_client_upload(guest.client, &call, fake_to_path(guest.dir), &source), ==,
                  SANDHOST_OK);
  struct listed none = {0};
  struct listed all;
  struct listed changed;
  list_changes(&guest, &none, &all);
  g_assert_cmpuint(all.count, ==, G_N_ELEMENTS(odd_names));
  list_changes(&guest, &all, &changed);
  g_assert_cmpuint(changed.count, ==, 0);
  check_shell(guest.client, "echo more >> plain.txt; echo x > .hidden; ln -s plain.txt other",
              SANDHOST_ENDED_EXIT, 0, "", "");
  list_changes(&guest, &all, &changed);
  g_assert_cmpuint(changed.count, ==, 1);
  g_assert_cmpstr(changed.known[0].path.data, ==, "plain.txt");
  listed_clear(&changed);
  check_shell(guest.client, "printf plain.txt > plain.txt", SANDHOST_ENDED_EXIT, 0, "", "");
  struct sandhost_path names[G_N_ELEMENTS(odd_names) + 2];
  for (size_t i = 0; i < G_N_ELEMENTS(odd_names); i++) {
    names[i] = fake_to_path(odd_names[i]);
  }
  names[G_N_ELEMENTS(odd_names)] = fake_to_path("missing");
  names[G_N_ELEMENTS(odd_names) + 1] = fake_to_path("other");
  g_assert_cmpint(guest_client_download(guest.client, &call, fake_to_path(guest.dir), names,
                                        G_N_ELEMENTS(names), &sink),
                  ==, SANDHOST_OK);
  check_tar(out.data);
  listed_clear(&all);
  fake_call_clear(&call);
  g_byte_array_unref(in.data);
  g_byte_array_unref(out.data);
  guest_end(&guest);
}

/* ---- Probe ----------------------------------------------------------------------------------- */

static void test_probe(void) {
  struct guest guest;
  struct sandhost_call call;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  uint32_t verdict = 0;
  if (!guest_begin(&guest)) {
    return;
  }
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint(bind(listener, (const struct sockaddr *)&address, length), ==, 0);
  g_assert_cmpint(listen(listener, 1), ==, 0);
  g_assert_cmpint(getsockname(listener, (struct sockaddr *)&address, &length), ==, 0);
  struct sandhost_probe request = {.size = sizeof request,
                                   .address = fake_to_text("127.0.0.1"),
                                   .port = ntohs(address.sin_port),
                                   .patience = 5000 * FAKE_MILLISECOND};
  fake_call_init(&call);
  g_assert_cmpint(guest_client_probe(guest.client, &call, &request, &verdict), ==, SANDHOST_OK);
  g_assert_cmpuint(verdict, ==, SANDHOST_PROBE_REACHED);
  close(listener);
  /* Refused is reached as well: the far side answered. */
  verdict = 0;
  g_assert_cmpint(guest_client_probe(guest.client, &call, &request, &verdict), ==, SANDHOST_OK);
  g_assert_cmpuint(verdict, ==, SANDHOST_PROBE_REACHED);
  fake_call_clear(&call);
  guest_end(&guest);
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/support/real-guest/execute", test_execute);
  g_test_add_func("/support/real-guest/environment", test_environment);
  g_test_add_func("/support/real-guest/not-found", test_not_found);
  g_test_add_func("/support/real-guest/limit", test_limit);
  g_test_add_func("/support/real-guest/max-output", test_max_output);
  g_test_add_func("/support/real-guest/large-command", test_large_command);
  g_test_add_func("/support/real-guest/signal", test_signal);
  g_test_add_func("/support/real-guest/stop-endless-output", test_stop_endless_output);
  g_test_add_func("/support/real-guest/cancel", test_cancel);
  g_test_add_func("/support/real-guest/input", test_input);
  g_test_add_func("/support/real-guest/parallel", test_parallel);
  g_test_add_func("/support/real-guest/much-output", test_much_output);
  g_test_add_func("/support/real-guest/files", test_files);
  g_test_add_func("/support/real-guest/files-that-are-none", test_files_that_are_none);
  g_test_add_func("/support/real-guest/tar-and-changes", test_tar_and_changes);
  g_test_add_func("/support/real-guest/probe", test_probe);
  return g_test_run();
}
