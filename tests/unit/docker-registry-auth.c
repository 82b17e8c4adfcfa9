/* SPDX-License-Identifier: Apache-2.0 */
/* The login for a registry, from Docker's own configuration and from helpers that may do
 * anything. */
#include "fake-guest.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The parts under test. */
#include "../../plugins/docker/credential-helper.c"
#include "../../plugins/docker/image-name.c"
#include "../../plugins/docker/registry-auth.c"

static const char hub[] = "https://index.docker.io/v1/";

struct folder {
  char *path; /* of the configuration, and of the programs in bin */
  char *bin;
  char *old_path;
};

static void write_file(const char *folder, const char *name, const char *text, mode_t mode) {
  g_autofree char *path = g_build_filename(folder, name, NULL);
  g_assert_true(g_file_set_contents(path, text, -1, NULL));
  g_assert_cmpint(g_chmod(path, mode), ==, 0);
}

static void folder_begin(struct folder *folder, const char *config) {
  folder->path = g_dir_make_tmp("sandhost-login-XXXXXX", NULL);
  g_assert_nonnull(folder->path);
  folder->bin = g_build_filename(folder->path, "bin", NULL);
  g_assert_cmpint(g_mkdir(folder->bin, 0755), ==, 0);
  folder->old_path = g_strdup(g_getenv("PATH"));
  g_autofree char *path = g_strdup_printf("%s:/usr/bin:/bin", folder->bin);
  g_assert_true(g_setenv("PATH", path, TRUE));
  if (config) {
    write_file(folder->path, "config.json", config, 0600);
  }
}

static void folder_end(struct folder *folder) {
  const char *const argv[] = {"/bin/rm", "-rf", folder->path, NULL};
  g_assert_true(g_spawn_sync(NULL, (char **)(gsize)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL,
                             NULL, NULL, NULL));
  g_assert_true(g_setenv("PATH", folder->old_path, TRUE));
  g_free(folder->path);
  g_free(folder->bin);
  g_free(folder->old_path);
}

/* The JSON of the header's value, owned; NULL: none. */
static char *ask(const struct folder *folder, const char *registry, char **ret_complaint) {
  char *complaint = NULL;
  g_autofree char *value = registry_auth(folder->path, registry, -1, &complaint);
  *ret_complaint = complaint;
  if (!value) {
    return NULL;
  }
  g_assert_null(strpbrk(value, "+/\r\n"));
  for (char *at = value; *at; at++) {
    *at = *at == '-' ? '+' : *at == '_' ? '/' : *at;
  }
  gsize length = 0;
  g_autofree guchar *json = g_base64_decode(value, &length);
  return g_strndup((const char *)json, length);
}

/* One configuration, one registry, the whole result. */
static void check(const char *config, const char *registry, const char *json,
                  const char *complaint) {
  struct folder folder;
  folder_begin(&folder, config);
  g_autofree char *said = NULL;
  g_autofree char *got = ask(&folder, registry, &said);
  g_assert_cmpstr(got, ==, json);
  g_assert_cmpstr(said, ==, complaint);
  folder_end(&folder);
}

/* ---- The file --------------------------------------------------------------------------------- */

static void test_no_file(void) {
  check(NULL, hub, NULL, NULL);
}

/* "Ym9iOnM6M2NyZXQ=" is bob:s:3cret: only the first colon separates. */
static void test_pair(void) {
  check("{\"auths\":{\"host:5000\":{\"auth\":\"Ym9iOnM6M2NyZXQ=\"}}}", "host:5000",
        "{\"username\":\"bob\",\"password\":\"s:3cret\",\"serveraddress\":\"host:5000\"}", NULL);
}

static void test_other_registry(void) {
  check("{\"auths\":{\"host:5000\":{\"auth\":\"Ym9iOnM6M2NyZXQ=\"}}}", "host:5001", NULL, NULL);
}

static void test_registry_with_scheme_and_path(void) {
  check("{\"auths\":{\"https://Host:5000/v2/\":{\"auth\":\"Ym9iOnM6M2NyZXQ=\"}}}", "host:5000",
        "{\"username\":\"bob\",\"password\":\"s:3cret\",\"serveraddress\":\"host:5000\"}", NULL);
}

static void test_hub_by_its_other_name(void) {
  check(
      "{\"auths\":{\"docker.io\":{\"auth\":\"Ym9iOnM6M2NyZXQ=\"}}}", hub,
      "{\"username\":\"bob\",\"password\":\"s:3cret\",\"serveraddress\":\"https://index.docker.io/"
      "v1/\"}",
      NULL);
}

