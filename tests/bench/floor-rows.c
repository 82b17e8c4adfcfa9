/* SPDX-License-Identifier: Apache-2.0 */
/* floor-rows.c: programs, namespaces, container runtimes, bytes, hashes and files with nothing of ours about them. */
#include "floor-rows.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "floor-files.h"
#include "floors.h"
#include "ratio.h"

#define MOVED ((gsize)64 << 20)
#define PIECE ((gsize)64 << 10)
#define FILES 500u
#define FILE_BYTES ((gsize)40000)
#define ALL_BYTES (FILES * FILE_BYTES)
#define TMPFS 0x01021994

static const char small_true[] = TEST_BUILD_DIR "/bin/sandhost-bench-true";

static int order(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Least, median and p95 milliseconds; the GB/s of the median where it moves bytes. */
static void row(const char *what, Meter floor, guint64 bytes, guint times) {
  g_autofree double *taken = g_new0(double, times);
  (void)ratio_take(floor);
  for (guint i = 0; i < times; i++) {
    gint64 took = ratio_take(floor);
    if (took <= 0) {
      printf("%-62s failed\n", what);
      fflush(stdout);
      return;
    }
    taken[i] = (double)took / 1e6;
  }
  qsort(taken, times, sizeof *taken, order);
  printf("%-62s %9.3f %9.3f %9.3f", what, taken[0], taken[times / 2], taken[times * 95 / 100]);
  if (bytes > 0) {
    printf("  %7.2f GB/s", (double)bytes / (taken[times / 2] * 1e6));
  }
  putchar('\n');
  fflush(stdout);
}

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

static gint64 spawn(void *user) {
  return floor_spawn(user);
}

/* Not every machine lets one do this: a line says why it is not there. */
static void program_row(const char *what, const char **argv, guint times) {
  g_autofree char *found = g_find_program_in_path(argv[0]);
  g_autofree char *complaint = found ? floor_complaint(argv) : NULL;
  if (!found) {
    g_autofree char *reason = g_strdup_printf("%s is not installed", argv[0]);
    ratio_leave_out(what, reason);
  } else if (complaint) {
    g_autofree char *reason = g_strdup_printf("it cannot here: %s", complaint);
    ratio_leave_out(what, reason);
  } else {
    row(what, (Meter){spawn, argv}, 0, times);
  }
}

static gint64 clone_all(void *user) {
  struct clone_args wanted = {.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                       CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP,
                              .exit_signal = SIGCHLD};
  int status = 0;
  (void)user;
  gint64 from = clock_now();
  pid_t pid = (pid_t)syscall(SYS_clone3, &wanted, sizeof wanted);
  if (pid == 0) {
    _exit(0);
  }
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? clock_now() - from : -1;
}

static void bench_clone(guint times) {
  static const char WHAT[] = "clone3 with all namespaces";
  errno = 0;
  if (clone_all(NULL) < 0) {
    g_autofree char *reason = g_strdup_printf("it cannot here: %s", g_strerror(errno));
    ratio_leave_out(WHAT, reason);
  } else {
    row(WHAT, (Meter){clone_all, NULL}, 0, times);
  }
}

static void bench_programs(guint times) {
  const char *small[] = {small_true, NULL};
  const char *dynamic[] = {"true", NULL};
  const char *sh[] = {"sh", "-c", "true", NULL};
  const char *unshared[] = {"unshare", "-Urmpn", "true", NULL};
  const char *bwrap[] = {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "true", NULL};
  program_row("spawn a static true", small, times);
  program_row("spawn a dynamic true", dynamic, times);
  program_row("sh -c true", sh, times);
  bench_clone(times);
  program_row("unshare -Urmpn true", unshared, times);
  program_row("bwrap --unshare-all true", bwrap, times);
}

/* ---- Container runtimes ------------------------------------------------------------------------------------------ */

static const char bundle_config[] =
    "{\"ociVersion\": \"1.0.0\", \"process\": {\"user\": {\"uid\": 0, \"gid\": 0},"
    " \"args\": [\"/true\"], \"cwd\": \"/\", \"noNewPrivileges\": true},"
    " \"root\": {\"path\": \"rootfs\", \"readonly\": true},"
    " \"mounts\": [{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"}],"
    " \"linux\": {\"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"network\"},"
    " {\"type\": \"ipc\"}, {\"type\": \"uts\"}, {\"type\": \"mount\"}]}}";

static gboolean make_bundle(const char *bundle) {
  g_autofree char *root = g_build_filename(bundle, "rootfs", NULL);
  g_autofree char *proc = g_build_filename(root, "proc", NULL);
  g_autofree char *config = g_build_filename(bundle, "config.json", NULL);
  g_autofree char *program = g_build_filename(root, "true", NULL);
  const char *const copy[] = {"cp", small_true, program, NULL};
  return g_mkdir_with_parents(proc, 0755) == 0 && floor_spawn(copy) > 0 &&
         g_file_set_contents(config, bundle_config, -1, NULL);
}

