/* SPDX-License-Identifier: Apache-2.0 */
/* policy-file.c: a policy from a file that the agent cannot have written (behaviour 4.12). The file
 * is opened first and the place of what was opened is judged, so that a link changed meanwhile
 * gains nothing. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "governance/policy-private.h"
#include "governance/trusted-place.h"

typedef struct {
  const char *path; /* as given, for messages; borrowed */
  int fd;           /* -1: not open */
  char *lexical;    /* the path made absolute, links kept */
  char *real;       /* where the open file is, links resolved */
} PolicyFile;

static void policy_file_clear(PolicyFile *file) {
  if (file->fd >= 0) {
    close(file->fd);
  }
  g_free(file->lexical);
  g_free(file->real);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PolicyFile, policy_file_clear)

/* Sets "{text}: {path}" and, in brackets, why (NULL: nothing more to say). Returns FALSE. */
static gboolean refuse(GError **error, const char *text, const char *path, const char *why) {
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "%s: %s%s%s%s", text, path,
              why ? " (" : "", why ? why : "", why ? ")" : "");
  return FALSE;
}

/* The place of the file and, where links lead to it, the place of the first: who may change the
 * link chooses the policy. */
static gboolean check_place(const PolicyFile *file, const char *project_root,
                            const char *const *agent_dirs, GError **error) {
  g_autofree char *root = place_resolve(project_root);
  if (!place_is_below(file->real, root)) {
    return refuse(error, "Policy file escapes trusted project root", file->path, NULL);
  }
  return !place_is_agents(file->real, file->lexical, project_root, agent_dirs) ||
         refuse(error, "Policy file is inside an agent-writable directory", file->path, NULL);
}

static gboolean check_name(const char *path, GError **error) {
  g_autofree char *name = g_path_get_basename(path);
  const char *dot = strrchr(name, '.');
  if (g_strcmp0(dot, ".yaml") == 0 || g_strcmp0(dot, ".yml") == 0) {
    g_set_error_literal(
        error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
        "YAML policies are not supported. Use a JSON policy file or a policy in code.");
    return FALSE;
  }
  return g_strcmp0(dot, ".json") == 0 ||
         refuse(error, "Unsupported policy file extension", dot ? dot : "none", NULL);
}

static gboolean refuse_link(GError **error, const char *path) {
  return refuse(error, "Auto-discovered policy file must not be a symlink", path, NULL);
}

static gboolean open_file(PolicyFile *file, gboolean discovered, GError **error) {
  /* Does not wait for a writer where a pipe lies; what is no regular file is refused later. */
  file->fd = open(file->path,
                  O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (discovered ? O_NOFOLLOW : 0));
  if (file->fd < 0 && discovered && errno == ELOOP) {
    return refuse_link(error, file->path);
  }
  if (file->fd < 0) {
    gboolean missing = errno == ENOENT || errno == ENOTDIR;
    return refuse(error, missing ? "Policy file not found" : "Could not read policy file",
                  file->path, missing ? NULL : g_strerror(errno));
  }
  file->lexical = g_canonicalize_filename(file->path, NULL);
  file->real = place_of(file->fd);
  return file->real ||
         refuse(error, "Could not read policy file", file->path, "its place is unknown");
}

/* Below the root, no part of its path is a link. */
static gboolean check_no_link(const PolicyFile *file, const char *project_root, GError **error) {
  g_autofree char *lexical_root = g_canonicalize_filename(project_root, NULL);
  g_autofree char *root = place_resolve(project_root);
  const char *name = file->lexical + (strlen(lexical_root) == 1 ? 0 : strlen(lexical_root));
  g_autofree char *plain = g_strconcat(strlen(root) == 1 ? "" : root, name, NULL);
  return strcmp(plain, file->real) == 0 || refuse_link(error, file->path);
}

/* The whole content; owned, or NULL. */
static char *read_content(const PolicyFile *file, gsize *ret_length, GError **error) {
  static const char TEXT[] = "Could not read policy file";
  struct stat facts;
  if (fstat(file->fd, &facts) < 0 || !S_ISREG(facts.st_mode)) {
    refuse(error, TEXT, file->path, "it is not a regular file");
    return NULL;
  }
  if (facts.st_size > JSON_MAX_BYTES) {
    refuse(error, TEXT, file->path, "it is too long");
    return NULL;
  }
  gsize size = (gsize)facts.st_size;
  g_autofree char *content = g_malloc(size + 1);
  gsize length = 0;
  while (length < size) {
    ssize_t got = read(file->fd, content + length, size - length);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      refuse(error, TEXT, file->path, g_strerror(errno));
      return NULL;
    }
    if (got == 0) {
      break;
    }
    length += (gsize)got;
  }
  content[length] = '\0';
  *ret_length = length;
  return g_steal_pointer(&content);
}

static JsonObject *parse(const char *path, const char *content, gsize length, GError **error) {
  g_autoptr(GError) failure = NULL;
  g_autoptr(JsonObject) source = json_parse("it", content, length, &failure);
  if (failure) {
    refuse(error, "Invalid JSON policy file", path, failure->message);
    return NULL;
  }
  if (!json_object_is_type(source, json_type_object)) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, POLICY_NO_OBJECT);
    return NULL;
  }
  return g_steal_pointer(&source);
}

JsonObject *policy_file_read(const char *path, const char *project_root,
                             const char *const *agent_dirs, gboolean discovered, char **ret_place,
                             GError **error) {
  g_auto(PolicyFile) file = {.path = path, .fd = -1};
  gsize length = 0;
  if (!open_file(&file, discovered, error) ||
      (discovered && !check_no_link(&file, project_root, error)) ||
      !check_place(&file, project_root, agent_dirs, error) || !check_name(path, error)) {
    return NULL;
  }
  g_autofree char *content = read_content(&file, &length, error);
  JsonObject *source = content ? parse(path, content, length, error) : NULL;
  if (source) {
    *ret_place = g_steal_pointer(&file.real);
  }
  return source;
}

void policy_file_refuse(const char *path, const GError *failure, GError **error) {
  refuse(error, "Invalid policy file", path, failure->message);
}

Policy *policy_load(const char *path, const char *project_root, const char *const *agent_dirs,
                    GError **error) {
  return policy_load_trying(path, project_root, agent_dirs, NULL, error);
}

Policy *policy_load_trying(const char *path, const char *project_root,
                           const char *const *agent_dirs, GPtrArray *examples, GError **error) {
  g_autoptr(GError) failure = NULL;
  g_autofree char *place = NULL;
  g_autoptr(JsonObject) source =
      policy_file_read(path, project_root, agent_dirs, FALSE, &place, error);
  Policy *policy = source ? policy_new_trying(source, examples, &failure) : NULL;
  if (policy) {
    policy->file = g_steal_pointer(&place);
  } else if (source) {
    policy_file_refuse(path, failure, error);
  }
  return policy;
}

const char *policy_file(const Policy *policy) {
  return policy->file;
}

gboolean policy_file_is_below(const Policy *policy, const char *folder) {
  g_autofree char *real = place_resolve(folder);
  return policy->file && (place_is_below(policy->file, real) || strcmp(policy->file, real) == 0);
}
