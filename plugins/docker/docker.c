/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker.c: the provider. A sandbox is one hardened container with sandhost-guest as its first process; the container
 * as the engine is asked for it is in create-request.c, the making of one in create.c. Where the guest cannot run, the
 * engine's own calls serve (plain.c).
 */
#include "instance.h"

#include "call-relay.h"
#include "contract.h"
#include "failure.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define SECOND ((int64_t)1000000000)
/* For asking an engine what its machine can keep, when nothing is to be made yet. */
#define FACTS_PATIENCE (5 * SECOND)
/* For an engine to remove a container. */
#define REMOVAL_PATIENCE (30 * SECOND)

/* The only state of the plugin: set by the entry before anything else runs, and once. */
static const struct sandhost_host *host;

/* ---- Options ---------------------------------------------------------------------------------- */

enum {
  OPTION_IMAGE,
  OPTION_USER,
  OPTION_WORKDIR_SIZE,
  OPTION_TMP_SIZE,
  OPTION_PIDS_LIMIT,
  OPTION_PULL,
  OPTION_RUNTIME,
  OPTION_MAX_OUTPUT,
  OPTION_HOST,
  OPTION_TLS_VERIFY,
  OPTION_TLS_CA,
  OPTION_TLS_CERT,
  OPTION_TLS_KEY,
  OPTION_GUEST,
  OPTION_SWITCHABLE,
};

/* With less, not even small files could be copied in. */
#define LEAST_WORKDIR ((int64_t)1 << 20)

static const struct sandhost_option options[] = {
    [OPTION_IMAGE] = {.size = sizeof(struct sandhost_option),
                      .name = "image",
                      .type = SANDHOST_OPTION_TEXT,
                      .fallback = "python:3.12-slim",
                      .help = "the image; a manifest's image wins"},
    [OPTION_USER] = {.size = sizeof(struct sandhost_option),
                     .name = "user",
                     .type = SANDHOST_OPTION_TEXT,
                     .fallback = "65534:65534",
                     .help = "numeric uid or uid:gid that commands run as"},
    [OPTION_WORKDIR_SIZE] = {.size = sizeof(struct sandhost_option),
                             .name = "workdir_size",
                             .type = SANDHOST_OPTION_SIZE,
                             .flags = SANDHOST_OPTION_POSITIVE,
                             .fallback = "1g",
                             .help = "how much the working directory, which is in memory, holds"},
    [OPTION_TMP_SIZE] = {.size = sizeof(struct sandhost_option),
                         .name = "tmp_size",
                         .type = SANDHOST_OPTION_SIZE,
                         .flags = SANDHOST_OPTION_POSITIVE,
                         .fallback = "64m",
                         .help = "how much /tmp, and each volume that the image declares, holds"},
    [OPTION_PIDS_LIMIT] = {.size = sizeof(struct sandhost_option),
                           .name = "pids_limit",
                           .type = SANDHOST_OPTION_INTEGER,
                           .flags = SANDHOST_OPTION_POSITIVE,
                           .fallback = "256",
                           .help = "how many processes and threads there can be at once"},
    [OPTION_PULL] = {.size = sizeof(struct sandhost_option),
                     .name = "pull",
                     .type = SANDHOST_OPTION_TEXT,
                     .fallback = "if_missing",
                     .help = "if_missing, or never: the image must already be there"},
    [OPTION_RUNTIME] = {.size = sizeof(struct sandhost_option),
                        .name = "runtime",
                        .type = SANDHOST_OPTION_TEXT,
                        .help = "the engine's container runtime; runsc is gVisor"},
    [OPTION_MAX_OUTPUT] = {.size = sizeof(struct sandhost_option),
                           .name = "max_output_bytes",
                           .type = SANDHOST_OPTION_INTEGER,
                           .flags = SANDHOST_OPTION_POSITIVE,
                           .fallback = "1000000",
                           .help = "how much output of a command is kept, per stream"},
    [OPTION_HOST] = {.size = sizeof(struct sandhost_option),
                     .name = "host",
                     .type = SANDHOST_OPTION_TEXT,
                     .environment = "DOCKER_HOST",
                     .help = "where the engine is: unix://PATH, tcp://HOST:PORT or ssh://HOST"},
    [OPTION_TLS_VERIFY] = {.size = sizeof(struct sandhost_option),
                           .name = "tls_verify",
                           .type = SANDHOST_OPTION_BOOLEAN,
                           .help =
                               "whether a tcp engine must speak TLS with a certificate that holds; "
                               "else DOCKER_TLS_VERIFY says it"},
    [OPTION_TLS_CA] = {.size = sizeof(struct sandhost_option),
                       .name = "tls_ca",
                       .type = SANDHOST_OPTION_TEXT,
                       .help = "file of the authority; else ca.pem in DOCKER_CERT_PATH"},
    [OPTION_TLS_CERT] = {.size = sizeof(struct sandhost_option),
                         .name = "tls_cert",
                         .type = SANDHOST_OPTION_TEXT,
                         .help = "file of our certificate; else cert.pem in DOCKER_CERT_PATH"},
    [OPTION_TLS_KEY] = {.size = sizeof(struct sandhost_option),
                        .name = "tls_key",
                        .type = SANDHOST_OPTION_TEXT,
                        .help = "file of its key; else key.pem in DOCKER_CERT_PATH"},
    [OPTION_GUEST] = {.size = sizeof(struct sandhost_option),
                      .name = "guest",
                      .type = SANDHOST_OPTION_TEXT,
                      .fallback = "auto",
                      .choices = "auto|always|never",
                      .help = "whether sandhost-guest runs in the container; without it every call "
                              "goes through the engine, slower"},
    [OPTION_SWITCHABLE] = {.size = sizeof(struct sandhost_option),
                           .name = "network_switchable",
                           .type = SANDHOST_OPTION_BOOLEAN,
                           .fallback = "false",
                           .help = "whether a sandbox without a network can be given one later; it "
                                   "starts slower"},
};

