/* SPDX-License-Identifier: Apache-2.0 */
/* workspace-descriptors.c: the bridge in a process that has few descriptors left: what cannot be copied is told and comes
 * later, and no file is torn or left under another name. */
#include "workspace-fake.h"

#include <sys/resource.h>

#define MOST_SPARE 14
#define OLD "old content\n"
#define NEW "new content, and longer\n"

/* Lets the process open so many more. Returns the limit as it was. */
static struct rlimit leave_spare(rlim_t spare) {
  struct rlimit before;
  g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &before), ==, 0);
  int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  g_assert_cmpint(next, >=, 0);
  close(next);
  const struct rlimit few = {.rlim_cur = (rlim_t)next + spare, .rlim_max = before.rlim_max};
  g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &few), ==, 0);
  return before;
}

static void put_back(const struct rlimit *limit) {
  g_assert_cmpint(setrlimit(RLIMIT_NOFILE, limit), ==, 0);
}

/* Whole, as it was or as it is to be. Whether it is new. */
static gboolean is_new(const Fake *fake, const char *path, const char *old) {
  g_autofree char *text = workspace_get(fake, path);
  if (g_strcmp0(text, NEW) == 0) {
    return TRUE;
  }
  g_assert_cmpstr(text, ==, old);
  return FALSE;
}

static void test_back(void) {
  guint complete = 0;
  guint without = 0;
  for (rlim_t spare = 0; spare <= MOST_SPARE; spare++) {
    g_autoptr(Fake) fake = fake_new(NULL);
    workspace_put(fake, "changed", OLD);
    copy_in(fake);
    sandbox_put(fake, "changed", NEW);
    sandbox_put(fake, "deep/er/made", NEW);

    struct rlimit before = leave_spare(spare);
    g_autoptr(GError) error = NULL;
    fake_fresh_report(fake);
    gboolean ok = bridge_copy_back(fake->bridge, &fake->transport, fake->report, &error);
    put_back(&before);

    gboolean changed = is_new(fake, "changed", OLD);
    gboolean made = is_new(fake, "deep/er/made", NULL);
    g_assert_cmpuint(count_temporary(fake->around), ==, 0);
    g_assert_cmpuint(fake->report->written->len, ==, (guint)changed + (guint)made);
    g_assert_true(ok || error);
    g_assert_true((changed && made) || error || fake->report->skipped->len > 0); /* it is told */
    complete += changed && made;
    without += !changed && !made;

    /* With room again nothing is missing. */
    copy_back(fake);
    assert_workspace(fake, "changed", NEW);
    assert_workspace(fake, "deep/er/made", NEW);
  }
  g_assert_cmpuint(complete, >, 0);
  g_assert_cmpuint(without, >, 0);
}

static void test_in(void) {
  guint complete = 0;
  guint without = 0;
  for (rlim_t spare = 0; spare <= MOST_SPARE; spare++) {
    g_autoptr(Fake) fake = fake_new(NULL);
    workspace_put(fake, "a", OLD);
    workspace_put(fake, "deep/er/b", OLD);

    struct rlimit before = leave_spare(spare);
    g_autoptr(GError) error = NULL;
    fake_fresh_report(fake);
    gboolean ok = bridge_copy_in(fake->bridge, &fake->transport, fake->report, &error);
    put_back(&before);

    guint held = g_hash_table_size(fake->files);
    g_assert_true(ok || error);
    g_assert_true(held == 2 || error || fake->report->skipped->len > 0);
    complete += held == 2;
    without += held == 0;

    copy_in(fake);
    assert_sandbox(fake, "a", OLD);
    assert_sandbox(fake, "deep/er/b", OLD);
    assert_workspace(fake, "a", OLD);
  }
  g_assert_cmpuint(complete, >, 0);
  g_assert_cmpuint(without, >, 0);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/workspace/descriptors/back", test_back);
  g_test_add_func("/workspace/descriptors/in", test_in);
  return g_test_run();
}
