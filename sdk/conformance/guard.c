/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c: before and after each call. */
#include "guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apart.h"

/* ---- What was found ---------------------------------------------------------------------------------------------------- */

#define MOST_FOUND 5u /* of a kind: a line is to be read */
#define MOST_SHOWN 200

static struct {
  char *lines[MOST_FOUND]; /* each once */
  guint count;
  gboolean more;
} found[GUARD_KINDS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* found, and our child */

/* With the lock. */
static void find(GuardKind kind, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void find(GuardKind kind, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *line = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  for (guint i = 0; i < found[kind].count; i++) {
    if (strcmp(found[kind].lines[i], line) == 0) {
      return;
    }
  }
  if (found[kind].count < MOST_FOUND) {
    found[kind].lines[found[kind].count++] = g_steal_pointer(&line);
  } else {
    found[kind].more = TRUE;
  }
}

char *guard_found(GuardKind kind) {
  GString *text = g_string_new(NULL);
  pthread_mutex_lock(&lock);
  for (guint i = 0; i < found[kind].count; i++) {
    g_string_append_printf(text, "%s%s", i > 0 ? "; " : "", found[kind].lines[i]);
  }
  if (found[kind].more) {
    g_string_append(text, "; and more");
  }
  pthread_mutex_unlock(&lock);
  return g_string_free(text, text->len == 0);
}

/* ---- What belongs to the process --------------------------------------------------------------------------------------- */

/* Asking by umask(2) would change it for a moment, under everybody else. */
static guint current_umask(void) {
  char text[2048];
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
  if (fd >= 0) {
    close(fd);
  }
  text[MAX(length, 0)] = '\0';
  const char *line = strstr(text, "\nUmask:");
  return line ? (guint)strtoul(line + strlen("\nUmask:"), NULL, 8) : 0;
}

static void state_take(GuardState *ret_state) {
  *ret_state = (GuardState){.folder = getcwd(NULL, 0),
                            .locale = g_strdup(setlocale(LC_ALL, NULL)),
                            .environment = g_get_environ(),
                            .umask = current_umask(),
                            .own_locale = uselocale((locale_t)0)};
  pthread_sigmask(SIG_SETMASK, NULL, &ret_state->mask);
  for (int i = 1; i < NSIG; i++) {
    sigaction(i, NULL, &ret_state->actions[i]); /* the few that nobody may handle stay zero */
  }
}

static void state_clear(GuardState *state) {
  free(state->folder);
  g_free(state->locale);
  g_strfreev(state->environment);
}

/* Of what is the same nothing is touched: each setting anew would cost memory. */
static void put_environment_back(char **before, char **after) {
  for (gsize i = 0; after[i]; i++) {
    g_auto(GStrv) words = g_strsplit(after[i], "=", 2);
    if (!g_strv_contains((const char *const *)before, after[i]) && words[0]) {
      unsetenv(words[0]);
    }
  }
  for (gsize i = 0; before[i]; i++) {
    g_auto(GStrv) words = g_strsplit(before[i], "=", 2);
    if (!g_strv_contains((const char *const *)after, before[i]) && words[0] && words[1]) {
      setenv(words[0], words[1], 1);
    }
  }
}

/* With the lock, as what follows. */
static void compare_signals(const GuardStay *stay, const GuardState *after) {
  const GuardState *before = &stay->before;
  for (int i = 1; i < NSIG; i++) {
    if (before->actions[i].sa_handler != after->actions[i].sa_handler) {
      find(GUARD_STATE, "%s: there is another handler for %s", stay->operation, strsignal(i));
      sigaction(i, &before->actions[i], NULL);
    }
  }
  for (int i = 1; i < NSIG; i++) {
    if (sigismember(&before->mask, i) != sigismember(&after->mask, i)) {
      find(GUARD_STATE, "%s: the calling thread's signal mask was changed for %s", stay->operation,
           strsignal(i));
      pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
      break;
    }
  }
}

static void compare(const GuardStay *stay, const GuardState *after) {
  const GuardState *before = &stay->before;
  if (g_strcmp0(before->folder, after->folder) != 0) {
    find(GUARD_STATE, "%s: the working directory became %s", stay->operation,
         after->folder ? after->folder : "none");
    int moved = before->folder ? chdir(before->folder) : -1;
    (void)moved;
  }
  if (before->umask != after->umask) {
    find(GUARD_STATE, "%s: the umask became %04o", stay->operation, after->umask);
    umask(before->umask);
  }
  if (g_strcmp0(before->locale, after->locale) != 0) {
    find(GUARD_STATE, "%s: the locale became %s", stay->operation, after->locale);
    setlocale(LC_ALL, before->locale);
  }
  if (before->own_locale != after->own_locale) {
    find(GUARD_STATE, "%s: the calling thread's locale was changed", stay->operation);
    uselocale(before->own_locale);
  }
  if (!g_strv_equal((const char *const *)before->environment,
                    (const char *const *)after->environment)) {
    find(GUARD_STATE, "%s: the environment was changed", stay->operation);
    put_environment_back(before->environment, after->environment);
  }
  if (!apart_keeps_streams()) {
    find(GUARD_STATE, "%s: standard output or error was closed or replaced", stay->operation);
  }
  compare_signals(stay, after);
}

/* ---- Children ----------------------------------------------------------------------------------------------------------- */

/* ") S 1234 ...", behind a name that may hold anything. */
static gboolean is_child(const char *stat) {
  const char *behind = strrchr(stat, ')');
  return behind && strlen(behind) > 4 && strtol(behind + 4, NULL, 10) == getpid();
}

guint guard_count_children(void) {
  guint count = 0;
  DIR *folder = opendir("/proc");
  const struct dirent *entry = NULL;
  while (folder && (entry = readdir(folder))) {
    g_autofree char *path = g_build_filename("/proc", entry->d_name, "stat", NULL);
    g_autofree char *text = NULL;
    if (g_ascii_isdigit(entry->d_name[0]) && g_file_get_contents(path, &text, NULL, NULL)) {
      count += is_child(text) ? 1 : 0;
    }
  }
  if (folder) {
    closedir(folder);
  }
  return count;
}

/* "Cheap: no network, nothing started." */
static gboolean starts_nothing(const char *operation) {
  return strcmp(operation, "being loaded") == 0 || strcmp(operation, "the entry") == 0 ||
         strcmp(operation, "open") == 0;
}

/* A child of the suite's own that has ended, and that nobody but the suite may wait for. */
static pid_t own_child;

static void begin_own_child(void) {
  siginfo_t info = {0};
  own_child = fork();
  if (own_child == 0) {
    _exit(0);
  }
  waitid(P_PID, (id_t)own_child, &info, WEXITED | WNOWAIT);
}

static void look_at_own_child(const char *operation) {
  siginfo_t info = {0};
  if (own_child > 0 && (waitid(P_PID, (id_t)own_child, &info, WEXITED | WNOWAIT | WNOHANG) != 0 ||
                        info.si_pid == 0)) {
    find(GUARD_REAPED, "%s waited for a child that it had not begun", operation);
    begin_own_child();
  }
}

/* ---- Calls --------------------------------------------------------------------------------------------------------------- */

void guard_begin(void) {
  begin_own_child();
}

void guard_enter(GuardStay *stay, const char *operation) {
  stay->operation = operation;
  stay->children = starts_nothing(operation) ? guard_count_children() : 0;
  state_take(&stay->before);
  interpose_enter(&stay->calling, operation);
}

static void look_at_threads(const GuardStay *stay) {
  gboolean loading =
      strcmp(stay->operation, "being loaded") == 0 || strcmp(stay->operation, "the entry") == 0;
  guint count = interpose_threads_of(&stay->calling, !loading);
  if (count > 0 && strcmp(stay->operation, "start") != 0) {
    find(GUARD_THREADS,
         loading ? "%s: a thread was begun" : "%s left a thread that nobody waits for",
         stay->operation);
  }
}

void guard_leave(GuardStay *stay) {
  GuardState after;
  interpose_leave(&stay->calling);
  if (!apart_is_own()) {
    apart_end_copy(stay->operation);
  }
  if (!apart_is_heard()) {
    apart_end_unheard(stay->operation);
  }
  state_take(&after);
  pthread_mutex_lock(&lock);
  compare(stay, &after);
  look_at_threads(stay);
  look_at_own_child(stay->operation);
  if (starts_nothing(stay->operation) && guard_count_children() > stay->children) {
    find(GUARD_STARTED, "%s: a process was started and is there still", stay->operation);
  }
  g_autofree char *printed = apart_take_printed();
  if (printed) {
    find(GUARD_PRINTED, "%s printed '%.*s'", stay->operation, MOST_SHOWN, printed);
  }
  pthread_mutex_unlock(&lock);
  state_clear(&stay->before);
  state_clear(&after);
}

/* ---- The end ------------------------------------------------------------------------------------------------------------- */

static void find_handler(const char *what, const char *operation) {
  find(GUARD_HANDLERS, "%s installed %s", operation, what);
}

void guard_judge_handlers(const void *address) {
  pthread_mutex_lock(&lock);
  interpose_handlers(address, find_handler);
  pthread_mutex_unlock(&lock);
}

void guard_judge_threads(gboolean stopped) {
  const char *operation = NULL;
  guint count = interpose_threads_in("start", !stopped, &operation);
  pthread_mutex_lock(&lock);
  if (count > 0) {
    find(GUARD_THREADS, "%s has returned, and threads that %s began go on: %u",
         stopped ? "stop" : "close", operation, count);
  }
  pthread_mutex_unlock(&lock);
}
