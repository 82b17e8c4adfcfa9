/* SPDX-License-Identifier: Apache-2.0 */
/* support-transfers.c: files, tar streams and probes through a client. */
#include <limits.h>

#include "support-peer.h"

#define LARGE ((size_t)5 * 1024 * 1024)

/* ---- One file -------------------------------------------------------------------------------- */

static void test_read_file(void) {
  g_autoptr(GByteArray) content = pattern(LARGE);
  struct bytes bytes = {.data = g_byte_array_new()};
  struct sandhost_sink sink = sink_of(&bytes);
  struct fixture fixture;
  fixture_begin(&fixture, (struct peer){.operation = GUEST_READ_FILE, .give = content});
  g_assert_cmpint(guest_client_read_file(fixture.session.client, &fixture.call,
                                         fake_to_path("/workspace/a/b.txt"), &sink),
                  ==, SANDHOST_OK);
  fixture_end(&fixture);
  assert_same(bytes.data, content);
  struct guest_reader reader = {.data = fixture.peer.parameters->data,
                                .left = fixture.peer.parameters->len};
  assert_field(&reader, "/workspace");
  assert_field(&reader, "a/b.txt");
  g_assert_cmpuint(reader.left, ==, 0);
  fixture_free(&fixture);
  g_byte_array_unref(bytes.data);
}

static void test_read_missing_file(void) {
  struct bytes bytes = {.data = g_byte_array_new()};
  struct sandhost_sink sink = sink_of(&bytes);
  struct fixture fixture;
  fixture_begin(&fixture, (struct peer){.operation = GUEST_READ_FILE,
                                        .status = SANDHOST_NOT_FOUND,
                                        .message = "x.txt does not exist"});
  g_assert_cmpint(guest_client_read_file(fixture.session.client, &fixture.call,
                                         fake_to_path("/workspace/x.txt"), &sink),
                  ==, SANDHOST_NOT_FOUND);
  g_assert_cmpstr(fixture.call.message, ==, "x.txt does not exist");
  fixture_end(&fixture);
  fixture_free(&fixture);
  g_byte_array_unref(bytes.data);
}

