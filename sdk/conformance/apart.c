/* SPDX-License-Identifier: Apache-2.0 */
/* apart.c: the child that judges, and what its parent sees of it. */
#include "apart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 100
#define LOOKS                                                                                      \
  (20 * 1000 / LOOK_MS) /* a sound plugin is loaded in a moment; one that is stopped has as long */
#define MOST_SUM 200u
#define MOST_PRINTED 4096u

/* What the child tells, in one write each. */
enum { TOLD_LOADED = 1, TOLD_COPY, TOLD_END };
typedef struct {
  guint8 token[16]; /* of this run: nobody says it by accident */
  gint32 kind;
  gint32 code;
  char sum[MOST_SUM];
} Told;

#define MOST_DOING 200u

/* Memory of both. */
typedef struct {
  char doing[MOST_DOING];
  gint unheard; /* the child's end of the pipe is not there any more */
} Shared;

FILE *apart_out, *apart_err;

static struct {
  const char *file;
  guint8 token[16];
  Shared *shared;
  pid_t child;
  pid_t own;          /* the child itself */
  int tell;           /* the child's end of the pipe */
  int listen;         /* the parent's */
  int printed;        /* what the provider printed */
  off_t taken;        /* of that */
  struct stat stream; /* what 1 and 2 are */
  struct stat pipe;   /* what tell is */
} apart = {.tell = -1, .listen = -1, .printed = -1};

/* ---- The child --------------------------------------------------------------------------------------------------------- */

void apart_doing(const char *what) {
  g_strlcpy(apart.shared->doing, what, MOST_DOING);
}

static void tell(int kind, int code, const char *sum) {
  Told told = {.kind = kind, .code = code};
  memcpy(told.token, apart.token, sizeof told.token);
  g_strlcpy(told.sum, sum ? sum : "", sizeof told.sum);
  ssize_t written = write(apart.tell, &told, sizeof told);
  (void)written; /* who closed it is told by its absence */
}

void apart_loaded(void) {
  tell(TOLD_LOADED, 0, NULL);
}

void apart_end(int code, const char *sum) {
  fflush(apart_out);
  apart_doing("its end");
  tell(TOLD_END, code, sum);
}

gboolean apart_is_own(void) {
  return getpid() == apart.own;
}

void apart_end_copy(const char *what) {
  tell(TOLD_COPY, 0, what); /* what is being done is told by the other one, which goes on */
  _exit(2);
}

char *apart_take_printed(void) {
  char text[MOST_PRINTED + 1];
  fflush(stdout);
  ssize_t length = pread(apart.printed, text, MOST_PRINTED, apart.taken);
  if (length <= 0) {
    return NULL;
  }
  struct stat status;
  apart.taken = fstat(apart.printed, &status) == 0 ? status.st_size : apart.taken + length;
  text[length] = '\0';
  return g_strdup(text);
}

static gboolean is_still(int fd, const struct stat *what) {
  struct stat status;
  return fstat(fd, &status) == 0 && status.st_dev == what->st_dev && status.st_ino == what->st_ino;
}

gboolean apart_is_heard(void) {
  return is_still(apart.tell, &apart.pipe);
}

void apart_end_unheard(const char *what) {
  apart_doing(what);
  g_atomic_int_set(&apart.shared->unheard, 1);
  _exit(2);
}

gboolean apart_keeps_streams(void) {
  gboolean kept = TRUE;
  for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
    if (!is_still(fd, &apart.stream)) {
      dup2(apart.printed, fd);
      kept = FALSE;
    }
  }
  return kept;
}

static FILE *take_stream(int fd) {
  int own = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  FILE *stream = own >= 0 ? fdopen(own, "w") : NULL;
  if (stream) {
    setvbuf(stream, NULL, _IOLBF, 0); /* who reads a pipe sees how far it is */
    dup2(apart.printed, fd);
  }
  return stream;
}

static int judge_here(int (*judge)(void *user), void *user, pid_t parent) {
  close(apart.listen);
  apart.own = getpid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    return 2;
  }
  signal(SIGPIPE, SIG_DFL); /* whoever began this may have had it ignored */
  apart_out = take_stream(STDOUT_FILENO);
  apart_err = take_stream(STDERR_FILENO);
  setvbuf(stdout, NULL, _IOLBF, 0);
  return apart_out && apart_err ? judge(user) : 2;
}

/* ---- The parent -------------------------------------------------------------------------------------------------------- */

typedef struct {
  gboolean loaded;
  gboolean copied;
  char where[MOST_SUM]; /* it was */
  gboolean ended;       /* as it told itself */
  gboolean hung;        /* and was killed for it */
  gboolean closed;      /* the pipe is */
  gboolean dead;
  gboolean stopped;
  guint looks; /* since it began, or since it was stopped */
  int status;  /* of wait */
  Told told;   /* the end */
} Seen;

