/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy-discover.c: a policy file that nobody named, found in the project root (behaviour 4.12). A project may
 * come from anywhere, so what it brings can only take away from the profile that is in force without it.
 */
#include <errno.h>
#include <sys/stat.h>

#include "base/error.h"
#include "governance/policy-private.h"

const char *const POLICY_DISCOVERED_NAMES[] = {"omnicoreagent.policy.json",
                                               ".omnicoreagent/policy.json", NULL};

/* The first one that is there, or that nobody can tell is not: a link that leads nowhere, a folder that cannot be looked
 * into. NULL: none. Owned. */
static char *find_file(const char *project_root) {
  for (const char *const *name = POLICY_DISCOVERED_NAMES; *name; name++) {
    struct stat facts;
    char *path = g_build_filename(project_root, *name, NULL);
    if (lstat(path, &facts) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
      return path;
    }
    g_free(path);
  }
  return NULL;
}

static gboolean is_covered(const GPtrArray *wide, const PolicyRule *rule) {
  for (guint i = 0; i < wide->len; i++) {
    if (policy_rule_covers(g_ptr_array_index(wide, i), rule)) {
      return TRUE;
    }
  }
  return FALSE;
}

/* Where the rule goes beyond those that allow the same capability, for who has to mend it. Owned. */
static char *why_wider(const GPtrArray *wide, const PolicyRule *rule) {
  for (guint i = 0; i < wide->len; i++) {
    const PolicyRule *other = g_ptr_array_index(wide, i);
    const char *part = policy_rule_wider_in(other, rule);
    if (part && strcmp(part, "capability") != 0) {
      return g_strdup_printf("its %s is wider than that of %s", part, other->rule_id);
    }
  }
  return g_strdup_printf("no rule of the profile allows all of %s", rule->capability.glob);
}

static gboolean refuse_rule(GError **error, const Policy *profile, const GPtrArray *wide,
                            const PolicyRule *rule) {
  g_autofree char *why = why_wider(wide, rule);
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
              "Auto-discovered policy %s rule broadens the default baseline: %s (%s; sandhost "
              "policy show --profile %s prints its rules)",
              effect_name(rule->effect), rule->rule_id, why, policy_profile(profile));
  return FALSE;
}

static gboolean check_allowed(const Policy *profile, const Policy *found, GError **error) {
  const GPtrArray *rules = found->rules[EFFECT_ALLOW];
  for (guint i = 0; i < rules->len; i++) {
    const PolicyRule *rule = g_ptr_array_index(rules, i);
    if (!is_covered(profile->rules[EFFECT_ALLOW], rule)) {
      return refuse_rule(error, profile, profile->rules[EFFECT_ALLOW], rule);
    }
  }
  return TRUE;
}

/* Where everything is denied that no rule names, to ask about it is more. The profile's own rules come first in found. */
static gboolean check_asked(const Policy *profile, const Policy *found, GError **error) {
  const GPtrArray *own = profile->rules[EFFECT_ASK];
  const GPtrArray *rules = found->rules[EFFECT_ASK];
  for (guint i = own->len; profile->mode == MODE_STRICT && i < rules->len; i++) {
    const PolicyRule *rule = g_ptr_array_index(rules, i);
    if (!is_covered(own, rule) && !is_covered(profile->rules[EFFECT_ALLOW], rule)) {
      return refuse_rule(error, profile, profile->rules[EFFECT_ALLOW], rule);
    }
  }
  return TRUE;
}

/* Both lists, one behind the other. Owned. */
static JsonObject *join(JsonObject *first, JsonObject *second) {
  JsonObject *joined = json_object_new_array();
  JsonObject *const LISTS[] = {first, second};
  for (gsize i = 0; i < G_N_ELEMENTS(LISTS); i++) {
    for (gsize at = 0; LISTS[i] && at < json_object_array_length(LISTS[i]); at++) {
      json_object_array_add(joined, policy_copy_json(json_object_array_get_idx(LISTS[i], at)));
    }
  }
  return joined;
}

/* Both were read, so every part is of its type. Owned. */
static JsonObject *merge(const Policy *profile, const Policy *found) {
  JsonObject *merged = policy_copy_json(found->source);
  JsonObject *theirs = json_get(profile->source, "rules");
  JsonObject *ours = json_get(found->source, "rules");
  JsonObject *allow = json_get(ours, "allow");
  const Policy *stricter = found->mode > profile->mode ? found : profile;
  JsonObject *rules = json_object_new_object();
  json_add_take(rules, "deny", join(json_get(theirs, "deny"), json_get(ours, "deny")));
  json_add_take(rules, "ask", join(json_get(theirs, "ask"), json_get(ours, "ask")));
  json_add_take(rules, "allow", join(allow ? allow : json_get(theirs, "allow"), NULL));
  json_add_text(merged, "mode", json_get_text(stricter->source, "mode"));
  json_add_take(merged, "rules", rules);
  return merged;
}

static Policy *narrow(const Policy *profile, JsonObject *source, GPtrArray *examples,
                      GError **error) {
  g_autoptr(GPtrArray) again =
      g_ptr_array_new_with_free_func((GDestroyNotify)command_example_free); /* tried once */
  g_autoptr(Policy) found = policy_new_trying(source, examples, error);
  if (!found) {
    return NULL;
  }
  g_autoptr(JsonObject) merged = merge(profile, found);
  return policy_new_trying(merged, again, error);
}

Policy *policy_discover(const char *profile_name, const char *project_root,
                        const char *const *agent_dirs, GPtrArray *examples, GError **error) {
  g_autoptr(GError) failure = NULL;
  g_autofree char *place = NULL;
  g_autofree char *path = find_file(project_root);
  g_autoptr(Policy) profile = policy_new_profile(profile_name);
  if (!path || !profile) {
    return g_steal_pointer(&profile);
  }
  g_autoptr(JsonObject) source =
      policy_file_read(path, project_root, agent_dirs, TRUE, &place, error);
  if (!source) {
    return NULL;
  }
  g_autoptr(Policy) policy = narrow(profile, source, examples, &failure);
  if (!policy) {
    policy_file_refuse(path, failure, error);
    return NULL;
  }
  /* Either list is the profile's own, or the file's. */
  gboolean replaces = json_get(json_get(source, "rules"), "allow") != NULL;
  if ((replaces && !check_allowed(profile, policy, error)) ||
      !check_asked(profile, policy, error)) {
    return NULL;
  }
  policy->file = g_steal_pointer(&place);
  return g_steal_pointer(&policy);
}