static const struct sandhost_enforces enforces[] = {
    {SANDHOST_SETTING_NETWORK_OFF, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_NETWORK_ON, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_IMAGE, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_CPU, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_MEMORY, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_PIDS, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_MOUNT, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_ENVIRONMENT, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_SNAPSHOT, SANDHOST_LEVEL_ENFORCED},
    {SANDHOST_SETTING_FILES, SANDHOST_LEVEL_ENFORCED},
};

/* ---- Instance --------------------------------------------------------------------------------- */

static char *text_of(const struct sandhost_value *value) {
  return value->set ? g_strndup(value->text.data, value->text.length) : NULL;
}

/* A number up to 2^32 - 2: the last one means "no user" to the kernel. */
static gboolean read_user_number(const char *text, uint32_t *ret_number) {
  guint64 number = 0;
  if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT32 - 1, &number, NULL)) {
    return FALSE;
  }
  *ret_number = (uint32_t)number;
  return TRUE;
}

/* "1000" means the group 1000 as well. */
static gboolean read_user(const char *text, struct sandhost_instance *instance) {
  g_auto(GStrv) parts = g_strsplit(text, ":", 3);
  guint count = g_strv_length(parts);
  return (count == 1 || count == 2) && read_user_number(parts[0], &instance->uid) &&
         read_user_number(parts[count - 1], &instance->gid);
}

static int32_t read_values(struct sandhost_call *call, const struct sandhost_value *values,
                           struct sandhost_instance *instance) {
  g_autofree char *user = text_of(&values[OPTION_USER]);
  g_autofree char *pull = text_of(&values[OPTION_PULL]);
  g_autofree char *guest = text_of(&values[OPTION_GUEST]);
  if (!read_user(user ? user : "", instance)) {
    return fail_call(host, call, SANDHOST_INVALID,
                     "docker sandbox option 'user' must be numeric ('uid' or 'uid:gid') so the "
                     "working directory can belong to it");
  }
  if (g_strcmp0(pull, "if_missing") != 0 && g_strcmp0(pull, "never") != 0) {
    return fail_call(host, call, SANDHOST_INVALID,
                     "docker sandbox option 'pull' must be 'if_missing' or 'never'");
  }
  if (values[OPTION_WORKDIR_SIZE].integer < LEAST_WORKDIR) {
    return fail_call(host, call, SANDHOST_INVALID,
                     "docker sandbox option 'workdir_size' must be at least 1m");
  }
  instance->may_pull = strcmp(pull, "if_missing") == 0;
  instance->path = g_strcmp0(guest, "never") == 0    ? DOCKER_PATH_PLAIN
                   : g_strcmp0(guest, "always") == 0 ? DOCKER_PATH_GUEST
                                                     : DOCKER_PATH_AUTO;
  instance->network_switchable = values[OPTION_SWITCHABLE].integer != 0;
  instance->image = text_of(&values[OPTION_IMAGE]);
  instance->runtime = text_of(&values[OPTION_RUNTIME]);
  instance->workdir_size = (uint64_t)values[OPTION_WORKDIR_SIZE].integer;
  instance->tmp_size = (uint64_t)values[OPTION_TMP_SIZE].integer;
  instance->pids_limit = (uint64_t)values[OPTION_PIDS_LIMIT].integer;
  return SANDHOST_OK;
}

