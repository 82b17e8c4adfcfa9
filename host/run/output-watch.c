/* SPDX-License-Identifier: Apache-2.0 */
/* output-watch.c: whoever removes a stream waits until nobody looks at it. */
#include "run/output-watch.h"

#include <pthread.h>

struct OutputWatch {
  pthread_mutex_t lock; /* guards outputs, and is held while they are looked at */
  GPtrArray *outputs;   /* Output, borrowed */
};

OutputWatch *output_watch_new(void) {
  OutputWatch *watch = g_new0(OutputWatch, 1);
  pthread_mutex_init(&watch->lock, NULL);
  watch->outputs = g_ptr_array_new();
  return watch;
}

void output_watch_free(OutputWatch *watch) {
  if (watch) {
    g_ptr_array_unref(watch->outputs);
    pthread_mutex_destroy(&watch->lock);
    g_free(watch);
  }
}

void output_watch_add(OutputWatch *watch, Output *output) {
  pthread_mutex_lock(&watch->lock);
  g_ptr_array_add(watch->outputs, output);
  pthread_mutex_unlock(&watch->lock);
}

void output_watch_remove(OutputWatch *watch, Output *output) {
  pthread_mutex_lock(&watch->lock);
  g_ptr_array_remove_fast(watch->outputs, output);
  pthread_mutex_unlock(&watch->lock);
}

void output_watch_look(OutputWatch *watch) {
  pthread_mutex_lock(&watch->lock);
  for (guint i = 0; i < watch->outputs->len; i++) {
    output_keep_now(g_ptr_array_index(watch->outputs, i));
  }
  pthread_mutex_unlock(&watch->lock);
}
