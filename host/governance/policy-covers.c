/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy-covers.c: whether a rule is no wider than another one, part by part. What cannot be told from
 * the texts alone counts as wider.
 */
#include <string.h>

#include "governance/policy-private.h"

/* Whether every text that narrow matches, wide matches. A wide one is a literal, or one star behind a literal:
 * of other globs only the same text is known to be no wider. */
static gboolean pattern_covers(const Pattern *wide, const Pattern *narrow) {
  if (wide->kind == PATTERN_NONE) {
    return TRUE;
  }
  if (narrow->kind == PATTERN_NONE) {
    return FALSE;
  }
  if (strcmp(wide->glob, narrow->glob) == 0) {
    return TRUE;
  }
  gsize before = strcspn(wide->glob, "*?[");
  return strcmp(wide->glob + before, "*") == 0 && strncmp(wide->glob, narrow->glob, before) == 0;
}

static gboolean text_covers(const char *wide, const char *narrow) {
  return !wide || g_strcmp0(wide, narrow) == 0;
}

/* Whether all of the first are among the second. */
static gboolean is_within(char **first, char **second) {
  for (; first && *first; first++) {
    if (!second || !g_strv_contains((const char *const *)second, *first)) {
      return FALSE;
    }
  }
  return TRUE;
}

const char *policy_rule_wider_in(const PolicyRule *wide, const PolicyRule *narrow) {
  gboolean risks = !wide->risks || (narrow->risks && !(narrow->risks & ~wide->risks));
  /* Of an ask's classes one is enough to match. */
  gboolean classes =
      !wide->data_classes || (narrow->effect == EFFECT_ALLOW && narrow->data_classes &&
                              is_within(narrow->data_classes, wide->data_classes));
  const struct {
    const char *part;
    gboolean covered;
  } PARTS[] = {
      {"capability", pattern_covers(&wide->capability, &narrow->capability)},
      {"target.path", pattern_covers(&wide->path, &narrow->path)},
      {"target.host", pattern_covers(&wide->target_host, &narrow->target_host)},
      {"target.resource", pattern_covers(&wide->resource, &narrow->resource)},
      {"target.tool_name", pattern_covers(&wide->tool_name, &narrow->tool_name)},
      {"target.mcp_server", pattern_covers(&wide->target_mcp_server, &narrow->target_mcp_server)},
      {"conditions.risk_level", risks},
      {"conditions.data_classes", classes},
      {"conditions.provider", text_covers(wide->provider, narrow->provider)},
      {"conditions.execution_surface",
       text_covers(wide->execution_surface, narrow->execution_surface)},
      {"conditions.mcp_server", text_covers(wide->mcp_server, narrow->mcp_server)},
      {"conditions.method", text_covers(wide->method, narrow->method)},
      {"conditions.host", pattern_covers(&wide->host, &narrow->host)},
      {"conditions.exclude_execution_surface",
       is_within(wide->exclude_surfaces, narrow->exclude_surfaces)},
      {"conditions.exclude_capability",
       is_within(wide->exclude_capabilities, narrow->exclude_capabilities)},
      {"command", !wide->command},
      {"constraints.sandbox_required", !wide->sandbox_required || narrow->sandbox_required},
      {"constraints.strict_telemetry", !wide->strict_telemetry || narrow->strict_telemetry},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(PARTS); i++) {
    if (!PARTS[i].covered) {
      return PARTS[i].part;
    }
  }
  return NULL;
}

gboolean policy_rule_covers(const PolicyRule *wide, const PolicyRule *narrow) {
  return policy_rule_wider_in(wide, narrow) == NULL;
}
