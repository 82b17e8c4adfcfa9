/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c: a sandbox_manifest read field by field. */
#include "config/manifest.h"

#include <string.h>

#include "config/check.h"
#include "config/strings.h"

#define WHERE "sandbox_manifest"
#define MAX_CPUS 1000000u
/* Of all variables, each with the pointer to it: a program gets 2 MiB of words and variables at most, and a command's own
 * words are among them. */
#define MAX_ENVIRONMENT_BYTES (1u << 20)
#define MAX_LIFETIME_SECONDS G_GINT64_CONSTANT(31622400) /* a year */

/* Digits behind the point that count: a billion of them still fits 64 bits as bytes of a
 * gigabyte. */
#define MAX_PLACES 9

/* A decimal number without sign and exponent. */
typedef struct {
  guint64 whole;
  guint64 part;  /* behind the point, in units of 1 / scale */
  guint64 scale; /* 1 when there is no point */
} Decimal;

/* Reads the start of text. FALSE when there is no number, or one of more than 64 bits. */
static gboolean parse_decimal(const char *text, const char **ret_end, Decimal *ret_decimal) {
  Decimal decimal = {.scale = 1};
  const char *at = text;
  for (; g_ascii_isdigit(*at); at++) {
    if (!g_uint64_checked_mul(&decimal.whole, decimal.whole, 10) ||
        !g_uint64_checked_add(&decimal.whole, decimal.whole, (guint64)g_ascii_digit_value(*at))) {
      return FALSE;
    }
  }
  if (at == text) {
    return FALSE;
  }
  if (*at == '.') {
    if (!g_ascii_isdigit(*++at)) {
      return FALSE;
    }
    for (int place = 0; g_ascii_isdigit(*at); at++, place++) {
      if (place < MAX_PLACES) {
        decimal.part = decimal.part * 10 + (guint64)g_ascii_digit_value(*at);
        decimal.scale *= 10;
      }
    }
  }
  *ret_end = at;
  *ret_decimal = decimal;
  return TRUE;
}

/* The power of two of a unit, 0 for none; steps over it. */
static guint read_unit(const char **at) {
  static const char UNITS[] = "kmg";
  const char *unit = **at ? strchr(UNITS, g_ascii_tolower(**at)) : NULL;
  if (!unit) {
    return 0;
  }
  (*at)++;
  return 10 * (guint)(unit - UNITS + 1);
}

gboolean manifest_parse_size(const char *text, guint64 *ret_bytes) {
  const char *at = NULL;
  Decimal decimal;
  if (!parse_decimal(text, &at, &decimal)) {
    return FALSE;
  }
  guint shift = read_unit(&at);
  if (g_ascii_tolower(*at) == 'b') {
    at++;
  }
  gboolean has_point = decimal.scale > 1;
  if (*at || (has_point && !shift) || decimal.whole > ((guint64)G_MAXINT64 >> shift) - 1) {
    return FALSE;
  }
  guint64 bytes = (decimal.whole << shift) + (decimal.part << shift) / decimal.scale;
  if (bytes == 0) {
    return FALSE;
  }
  *ret_bytes = bytes;
  return TRUE;
}

gboolean manifest_parse_cpu(const char *text, guint64 *ret_millis) {
  const char *at = NULL;
  Decimal decimal;
  if (!parse_decimal(text, &at, &decimal) || *at || decimal.whole > MAX_CPUS) {
    return FALSE;
  }
  guint64 millis = decimal.whole * 1000 + decimal.part * 1000 / decimal.scale;
  if (millis == 0) {
    return FALSE;
  }
  *ret_millis = millis;
  return TRUE;
}

void manifest_free(Manifest *manifest) {
  if (!manifest) {
    return;
  }
  if (manifest->mount) {
    g_free(manifest->mount->source);
    g_free(manifest->mount->target);
    g_free(manifest->mount);
  }
  g_free(manifest->image);
  g_free(manifest->working_dir);
  g_strfreev(manifest->allowed_hosts);
  g_strfreev(manifest->denied_hosts);
  g_strfreev(manifest->environment_names);
  g_strfreev(manifest->environment_values);
  g_strfreev(manifest->secret_refs);
  g_free(manifest->cpu);
  g_free(manifest->memory);
  g_free(manifest->cleanup);
  g_free(manifest);
}

static gboolean read_hosts(JsonObject *object, const char *key, char ***ret_hosts, GError **error) {
  if (!check_strv(object, WHERE ".network_policy", key, ret_hosts, error)) {
    return FALSE;
  }
  for (char **host = *ret_hosts; *host; host++) {
    char *normal = string_host(*host, error);
    if (!normal) {
      return FALSE;
    }
    g_free(*host);
    *host = normal;
  }
  return TRUE;
}

