/* SPDX-License-Identifier: Apache-2.0 */
/* image-name.c: the grammar of image references, read from left to right. */
#include "image-name.h"

#include <string.h>

#define MAX_REPOSITORY 255u
#define MAX_TAG 128u
#define MAX_REFERENCE 1024u
#define HEX_DIGITS 64u

void image_name_clear(struct image_name *name) {
  g_free(name->registry);
  g_free(name->repository);
  g_free(name->tag);
  g_free(name->digest);
  memset(name, 0, sizeof *name);
}

static gboolean is_lower_or_digit(char c) {
  return g_ascii_islower(c) || g_ascii_isdigit(c);
}

static gboolean is_engine_id(const char *text) {
  return strlen(text) == HEX_DIGITS && strspn(text, "0123456789abcdef") == HEX_DIGITS;
}

gboolean image_is_id(const char *text) {
  return g_str_has_prefix(text, "sha256:") && is_engine_id(text + strlen("sha256:"));
}

/* "a", "a.b", "a_b", "a__b", "a--b": runs of letters and digits with one separator between each
 * two. */
static gboolean is_component(const char *text, size_t length) {
  size_t i = 0;
  for (;;) {
    size_t begin = i;
    while (i < length && is_lower_or_digit(text[i])) {
      i++;
    }
    if (i == begin) {
      return FALSE;
    }
    if (i == length) {
      return TRUE;
    }
    if (text[i] == '-') {
      while (i < length && text[i] == '-') {
        i++;
      }
    } else if (text[i] == '_') {
      i += i + 1 < length && text[i + 1] == '_' ? 2 : 1;
    } else if (text[i] == '.') {
      i++;
    } else {
      return FALSE;
    }
  }
}

/* "localhost", "example.org", "10.0.0.1:5000", "[::1]:5000" */
static gboolean is_registry(const char *text) {
  const char *port = NULL;
  if (text[0] == '[') {
    const char *end = strchr(text, ']');
    size_t inside = end ? (size_t)(end - text - 1) : 0;
    if (inside == 0 || strspn(text + 1, "0123456789abcdefABCDEF:") != inside) {
      return FALSE;
    }
    port = end + 1;
  } else {
    size_t host = 0;
    while (g_ascii_isalnum(text[host]) || text[host] == '-' || text[host] == '.') {
      host++;
    }
    if (host == 0 || text[0] == '.' || text[0] == '-') {
      return FALSE;
    }
    port = text + host;
  }
  if (port[0] == '\0') {
    return TRUE;
  }
  size_t digits = port[0] == ':' ? strspn(port + 1, "0123456789") : 0;
  return digits > 0 && digits <= 5 && port[1 + digits] == '\0';
}

static gboolean is_tag(const char *text) {
  size_t length = strlen(text);
  if (length == 0 || length > MAX_TAG || text[0] == '.' || text[0] == '-') {
    return FALSE;
  }
  for (size_t i = 0; i < length; i++) {
    if (!g_ascii_isalnum(text[i]) && !strchr("_.-", text[i])) {
      return FALSE;
    }
  }
  return TRUE;
}

/* "sha256:0123...", "sha512:..." */
static gboolean is_digest(const char *text) {
  const char *colon = strchr(text, ':');
  if (!colon || colon == text) {
    return FALSE;
  }
  for (const char *at = text; at < colon; at++) {
    if (!g_ascii_isalnum(*at) && !strchr("+._-", *at)) {
      return FALSE;
    }
  }
  size_t digits = strlen(colon + 1);
  return digits >= 32 && digits <= 128 && strspn(colon + 1, "0123456789abcdefABCDEF") == digits;
}

static gboolean is_path(const char *text) {
  for (;;) {
    size_t length = strcspn(text, "/");
    if (!is_component(text, length)) {
      return FALSE;
    }
    if (text[length] == '\0') {
      return TRUE;
    }
    text += length + 1;
  }
}

/* Sets registry where the part before the first '/' is one. Returns the path behind it. */
static const char *split_registry(const char *repository, char **ret_registry) {
  const char *slash = strchr(repository, '/');
  if (!slash) {
    return repository;
  }
  g_autofree char *first = g_strndup(repository, (size_t)(slash - repository));
  if (!strpbrk(first, ".:[") && strcmp(first, "localhost") != 0) {
    return repository;
  }
  *ret_registry = g_steal_pointer(&first);
  return slash + 1;
}

static gboolean read_reference(const char *text, struct image_name *name) {
  g_autofree char *rest = g_strdup(text);
  char *at = strchr(rest, '@');
  if (at) {
    *at = '\0';
    if (!is_digest(at + 1)) {
      return FALSE;
    }
    name->digest = g_strdup(at + 1);
  }
  /* A colon behind the last slash begins a tag; one before it, a port. */
  char *slash = strrchr(rest, '/');
  char *colon = strchr(slash ? slash : rest, ':');
  if (colon) {
    *colon = '\0';
    if (!is_tag(colon + 1)) {
      return FALSE;
    }
    name->tag = g_strdup(colon + 1);
  } else if (!name->digest) {
    name->tag = g_strdup("latest");
  }
  if (strlen(rest) > MAX_REPOSITORY) {
    return FALSE;
  }
  const char *path = split_registry(rest, &name->registry);
  if (!is_path(path) || (name->registry && !is_registry(name->registry))) {
    return FALSE;
  }
  name->repository = g_strdup(rest);
  if (name->registry && (g_ascii_strcasecmp(name->registry, "docker.io") == 0 ||
                         g_ascii_strcasecmp(name->registry, "index.docker.io") == 0)) {
    g_clear_pointer(&name->registry, g_free);
  }
  return TRUE;
}

gboolean image_name_read(const char *text, struct image_name *ret_name) {
  struct image_name name = {0};
  if (image_is_id(text) || is_engine_id(text)) {
    name.is_id = TRUE;
  } else if (strlen(text) > MAX_REFERENCE || !read_reference(text, &name)) {
    image_name_clear(&name);
    return FALSE;
  }
  *ret_name = name;
  return TRUE;
}

const char *image_name_registry(const struct image_name *name) {
  return name->registry ? name->registry : "docker.io";
}