static void test_identity_token(void) {
  check("{\"auths\":{\"host:5000\":{\"auth\":\"Ym9iOg==\",\"identitytoken\":\"t\\\"1\"}}}",
        "host:5000", "{\"identitytoken\":\"t\\\"1\",\"serveraddress\":\"host:5000\"}", NULL);
}

static void test_registry_token(void) {
  check("{\"auths\":{\"host:5000\":{\"registrytoken\":\"t1\"}}}", "host:5000",
        "{\"registrytoken\":\"t1\",\"serveraddress\":\"host:5000\"}", NULL);
}

static void test_plain_words(void) {
  check("{\"auths\":{\"host:5000\":{\"username\":\"bob\",\"password\":\"a\\nb\"}}}", "host:5000",
        "{\"username\":\"bob\",\"password\":\"a\\u000ab\",\"serveraddress\":\"host:5000\"}", NULL);
}

static void test_empty_entry(void) {
  check("{\"auths\":{\"host:5000\":{}}}", "host:5000", NULL, NULL);
}

static void test_pair_that_is_no_base64(void) {
  const char *complaint = "the login for it in Docker's configuration cannot be read";
  check("{\"auths\":{\"host:5000\":{\"auth\":\"!!!!\"}}}", "host:5000", NULL, complaint);
  check("{\"auths\":{\"host:5000\":{\"auth\":\"a\"}}}", "host:5000", NULL, complaint);
  check("{\"auths\":{\"host:5000\":{\"auth\":\"Ym9i\"}}}", "host:5000", NULL, complaint); /* bob */
}

static void test_wrong_types(void) {
  check("{\"auths\":[1],\"credsStore\":7,\"credHelpers\":\"x\"}", "host:5000", NULL, NULL);
  check("{\"auths\":{\"host:5000\":7}}", "host:5000", NULL, NULL);
  check("{\"auths\":{\"host:5000\":{\"auth\":{},\"identitytoken\":[]}}}", "host:5000", NULL, NULL);
}

/* Runs a check whose complaint begins with the file's path. */
static void check_file(const char *config, const char *complaint) {
  struct folder folder;
  folder_begin(&folder, config);
  g_autofree char *said = NULL;
  g_autofree char *got = ask(&folder, hub, &said);
  g_assert_cmpstr(got, ==, NULL);
  g_autofree char *expected = g_strdup_printf("%s/config.json %s", folder.path, complaint);
  g_assert_cmpstr(said, ==, expected);
  folder_end(&folder);
}

static void test_nonsense(void) {
  check_file("auths: none", "is no JSON object and was not used");
  check_file("", "is no JSON object and was not used");
  check_file("[]", "is no JSON object and was not used");
  check_file("{\"auths\":{", "is no JSON object and was not used");
  check_file(
      "{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{\"f\":{\"g\":{\"h\":{\"i\":{\"j\":{\"k\":{\"l\":{}"
      "}}}}}}}}}}}}",
      "is no JSON object and was not used");
}

static void test_too_large(void) {
  g_autofree char *spaces = g_strnfill(MAX_CONFIG, ' ');
  g_autofree char *config = g_strconcat("{", spaces, "}", NULL);
  check_file(config, "is larger than 1 MiB and was not read");
}

static void test_no_regular_file(void) {
  struct folder folder;
  folder_begin(&folder, NULL);
  g_autofree char *path = g_build_filename(folder.path, "config.json", NULL);
  g_assert_cmpint(mkfifo(path, 0600), ==, 0);
  g_autofree char *said = NULL;
  g_autofree char *got = ask(&folder, hub, &said);
  g_assert_cmpstr(got, ==, NULL);
  g_autofree char *expected = g_strdup_printf("%s is no regular file and was not read", path);
  g_assert_cmpstr(said, ==, expected);
  folder_end(&folder);
}

static void test_environment_names_the_folder(void) {
  struct folder folder;
  folder_begin(&folder, "{\"auths\":{\"h:1\":{\"registrytoken\":\"t\"}}}");
  g_assert_true(g_setenv("DOCKER_CONFIG", folder.path, TRUE));
  char *complaint = NULL;
  g_autofree char *value = registry_auth(NULL, "h:1", -1, &complaint);
  g_unsetenv("DOCKER_CONFIG");
  g_assert_nonnull(value);
  g_assert_null(complaint);
  folder_end(&folder);
}

/* ---- Helpers ---------------------------------------------------------------------------------- */

