/* SPDX-License-Identifier: Apache-2.0 */
/* pull-progress.c: adds up the layers of an image that is being pulled. */
#include "pull.h"

#include <string.h>

#define MILLISECOND ((int64_t)1000000)
/* At most five lines a second. */
#define LINE_EVERY (200 * MILLISECOND)
/* An image has 127 layers at most; an engine that names more is not believed. */
#define MAX_LAYERS 1000u
#define MAX_ID 128u
/* More than any layer; so that sums cannot overflow. */
#define MAX_BYTES ((int64_t)1 << 50)

struct layer {
  int64_t current; /* bytes that are here */
  int64_t total;   /* 0: unknown */
  gboolean done;   /* unpacked, or it was there before */
};

struct PullProgress {
  char *image;
  GHashTable *layers; /* id -> struct layer; both owned */
  char *line;         /* the last one; owned */
  int64_t line_time;
};

PullProgress *pull_progress_new(const char *image) {
  PullProgress *progress = g_new0(PullProgress, 1);
  progress->image = g_strdup(image);
  progress->layers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  return progress;
}

void pull_progress_free(PullProgress *progress) {
  if (progress) {
    g_hash_table_unref(progress->layers);
    g_free(progress->image);
    g_free(progress->line);
    g_free(progress);
  }
}

/* What a layer can be in, in the engine's words. Other lines that have an id are not about a
 * layer. */
enum phase { PHASE_NONE, PHASE_WAITING, PHASE_DOWNLOADING, PHASE_HERE, PHASE_DONE };

static enum phase phase_of(const char *status) {
  static const struct {
    const char *status;
    enum phase phase;
  } phases[] = {
      {"Pulling fs layer", PHASE_WAITING}, {"Waiting", PHASE_WAITING},
      {"Downloading", PHASE_DOWNLOADING},  {"Verifying Checksum", PHASE_HERE},
      {"Download complete", PHASE_HERE},   {"Extracting", PHASE_HERE},
      {"Pull complete", PHASE_DONE},       {"Already exists", PHASE_DONE},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(phases); i++) {
    if (strcmp(status, phases[i].status) == 0) {
      return phases[i].phase;
    }
  }
  return PHASE_NONE;
}

static struct layer *find_layer(PullProgress *progress, const char *id) {
  struct layer *layer = g_hash_table_lookup(progress->layers, id);
  if (!layer && strlen(id) <= MAX_ID && g_hash_table_size(progress->layers) < MAX_LAYERS) {
    layer = g_new0(struct layer, 1);
    g_hash_table_insert(progress->layers, g_strdup(id), layer);
  }
  return layer;
}

void pull_progress_take(PullProgress *progress, const char *id, const char *status, int64_t current,
                        int64_t total) {
  enum phase phase = status ? phase_of(status) : PHASE_NONE;
  struct layer *layer = id && phase != PHASE_NONE ? find_layer(progress, id) : NULL;
  if (!layer) {
    return;
  }
  if (phase == PHASE_DOWNLOADING) {
    layer->total = CLAMP(total, 0, MAX_BYTES);
    layer->current = CLAMP(current, 0, layer->total > 0 ? layer->total : MAX_BYTES);
  } else if (phase == PHASE_HERE || phase == PHASE_DONE) {
    /* What is said from here on counts unpacked bytes. */
    layer->current = layer->total = MAX(layer->total, layer->current);
    layer->done = layer->done || phase == PHASE_DONE;
  }
}

struct sums {
  guint layers;
  guint done;
  int64_t current;
  int64_t total;
};

static struct sums add_up(const PullProgress *progress) {
  struct sums sums = {0};
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init(&iter, progress->layers);
  while (g_hash_table_iter_next(&iter, NULL, &value)) {
    const struct layer *layer = value;
    sums.layers++;
    sums.done += layer->done ? 1 : 0;
    sums.current += layer->current;
    sums.total += MAX(layer->total, layer->current);
  }
  return sums;
}

static double megabytes(int64_t bytes) {
  return (double)bytes / 1e6;
}

char *pull_progress_line(PullProgress *progress, int64_t now) {
  if (progress->line && now - progress->line_time < LINE_EVERY) {
    return NULL;
  }
  struct sums sums = add_up(progress);
  g_autofree char *line = NULL;
  if (sums.layers == 0) {
    line = g_strdup_printf("pulling %s", progress->image);
  } else if (sums.total == 0) {
    line = g_strdup_printf("pulling %s: %u of %u layers", progress->image, sums.done, sums.layers);
  } else {
    line = g_strdup_printf("pulling %s: %u of %u layers, %.1f of %.1f MB", progress->image,
                           sums.done, sums.layers, megabytes(sums.current), megabytes(sums.total));
  }
  if (progress->line && strcmp(line, progress->line) == 0) {
    return NULL;
  }
  g_free(progress->line);
  progress->line = g_strdup(line);
  progress->line_time = now;
  return g_steal_pointer(&line);
}

char *pull_progress_last_line(const PullProgress *progress) {
  struct sums sums = add_up(progress);
  if (sums.layers == 0) {
    return g_strdup_printf("pulled %s", progress->image);
  }
  if (sums.total == 0) {
    return g_strdup_printf("pulled %s: %u layers", progress->image, sums.layers);
  }
  return g_strdup_printf("pulled %s: %u layers, %.1f MB", progress->image, sums.layers,
                         megabytes(sums.total));
}