static void bench_runtimes(const char *scratch, guint times) {
  static const char CRUN[] = "crun run of a minimal bundle";
  static const char RUNC[] = "runc run of a minimal bundle";
  g_autofree char *bundle = g_build_filename(scratch, "bundle", NULL);
  g_autofree char *state = g_build_filename(scratch, "bundle-state", NULL);
  g_autofree char *name = g_strdup_printf("sandhost-bench-%d", (int)getpid());
  const char *crun[] = {"crun", "--root", state, "run", "--bundle", bundle, name, NULL};
  const char *runc[] = {"runc", "--root", state, "run", "--bundle", bundle, name, NULL};
  if (make_bundle(bundle)) {
    program_row(CRUN, crun, times);
    program_row(RUNC, runc, times);
  } else {
    ratio_leave_out(CRUN, "its bundle could not be made");
    ratio_leave_out(RUNC, "its bundle could not be made");
  }
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

typedef struct {
  char *from;
  char *to;
} Pages;

static gint64 copy_warm(void *user) {
  const Pages *pages = user;
  gint64 from = clock_now();
  memcpy(pages->to, pages->from, MOVED);
  return clock_now() - from;
}

static gint64 copy_fresh(void *user) {
  const Pages *pages = user;
  gint64 from = clock_now();
  void *fresh = mmap(NULL, MOVED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) {
    return -1;
  }
  memcpy(fresh, pages->from, MOVED);
  gint64 took = clock_now() - from;
  (void)munmap(fresh, MOVED);
  return took;
}

typedef struct {
  const char *data;
  int fd;
} Writing;

static gpointer write_all(gpointer data) {
  const Writing *writing = data;
  for (gsize at = 0; at < MOVED;) {
    ssize_t count = write(writing->fd, writing->data + at, MIN(PIECE, MOVED - at));
    if (count <= 0) {
      break;
    }
    at += (gsize)count;
  }
  close(writing->fd);
  return NULL;
}

/* Takes both ends. */
static gint64 through(const Pages *pages, const int ends[2]) {
  Writing writing = {.data = pages->from, .fd = ends[1]};
  gsize seen = 0;
  gint64 from = clock_now();
  GThread *writer = g_thread_new("floor", write_all, &writing);
  for (ssize_t count = 1; count > 0;) {
    count = read(ends[0], pages->to, PIECE);
    seen += count > 0 ? (gsize)count : 0;
  }
  gint64 took = clock_now() - from;
  g_thread_join(writer);
  close(ends[0]);
  return seen == MOVED ? took : -1;
}

static gint64 through_pipe(void *user) {
  int ends[2];
  return pipe2(ends, O_CLOEXEC) == 0 ? through(user, ends) : -1;
}

static gint64 through_sockets(void *user) {
  int ends[2];
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 ? through(user, ends) : -1;
}

static gint64 hash_nettle(void *user) {
  guint8 digest[DIGEST_BYTES];
  gint64 from = clock_now();
  digest_of(user, ALL_BYTES, digest);
  return clock_now() - from;
}

static gint64 hash_openssl(void *user) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  gint64 from = clock_now();
  return EVP_Digest(user, ALL_BYTES, digest, &length, EVP_sha256(), NULL) ? clock_now() - from : -1;
}

static gint64 hash_glib(void *user) {
  gint64 from = clock_now();
  g_autofree char *hash = g_compute_checksum_for_data(G_CHECKSUM_SHA256, user, ALL_BYTES);
  return hash ? clock_now() - from : -1;
}

static void bench_bytes(guint times) {
  Pages pages = {.from = g_malloc(MOVED), .to = g_malloc(MOVED)};
  memset(pages.from, 'x', MOVED);
  memset(pages.to, 'y', MOVED);
  row("memcpy", (Meter){copy_warm, &pages}, MOVED, times);
  row("memcpy into fresh pages", (Meter){copy_fresh, &pages}, MOVED, times);
  row("a pipe", (Meter){through_pipe, &pages}, MOVED, times);
  row("a pair of sockets", (Meter){through_sockets, &pages}, MOVED, times);
  row("SHA-256 of 20 MB, nettle", (Meter){hash_nettle, pages.from}, ALL_BYTES, times);
  row("SHA-256 of 20 MB, OpenSSL", (Meter){hash_openssl, pages.from}, ALL_BYTES, times);
  row("SHA-256 of 20 MB, plain C of GLib", (Meter){hash_glib, pages.from}, ALL_BYTES, times);
  g_free(pages.from);
  g_free(pages.to);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static gint64 tar_files(void *user) {
  gsize used = 0;
  return floor_tar(FILES, FILE_BYTES, user, MOVED, &used);
}

static gint64 read_files(void *user) {
  return floor_read_files(user);
}

/* New ones: those of the time before are gone first. */
static gint64 write_files(void *user) {
  const char *const clean[] = {"find", user, "-type", "f", "-delete", NULL};
  return floor_spawn(clean) < 0 ? -1 : floor_write_files(user, FILES, FILE_BYTES);
}

static void bench_files(const char *scratch, guint times) {
  static const char WRITE[] = "write 500 files, 20 MB, to tmpfs";
  g_autofree char *files = g_build_filename(scratch, "floor-files", NULL);
  g_autofree char *memory = g_strdup("/dev/shm/sandhost-bench-XXXXXX");
  g_autofree char *room = g_malloc(MOVED);
  struct statfs kind;
  memset(room, 0, MOVED);
  floor_fill(files, FILES, FILE_BYTES);
  row("tar of 500 files, 20 MB, from memory to memory", (Meter){tar_files, room}, 0, times);
  row("read 500 files, 20 MB", (Meter){read_files, files}, 0, times);
  if (statfs("/dev/shm", &kind) != 0 || kind.f_type != TMPFS || !g_mkdtemp(memory)) {
    ratio_leave_out(WRITE, "it cannot here: /dev/shm is none that can be written to");
    return;
  }
  row(WRITE, (Meter){write_files, memory}, 0, times);
  const char *const clean[] = {"rm", "-rf", memory, NULL};
  (void)floor_spawn(clean);
}

void bench_floors(const char *scratch, guint rounds) {
  printf("\n%-62s %9s %9s %9s\n", "floors: what the machine costs", "least ms", "median", "p95");
  bench_programs(rounds);
  bench_runtimes(scratch, MAX(rounds / 3, 3));
  bench_bytes(MAX(rounds / 3, 3));
  bench_files(scratch, MAX(rounds / 3, 3));
}