static int32_t make_engine(struct sandhost_call *call, const struct sandhost_value *values,
                           struct sandhost_instance *instance) {
  g_autofree char *address = text_of(&values[OPTION_HOST]);
  g_autofree char *tls_ca = text_of(&values[OPTION_TLS_CA]);
  g_autofree char *tls_cert = text_of(&values[OPTION_TLS_CERT]);
  g_autofree char *tls_key = text_of(&values[OPTION_TLS_KEY]);
  g_autofree char *error = NULL;
  const struct engine_settings settings = {.host = address,
                                           .tls_ca = tls_ca,
                                           .tls_cert = tls_cert,
                                           .tls_key = tls_key,
                                           .tls_verify_set = values[OPTION_TLS_VERIFY].set != 0,
                                           .tls_verify = values[OPTION_TLS_VERIFY].integer != 0};
  instance->engine = engine_new(instance->host, &settings, &error);
  return instance->engine ? SANDHOST_OK
                          : fail_call(host, call, SANDHOST_INVALID, "%s", error ? error : "");
}

static void docker_close(struct sandhost_instance *instance) {
  engine_free(instance->engine);
  pthread_mutex_destroy(&instance->lock);
  g_free(instance->image);
  g_free(instance->runtime);
  g_free(instance->guest_dir);
  g_free(instance->guest_volume);
  g_free(instance);
}

static int32_t docker_open(struct sandhost_call *call, const struct sandhost_open *request,
                           struct sandhost_instance **ret_instance) {
  if (request->value_count != G_N_ELEMENTS(options)) {
    return fail_call(host, call, SANDHOST_INVALID, "%zu options were expected, %zu came",
                     G_N_ELEMENTS(options), request->value_count);
  }
  struct sandhost_instance *instance = g_new0(struct sandhost_instance, 1);
  instance->host = &call_relay_host;
  pthread_mutex_init(&instance->lock, NULL);
  if (request->guest_dir.length > 0) {
    instance->guest_dir = g_strndup(request->guest_dir.data, request->guest_dir.length);
  }
  int32_t status = read_values(call, request->values, instance);
  if (status == SANDHOST_OK) {
    status = make_engine(call, request->values, instance);
  }
  if (status != SANDHOST_OK) {
    docker_close(instance);
    return status;
  }
  *ret_instance = instance;
  return SANDHOST_OK;
}

static void lower(struct sandhost_call *call, uint32_t setting, uint32_t *level,
                  const char *reason) {
  *level = SANDHOST_LEVEL_NONE;
  report_fact(host, call, SANDHOST_REPORT_LOWERED + setting, reason);
}

/* An engine that does not answer lowers nothing: create tells of it, when it is needed. */
static int32_t docker_enforces_now(struct sandhost_call *call, struct sandhost_instance *instance,
                                   uint32_t *levels, size_t count) {
  const struct engine_facts *facts = NULL;
  g_auto(CallRelay)
      relay = {.host = host,
               .call = call,
               .quiet = TRUE,
               .deadline = MIN(host->deadline(call), contract_now() + FACTS_PATIENCE)};
  if (engine_facts(instance->engine, call_relay_call(&relay), &facts) != SANDHOST_OK) {
    facts = NULL;
  }
  for (size_t i = 0; i < MIN(count, G_N_ELEMENTS(enforces)); i++) {
    uint32_t setting = enforces[i].setting;
    levels[i] = enforces[i].level;
    if (setting == SANDHOST_SETTING_MOUNT && !engine_is_local(instance->engine)) {
      lower(call, setting, &levels[i],
            "the engine may run on another machine, where the folder to mount is not this one");
    } else if (setting == SANDHOST_SETTING_MEMORY && facts && !facts->memory_limit) {
      lower(call, setting, &levels[i], "the engine's machine keeps no memory limits");
    } else if (setting == SANDHOST_SETTING_CPU && facts && !facts->cpu_limit) {
      lower(call, setting, &levels[i], "the engine's machine keeps no CPU limits");
    } else if (setting == SANDHOST_SETTING_PIDS && facts && !facts->pids_limit) {
      lower(call, setting, &levels[i], "the engine's machine keeps no limits on processes");
    }
  }
  return SANDHOST_OK;
}