static void test_read_stopped_by_sink(void) {
  g_autoptr(GByteArray) content = pattern(LARGE);
  struct bytes bytes = {.data = g_byte_array_new(), .stop = 300000};
  struct sandhost_sink sink = sink_of(&bytes);
  struct fixture fixture;
  fixture_begin(&fixture, (struct peer){.operation = GUEST_READ_FILE, .give = content});
  g_assert_cmpint(guest_client_read_file(fixture.session.client, &fixture.call,
                                         fake_to_path("/workspace/a"), &sink),
                  ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(fixture.call.message, ==, "the receiver of the file stopped");
  g_assert_null(guest_client_lost_reason(fixture.session.client));
  fixture_end(&fixture);
  g_assert_true(fixture.peer.cancelled);
  g_assert_cmpuint(bytes.data->len, <, 300000 + GUEST_WINDOW);
  fixture_free(&fixture);
  g_byte_array_unref(bytes.data);
}

static void test_write_file(void) {
  struct bytes bytes = {.data = pattern(LARGE)};
  struct sandhost_source source = source_of(&bytes);
  struct fixture fixture;
  fixture_begin(&fixture, (struct peer){.operation = GUEST_WRITE_FILE, .got = g_byte_array_new()});
  g_assert_cmpint(guest_client_write_file(fixture.session.client, &fixture.call,
                                          fake_to_path("/workspace/./x/../y"), 0100755, &source),
                  ==, SANDHOST_OK);
  fixture_end(&fixture);
  assert_same(fixture.peer.got, bytes.data);
  struct guest_reader reader = {.data = fixture.peer.parameters->data,
                                .left = fixture.peer.parameters->len};
  assert_field(&reader, "/workspace");
  assert_field(&reader, "./x/../y");
  g_assert_cmpuint(guest_read_u32(&reader), ==, 0755);
  g_assert_cmpuint(reader.left, ==, 0);
  fixture_free(&fixture);
  g_byte_array_unref(bytes.data);
}

static void test_write_stopped_by_source(void) {
  struct bytes bytes = {.data = pattern(LARGE), .stop = 2000000};
  struct sandhost_source source = source_of(&bytes);
  struct fixture fixture;
  fixture_begin(&fixture, (struct peer){.operation = GUEST_WRITE_FILE, .got = g_byte_array_new()});
  g_assert_cmpint(guest_client_write_file(fixture.session.client, &fixture.call,
                                          fake_to_path("/workspace/y"), 0644, &source),
                  ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(fixture.call.message, ==, "the source of the file stopped");
  fixture_end(&fixture);
  g_assert_true(fixture.peer.cancelled);
  fixture_free(&fixture);
  g_byte_array_unref(bytes.data);
}

/* A guest whose disk is full says so before the content is all there. */
static void test_write_ended_early(void) {
  struct bytes bytes = {.data = pattern(LARGE)};
  struct sandhost_source source = source_of(&bytes);
  struct fixture fixture;
  fixture_begin(&fixture, (struct peer){.operation = GUEST_WRITE_FILE,
                                        .got = g_byte_array_new(),
                                        .stop_after = 500000,
                                        .status = SANDHOST_LIMIT,
                                        .message = "no space left"});
  g_assert_cmpint(guest_client_write_file(fixture.session.client, &fixture.call,
                                          fake_to_path("/workspace/y"), 0644, &source),
                  ==, SANDHOST_LIMIT);
  g_assert_cmpstr(fixture.call.message, ==, "no space left");
  g_assert_null(guest_client_lost_reason(fixture.session.client));
  fixture_end(&fixture);
  g_assert_cmpuint(bytes.at, <, bytes.data->len);
  fixture_free(&fixture);
  g_byte_array_unref(bytes.data);
}

static void check_path(const char *path, const char *message) {
  struct bytes bytes = {.data = g_byte_array_new()};
  struct sandhost_sink sink = sink_of(&bytes);
  struct sandhost_source source = source_of(&bytes);
  int fds[2];
  g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
  g_autoptr(GuestClient) client =
      guest_client_new(&fake_host, byte_channel_for_fds(fds[0], fds[0]), "/workspace");
  struct sandhost_call call;
  fake_call_init(&call);
  g_assert_cmpint(guest_client_read_file(client, &call, fake_to_path(path), &sink), ==,
                  SANDHOST_INVALID);
  g_assert_cmpstr(call.message, ==, message);
  fake_call_clear(&call);
  fake_call_init(&call);
  g_assert_cmpint(guest_client_write_file(client, &call, fake_to_path(path), 0644, &source), ==,
                  SANDHOST_INVALID);
  g_assert_cmpstr(call.message, ==, message);
  fake_call_clear(&call);
  close(fds[1]);
  g_byte_array_unref(bytes.data);
}

static void test_paths(void) {
  check_path("/etc/passwd", "Path /etc/passwd is outside the sandbox working directory");
  check_path("/workspace/../etc",
             "Path /workspace/../etc is outside the sandbox working directory");
  check_path("/workspace/a/../../workspace/b",
             "Path /workspace/a/../../workspace/b is outside the sandbox working directory");
  check_path("/workspaces", "Path /workspaces is outside the sandbox working directory");
  check_path("/workspace", "the path is that of a folder");
  check_path("/workspace/a/..", "the path is that of a folder");
  check_path("a", "the path of the file is not an absolute path");
  check_path("", "the path of the file is not an absolute path");
  g_autofree char *tail = g_strnfill(PATH_MAX, 'x');
  g_autofree char *path = g_strconcat("/workspace/", tail, NULL);
  check_path(path, "the path of the file is too long for a path");
}

/* ---- Tar streams ----------------------------------------------------------------------------- */

static void test_upload(void) {
  struct bytes bytes = {.data = pattern(LARGE)};
  struct sandhost_source source = source_of(&bytes);
  struct fixture fixture;
  fixture_begin(&fixture, (struct peer){.operation = GUEST_UPLOAD, .got = g_byte_array_new()});
  g_assert_cmpint(guest_client_upload(fixture.session.client, &fixture.call,
                                      fake_to_path("/workspace"), &source),
                  ==, SANDHOST_OK);
  fixture_end(&fixture);
  assert_same(fixture.peer.got, bytes.data);
  fixture_free(&fixture);
  g_byte_array_unref(bytes.data);
}

static void test_download(void) {
  g_autoptr(GByteArray) content = pattern(LARGE);
  struct bytes bytes = {.data = g_byte_array_new()};
  struct sandhost_sink sink = sink_of(&bytes);
  const struct sandhost_path names[] = {fake_to_path("a"), fake_to_path("b/c d"),
                                        fake_to_path("\xff\n")};
  struct fixture fixture;
  fixture_begin(
      &fixture,
      (struct peer){.operation = GUEST_DOWNLOAD, .got = g_byte_array_new(), .give = content});
  g_assert_cmpint(guest_client_download(fixture.session.client, &fixture.call,
                                        fake_to_path("/workspace"), names, G_N_ELEMENTS(names),
                                        &sink),
                  ==, SANDHOST_OK);
  fixture_end(&fixture);
  assert_same(bytes.data, content);
  static const char expected[] = "a\0b/c d\0\xff\n";
  g_assert_cmpuint(fixture.peer.got->len, ==, sizeof expected);
  g_assert_true(memcmp(fixture.peer.got->data, expected, sizeof expected) == 0);
  fixture_free(&fixture);
  g_byte_array_unref(bytes.data);
}

/* Names that are longer together than the window and any chunk. */
static void test_download_many_names(void) {
  const size_t count = 30000;
  g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
  g_autofree struct sandhost_path *names = g_new0(struct sandhost_path, count);
  GByteArray *expected = g_byte_array_new();
  for (size_t i = 0; i < count; i++) {
    char *name = g_strdup_printf("folder-%zu/a-name-that-has-some-length-%zu", i % 7, i);
    g_ptr_array_add(texts, name);
    names[i] = fake_to_path(name);
    g_byte_array_append(expected, (const guint8 *)name, (guint)strlen(name) + 1);
  }
  struct bytes bytes = {.data = g_byte_array_new()};
  struct sandhost_sink sink = sink_of(&bytes);
  struct fixture fixture;
  fixture_begin(&fixture, (struct peer){.operation = GUEST_DOWNLOAD, .got = g_byte_array_new()});
  g_assert_cmpint(guest_client_download(fixture.session.client, &fixture.call,
                                        fake_to_path("/workspace"), names, count, &sink),
                  ==, SANDHOST_OK);
  fixture_end(&fixture);
  assert_same(fixture.peer.got, expected);
  fixture_free(&fixture);
  g_byte_array_unref(expected);
  g_byte_array_unref(bytes.data);
}

static void test_download_bad_name(void) {
  const struct sandhost_path names[] = {fake_to_path("a"), {"b\0c", 3}};
  struct bytes bytes = {.data = g_byte_array_new()};
  struct sandhost_sink sink = sink_of(&bytes);
  struct fixture fixture;
  fixture_begin(&fixture, (struct peer){.operation = GUEST_READ_FILE});
  g_assert_cmpint(guest_client_download(fixture.session.client, &fixture.call,
                                        fake_to_path("/workspace"), names, 2, &sink),
                  ==, SANDHOST_INVALID);
  g_assert_cmpstr(fixture.call.message, ==,
                  "the name of file 2 of the download is no relative path");
  /* Lets the script end as it expects. */
  g_assert_cmpint(guest_client_read_file(fixture.session.client, &fixture.call,
                                         fake_to_path("/workspace/a"), &sink),
                  ==, SANDHOST_OK);
  fixture_end(&fixture);
  fixture_free(&fixture);
  g_byte_array_unref(bytes.data);
}

/* ---- Probe ----------------------------------------------------------------------------------- */

static int32_t probe(uint32_t verdict, uint32_t port, uint32_t *ret_verdict, char **ret_message) {
  struct sandhost_probe request = {
      .size = sizeof request, .address = fake_to_text("192.0.2.1"), .port = port, .patience = 1000};
  struct fixture fixture;
  fixture_begin(&fixture,
                (struct peer){.operation = GUEST_PROBE, .has_results = TRUE, .results = verdict});
  int32_t status = guest_client_probe(fixture.session.client, &fixture.call, &request, ret_verdict);
  *ret_message = g_strdup(fixture.call.message);
  fixture_end(&fixture);
  if (fixture.peer.parameters->len > 0) {
    struct guest_reader reader = {.data = fixture.peer.parameters->data,
                                  .left = fixture.peer.parameters->len};
    assert_field(&reader, "192.0.2.1");
    g_assert_cmpuint(guest_read_u32(&reader), ==, port);
    g_assert_cmpuint(guest_read_u64(&reader), ==, 1000);
  }
  fixture_free(&fixture);
  return status;
}

static void test_probe(void) {
  uint32_t verdict = 0;
  g_autofree char *message = NULL;
  g_assert_cmpint(probe(SANDHOST_PROBE_BLOCKED, 443, &verdict, &message), ==, SANDHOST_OK);
  g_assert_cmpuint(verdict, ==, SANDHOST_PROBE_BLOCKED);
}

static void test_probe_without_verdict(void) {
  uint32_t verdict = 7;
  g_autofree char *message = NULL;
  g_assert_cmpint(probe(11, 443, &verdict, &message), ==, SANDHOST_PROTOCOL);
  g_assert_cmpuint(verdict, ==, 7);
  g_assert_cmpstr(message, ==, "it broke the protocol: a probe without a verdict");
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/support/transfers/read-file", test_read_file);
  g_test_add_func("/support/transfers/read-missing-file", test_read_missing_file);
  g_test_add_func("/support/transfers/read-stopped-by-sink", test_read_stopped_by_sink);
  g_test_add_func("/support/transfers/write-file", test_write_file);
  g_test_add_func("/support/transfers/write-stopped-by-source", test_write_stopped_by_source);
  g_test_add_func("/support/transfers/write-ended-early", test_write_ended_early);
  g_test_add_func("/support/transfers/paths", test_paths);
  g_test_add_func("/support/transfers/upload", test_upload);
  g_test_add_func("/support/transfers/download", test_download);
  g_test_add_func("/support/transfers/download-many-names", test_download_many_names);
  g_test_add_func("/support/transfers/download-bad-name", test_download_bad_name);
  g_test_add_func("/support/transfers/probe", test_probe);
  g_test_add_func("/support/transfers/probe-without-verdict", test_probe_without_verdict);
  return g_test_run();
}