/* A helper named x with this script, asked for host:5000. */
static void check_helper(const char *script, mode_t mode, const char *json, const char *complaint) {
  struct folder folder;
  folder_begin(&folder, "{\"credsStore\":\"x\"}");
  write_file(folder.bin, "docker-credential-x", script, mode);
  g_autofree char *said = NULL;
  g_autofree char *got = ask(&folder, "host:5000", &said);
  g_assert_cmpstr(got, ==, json);
  g_assert_cmpstr(said, ==, complaint);
  folder_end(&folder);
}

/* It gets the verb and the registry, and its answer counts. */
static void test_helper(void) {
  check_helper(
      "#!/bin/sh\nread -r r\n[ \"$1 $#\" = 'get 1' ] || exit 9\n"
      "echo "
      "\"{\\\"ServerURL\\\":\\\"$r\\\",\\\"Username\\\":\\\"$r\\\",\\\"Secret\\\":\\\"s\\\"}\"\n",
      0755, "{\"username\":\"host:5000\",\"password\":\"s\",\"serveraddress\":\"host:5000\"}",
      NULL);
}

static void test_helper_gives_token(void) {
  check_helper("#!/bin/sh\necho '{\"Username\":\"<token>\",\"Secret\":\"t\"}'\n", 0755,
               "{\"identitytoken\":\"t\",\"serveraddress\":\"host:5000\"}", NULL);
}

static void test_helper_knows_nothing(void) {
  check_helper("#!/bin/sh\necho 'credentials not found in native keychain'\nexit 1\n", 0755, NULL,
               NULL);
}

/* What it prints may hold a secret and is shown to nobody. */
static void test_helper_fails(void) {
  check_helper("#!/bin/sh\necho secret\necho secret >&2\nexit 3\n", 0755, NULL,
               "docker-credential-x failed with exit code 3");
}

static void test_helper_dies(void) {
  check_helper("#!/bin/sh\nkill -9 $$\n", 0755, NULL, "docker-credential-x was ended by signal 9");
}

static void test_helper_says_garbage(void) {
  const char *complaint = "docker-credential-x gave no login that can be read";
  check_helper("#!/bin/sh\necho secret\n", 0755, NULL, complaint);
  check_helper("#!/bin/sh\n", 0755, NULL, complaint);
  check_helper("#!/bin/sh\necho '{\"Username\":\"u\",\"Secret\":7}'\n", 0755, NULL, complaint);
  check_helper("#!/bin/sh\nhead -c 65536 /dev/zero\n", 0755, NULL, complaint);
}

static void test_helper_says_too_much(void) {
  check_helper("#!/bin/sh\nexec cat /dev/zero\n", 0755, NULL,
               "docker-credential-x answered with more than 64 KiB");
}

static void test_helper_may_not_run(void) {
  check_helper("#!/bin/sh\n", 0644, NULL, "the program docker-credential-x is not on the PATH");
}

static void test_helper_without_interpreter(void) {
  struct folder folder;
  folder_begin(&folder, "{\"credsStore\":\"x\"}");
  write_file(folder.bin, "docker-credential-x", "#!/nonexistent\n", 0755);
  g_autofree char *said = NULL;
  g_autofree char *got = ask(&folder, "host:5000", &said);
  g_assert_null(got);
  g_autofree char *expected = g_strdup_printf(
      "%s/docker-credential-x cannot be started: No such file or directory", folder.bin);
  g_assert_cmpstr(said, ==, expected);
  folder_end(&folder);
}

/* A process that it leaves behind holds its output open: nobody waits for it, and it is ended. */
static void test_helper_leaves_something_behind(void) {
  struct folder folder;
  folder_begin(&folder, "{\"credsStore\":\"x\"}");
  write_file(folder.bin, "docker-credential-x",
             "#!/bin/sh\nsleep 1000 &\necho $! > \"${0%/*}/pid\"\n"
             "echo '{\"Username\":\"u\",\"Secret\":\"s\"}'\n",
             0755);
  g_autofree char *said = NULL;
  g_autofree char *got = ask(&folder, "h", &said);
  g_assert_cmpstr(got, ==, "{\"username\":\"u\",\"password\":\"s\",\"serveraddress\":\"h\"}");
  g_autofree char *path = g_build_filename(folder.bin, "pid", NULL);
  g_autofree char *pid = NULL;
  g_assert_true(g_file_get_contents(path, &pid, NULL, NULL));
  g_autofree char *state = g_strdup_printf("/proc/%s/stat", g_strchomp(pid));
  for (;;) { /* until it is gone, or dead and not yet waited for by init */
    g_autofree char *text = NULL;
    if (!g_file_get_contents(state, &text, NULL, NULL) || strstr(text, ") Z")) {
      break;
    }
    g_usleep(1000);
  }
  folder_end(&folder);
}