/* ---- Calls ------------------------------------------------------------------------------------ */

/* Tells of a lost sandbox what the engine knows of its end, always with the same words. */
static int32_t fail_lost(struct sandhost_sandbox *sandbox, struct call_relay *relay) {
  g_autofree char *reason = NULL;
  pthread_mutex_lock(&sandbox->lock);
  reason = g_strdup(sandbox->lost_reason);
  pthread_mutex_unlock(&sandbox->lock);
  if (!reason) {
    g_autofree char *found = container_end_reason(sandbox, call_relay_call(relay));
    pthread_mutex_lock(&sandbox->lock);
    if (!sandbox->lost_reason) {
      sandbox->lost_reason = g_strdup(found            ? found
                                      : relay->failure ? relay->failure
                                                       : "it stopped");
    }
    reason = g_strdup(sandbox->lost_reason);
    pthread_mutex_unlock(&sandbox->lock);
  }
  report_fact(host, relay->call, SANDHOST_REPORT_LOST, reason);
  return fail_call(host, relay->call, SANDHOST_LOST, "%s", reason);
}

/* The rule that a guest broke is why its sandbox is lost; the engine knows nothing of that, and the error has been
 * told. */
static void report_broken(struct sandhost_sandbox *sandbox, struct sandhost_call *call,
                          const char *rule) {
  pthread_mutex_lock(&sandbox->lock);
  if (!sandbox->lost_reason) {
    sandbox->lost_reason = g_strdup(rule);
  }
  g_autofree char *reason = g_strdup(sandbox->lost_reason);
  pthread_mutex_unlock(&sandbox->lock);
  report_fact(host, call, SANDHOST_REPORT_LOST, reason);
}

static int32_t finish(struct sandhost_sandbox *sandbox, struct call_relay *relay, int32_t status) {
  if (status == SANDHOST_LOST) {
    status = fail_lost(sandbox, relay);
  } else if (relay->lost) {
    report_broken(sandbox, relay->call, relay->lost);
  }
  call_relay_clear(relay);
  return status;
}

/* Runs an operation of a sandbox under a relayed call named relayed: the guest's where there is one. */
#define SERVE(guest_way, plain_way)                                                                \
  struct call_relay relay = {.host = host, .call = call};                                          \
  struct sandhost_call *relayed = call_relay_call(&relay);                                         \
  return finish(sandbox, &relay, sandbox->client ? (guest_way) : (plain_way))

static int32_t serve_create(struct sandhost_call *call, struct sandhost_instance *instance,
                            const struct sandhost_create *request,
                            struct sandhost_sandbox **ret_sandbox) {
  g_auto(CallRelay) relay = {.host = host, .call = call};
  int32_t status = docker_create(call_relay_call(&relay), instance, request, ret_sandbox);
  return status == SANDHOST_LOST
             ? fail_call(host, call, SANDHOST_UNAVAILABLE, "the container ended at once: %s",
                         relay.failure ? relay.failure : "unknown")
             : status;
}

static int32_t serve_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             const struct sandhost_execute *request,
                             const struct sandhost_observer *observer,
                             struct sandhost_result *ret_result) {
  SERVE(guest_client_execute(sandbox->client, relayed, request, observer, ret_result),
        plain_execute(relayed, sandbox, request, observer, ret_result));
}

static int32_t serve_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               struct sandhost_path path, const struct sandhost_sink *sink) {
  SERVE(guest_client_read_file(sandbox->client, relayed, path, sink),
        plain_read_file(relayed, sandbox, path, sink));
}

static int32_t serve_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                struct sandhost_path path, uint32_t mode,
                                const struct sandhost_source *source) {
  SERVE(guest_client_write_file(sandbox->client, relayed, path, mode, source),
        plain_write_file(relayed, sandbox, path, mode, source));
}

