/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c: what the runtime asks about, and with which target and risk. */
#include "governance/requests.h"

#include "governance/command-tell.h"

static PolicyRequest *sandbox_request(const char *capability, Risk risk) {
  PolicyRequest *request = policy_request_new(capability, risk);
  request->provider = g_strdup("sandbox");
  request->execution_surface = g_strdup("sandbox");
  return request;
}

PolicyRequest *request_execute(void) {
  PolicyRequest *request = sandbox_request("sandbox.execute", RISK_LOW);
  request->has_target = TRUE;
  request->target_tool_name = g_strdup("execute");
  return request;
}

char *request_script(const char *command) {
  return g_strconcat(*command == '-' || *command == '+' ? " " : "", command, NULL);
}

PolicyRequest *request_command(const char *const *argv, gboolean isolated) {
  PolicyRequest *request = policy_request_new("process.exec", RISK_HIGH);
  request->provider = g_strdup(isolated ? "sandbox" : "local");
  request->execution_surface = g_strdup(isolated ? "sandbox" : "host");
  request->has_target = TRUE;
  request->target_resource = g_strdup(argv[0]);

  request->command = command_read_argv(argv);
  request->metadata = json_object_new_object();
  json_add_take(request->metadata, "command", command_metadata(argv, request->command));
  return request;
}

static void add_host(GPtrArray *requests, const char *host, const char *mode, Risk risk) {
  PolicyRequest *request = sandbox_request("sandbox.network.configure", risk);
  request->has_target = TRUE;
  request->target_host = g_strdup(host);
  request->metadata = json_object_new_object();
  json_add_text(request->metadata, "mode", mode);
  g_ptr_array_add(requests, request);
}

static void add_network(GPtrArray *requests, const Manifest *manifest) {
  if (manifest->network) {
    add_host(requests, "*", "allow", RISK_HIGH);
  }
  for (char **host = manifest->allowed_hosts; *host; host++) {
    add_host(requests, *host, "allow", RISK_MEDIUM);
  }
  for (char **host = manifest->denied_hosts; *host; host++) {
    add_host(requests, *host, "deny", RISK_MEDIUM);
  }
}

static void add_environment(GPtrArray *requests, const Manifest *manifest) {
  if (!manifest->environment_names[0]) {
    return;
  }
  PolicyRequest *request = sandbox_request("sandbox.environment.set", RISK_MEDIUM);
  request->metadata = json_object_new_object();
  json_add_take(request->metadata, "plain_keys",
                json_from_strv((const char *const *)manifest->environment_names));
  g_ptr_array_add(requests, request);
}

static void add_secrets(GPtrArray *requests, const Manifest *manifest) {
  for (char **reference = manifest->secret_refs; *reference; reference++) {
    PolicyRequest *request = sandbox_request("secret.use", RISK_MEDIUM);
    request->has_target = TRUE;
    request->target_resource = g_strdup(*reference);
    g_ptr_array_add(requests, request);
  }
}

static void add_resources(GPtrArray *requests, const Manifest *manifest) {
  if (!manifest->cpu && !manifest->memory && !manifest->gpu) {
    return;
  }
  PolicyRequest *request = sandbox_request("sandbox.resources.set", RISK_MEDIUM);
  request->metadata = json_object_new_object();
  json_add_text(request->metadata, "cpu", manifest->cpu);
  json_add_text(request->metadata, "memory", manifest->memory);
  json_add_bool(request->metadata, "gpu", manifest->gpu);
  g_ptr_array_add(requests, request);
}

static void add_mount(GPtrArray *requests, const Manifest *manifest) {
  if (!manifest->mount) {
    return;
  }
  PolicyRequest *request = sandbox_request("sandbox.filesystem.mount",
                                           manifest->mount->writable ? RISK_HIGH : RISK_MEDIUM);
  request->has_target = TRUE;
  request->target_path = g_strdup(manifest->mount->target);
  request->target_resource = g_strdup(manifest->mount->source);
  request->metadata = json_object_new_object();
  json_add_text(request->metadata, "mode", manifest->mount->writable ? "read_write" : "read_only");
  g_ptr_array_add(requests, request);
}

GPtrArray *request_manifest(const Manifest *manifest) {
  GPtrArray *requests = g_ptr_array_new_with_free_func((GDestroyNotify)policy_request_free);
  if (manifest->image) {
    PolicyRequest *request = sandbox_request("sandbox.image.use", RISK_MEDIUM);
    request->has_target = TRUE;
    request->target_resource = g_strdup(manifest->image);
    g_ptr_array_add(requests, request);
  }
  add_network(requests, manifest);
  add_environment(requests, manifest);
  add_secrets(requests, manifest);
  add_resources(requests, manifest);
  add_mount(requests, manifest);
  return requests;
}

PolicyRequest *request_sync(void) {
  PolicyRequest *request = sandbox_request("sandbox.workspace.sync", RISK_LOW);
  request->actor = "runtime";
  request->has_target = TRUE;
  request->target_resource = g_strdup("sandhost-guest");
  request->metadata = json_object_new_object();
  json_add_text(request->metadata, "purpose", "workspace_sync");
  return request;
}

PolicyRequest *request_file(gboolean write, const char *path) {
  PolicyRequest *request = policy_request_new(
      write ? "workspace.files.write" : "workspace.files.read", write ? RISK_MEDIUM : RISK_LOW);
  request->execution_surface = g_strdup("workspace");
  request->has_target = TRUE;
  request->target_path = g_strdup(path);
  return request;
}
