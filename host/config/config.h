/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h: the configuration, as JSON in the shape of the source documents (behaviour 1).
 *
 * A file holds {"agent_config": {...}, "register_sandbox_provider": {"NAME": "FILE.so", ...}}, or the
 * content of agent_config directly, where register_sandbox_provider may stand beside the settings.
 * model_config, name and session_id are accepted beside agent_config. Whatever is wrong is told with the full path
 * of the key; nothing is started.
 */
#ifndef SANDHOST_CONFIG_CONFIG_H
#define SANDHOST_CONFIG_CONFIG_H

#include "config/manifest.h"
#include "config/privacy-config.h"

/* Bytes of the name of an agent, or of a session. */
#define CONFIG_MAX_NAME 256u

typedef struct {
  /* agent_config */
  gint64 tool_call_timeout; /* seconds, 2 to 1000, default 180 */
  gboolean enable_workspace_files;
  char *workspace_dir;      /* default ./workspace */
  char *files_dir;          /* workspace_config.files_dir, else <workspace_dir>/files */
  char *agent_name;         /* top-level "name"; default "sandhost" */
  char *session_id;         /* top-level "session_id": what several runs belong to; NULL: none */
  JsonObject *agent_config; /* the whole object as given (for keys that other rooms read); owned */

  /* governance_config */
  gboolean governed; /* enabled is not false */
  gboolean enabled_was_given;
  char *profile; /* the effective built-in profile; NULL when a policy is given, or not governed */
  JsonObject *policy;      /* policy as given; NULL */
  char *policy_path;       /* NULL */
  char *project_root;      /* absolute */
  gboolean approval_fails; /* approval_mode is "fail" */
  char **approver_check; /* program and arguments, asked before a decision is stored; NULL: none */
  gboolean allow_test_runtime;
  JsonObject *budgets;          /* as given, an object (governance/budgets.h checks it); NULL */
  char *provider;               /* sandbox_config's provider; NULL: no sandbox configured */
  JsonObject *provider_options; /* object; NULL: none */
  gboolean manifest_was_given;
  Manifest *manifest; /* never NULL */

  /* governance_config.workspace_bridge; the three limits are keys of ours beside include and exclude */
  char **include; /* never NULL; empty: everything */
  char **exclude;
  guint64 max_files;      /* "max_files", default 500 */
  guint64 max_file_bytes; /* "max_file_bytes", default 2,000,000 */
  guint64 max_copy_bytes; /* "max_copy_bytes", default 20,000,000 */

  /* register_sandbox_provider: name -> file, owned strings; never NULL */
  GHashTable *registered;
  char *file; /* where it was read, absolute; NULL: in no file */
  /* telemetry_config.storage_path; NULL: the default place */
  char *record_path;
  /* telemetry_config.keep_output_bytes: of each stream of a command, default 16 MiB; 0: none */
  guint64 keep_output_bytes;
  /* telemetry_config.retention_days and retention_max_bytes, for record prune; 0: not given */
  gint64 retention_days;
  gint64 retention_max_bytes;
  /* privacy_config, and what of telemetry_config says what is recorded */
  PrivacyConfig privacy;
  CaptureConfig capture;
  gboolean record_in_memory; /* telemetry_config.storage is "memory" */
  /* What stands below keys that name credentials, anywhere in the file; never NULL */
  char **credentials;
} Config;

/* Defaults of a program started without a file: governed, no policy given, no provider. Never fails. */
Config *config_new_default(void);

/* object is borrowed. provider_names (sorted, NULL terminated) are the registered ones; they go into the
 * refusal; names that the configuration itself registers count as well. */
Config *config_new(JsonObject *object, const char *const *provider_names, GError **error);
Config *config_load(const char *path, const char *const *provider_names, GError **error);
void config_free(Config *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Config, config_free)

/* Whether an agent or a session may be called so, whoever says it: UTF-8, not blank, CONFIG_MAX_NAME bytes at most. */
gboolean config_name_is_good(const char *name);

#endif
