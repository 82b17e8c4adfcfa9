/* SPDX-License-Identifier: Apache-2.0 */
/* docker-engine-address.c: where an engine is: options, variables, Docker's own contexts, and its TLS files. */
#include "fake-http.h"

/* The part under test. */
#include "../../plugins/docker/engine-address.c"
#include "../../plugins/docker/engine-context.c"
#include "../../plugins/docker/engine-facts.c"
#include "../../plugins/docker/engine-json.c"
#include "../../plugins/docker/engine-ssh.c"
#include "../../plugins/docker/engine.c"

/* ---- Addresses ------------------------------------------------------------------------------- */

/* transport, base and the pieces of ssh, or the error. Owned. */
static char *address_of(const char *host) {
  struct engine_address address;
  char *error = NULL;
  const struct engine_settings settings = {.host = host, .config_dir = "/nonexistent"};
  if (!engine_address_read(&settings, &address, &error)) {
    return error;
  }
  char *text =
      g_strdup_printf("%d %s %s %s %s %s %s", address.transport, address.base, address.unix_path,
                      address.ssh_user, address.ssh_host, address.ssh_port, address.ssh_path);
  engine_address_clear(&address);
  return text;
}

static void test_addresses(void) {
#define NONE "(null)"
#define WRITE_IT "; write it as unix:///path, tcp://host:port or ssh://user@host"
  static const char *const cases[][2] = {
      {NULL, "0 http://docker /var/run/docker.sock " NONE " " NONE " " NONE " " NONE},
      {"unix:///a b/c", "0 http://docker /a b/c " NONE " " NONE " " NONE " " NONE},
      {"tcp://10.0.0.1", "1 http://10.0.0.1:2375 " NONE " " NONE " " NONE " " NONE " " NONE},
      {"tcp://h-1.x:99/", "1 http://h-1.x:99 " NONE " " NONE " " NONE " " NONE " " NONE},
      {"tcp://[::1]:99", "1 http://[::1]:99 " NONE " " NONE " " NONE " " NONE " " NONE},
      {"ssh://h", "2 http://docker " NONE " " NONE " h " NONE " " NONE},
      {"ssh://me@h:22", "2 http://docker " NONE " me h 22 " NONE},
      {"ssh://me@[::1]:22/run/x.sock", "2 http://docker " NONE " me ::1 22 /run/x.sock"},
      {"unix://docker.sock", "the Docker host 'unix://docker.sock' is no absolute path" WRITE_IT},
      {"/var/run/docker.sock",
       "the Docker host '/var/run/docker.sock' is of no kind that sandhost knows" WRITE_IT},
      {"npipe:////./pipe/docker",
       "the Docker host 'npipe:////./pipe/docker' is of no kind that sandhost knows" WRITE_IT},
      {"tcp://", "the Docker host 'tcp://' names no host and port" WRITE_IT},
      {"tcp://h:0", "the Docker host 'tcp://h:0' names no host and port" WRITE_IT},
      {"tcp://h:99999", "the Docker host 'tcp://h:99999' names no host and port" WRITE_IT},
      {"tcp://h/x", "the Docker host 'tcp://h/x' names no host and port" WRITE_IT},
      {"tcp://a@b:1", "the Docker host 'tcp://a@b:1' names no host and port" WRITE_IT},
      {"ssh://-oProxyCommand=x", "the Docker host 'ssh://-oProxyCommand=x' names no host" WRITE_IT},
      {"ssh://-l@h", "the Docker host 'ssh://-l@h' names no user that ssh could take" WRITE_IT},
      {"ssh://me:secret@h",
       "the Docker host 'ssh://h' holds a password, which ssh does not take" WRITE_IT},
      {"ssh://h/run/$(id)", "the Docker host 'ssh://h/run/$(id)' names a socket with characters "
                            "that ssh would not keep" WRITE_IT},
      {"unix:///a\nb", "the Docker host has characters that do not belong there" WRITE_IT},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autofree char *text = address_of(cases[i][0]);
    g_assert_cmpstr(text, ==, cases[i][1]);
  }
}

static void test_environment(void) {
  g_setenv("DOCKER_HOST", "tcp://envhost:1", TRUE);
  g_autofree char *text = address_of(NULL);
  g_assert_true(g_str_has_prefix(text, "1 http://envhost:1 "));
  g_autofree char *option = address_of("unix:///option");
  g_assert_true(g_str_has_prefix(option, "0 http://docker /option "));
  g_unsetenv("DOCKER_HOST");
}

/* A fresh folder that looks like Docker's configuration. */
static char *config_new(const char *config, const char *name, const char *meta, gboolean tls) {
  char *folder = g_dir_make_tmp("sandhost-config-XXXXXX", NULL);
  g_autofree char *file = g_build_filename(folder, "config.json", NULL);
  g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, name, -1);
  g_autofree char *dir = g_build_filename(folder, "contexts", "meta", hash, NULL);
  g_autofree char *path = g_build_filename(dir, "meta.json", NULL);
  g_assert_true(g_file_set_contents(file, config, -1, NULL));
  if (meta) {
    g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, meta, -1, NULL));
  }
  if (tls) {
    g_autofree char *tls_dir = g_build_filename(folder, "contexts", "tls", hash, "docker", NULL);
    g_autofree char *ca = g_build_filename(tls_dir, "ca.pem", NULL);
    g_assert_cmpint(g_mkdir_with_parents(tls_dir, 0700), ==, 0);
    g_assert_true(g_file_set_contents(ca, "x", -1, NULL));
  }
  return folder;
}