/* Hangs, and ignores what can be ignored; a cancel ends the wait. */
static void test_helper_hangs_and_is_cancelled(void) {
  struct folder folder;
  folder_begin(&folder, "{\"credsStore\":\"x\"}");
  write_file(folder.bin, "docker-credential-x", "#!/bin/sh\ntrap '' TERM INT HUP\nsleep 1000\n",
             0755);
  int cancel_fd = eventfd(1, EFD_CLOEXEC);
  char *complaint = NULL;
  char *value = registry_auth(folder.path, "h", cancel_fd, &complaint);
  g_assert_null(value);
  g_assert_cmpstr(complaint, ==, "docker-credential-x was not waited for");
  g_free(complaint);
  close(cancel_fd);
  folder_end(&folder);
}

/* Left open by whoever else is in this process; a helper gets its input, its output and its complaints. */
static void test_helper_inherits_nothing(void) {
  int leak = open("/dev/null", O_RDONLY); /* inheritable, on purpose */
  int high = fcntl(leak, F_DUPFD, 150);
  check_helper("#!/bin/sh\n"
               "for fd in /proc/$$/fd/1[5-9][0-9] /proc/$$/fd/[3-9]; do\n"
               "  [ -e \"$fd\" ] && [ \"$(readlink \"$fd\")\" = /dev/null ] && exit 5\n"
               "done\n"
               "echo '{\"Username\":\"u\",\"Secret\":\"s\"}'\n",
               0755, "{\"username\":\"u\",\"password\":\"s\",\"serveraddress\":\"host:5000\"}",
               NULL);
  close(high);
  close(leak);
}

static void test_helper_hangs(void) {
  if (!g_test_slow()) {
    g_test_skip("takes ten seconds; run with -m slow");
    return;
  }
  check_helper("#!/bin/sh\nexec sleep 1000\n", 0755, NULL,
               "docker-credential-x did not answer within 10 seconds");
}

static void test_helper_name(void) {
  const char *complaint = "Docker's configuration names a credential helper that cannot be one";
  check("{\"credsStore\":\"../x\"}", "h", NULL, complaint);
  check("{\"credsStore\":\"x y\"}", "h", NULL, complaint);
  check("{\"credHelpers\":{\"h\":\"x;y\"}}", "h", NULL, complaint);
}

/* The helper of this registry comes before that of all; the file is asked where it has nothing. */
static void test_helper_for_registry(void) {
  struct folder folder;
  folder_begin(&folder, "{\"credsStore\":\"bad\",\"credHelpers\":{\"h\":\"good\"},"
                        "\"auths\":{\"other\":{\"registrytoken\":\"t\"}}}");
  write_file(folder.bin, "docker-credential-good",
             "#!/bin/sh\necho '{\"Username\":\"u\",\"Secret\":\"s\"}'\n", 0755);
  write_file(folder.bin, "docker-credential-bad", "#!/bin/sh\nexit 1\n", 0755);
  g_autofree char *said = NULL;
  g_autofree char *got = ask(&folder, "h", &said);
  g_assert_cmpstr(got, ==, "{\"username\":\"u\",\"password\":\"s\",\"serveraddress\":\"h\"}");
  g_assert_cmpstr(said, ==, NULL);
  g_autofree char *other = ask(&folder, "other", &said);
  g_assert_cmpstr(other, ==, "{\"registrytoken\":\"t\",\"serveraddress\":\"other\"}");
  g_assert_cmpstr(said, ==, "docker-credential-bad failed with exit code 1");
  folder_end(&folder);
}

/* ---- Names ------------------------------------------------------------------------------------ */

static void check_name(const char *text, const char *registry, const char *repository,
                       const char *tag, const char *digest) {
  struct image_name name;
  g_assert_true(image_name_read(text, &name));
  g_assert_cmpstr(name.registry, ==, registry);
  g_assert_cmpstr(name.repository, ==, repository);
  g_assert_cmpstr(name.tag, ==, tag);
  g_assert_cmpstr(name.digest, ==, digest);
  image_name_clear(&name);
}