static void hear(Seen *seen) {
  Told told;
  ssize_t length = read(apart.listen, &told, sizeof told);
  if (length == 0) {
    seen->closed = TRUE;
  }
  if (length != (ssize_t)sizeof told || memcmp(told.token, apart.token, sizeof told.token) != 0) {
    return;
  }
  seen->loaded = seen->loaded || told.kind == TOLD_LOADED;
  told.sum[MOST_SUM - 1] = '\0';
  if (told.kind == TOLD_COPY) {
    seen->copied = TRUE;
    g_strlcpy(seen->where, told.sum, sizeof seen->where);
  } else if (told.kind == TOLD_END) {
    seen->ended = TRUE;
    seen->looks = 0;
    seen->told = told;
  }
}

/* As the first process of its namespace this one also gets orphans of whatever was ended. */
static void look_at_children(Seen *seen) {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
    if (pid == apart.child && WIFSTOPPED(status)) {
      seen->stopped = TRUE;
      seen->looks = 0;
    } else if (pid == apart.child && WIFCONTINUED(status)) {
      seen->stopped = FALSE;
    } else if (pid == apart.child) {
      seen->dead = TRUE;
      seen->status = status;
    }
  }
}

static void watch(Seen *seen) {
  while (!seen->dead) {
    struct pollfd pipe_end = {.fd = seen->closed ? -1 : apart.listen, .events = POLLIN};
    if (poll(&pipe_end, 1, LOOK_MS) > 0) {
      hear(seen);
    }
    look_at_children(seen);
    seen->looks++;
    gboolean waits = !seen->loaded || seen->stopped || seen->ended;
    if (!seen->dead && (seen->copied || (waits && seen->looks >= LOOKS))) {
      seen->hung = !seen->copied;
      kill(apart.child, SIGKILL);
      seen->dead = waitpid(apart.child, &seen->status, 0) == apart.child;
    }
  }
  fcntl(apart.listen, F_SETFL, O_NONBLOCK); /* a copy may hold the other end */
  for (struct pollfd rest = {.fd = apart.listen, .events = POLLIN};
       !seen->closed && poll(&rest, 1, 0) > 0 && (rest.revents & POLLIN);) {
    hear(seen);
  }
}

/* A sanitizer's last words, for one. */
static void pass_on_printed(void) {
  char piece[4096];
  off_t at = 0;
  for (ssize_t length; (length = pread(apart.printed, piece, sizeof piece, at)) > 0; at += length) {
    if (at == 0) {
      fprintf(stderr, "%s: %s printed:\n", g_get_prgname(), apart.file);
    }
    fwrite(piece, 1, (size_t)length, stderr);
  }
}

static const char *words_of(const Seen *seen) {
  if (seen->copied) {
    return "forks in: ";
  }
  if (seen->hung) {
    return "does not come back from: ";
  }
  if (g_atomic_int_get(&apart.shared->unheard)) {
    return "closes what it did not open in: ";
  }
  return WIFSIGNALED(seen->status) && WTERMSIG(seen->status) != SIGKILL ? "crashes in: "
                                                                        : "ends the program in: ";
}

static int tell_of(const Seen *seen) {
  gboolean as_told = seen->ended && !seen->copied && WIFEXITED(seen->status) &&
                     WEXITSTATUS(seen->status) == seen->told.code;
  if (seen->ended && !seen->copied && seen->told.sum[0]) {
    printf("%s\n", seen->told.sum);
    fflush(stdout);
  }
  if (!as_told) {
    pass_on_printed();
    apart.shared->doing[MOST_DOING - 1] = '\0';
    fprintf(stderr, "%s: %s %s%s\n", g_get_prgname(), apart.file, words_of(seen),
            seen->copied ? seen->where : apart.shared->doing);
  }
  return as_told ? seen->told.code : 2;
}

static gboolean prepare(void) {
  int ends[2];
  apart.shared =
      mmap(NULL, sizeof *apart.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  apart.printed = memfd_create("printed", MFD_CLOEXEC);
  if (apart.shared == MAP_FAILED || apart.printed < 0 || fstat(apart.printed, &apart.stream) != 0 ||
      fcntl(apart.printed, F_SETFL, O_APPEND) != 0 || pipe2(ends, O_CLOEXEC) != 0) {
    return FALSE;
  }
  apart.listen = ends[0];
  apart.tell = ends[1];
  return fstat(apart.tell, &apart.pipe) == 0 &&
         getrandom(apart.token, sizeof apart.token, 0) == (ssize_t)sizeof apart.token;
}

int apart_run(const char *file, int (*judge)(void *user), void *user) {
  Seen seen = {0};
  pid_t parent = getpid();
  apart.file = file;
  if (!prepare() || (apart.child = fork()) < 0) {
    fprintf(stderr, "%s: no process can be begun: %s\n", g_get_prgname(), g_strerror(errno));
    return 2;
  }
  if (apart.child == 0) {
    return judge_here(judge, user, parent);
  }
  close(apart.tell);
  watch(&seen);
  return tell_of(&seen);
}
