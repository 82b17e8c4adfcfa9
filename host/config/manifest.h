/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h: what the sandbox is to be (behaviour 2). Checked text in, plain values out. */
#ifndef SANDHOST_CONFIG_MANIFEST_H
#define SANDHOST_CONFIG_MANIFEST_H

#include "base/json.h"

typedef struct {
  char *source; /* as written, normalised */
  char *target;
  gboolean writable;
} ManifestMount;

typedef struct {
  char *image;          /* NULL: the provider's own */
  char *working_dir;    /* normalised absolute path; default /workspace */
  gboolean network;     /* network_policy.default is "allow" */
  char **allowed_hosts; /* lower-case; never NULL */
  char **denied_hosts;
  char **environment_names;  /* environment.plain, sorted by name; never NULL */
  char **environment_values; /* the value of the name at the same place */
  char **secret_refs;
  char *cpu; /* as written; NULL: not asked */
  guint64 cpu_millis;
  char *memory; /* as written; NULL: not asked */
  guint64 memory_bytes;
  gboolean gpu;
  gint64 lifetime_seconds; /* 0: not asked */
  ManifestMount *mount;    /* NULL: none */
  char *cleanup;           /* "always", "on_success", "never" */
  gboolean snapshot;
} Manifest;

/* object may be NULL: the default manifest. The error's text begins with the full path of the key where
 * behaviour 2.2 gives no text of its own. */
Manifest *manifest_new(JsonObject *object, GError **error);
void manifest_free(Manifest *manifest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Manifest, manifest_free)

/* "64m", "1.5g", "1073741824" -> bytes. FALSE when it is not a positive size. */
gboolean manifest_parse_size(const char *text, guint64 *ret_bytes);
/* "2", "0.5" -> thousandths. FALSE when it is not a positive decimal. */
gboolean manifest_parse_cpu(const char *text, guint64 *ret_millis);

#endif