#define DIGITS "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_names(void) {
  check_name("python:3.12-slim", NULL, "python", "3.12-slim", NULL);
  check_name("python", NULL, "python", "latest", NULL);
  check_name("team/a__b--c.d", NULL, "team/a__b--c.d", "latest", NULL);
  check_name("docker.io/library/python", NULL, "docker.io/library/python", "latest", NULL);
  check_name("localhost/x", "localhost", "localhost/x", "latest", NULL);
  check_name("host:5000/team/x:1", "host:5000", "host:5000/team/x", "1", NULL);
  check_name("[::1]:5000/x", "[::1]:5000", "[::1]:5000/x", "latest", NULL);
  check_name("ghcr.io/x@sha256:" DIGITS, "ghcr.io", "ghcr.io/x", NULL, "sha256:" DIGITS);
  check_name("x:1@sha256:" DIGITS, NULL, "x", "1", "sha256:" DIGITS);
  struct image_name name;
  g_assert_true(image_name_read("sha256:" DIGITS, &name));
  g_assert_true(name.is_id);
  g_assert_true(image_name_read(DIGITS, &name));
  g_assert_true(name.is_id);
}

static void test_bad_names(void) {
  const char *const bad[] = {
      "",      "A",     "a b",         "a/",          "/a",         "a//b",  "a:",    "a:b:c",
      "a:-b",  "a@",    "a@b",         "a@sha256:12", "-a",         "a-",    "a___b", "a..b",
      "a\nb",  "a?x=1", "h:x/a",       "h:123456/a",  "http://h/a", "a%2fb", "../a",  "a/../b",
      "-.b/a", "[x]/a", "sha256:0123", "\xc3\xa4",    NULL};
  for (size_t i = 0; bad[i]; i++) {
    struct image_name name = {0};
    gboolean read = image_name_read(bad[i], &name);
    /* "sha256:0123" is a name with a tag. */
    g_assert_cmpint(read, ==, strcmp(bad[i], "sha256:0123") == 0);
    image_name_clear(&name);
  }
  g_autofree char *long_name = g_strnfill(300, 'a');
  struct image_name name;
  g_assert_false(image_name_read(long_name, &name));
}

static void test_registry_of_image(void) {
  g_autofree char *of_hub = registry_of_image("python:3");
  g_autofree char *of_host = registry_of_image("host:5000/x");
  g_assert_cmpstr(of_hub, ==, hub);
  g_assert_cmpstr(of_host, ==, "host:5000");
  g_assert_null(registry_of_image("sha256:" DIGITS));
  g_assert_null(registry_of_image("A"));
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_unsetenv("DOCKER_CONFIG");
  g_test_add_func("/docker/login/no-file", test_no_file);
  g_test_add_func("/docker/login/pair", test_pair);
  g_test_add_func("/docker/login/other-registry", test_other_registry);
  g_test_add_func("/docker/login/scheme-and-path", test_registry_with_scheme_and_path);
  g_test_add_func("/docker/login/hub", test_hub_by_its_other_name);
  g_test_add_func("/docker/login/identity-token", test_identity_token);
  g_test_add_func("/docker/login/registry-token", test_registry_token);
  g_test_add_func("/docker/login/plain-words", test_plain_words);
  g_test_add_func("/docker/login/empty-entry", test_empty_entry);
  g_test_add_func("/docker/login/no-base64", test_pair_that_is_no_base64);
  g_test_add_func("/docker/login/wrong-types", test_wrong_types);
  g_test_add_func("/docker/login/nonsense", test_nonsense);
  g_test_add_func("/docker/login/too-large", test_too_large);
  g_test_add_func("/docker/login/no-regular-file", test_no_regular_file);
  g_test_add_func("/docker/login/environment", test_environment_names_the_folder);
  g_test_add_func("/docker/helper/good", test_helper);
  g_test_add_func("/docker/helper/token", test_helper_gives_token);
  g_test_add_func("/docker/helper/none", test_helper_knows_nothing);
  g_test_add_func("/docker/helper/fails", test_helper_fails);
  g_test_add_func("/docker/helper/dies", test_helper_dies);
  g_test_add_func("/docker/helper/garbage", test_helper_says_garbage);
  g_test_add_func("/docker/helper/too-much", test_helper_says_too_much);
  g_test_add_func("/docker/helper/may-not-run", test_helper_may_not_run);
  g_test_add_func("/docker/helper/no-interpreter", test_helper_without_interpreter);
  g_test_add_func("/docker/helper/leaves-behind", test_helper_leaves_something_behind);
  g_test_add_func("/docker/helper/cancelled", test_helper_hangs_and_is_cancelled);
  g_test_add_func("/docker/helper/inherits-nothing", test_helper_inherits_nothing);
  g_test_add_func("/docker/helper/hangs", test_helper_hangs);
  g_test_add_func("/docker/helper/name", test_helper_name);
  g_test_add_func("/docker/helper/for-registry", test_helper_for_registry);
  g_test_add_func("/docker/names/good", test_names);
  g_test_add_func("/docker/names/bad", test_bad_names);
  g_test_add_func("/docker/names/registry", test_registry_of_image);
  return g_test_run();
}
