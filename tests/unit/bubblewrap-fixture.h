/* SPDX-License-Identifier: Apache-2.0 */
/* bubblewrap-fixture.h: sandboxes of the bubblewrap provider, and what the machine sees of them. */
#ifndef SANDHOST_TESTS_BUBBLEWRAP_FIXTURE_H
#define SANDHOST_TESTS_BUBBLEWRAP_FIXTURE_H

#include "control-groups.h"
#include "plugin-fixture.h"

struct settings { /* zero: as the option's fallback says */
  const char *bwrap;
  int64_t workdir_size;
  int64_t tmp_size;
  int64_t pids_limit;
  const char *guest_dir;
};

FAKE_UNUSED static struct sandhost_instance *bubblewrap_open(const struct settings *settings) {
  const struct sandhost_value values[] = {
      {.size = sizeof values[0],
       .type = SANDHOST_OPTION_TEXT,
       .set = settings->bwrap != NULL,
       .text = fake_to_text(settings->bwrap ? settings->bwrap : "")},
      {.size = sizeof values[0],
       .type = SANDHOST_OPTION_SIZE,
       .set = 1,
       .integer = settings->workdir_size ? settings->workdir_size : (int64_t)1 << 30},
      {.size = sizeof values[0],
       .type = SANDHOST_OPTION_SIZE,
       .set = 1,
       .integer = settings->tmp_size ? settings->tmp_size : (int64_t)64 << 20},
      {.size = sizeof values[0],
       .type = SANDHOST_OPTION_INTEGER,
       .set = 1,
       .integer = settings->pids_limit ? settings->pids_limit : 256},
      {.size = sizeof values[0], .type = SANDHOST_OPTION_INTEGER, .set = 1, .integer = 1000000},
  };
  g_assert_cmpuint(plugin->option_count, ==, G_N_ELEMENTS(values));
  return plugin_open(values, settings->guest_dir ? settings->guest_dir : plugin_guest_dir);
}

/* A started plugin with one sandbox. */
struct box {
  struct sandhost_instance *instance;
  struct sandhost_sandbox *sandbox;
};

FAKE_UNUSED static struct box box_with(const struct settings *settings, const struct wish *wish) {
  struct box box;
  plugin_start();
  box.instance = bubblewrap_open(settings);
  box.sandbox = plugin_create(box.instance, wish);
  return box;
}

FAKE_UNUSED static struct box box_new(void) {
  return box_with(&(struct settings){0}, &(struct wish){0});
}

FAKE_UNUSED static void box_end(struct box *box) {
  plugin_end(box->sandbox);
  plugin->close(box->instance);
  plugin_stop();
}

/* Whether limits of the setting are kept on this machine by this user. */
FAKE_UNUSED static gboolean box_enforces(const struct box *box, uint32_t setting) {
  struct sandhost_call call;
  uint32_t levels[16] = {0};
  uint32_t level = SANDHOST_LEVEL_NONE;
  fake_call_init(&call);
  g_assert_cmpint(plugin->enforces_now(&call, box->instance, levels, plugin->enforces_count), ==,
                  SANDHOST_OK);
  for (size_t i = 0; i < plugin->enforces_count; i++) {
    if (plugin->enforces[i].setting == setting) {
      level = levels[i];
    }
  }
  fake_call_clear(&call);
  return level == SANDHOST_LEVEL_ENFORCED;
}

/* A test that finds no limit of a controller returns after this. */
FAKE_UNUSED static void box_skip_without(const char *controller) {
  g_assert_false(control_groups_are_ours(controller));
  plugin_skip("no control groups for this user");
}

/* ---- Processes of the machine ----------------------------------------------------------------- */

/* The children of a process, by number; owned. */
FAKE_UNUSED static GArray *children_of(int pid) {
  GArray *children = g_array_new(FALSE, FALSE, sizeof(int));
  g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", pid, pid);
  g_autofree char *text = NULL;
  if (g_file_get_contents(path, &text, NULL, NULL)) {
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    for (size_t i = 0; words[i]; i++) {
      int child = (int)g_ascii_strtoll(words[i], NULL, 10);
      if (child > 0) {
        g_array_append_val(children, child);
      }
    }
  }
  return children;
}

/* A process and all below it; owned. */
FAKE_UNUSED static GArray *tree_of(int pid) {
  GArray *tree = g_array_new(FALSE, FALSE, sizeof(int));
  g_array_append_val(tree, pid);
  for (guint i = 0; i < tree->len; i++) {
    GArray *children = children_of(g_array_index(tree, int, i));
    g_array_append_vals(tree, children->data, children->len);
    g_array_unref(children);
  }
  return tree;
}

FAKE_UNUSED static int pid_of_ref(const char *ref) {
  g_assert_true(g_str_has_prefix(ref, "bwrap:"));
  return (int)g_ascii_strtoll(ref + strlen("bwrap:"), NULL, 10);
}

/* Whether the process has ended, reaped or not. */
FAKE_UNUSED static gboolean is_gone(int pid) {
  g_autofree char *path = g_strdup_printf("/proc/%d/stat", pid);
  g_autofree char *text = NULL;
  if (!g_file_get_contents(path, &text, NULL, NULL)) {
    return TRUE;
  }
  const char *state = strrchr(text, ')');
  return !state || state[2] == 'Z' || state[2] == 'X';
}

/* Waits until all of them have ended. */
FAKE_UNUSED static void wait_until_gone(const GArray *pids) {
  int64_t until = fake_now() + PLUGIN_PATIENCE;
  for (guint i = 0; i < pids->len; i++) {
    while (!is_gone(g_array_index(pids, int, i))) {
      g_assert_cmpint(fake_now(), <, until);
      g_usleep(1000);
    }
  }
}

#endif
