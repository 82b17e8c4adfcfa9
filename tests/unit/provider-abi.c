/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider-abi.c: the contract of ABI 1.0 is frozen: sizes, offsets and numbers on a 64-bit machine. Fields and
 * numbers may be appended; what stands here never changes.
 */
#include <glib.h>
#include <sandhost/provider.h>

typedef struct {
  const char *name;
  gsize is;
  gsize was;
} Frozen;

#define SIZE(type, was)                                                                            \
  { "size of " #type, sizeof(struct type), was }
#define AT(type, field, was)                                                                       \
  { #type "." #field, offsetof(struct type, field), was }
#define NUMBER(name, was)                                                                          \
  { #name, (gsize)(name), was }

static void check(const Frozen *frozen, gsize count) {
  for (gsize i = 0; i < count; i++) {
    if (frozen[i].is != frozen[i].was) {
      g_test_message("%s is %zu, was %zu", frozen[i].name, frozen[i].is, frozen[i].was);
      g_test_fail();
    }
  }
}

/* A struct may grow; it never shrinks below its first release. */
static void check_sizes(const Frozen *frozen, gsize count) {
  for (gsize i = 0; i < count; i++) {
    if (frozen[i].is < frozen[i].was) {
      g_test_message("%s is %zu, was %zu", frozen[i].name, frozen[i].is, frozen[i].was);
      g_test_fail();
    }
  }
}

static void test_sizes(void) {
  static const Frozen frozen[] = {
      SIZE(sandhost_failure, 40),   SIZE(sandhost_host, 96),       SIZE(sandhost_sink, 24),
      SIZE(sandhost_source, 24),    SIZE(sandhost_option, 56),     SIZE(sandhost_open, 40),
      SIZE(sandhost_network, 48),   SIZE(sandhost_create, 160),    SIZE(sandhost_execute, 80),
      SIZE(sandhost_observer, 48),  SIZE(sandhost_result, 72),     SIZE(sandhost_entry, 88),
      SIZE(sandhost_changes, 56),   SIZE(sandhost_entry_sink, 24), SIZE(sandhost_probe, 40),
      SIZE(sandhost_sweep, 56),     SIZE(sandhost_orphan, 56),     SIZE(sandhost_orphan_sink, 24),
      SIZE(sandhost_provider, 256),
  };
  check_sizes(frozen, G_N_ELEMENTS(frozen));
}

/* These are elements of arrays that both sides step through by their own size: they cannot grow. */
static void test_fixed_sizes(void) {
  static const Frozen frozen[] = {
      SIZE(sandhost_value, 56), SIZE(sandhost_mount, 48), SIZE(sandhost_text, 16),
      SIZE(sandhost_path, 16),  SIZE(sandhost_pair, 32),  SIZE(sandhost_enforces, 8),
      SIZE(sandhost_known, 48),
  };
  check(frozen, G_N_ELEMENTS(frozen));
}

/* A table, one line for each member. */
static void test_offsets(void) { // NOLINT(readability-function-size)
  static const Frozen frozen[] = {
      AT(sandhost_text, data, 0),
      AT(sandhost_text, length, 8),
      AT(sandhost_path, data, 0),
      AT(sandhost_path, length, 8),
      AT(sandhost_pair, name, 0),
      AT(sandhost_pair, value, 16),
      AT(sandhost_failure, size, 0),
      AT(sandhost_failure, service_code, 8),
      AT(sandhost_failure, retry_after, 24),
      AT(sandhost_failure, may_have_happened, 32),
      AT(sandhost_failure, reserved, 36),
      AT(sandhost_host, size, 0),
      AT(sandhost_host, minor, 8),
      AT(sandhost_host, reserved, 12),
      AT(sandhost_host, version, 16),
      AT(sandhost_host, deadline, 32),
      AT(sandhost_host, cancelled, 40),
      AT(sandhost_host, cancel_fd, 48),
      AT(sandhost_host, wait, 56),
      AT(sandhost_host, fail, 64),
      AT(sandhost_host, fail_details, 72),
      AT(sandhost_host, report, 80),
      AT(sandhost_host, progress, 88),
      AT(sandhost_sink, size, 0),
      AT(sandhost_sink, user, 8),
      AT(sandhost_sink, write, 16),
      AT(sandhost_source, size, 0),
      AT(sandhost_source, user, 8),
      AT(sandhost_source, read, 16),
      AT(sandhost_option, size, 0),
      AT(sandhost_option, name, 8),
      AT(sandhost_option, type, 16),
      AT(sandhost_option, flags, 20),
      AT(sandhost_option, fallback, 24),
      AT(sandhost_option, environment, 32),
      AT(sandhost_option, choices, 40),
      AT(sandhost_option, help, 48),
      AT(sandhost_value, size, 0),
      AT(sandhost_value, type, 8),
      AT(sandhost_value, set, 12),
      AT(sandhost_value, integer, 16),
      AT(sandhost_value, text, 24),
      AT(sandhost_value, pairs, 40),
      AT(sandhost_value, pair_count, 48),
      AT(sandhost_enforces, setting, 0),
      AT(sandhost_enforces, level, 4),
      AT(sandhost_open, size, 0),
      AT(sandhost_open, values, 8),
      AT(sandhost_open, value_count, 16),
      AT(sandhost_open, guest_dir, 24),
      AT(sandhost_network, size, 0),
      AT(sandhost_network, mode, 8),
      AT(sandhost_network, reserved, 12),
      AT(sandhost_network, allowed_hosts, 16),
      AT(sandhost_network, allowed_count, 24),
      AT(sandhost_network, denied_hosts, 32),
      AT(sandhost_network, denied_count, 40),
      AT(sandhost_mount, size, 0),
      AT(sandhost_mount, source, 8),
      AT(sandhost_mount, target, 24),
      AT(sandhost_mount, writable, 40),
      AT(sandhost_mount, reserved, 44),
      AT(sandhost_create, size, 0),
      AT(sandhost_create, key, 8),
      AT(sandhost_create, run_id, 24),
      AT(sandhost_create, image, 40),
      AT(sandhost_create, snapshot, 56),
      AT(sandhost_create, working_dir, 72),
      AT(sandhost_create, network, 88),
      AT(sandhost_create, environment, 96),
      AT(sandhost_create, environment_count, 104),
      AT(sandhost_create, mounts, 112),
      AT(sandhost_create, mount_count, 120),
      AT(sandhost_create, cpu_millis, 128),
      AT(sandhost_create, memory_bytes, 136),
      AT(sandhost_create, lifetime, 144),
      AT(sandhost_create, gpu, 152),
      AT(sandhost_create, reserved, 156),
      AT(sandhost_execute, size, 0),
      AT(sandhost_execute, argv, 8),
      AT(sandhost_execute, argc, 16),
      AT(sandhost_execute, cwd, 24),
      AT(sandhost_execute, environment, 40),
      AT(sandhost_execute, environment_count, 48),
      AT(sandhost_execute, limit, 56),
      AT(sandhost_execute, max_output_bytes, 64),
      AT(sandhost_execute, flags, 72),
      AT(sandhost_execute, reserved, 76),
      AT(sandhost_observer, size, 0),
      AT(sandhost_observer, user, 8),
      AT(sandhost_observer, started, 16),
      AT(sandhost_observer, output, 24),
      AT(sandhost_observer, input, 32),
      AT(sandhost_observer, input_fd, 40),
      AT(sandhost_result, size, 0),
      AT(sandhost_result, ended, 8),
      AT(sandhost_result, exit_code, 12),
      AT(sandhost_result, signal, 16),
      AT(sandhost_result, reserved, 20),
      AT(sandhost_result, stdout_bytes, 24),
      AT(sandhost_result, stderr_bytes, 32),
      AT(sandhost_result, duration, 40),
      AT(sandhost_result, user_time, 48),
      AT(sandhost_result, system_time, 56),
      AT(sandhost_result, max_rss, 64),
      AT(sandhost_entry, size, 0),
      AT(sandhost_entry, path, 8),
      AT(sandhost_entry, kind, 24),
      AT(sandhost_entry, flags, 28),
      AT(sandhost_entry, bytes, 32),
      AT(sandhost_entry, mtime, 40),
      AT(sandhost_entry, mode, 48),
      AT(sandhost_entry, reserved, 52),
      AT(sandhost_entry, sha256, 56),
      AT(sandhost_known, path, 0),
      AT(sandhost_known, sha256, 16),
      AT(sandhost_changes, size, 0),
      AT(sandhost_changes, root, 8),
      AT(sandhost_changes, known, 24),
      AT(sandhost_changes, known_count, 32),
      AT(sandhost_changes, max_hash_bytes, 40),
      AT(sandhost_changes, max_entries, 48),
      AT(sandhost_entry_sink, size, 0),
      AT(sandhost_entry_sink, user, 8),
      AT(sandhost_entry_sink, entry, 16),
      AT(sandhost_probe, size, 0),
      AT(sandhost_probe, address, 8),
      AT(sandhost_probe, port, 24),
      AT(sandhost_probe, reserved, 28),
      AT(sandhost_probe, patience, 32),
      AT(sandhost_sweep, size, 0),
      AT(sandhost_sweep, run_id, 8),
      AT(sandhost_sweep, keep, 24),
      AT(sandhost_sweep, keep_count, 32),
      AT(sandhost_sweep, min_age, 40),
      AT(sandhost_sweep, dry_run, 48),
      AT(sandhost_sweep, reserved, 52),
      AT(sandhost_orphan, size, 0),
      AT(sandhost_orphan, ref, 8),
      AT(sandhost_orphan, run_id, 24),
      AT(sandhost_orphan, age, 40),
      AT(sandhost_orphan, removed, 48),
      AT(sandhost_orphan, reserved, 52),
      AT(sandhost_orphan_sink, size, 0),
      AT(sandhost_orphan_sink, user, 8),
      AT(sandhost_orphan_sink, orphan, 16),
      AT(sandhost_provider, size, 0),
      AT(sandhost_provider, minor, 8),
      AT(sandhost_provider, threads, 12),
      AT(sandhost_provider, flags, 16),
      AT(sandhost_provider, reserved, 20),
      AT(sandhost_provider, name, 24),
      AT(sandhost_provider, version, 32),
      AT(sandhost_provider, summary, 40),
      AT(sandhost_provider, options, 48),
      AT(sandhost_provider, option_count, 56),
      AT(sandhost_provider, option_size, 64),
      AT(sandhost_provider, enforces, 72),
      AT(sandhost_provider, enforces_count, 80),
      AT(sandhost_provider, open, 88),
      AT(sandhost_provider, close, 96),
      AT(sandhost_provider, create, 104),
      AT(sandhost_provider, execute, 112),
      AT(sandhost_provider, read_file, 120),
      AT(sandhost_provider, write_file, 128),
      AT(sandhost_provider, terminate, 136),
      AT(sandhost_provider, release, 144),
      AT(sandhost_provider, start, 152),
      AT(sandhost_provider, stop, 160),
      AT(sandhost_provider, enforces_now, 168),
      AT(sandhost_provider, set_network_policy, 176),
      AT(sandhost_provider, snapshot, 184),
      AT(sandhost_provider, delete_snapshot, 192),
      AT(sandhost_provider, upload, 200),
      AT(sandhost_provider, download, 208),
      AT(sandhost_provider, changes, 216),
      AT(sandhost_provider, attach, 224),
      AT(sandhost_provider, sweep, 232),
      AT(sandhost_provider, signal, 240),
      AT(sandhost_provider, probe, 248),
  };
  check(frozen, G_N_ELEMENTS(frozen));
}

static void test_numbers(void) {
  static const Frozen frozen[] = {
      NUMBER(SANDHOST_ABI_MAJOR, 1),
      NUMBER(SANDHOST_OK, 0),
      NUMBER(SANDHOST_INVALID, 10),
      NUMBER(SANDHOST_UNSUPPORTED, 20),
      NUMBER(SANDHOST_UNAUTHENTICATED, 30),
      NUMBER(SANDHOST_DENIED, 40),
      NUMBER(SANDHOST_NOT_FOUND, 50),
      NUMBER(SANDHOST_EXISTS, 60),
      NUMBER(SANDHOST_CONFLICT, 70),
      NUMBER(SANDHOST_LIMIT, 80),
      NUMBER(SANDHOST_RATE_LIMITED, 90),
      NUMBER(SANDHOST_UNAVAILABLE, 100),
      NUMBER(SANDHOST_TIMEOUT, 110),
      NUMBER(SANDHOST_CANCELLED, 120),
      NUMBER(SANDHOST_LOST, 130),
      NUMBER(SANDHOST_PROTOCOL, 140),
      NUMBER(SANDHOST_NO_MEMORY, 150),
      NUMBER(SANDHOST_INTERNAL, 160),
      NUMBER(SANDHOST_REPORT_REF, 10),
      NUMBER(SANDHOST_REPORT_IMAGE, 20),
      NUMBER(SANDHOST_REPORT_NETWORK, 30),
      NUMBER(SANDHOST_REPORT_SNAPSHOT, 40),
      NUMBER(SANDHOST_REPORT_LOST, 50),
      NUMBER(SANDHOST_OPTION_TEXT, 10),
      NUMBER(SANDHOST_OPTION_BOOLEAN, 20),
      NUMBER(SANDHOST_OPTION_INTEGER, 30),
      NUMBER(SANDHOST_OPTION_SIZE, 40),
      NUMBER(SANDHOST_OPTION_LIST, 50),
      NUMBER(SANDHOST_OPTION_MAP, 60),
      NUMBER(SANDHOST_OPTION_REQUIRED, 1),
      NUMBER(SANDHOST_OPTION_SECRET, 2),
      NUMBER(SANDHOST_OPTION_POSITIVE, 4),
      NUMBER(SANDHOST_SETTING_NETWORK_OFF, 10),
      NUMBER(SANDHOST_SETTING_NETWORK_ON, 20),
      NUMBER(SANDHOST_SETTING_ALLOWED_HOSTS, 30),
      NUMBER(SANDHOST_SETTING_DENIED_HOSTS, 40),
      NUMBER(SANDHOST_SETTING_IMAGE, 50),
      NUMBER(SANDHOST_SETTING_CPU, 60),
      NUMBER(SANDHOST_SETTING_MEMORY, 70),
      NUMBER(SANDHOST_SETTING_PIDS, 80),
      NUMBER(SANDHOST_SETTING_GPU, 90),
      NUMBER(SANDHOST_SETTING_LIFETIME, 100),
      NUMBER(SANDHOST_SETTING_MOUNT, 110),
      NUMBER(SANDHOST_SETTING_SECRETS, 120),
      NUMBER(SANDHOST_SETTING_ENVIRONMENT, 130),
      NUMBER(SANDHOST_SETTING_SNAPSHOT, 140),
      NUMBER(SANDHOST_SETTING_FILES, 150),
      NUMBER(SANDHOST_LEVEL_NONE, 0),
      NUMBER(SANDHOST_LEVEL_FORWARDED, 10),
      NUMBER(SANDHOST_LEVEL_CHECKED, 20),
      NUMBER(SANDHOST_LEVEL_ENFORCED, 30),
      NUMBER(SANDHOST_THREADS_PLUGIN, 10),
      NUMBER(SANDHOST_THREADS_INSTANCE, 20),
      NUMBER(SANDHOST_THREADS_SANDBOX, 30),
      NUMBER(SANDHOST_THREADS_PARALLEL, 40),
      NUMBER(SANDHOST_PROVIDER_HOST_SURFACE, 1),
      NUMBER(SANDHOST_PROVIDER_TEST, 2),
      NUMBER(SANDHOST_NETWORK_DENY, 10),
      NUMBER(SANDHOST_NETWORK_ALLOW, 20),
      NUMBER(SANDHOST_EXECUTE_STDIN, 1),
      NUMBER(SANDHOST_STDOUT, 1),
      NUMBER(SANDHOST_STDERR, 2),
      NUMBER(SANDHOST_ENDED_EXIT, 10),
      NUMBER(SANDHOST_ENDED_SIGNAL, 20),
      NUMBER(SANDHOST_ENDED_LIMIT, 30),
      NUMBER(SANDHOST_ENDED_MEMORY, 40),
      NUMBER(SANDHOST_KIND_FILE, 10),
      NUMBER(SANDHOST_KIND_CHECKOUT, 20),
      NUMBER(SANDHOST_ENTRY_SHA256, 1),
      NUMBER(SANDHOST_PROBE_REACHED, 10),
      NUMBER(SANDHOST_PROBE_BLOCKED, 20),
      NUMBER(SANDHOST_REPORT_LOWERED, 1000),
  };
  check(frozen, G_N_ELEMENTS(frozen));
}

static void test_entry(void) {
  g_assert_cmpstr(SANDHOST_ENTRY_NAME, ==, "sandhost_provider_1");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  if (sizeof(void *) != 8) {
    g_test_message("the numbers are those of 64-bit machines");
    return 0;
  }
  g_test_add_func("/provider/abi/sizes", test_sizes);
  g_test_add_func("/provider/abi/fixed-sizes", test_fixed_sizes);
  g_test_add_func("/provider/abi/offsets", test_offsets);
  g_test_add_func("/provider/abi/numbers", test_numbers);
  g_test_add_func("/provider/abi/entry", test_entry);
  return g_test_run();
}
