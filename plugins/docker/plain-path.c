/* SPDX-License-Identifier: Apache-2.0 */
/* plain-path.c: paths in the container, and whether they stay below the folder that they are to be in. */
#include "plain.h"

#include "failure.h"

#include <limits.h>
#include <string.h>
#include <time.h>

#define MOST_LINKS 40

int32_t plain_check_size(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *what, size_t size, size_t first_size) {
  return size >= first_size
             ? SANDHOST_OK
             : fail_call(sandbox->host, call, SANDHOST_INVALID,
                         "the %s is %zu bytes, at least %zu are needed", what, size, first_size);
}

char *plain_clean(const char *text, size_t length) {
  g_autofree char *copy = g_strndup(text, MIN(length, (size_t)PATH_MAX));
  char *valid = g_utf8_make_valid(copy, -1);
  for (char *at = valid; *at; at++) {
    if ((unsigned char)*at < ' ' || *at == 0x7f) {
      *at = '?';
    }
  }
  return valid;
}

int32_t plain_fail_outside(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                           struct sandhost_path path) {
  g_autofree char *text = plain_clean(path.data, path.length);
  return fail_call(sandbox->host, call, SANDHOST_INVALID,
                   "Path %s is outside the sandbox working directory", text);
}

int32_t plain_check_absolute(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                             const char *what, struct sandhost_path path) {
  if (path.length == 0 || path.length >= PATH_MAX || memchr(path.data, 0, path.length) ||
      path.data[0] != '/') {
    return fail_call(sandbox->host, call, SANDHOST_INVALID, "the %s is no absolute path", what);
  }
  return SANDHOST_OK;
}

gboolean plain_path_is_clean(const char *path) {
  for (const char *at = path;;) {
    size_t part = strcspn(at, "/");
    if (part == 0 || (part == 1 && at[0] == '.') || (part == 2 && at[0] == '.' && at[1] == '.')) {
      return FALSE;
    }
    if (!at[part]) {
      return TRUE;
    }
    at += part + 1;
  }
}

/* Appends the components of text to path, taking . and .. away. FALSE: .. leads out. */
static gboolean append_components(GString *path, const char *text) {
  for (const char *at = text; *at;) {
    size_t part = strcspn(at, "/");
    if (part == 2 && at[0] == '.' && at[1] == '.') {
      if (path->len == 0) {
        return FALSE;
      }
      const char *slash = strrchr(path->str, '/');
      g_string_truncate(path, slash ? (gsize)(slash - path->str) : 0);
    } else if (part > 0 && !(part == 1 && at[0] == '.')) {
      if (path->len > 0) {
        g_string_append_c(path, '/');
      }
      g_string_append_len(path, at, (gssize)part);
    }
    at += part + (at[part] == '/');
  }
  return TRUE;
}

char *plain_path_below(const char *root, struct sandhost_path path) {
  size_t length = strlen(root);
  while (length > 0 && root[length - 1] == '/') {
    length--;
  }
  if (path.length < length || memcmp(path.data, root, length) != 0 ||
      (path.length > length && path.data[length] != '/')) {
    return NULL;
  }
  g_autofree char *rest = g_strndup(path.data + length, path.length - length);
  GString *below = g_string_new(NULL);
  gboolean inside = append_components(below, rest);
  return g_string_free(below, !inside);
}

/* ---- Links ------------------------------------------------------------------------------------ */

/* What is at a path: only the first header of its tar is wanted. */
struct look {
  gboolean seen;
  enum tar_kind kind;
  char *link; /* owned */
};

static int32_t look_member(void *user, const struct tar_member *member) {
  struct look *look = user;
  look->seen = TRUE;
  look->kind = member->kind;
  look->link = member->kind == TAR_LINK ? g_strdup(member->link) : NULL;
  return SANDHOST_CANCELLED;
}

static int32_t look_content(void *user, const void *data, size_t length) {
  (void)user;
  (void)data;
  (void)length;
  return SANDHOST_CANCELLED;
}

static int32_t look_end(void *user) {
  (void)user;
  return SANDHOST_CANCELLED;
}

/* *ret_link: owned where the path is a link, else NULL, also where nothing is there. */
static int32_t read_link(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                         const char *path, gboolean *ret_tangled, char **ret_link) {
  static const struct tar_events EVENTS = {
      .member = look_member, .content = look_content, .member_end = look_end};
  struct look look = {0};
  enum archive_end end = ARCHIVE_MISSING;
  int32_t status = plain_archive_get(sandbox, call, path, &EVENTS, &look, &end);
  *ret_tangled = end == ARCHIVE_TANGLED;
  *ret_link = look.link;
  return status;
}

/* Where a link in the folder known leads to, below root, with rest behind it. NULL: out. */
static char *follow(const char *root, const char *folder, const char *link, const char *rest) {
  GString *path = g_string_new(NULL);
  gboolean inside = FALSE;
  if (link[0] == '/') {
    g_autofree char *below =
        plain_path_below(root, (struct sandhost_path){.data = link, .length = strlen(link)});
    inside = below != NULL;
    g_string_append(path, below ? below : "");
  } else {
    g_string_append(path, folder);
    inside = append_components(path, link);
  }
  inside = inside && append_components(path, rest);
  return g_string_free(path, !inside);
}

int32_t plain_resolve(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                      const char *root, const char *below, const struct sandhost_path *asked,
                      char **ret_path) {
  g_autofree char *path = g_strdup(below);
  size_t known = 0; /* so much of path is no link */
  for (int links = 0; path[known];) {
    size_t start = known + (path[known] == '/');
    size_t length = strcspn(path + start, "/");
    g_autofree char *folder = g_strndup(path, known);
    g_autofree char *here = g_strndup(path, start + length);
    g_autofree char *full = g_strdup_printf("%s/%s", g_str_equal(root, "/") ? "" : root, here);
    g_autofree char *link = NULL;
    gboolean tangled = FALSE;
    int32_t status = read_link(sandbox, call, full, &tangled, &link);
    if (status != SANDHOST_OK) {
      return status;
    }
    if (!link && !tangled) {
      known = start + length;
      continue;
    }
    char *next =
        tangled || ++links > MOST_LINKS ? NULL : follow(root, folder, link, path + start + length);
    if (!next) {
      *ret_path = NULL;
      return asked ? plain_fail_outside(sandbox, call, *asked) : SANDHOST_OK;
    }
    g_free(path);
    path = next;
    known = 0;
  }
  *ret_path = g_steal_pointer(&path);
  return SANDHOST_OK;
}