static gboolean read_network(Manifest *manifest, JsonObject *object, GError **error) {
  static const char *const KEYS[] = {"allowed_hosts", "default", "denied_hosts", NULL};
  static const char *const MODES[] = {"deny", "allow", NULL};
  g_autofree char *mode = NULL;
  if (!check_keys(object, WHERE ".network_policy", KEYS, error) ||
      !check_choice(object, WHERE ".network_policy", "default", MODES, &mode, error)) {
    return FALSE;
  }
  manifest->network = g_strcmp0(mode, "allow") == 0;
  return read_hosts(object, "allowed_hosts", &manifest->allowed_hosts, error) &&
         read_hosts(object, "denied_hosts", &manifest->denied_hosts, error);
}

static int compare_texts(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A value as the string that the command gets: numbers and booleans as they are written. */
static char *environment_value(const char *name, JsonObject *value, GError **error) {
  if (json_object_is_type(value, json_type_object) || json_object_is_type(value, json_type_array) ||
      !value) {
    check_refuse(error, WHERE ".environment.plain.%s must be a string", name);
    return NULL;
  }
  const char *text = json_object_get_string(value);
  return string_is_environment_value(name, text, error) ? g_strdup(text) : NULL;
}

static gboolean check_environment_size(const Manifest *manifest, GError **error) {
  gsize bytes = 0;
  for (gsize i = 0; manifest->environment_names[i]; i++) {
    bytes += strlen(manifest->environment_names[i]) + strlen(manifest->environment_values[i]) + 2 +
             sizeof(char *);
  }
  return bytes <= MAX_ENVIRONMENT_BYTES ||
         check_refuse(error,
                      WHERE ".environment.plain is too large: its variables may take %u bytes, got "
                            "%" G_GSIZE_FORMAT "; put long text into a file of the workspace",
                      MAX_ENVIRONMENT_BYTES, bytes);
}

static gboolean read_plain(Manifest *manifest, JsonObject *plain, GError **error) {
  g_autoptr(GPtrArray) names = g_ptr_array_new();
  json_object_object_foreach(plain, key, unused) {
    (void)unused;
    g_ptr_array_add(names, key);
  }
  g_ptr_array_sort(names, compare_texts);
  g_strfreev(manifest->environment_names);
  g_strfreev(manifest->environment_values);
  manifest->environment_names = g_new0(char *, names->len + 1);
  manifest->environment_values = g_new0(char *, names->len + 1);
  for (guint i = 0; i < names->len; i++) {
    const char *name = g_ptr_array_index(names, i);
    if (!string_is_environment_name(name, error)) {
      return FALSE;
    }
    manifest->environment_names[i] = g_strdup(name);
    manifest->environment_values[i] = environment_value(name, json_get(plain, name), error);
    if (!manifest->environment_values[i]) {
      return FALSE;
    }
  }
  return check_environment_size(manifest, error);
}

static gboolean read_environment(Manifest *manifest, JsonObject *object, GError **error) {
  static const char *const KEYS[] = {"plain", "secret_refs", NULL};
  JsonObject *plain = NULL;
  if (!check_keys(object, WHERE ".environment", KEYS, error) ||
      !check_object(object, WHERE ".environment", "plain", &plain, error) ||
      (plain && !read_plain(manifest, plain, error)) ||
      !check_strv(object, WHERE ".environment", "secret_refs", &manifest->secret_refs, error)) {
    return FALSE;
  }
  for (char **ref = manifest->secret_refs; *ref; ref++) {
    if (!string_is_secret_ref(*ref, error)) {
      return FALSE;
    }
  }
  return TRUE;
}

/* A quantity given as text or as a JSON number, kept as text. */
static gboolean read_quantity(JsonObject *object, const char *key,
                              gboolean (*parse)(const char *, guint64 *), const char *wanted,
                              char **ret_text, guint64 *ret_value, GError **error) {
  JsonObject *value = json_get(object, key);
  if (!value) {
    return TRUE;
  }
  json_type type = json_object_get_type(value);
  gboolean good = (type == json_type_string || type == json_type_int || type == json_type_double) &&
                  parse(json_object_get_string(value), ret_value);
  if (!good) {
    return check_refuse_type(WHERE ".resources", key, wanted, value, error);
  }
  *ret_text = g_strdup(json_object_get_string(value));
  return TRUE;
}

static gboolean read_resources(Manifest *manifest, JsonObject *object, GError **error) {
  static const char *const KEYS[] = {"cpu", "gpu", "memory", "timeout_seconds", NULL};
  return check_keys(object, WHERE ".resources", KEYS, error) &&
         read_quantity(object, "cpu", manifest_parse_cpu,
                       "a positive number of CPUs such as 2 or 0.5", &manifest->cpu,
                       &manifest->cpu_millis, error) &&
         read_quantity(object, "memory", manifest_parse_size, "a positive size such as 512m or 1g",
                       &manifest->memory, &manifest->memory_bytes, error) &&
         check_bool(object, WHERE ".resources", "gpu", &manifest->gpu, error) &&
         (!json_get(object, "timeout_seconds") ||
          check_int(object, WHERE ".resources", "timeout_seconds", 1, MAX_LIFETIME_SECONDS,
                    &manifest->lifetime_seconds, error));
}

static gboolean read_mount(Manifest *manifest, JsonObject *object, GError **error) {
  static const char *const KEYS[] = {"mode", "source", "target", NULL};
  static const char *const MODES[] = {"read_only", "read_write", NULL};
  g_autofree char *mode = NULL;
  g_autofree char *source = NULL;
  g_autofree char *target = NULL;
  if (!check_keys(object, WHERE ".workspace_mount", KEYS, error) ||
      !check_choice(object, WHERE ".workspace_mount", "mode", MODES, &mode, error) ||
      !check_text(object, WHERE ".workspace_mount", "source", &source, error) ||
      !check_text(object, WHERE ".workspace_mount", "target", &target, error)) {
    return FALSE;
  }
  manifest->mount = g_new0(ManifestMount, 1);
  manifest->mount->writable = g_strcmp0(mode, "read_write") == 0;
  manifest->mount->source = string_mount_source(source ? source : "", error);
  if (!manifest->mount->source) {
    return FALSE;
  }
  manifest->mount->target = string_path(target ? target : "", error);
  return manifest->mount->target &&
         string_is_place(manifest->mount->target, WHERE ".workspace_mount.target", error);
}

static gboolean read_lifecycle(Manifest *manifest, JsonObject *object, GError **error) {
  static const char *const KEYS[] = {"cleanup", "snapshot", NULL};
  static const char *const CLEANUPS[] = {"always", "on_success", "never", NULL};
  return check_keys(object, WHERE ".lifecycle", KEYS, error) &&
         check_choice(object, WHERE ".lifecycle", "cleanup", CLEANUPS, &manifest->cleanup, error) &&
         check_bool(object, WHERE ".lifecycle", "snapshot", &manifest->snapshot, error);
}

static gboolean read_section(Manifest *manifest, JsonObject *object, const char *key,
                             gboolean (*read)(Manifest *, JsonObject *, GError **),
                             GError **error) {
  JsonObject *section = NULL;
  return check_object(object, WHERE, key, &section, error) &&
         (!section || read(manifest, section, error));
}

static gboolean read_working_dir(Manifest *manifest, JsonObject *object, GError **error) {
  g_autofree char *text = NULL;
  if (!check_text(object, WHERE, "working_dir", &text, error)) {
    return FALSE;
  }
  if (!text) {
    return TRUE;
  }
  g_autofree char *path = string_path(text, error);
  if (!path || !string_is_place(path, WHERE ".working_dir", error)) {
    return FALSE;
  }
  g_free(manifest->working_dir);
  manifest->working_dir = g_steal_pointer(&path);
  return TRUE;
}

/* Keys that other releases or other places know: the text says where they belong. */
static gboolean refuse_misplaced(JsonObject *object, GError **error) {
  if (json_object_object_get_ex(object, "filesystem_policy", NULL)) {
    return check_refuse(
        error,
        WHERE ".filesystem_policy was removed: no provider applied it; use workspace_bridge to "
              "choose the files that go in and out");
  }
  if (json_object_object_get_ex(object, "provider", NULL)) {
    return check_refuse(error, WHERE ".provider is not a field of a manifest; set "
                                     "governance_config.sandbox_config.provider");
  }
  if (json_object_object_get_ex(object, "sandbox_id", NULL)) {
    return check_refuse(error, WHERE ".sandbox_id is not a field of a manifest; the provider of "
                                     "governance_config.sandbox_config names its sandboxes");
  }
  return TRUE;
}

static gboolean read_manifest(Manifest *manifest, JsonObject *object, GError **error) {
  static const char *const KEYS[] = {"environment",     "image",     "lifecycle",
                                     "network_policy",  "resources", "working_dir",
                                     "workspace_mount", NULL};
  if (!json_object_is_type(object, json_type_object)) {
    return check_refuse(error, WHERE " must be an object");
  }
  return refuse_misplaced(object, error) && check_keys(object, WHERE, KEYS, error) &&
         check_full_text(object, WHERE, "image", &manifest->image, error) &&
         read_working_dir(manifest, object, error) &&
         read_section(manifest, object, "network_policy", read_network, error) &&
         read_section(manifest, object, "environment", read_environment, error) &&
         read_section(manifest, object, "resources", read_resources, error) &&
         read_section(manifest, object, "workspace_mount", read_mount, error) &&
         read_section(manifest, object, "lifecycle", read_lifecycle, error);
}

Manifest *manifest_new(JsonObject *object, GError **error) {
  Manifest *manifest = g_new0(Manifest, 1);
  manifest->working_dir = g_strdup("/workspace");
  manifest->cleanup = g_strdup("always");
  manifest->allowed_hosts = g_new0(char *, 1);
  manifest->denied_hosts = g_new0(char *, 1);
  manifest->environment_names = g_new0(char *, 1);
  manifest->environment_values = g_new0(char *, 1);
  manifest->secret_refs = g_new0(char *, 1);
  if (object && !read_manifest(manifest, object, error)) {
    manifest_free(manifest);
    return NULL;
  }
  return manifest;
}
