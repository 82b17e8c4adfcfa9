/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h: what a sandbox sees, as arguments of bwrap.
 *
 * What is the same for every sandbox is looked up once. Folders of the machine are mounted; small files
 * are copied, since a mount costs bwrap ten times what a copy costs. The arguments reach bwrap through a
 * descriptor, so that nobody reads them in its command line.
 */
#ifndef SANDHOST_BUBBLEWRAP_LAYOUT_H
#define SANDHOST_BUBBLEWRAP_LAYOUT_H

#include <glib.h>
#include <sandhost/provider.h>

#define LAYOUT_MAX_FILES 40
/* Descriptors that bwrap inherits: its arguments, the guest, the filter of system calls,
 * the files. */
#define LAYOUT_ARGS_FD 3
#define LAYOUT_GUEST_FD 4
#define LAYOUT_FILTER_FD 5
#define LAYOUT_FIRST_FILE_FD 6
/* What bwrap runs: a descriptor, so that the guest may lie where the sandbox's user cannot go. */
#define LAYOUT_GUEST_PATH "/proc/self/fd/4"

/* Constant once made; may be used by any thread. */
typedef struct Layout Layout;

/* Looks at the machine. Returns owned. */
Layout *layout_new(uint64_t tmp_size, uint64_t workdir_size);
void layout_free(Layout *layout);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Layout, layout_free)

/* The paths of the machine that are mounted in sandboxes, ended by NULL; the layout's. */
const char *const *layout_sources(const Layout *layout);

struct layout_wish {
  const char *working_dir; /* as layout_check_working_dir returns it */
  gboolean network;
  gboolean disable_userns;                 /* needs bwrap 0.8 */
  const struct sandhost_pair *environment; /* checked */
  size_t environment_count;
};

/* Makes the arguments, each followed by a NUL, and opens the files that they copy. The descriptors are the
 * caller's; they become LAYOUT_FIRST_FILE_FD and so on in bwrap. Returns owned. */
GByteArray *layout_arguments(const Layout *layout, const struct layout_wish *wish,
                             int ret_fds[LAYOUT_MAX_FILES], size_t *ret_count);

/* Returns the working directory without doubled or trailing slashes, owned; or NULL and in *ret_reason
 * (owned) why there can be none there. */
char *layout_check_working_dir(struct sandhost_path dir, char **ret_reason);

#endif