static void check_context(const char *config, const char *meta, const char *expected) {
  char *folder = config_new(config, "there", meta, FALSE);
  const struct engine_settings settings = {.config_dir = folder};
  struct engine_address address;
  g_autofree char *error = NULL;
  if (engine_address_read(&settings, &address, &error)) {
    g_assert_cmpstr(address.text, ==, expected);
    engine_address_clear(&address);
  } else {
    g_assert_nonnull(strstr(error, expected));
  }
  fake_folder_remove(folder);
}

static void test_contexts(void) {
  static const char meta[] =
      "{\"Name\":\"there\",\"Endpoints\":{\"docker\":{\"Host\":\"ssh://me@h\"}}}";
  check_context("{\"currentContext\":\"there\"}", meta, "ssh://me@h");
  check_context("{\"currentContext\":\"default\"}", meta, "unix:///var/run/docker.sock");
  check_context("{}", meta, "unix:///var/run/docker.sock");
  check_context("{\"currentContext\":7}", meta, "unix:///var/run/docker.sock");
  check_context("{\"currentContext\":\"other\"}", meta,
                "Docker's current context 'other' does not exist; choose another with `docker "
                "context use`, or set DOCKER_HOST or the option host");
  check_context("{\"currentContext\":\"../../etc\"}", meta, "'../../etc' does not exist");
  check_context("{\"currentContext\":\"there\"}", "{\"Endpoints\":[]}",
                "Docker's current context 'there' names no host");
  check_context("{\"currentContext\":\"there\"}", "[", "meta.json holds no JSON object");
  check_context("[]", meta, "config.json holds no JSON object");
  check_context("{\"currentContext\":\"there\"}",
                "{\"Endpoints\":{\"docker\":{\"Host\":\"npipe://x\"}}}",
                "the Docker host 'npipe://x' is of no kind that sandhost knows");
}

static void test_context_by_variable(void) {
  g_setenv("DOCKER_CONTEXT", "there", TRUE);
  check_context("{}", "{\"Endpoints\":{\"docker\":{\"Host\":\"unix:///x\"}}}", "unix:///x");
  g_unsetenv("DOCKER_CONTEXT");
}

/* ---- TLS settings ---------------------------------------------------------------------------- */

static void test_context_with_tls(void) {
  char *folder = config_new("{\"currentContext\":\"there\"}", "there",
                            "{\"Endpoints\":{\"docker\":{\"Host\":\"tcp://h:1\","
                            "\"SkipTLSVerify\":true}}}",
                            TRUE);
  const struct engine_settings settings = {.config_dir = folder};
  struct engine_address address;
  char *error = NULL;
  g_assert_true(engine_address_read(&settings, &address, &error));
  g_assert_cmpstr(address.base, ==, "https://h:1");
  g_assert_true(g_str_has_prefix(address.ca, folder));
  g_assert_null(address.cert);
  g_assert_true(address.insecure);
  engine_address_clear(&address);
  fake_folder_remove(folder);
}

static void test_tls_by_variable(void) {
  char *folder = g_dir_make_tmp("sandhost-certs-XXXXXX", NULL);
  static const char *const names[] = {"ca.pem", "cert.pem", "key.pem"};
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autofree char *path = g_build_filename(folder, names[i], NULL);
    g_assert_true(g_file_set_contents(path, "x", -1, NULL));
  }
  g_setenv("DOCKER_CERT_PATH", folder, TRUE);
  const struct engine_settings settings = {.host = "tcp://h"};
  struct engine_address address;
  char *error = NULL;
  g_assert_true(engine_address_read(&settings, &address, &error));
  g_assert_cmpstr(address.base, ==, "https://h:2376");
  g_assert_true(g_str_has_suffix(address.ca, "/ca.pem"));
  g_assert_true(g_str_has_suffix(address.cert, "/cert.pem"));
  g_assert_true(g_str_has_suffix(address.key, "/key.pem"));
  g_assert_false(address.insecure);
  engine_address_clear(&address);
  const struct engine_settings lax = {.host = "tcp://h", .tls_verify_set = TRUE};
  g_assert_true(engine_address_read(&lax, &address, &error));
  g_assert_true(address.insecure);
  engine_address_clear(&address);
  g_unsetenv("DOCKER_CERT_PATH");
  fake_folder_remove(folder);
}

static void test_tls_files(void) {
  struct engine_address address;
  g_autofree char *one = NULL;
  g_autofree char *two = NULL;
  const struct engine_settings no_key = {.host = "tcp://h", .tls_cert = "/nonexistent/c"};
  g_assert_false(engine_address_read(&no_key, &address, &one));
  g_assert_cmpstr(one, ==,
                  "a TLS certificate needs its key: set both of the options tls_cert and tls_key, "
                  "or neither");
  const struct engine_settings no_file = {.host = "tcp://h", .tls_ca = "/nonexistent/ca"};
  g_assert_false(engine_address_read(&no_file, &address, &two));
  g_assert_cmpstr(two, ==,
                  "cannot read the TLS CA file /nonexistent/ca: No such file or directory");
}

int main(int argc, char **argv) {
  static const char *const variables[] = {"DOCKER_HOST",       "DOCKER_CONTEXT",   "DOCKER_CONFIG",
                                          "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "http_proxy"};
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(variables); i++) {
    g_unsetenv(variables[i]);
  }
  g_test_add_func("/docker-engine-address/addresses", test_addresses);
  g_test_add_func("/docker-engine-address/environment", test_environment);
  g_test_add_func("/docker-engine-address/contexts", test_contexts);
  g_test_add_func("/docker-engine-address/context-by-variable", test_context_by_variable);
  g_test_add_func("/docker-engine-address/context-with-tls", test_context_with_tls);
  g_test_add_func("/docker-engine-address/tls-by-variable", test_tls_by_variable);
  g_test_add_func("/docker-engine-address/tls-files", test_tls_files);
  return g_test_run();
}
