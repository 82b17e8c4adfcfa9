/* SPDX-License-Identifier: Apache-2.0 */
/* interpose.c: the functions that stand in front of libc's. A program's own come first, for every file in its process. */
#include "interpose.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The thread sanitizer stands in the same places, and is not ready for another one there when a program begins. */
#ifdef __SANITIZE_THREAD__
#define SEES FALSE
#else
#define SEES TRUE
#endif

gboolean interpose_sees(void) {
  return SEES;
}

#define EXPORTED __attribute__((visibility("default"), used))

/* Functions and data are different kinds of pointers to C, and the same to dlsym. */
#define REAL(POINTER, NAME)                                                                        \
  do {                                                                                             \
    if (!(POINTER)) {                                                                              \
      void *symbol = dlsym(RTLD_NEXT, NAME);                                                       \
      memcpy(&(POINTER), &symbol, sizeof symbol);                                                  \
    }                                                                                              \
  } while (0)

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* births, handlers, the numbers of calls */

/* ---- Calls ------------------------------------------------------------------------------------------------------------- */

static _Thread_local InterposeCall *current;

void interpose_enter(InterposeCall *call, const char *operation) {
  static guint64 last;
  pthread_mutex_lock(&lock);
  *call = (InterposeCall){.operation = operation, .number = ++last, .outer = current};
  pthread_mutex_unlock(&lock);
  current = call;
}

void interpose_leave(InterposeCall *call) {
  current = call->outer;
}

GThread *suite_thread_new(const char *name, GThreadFunc function, gpointer data) {
  InterposeCall *call = current;
  current = NULL;
  GThread *thread = g_thread_new(name, function, data);
  current = call;
  return thread;
}

/* ---- Threads ----------------------------------------------------------------------------------------------------------- */

/* One that a provider began, while it is there. Not GLib's memory: GLib itself begins threads. */
typedef struct Birth {
  void *(*routine)(void *argument);
  void *argument;
  const char *operation;
  guint64 number; /* of the call */
  pthread_t self;
  gboolean detached;
  struct Birth *next;
} Birth;

static Birth *births;

#ifndef __SANITIZE_THREAD__

static void birth_end(void *data) {
  Birth *birth = data;
  pthread_mutex_lock(&lock);
  Birth **at = &births;
  while (*at && *at != birth) {
    at = &(*at)->next;
  }
  if (*at) {
    *at = birth->next;
  }
  pthread_mutex_unlock(&lock);
  free(birth);
}

static void *birth_run(void *data) {
  Birth *birth = data;
  void *value = NULL;
  pthread_cleanup_push(birth_end, birth); /* also where it exits, or is cancelled */
  value = birth->routine(birth->argument);
  pthread_cleanup_pop(1);
  return value;
}

typedef int (*Create)(pthread_t *thread, const pthread_attr_t *attributes,
                      void *(*routine)(void *argument), void *argument);

static int create_born(Create create, pthread_t *thread, const pthread_attr_t *attributes,
                       Birth *birth) {
  int state = PTHREAD_CREATE_JOINABLE;
  if (attributes) {
    pthread_attr_getdetachstate(attributes, &state);
  }
  birth->detached = state == PTHREAD_CREATE_DETACHED;
  pthread_mutex_lock(&lock); /* it cannot end before it is in the list */
  int error = create(thread, attributes, birth_run, birth);
  if (error == 0) {
    birth->self = *thread;
    birth->next = births;
    births = birth;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                            void *(*routine)(void *argument), void *argument) {
  static Create real;
  REAL(real, "pthread_create");
  Birth *birth = current ? calloc(1, sizeof *birth) : NULL;
  if (!birth) {
    return real(thread, attributes, routine, argument);
  }
  *birth = (Birth){.routine = routine,
                   .argument = argument,
                   .operation = current->operation,
                   .number = current->number};
  int error = create_born(real, thread, attributes, birth);
  if (error != 0) {
    free(birth);
  }
  return error;
}

EXPORTED int pthread_detach(pthread_t thread) {
  static int (*real)(pthread_t thread);
  REAL(real, "pthread_detach");
  pthread_mutex_lock(&lock);
  for (Birth *birth = births; birth; birth = birth->next) {
    birth->detached = birth->detached || pthread_equal(birth->self, thread);
  }
  pthread_mutex_unlock(&lock);
  return real(thread);
}

#endif

guint interpose_threads_of(const InterposeCall *call, gboolean detached) {
  guint count = 0;
  pthread_mutex_lock(&lock);
  for (const Birth *birth = births; birth; birth = birth->next) {
    count += birth->number == call->number && (birth->detached || !detached) ? 1 : 0;
  }
  pthread_mutex_unlock(&lock);
  return count;
}

guint interpose_threads_in(const char *operation, gboolean others, const char **ret_operation) {
  guint count = 0;
  pthread_mutex_lock(&lock);
  for (const Birth *birth = births; birth; birth = birth->next) {
    if ((strcmp(birth->operation, operation) == 0) != others) {
      *ret_operation = birth->operation;
      count++;
    }
  }
  pthread_mutex_unlock(&lock);
  return count;
}

/* ---- At an exit, at a fork ------------------------------------------------------------------------------------------------ */

typedef struct {
  const char *what;
  const char *operation;
  const void *place; /* in the file that has it done */
} Handler;

#define MOST_HANDLERS 64u

static Handler handlers[MOST_HANDLERS];
static guint handler_count;

/* Many libraries have something done at an exit, and are none of the provider's own code. */
void interpose_handlers(const void *address, InterposeTell tell) {
  Dl_info own;
  Dl_info info;
  gboolean known = dladdr(address, &own) != 0;
  for (guint i = 0; known && i < handler_count; i++) {
    if (handlers[i].place && dladdr(handlers[i].place, &info) && info.dli_fbase == own.dli_fbase) {
      tell(handlers[i].what, handlers[i].operation);
    }
  }
}

#ifndef __SANITIZE_THREAD__

static void note_handler(const char *what, const void *place) {
  if (!current) {
    return;
  }
  pthread_mutex_lock(&lock);
  if (handler_count < MOST_HANDLERS) {
    handlers[handler_count++] = (Handler){what, current->operation, place};
  }
  pthread_mutex_unlock(&lock);
}

/* What atexit and pthread_atfork, which each file has for itself, really call; the last parameter tells whose they are. */
EXPORTED int exit_of_file(void (*function)(void *argument), void *argument,
                          void *file) __asm__("__cxa_atexit");
int exit_of_file(void (*function)(void *argument), void *argument, void *file) {
  static int (*real)(void (*function)(void *argument), void *argument, void *file);
  REAL(real, "__cxa_atexit");
  if (!argument) { /* the object of a C++ destructor is one */
    note_handler("an exit handler", file);
  }
  return real(function, argument, file);
}

EXPORTED int fork_of_file(void (*before)(void), void (*parent)(void), void (*child)(void),
                          void *file) __asm__("__register_atfork");
int fork_of_file(void (*before)(void), void (*parent)(void), void (*child)(void), void *file) {
  static int (*real)(void (*before)(void), void (*parent)(void), void (*child)(void), void *file);
  REAL(real, "__register_atfork");
  note_handler("a fork handler", file);
  return real(before, parent, child, file);
}

EXPORTED int on_exit(void (*function)(int code, void *argument), void *argument) {
  static int (*real)(void (*function)(int code, void *argument), void *argument);
  const void *place = NULL;
  REAL(real, "on_exit");
  memcpy(&place, &function, sizeof place);
  note_handler("an exit handler", place);
  return real(function, argument);
}

#endif