static int32_t serve_upload(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            struct sandhost_path dir, const struct sandhost_source *tar) {
  SERVE(guest_client_upload(sandbox->client, relayed, dir, tar),
        plain_upload(relayed, sandbox, dir, tar));
}

static int32_t serve_download(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              struct sandhost_path dir, const struct sandhost_path *names,
                              size_t name_count, const struct sandhost_sink *tar) {
  SERVE(guest_client_download(sandbox->client, relayed, dir, names, name_count, tar),
        plain_download(relayed, sandbox, dir, names, name_count, tar));
}

static int32_t serve_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             const struct sandhost_changes *request,
                             const struct sandhost_entry_sink *sink) {
  SERVE(guest_client_changes(sandbox->client, relayed, request, sink),
        plain_changes(relayed, sandbox, request, sink));
}

static int32_t serve_signal(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            uint64_t execution, int32_t signal) {
  SERVE(guest_client_signal(sandbox->client, relayed, execution, signal),
        plain_signal(relayed, sandbox, execution, signal));
}

static int32_t serve_probe(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                           const struct sandhost_probe *request, uint32_t *ret_verdict) {
  SERVE(guest_client_probe(sandbox->client, relayed, request, ret_verdict),
        fail_call(&call_relay_host, relayed, SANDHOST_UNSUPPORTED,
                  "a sandbox without a guest tries no connections itself"));
}

static int32_t serve_set_network(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                 const struct sandhost_network *network) {
  SERVE(docker_set_network_policy(relayed, sandbox, network),
        docker_set_network_policy(relayed, sandbox, network));
}

static int32_t serve_snapshot(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  SERVE(docker_snapshot(relayed, sandbox), docker_snapshot(relayed, sandbox));
}

static int32_t serve_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  /* What is no longer wanted is removed all the more: the caller's cancel does not count. */
  g_auto(CallRelay)
      relay = {.host = host,
               .call = call,
               .deadline = MIN(host->deadline(call), contract_now() + REMOVAL_PATIENCE)};
  return docker_terminate(call_relay_call(&relay), sandbox);
}

static int32_t serve_delete_snapshot(struct sandhost_call *call, struct sandhost_instance *instance,
                                     struct sandhost_text id) {
  g_auto(CallRelay) relay = {.host = host, .call = call};
  return docker_delete_snapshot(call_relay_call(&relay), instance, id);
}

static int32_t serve_sweep(struct sandhost_call *call, struct sandhost_instance *instance,
                           const struct sandhost_sweep *request,
                           const struct sandhost_orphan_sink *sink) {
  g_auto(CallRelay) relay = {.host = host, .call = call};
  return docker_sweep(call_relay_call(&relay), instance, request, sink);
}

/* ---- The table -------------------------------------------------------------------------------- */

static const struct sandhost_provider table = {
    .size = sizeof(struct sandhost_provider),
    .minor = SANDHOST_ABI_MINOR,
    .threads = SANDHOST_THREADS_PARALLEL,
    .name = "docker",
    .version = "0.1.0",
    .summary = "a hardened container of a Docker engine, or of podman's Docker-compatible service",
    .options = options,
    .option_count = G_N_ELEMENTS(options),
    .option_size = sizeof(struct sandhost_option),
    .enforces = enforces,
    .enforces_count = G_N_ELEMENTS(enforces),
    .open = docker_open,
    .close = docker_close,
    .create = serve_create,
    .execute = serve_execute,
    .read_file = serve_read_file,
    .write_file = serve_write_file,
    .terminate = serve_terminate,
    .release = docker_release,
    .enforces_now = docker_enforces_now,
    .set_network_policy = serve_set_network,
    .snapshot = serve_snapshot,
    .delete_snapshot = serve_delete_snapshot,
    .upload = serve_upload,
    .download = serve_download,
    .changes = serve_changes,
    .sweep = serve_sweep,
    .signal = serve_signal,
    .probe = serve_probe,
};

const struct sandhost_provider *sandhost_provider_1(const struct sandhost_host *host_table) {
  if (host_table->size < offsetof(struct sandhost_host, progress) + sizeof host_table->progress) {
    return NULL;
  }
  host = host_table;
  return &table;
}
