/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry-auth.c: the login for a registry, as Docker's own configuration has it, in the form in
 * which an engine wants it. Docker's order: the helper named for this registry, else the helper for
 * all, and what stands in the file itself where they have nothing.
 *
 * Everything that may hold a secret is wiped before it is freed. json-c may have moved a text while
 * it grew; such a copy is out of reach.
 */
#include "credential-helper.h"
#include "image-name.h"
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <json-c/printbuf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_CONFIG ((size_t)1024 * 1024)
/* The file is flat; a login is three levels deep. */
#define MAX_CONFIG_DEPTH 12
/* A token of a large company's single sign-on has a few kilobytes. */
#define MAX_LOGIN_FIELD ((size_t)64 * 1024)

static const char hub_key[] = "https://index.docker.io/v1/";

/* A login. Borrowed from the JSON or the secret that it came from. */
struct login {
  const char *user;
  const char *password;
  const char *identity_token;
  const char *registry_token;
};

char *registry_of_image(const char *name) {
  struct image_name parts;
  if (!image_name_read(name, &parts)) {
    return NULL;
  }
  char *registry = parts.is_id ? NULL : g_strdup(parts.registry ? parts.registry : hub_key);
  image_name_clear(&parts);
  return registry;
}

/* ---- Reading ---------------------------------------------------------------------------------- */

/* Overwrites every text below a value. json-c gives its own memory as constant only so that
 * nobody changes lengths. */
static void wipe_json(json_object *value) {
  if (json_object_is_type(value, json_type_string)) {
    size_t length = (size_t)json_object_get_string_len(value);
    explicit_bzero((void *)(gsize)json_object_get_string(value), length);
  } else if (json_object_is_type(value, json_type_object)) {
    json_object_object_foreach(value, key, member) {
      (void)key;
      wipe_json(member);
    }
  } else if (json_object_is_type(value, json_type_array)) {
    for (size_t i = 0; i < json_object_array_length(value); i++) {
      wipe_json(json_object_array_get_idx(value, i));
    }
  }
}

static void secret_json_free(json_object *value) {
  wipe_json(value);
  json_object_put(value);
}
typedef json_object SecretJson;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SecretJson, secret_json_free)

/* An object, or NULL. */
static json_object *parse_object(const char *text, size_t length) {
  struct json_tokener *tokener = json_tokener_new_ex(MAX_CONFIG_DEPTH);
  if (!tokener) {
    return NULL;
  }
  /* The NUL behind the text ends a number or the document for the parser; one before is an
   * error. */
  json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
  json_object *value = json_tokener_parse_ex(tokener, text, (int)length + 1);
  gboolean whole = json_tokener_get_error(tokener) == json_tokener_success;
  if (tokener->pb && tokener->pb->buf) {
    explicit_bzero(tokener->pb->buf, (size_t)tokener->pb->size);
  }
  json_tokener_free(tokener);
  if (!whole || !json_object_is_type(value, json_type_object)) {
    secret_json_free(value);
    return NULL;
  }
  return value;
}

/* The text of a member, or NULL. It is no text of ours where it holds a NUL, is empty, or is too
 * long. */
static const char *member_text(json_object *object, const char *key) {
  json_object *member = NULL;
  if (!json_object_is_type(object, json_type_object) ||
      !json_object_object_get_ex(object, key, &member) ||
      !json_object_is_type(member, json_type_string)) {
    return NULL;
  }
  const char *text = json_object_get_string(member);
  size_t length = (size_t)json_object_get_string_len(member);
  return length > 0 && length <= MAX_LOGIN_FIELD && strlen(text) == length ? text : NULL;
}

static json_object *member_object(json_object *object, const char *key) {
  json_object *member = NULL;
  if (!json_object_object_get_ex(object, key, &member) ||
      !json_object_is_type(member, json_type_object)) {
    return NULL;
  }
  return member;
}

/* Reads at most the secret's capacity. 0, or the errno; EFBIG: there is more. */
static int read_secret_file(const char *path, struct secret *content) {
  /* A pipe put in its place must not hold us up. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return errno;
  }
  struct stat status;
  int error = fstat(fd, &status) < 0 ? errno : S_ISREG(status.st_mode) ? 0 : EINVAL;
  while (!error) {
    char spare;
    size_t room = content->capacity - content->length;
    ssize_t got = read(fd, room ? content->data + content->length : &spare, room ? room : 1);
    if (got == 0) {
      break;
    }
    if (got < 0 && errno != EINTR) {
      error = errno;
    } else if (got > 0 && room == 0) {
      error = EFBIG;
    } else if (got > 0) {
      content->length += (size_t)got;
    }
  }
  close(fd);
  return error;
}

/* The configuration; NULL with or without a complaint. */
static json_object *read_logins(const char *config_dir, char **ret_complaint) {
  const char *named = config_dir ? config_dir : g_getenv("DOCKER_CONFIG");
  g_autofree char *folder =
      named && named[0] ? g_strdup(named) : g_build_filename(g_get_home_dir(), ".docker", NULL);
  g_autofree char *path = g_build_filename(folder, "config.json", NULL);
  struct secret content;
  secret_init(&content, MAX_CONFIG);
  json_object *config = NULL;
  int error = read_secret_file(path, &content);
  if (error == EFBIG) {
    *ret_complaint = g_strdup_printf("%s is larger than 1 MiB and was not read", path);
  } else if (error == EINVAL) {
    *ret_complaint = g_strdup_printf("%s is no regular file and was not read", path);
  } else if (error && error != ENOENT && error != ENOTDIR) {
    *ret_complaint = g_strdup_printf("%s cannot be read: %s", path, g_strerror(error));
  } else if (!error) {
    config = parse_object(content.data, content.length);
    if (!config) {
      *ret_complaint = g_strdup_printf("%s is no JSON object and was not used", path);
    }
  }
  secret_clear(&content);
  return config;
}

/* ---- Which login is for which registry -------------------------------------------------------- */

/* "https://index.docker.io/v1/", "docker.io" -> "docker.io"; "http://host:5000/v2/" ->
 * "host:5000". Owned. */
static char *plain_registry(const char *key) {
  const char *scheme = strstr(key, "://");
  const char *host = scheme ? scheme + 3 : key;
  g_autofree char *name = g_ascii_strdown(host, (gssize)strcspn(host, "/"));
  gboolean hub = strcmp(name, "index.docker.io") == 0 || strcmp(name, "registry-1.docker.io") == 0;
  return hub ? g_strdup("docker.io") : g_steal_pointer(&name);
}

/* The member whose key is the registry: word for word, else by its host. NULL: none. */
static json_object *find_registry(json_object *table, const char *registry) {
  json_object *found = NULL;
  if (!table || json_object_object_get_ex(table, registry, &found)) {
    return found;
  }
  g_autofree char *wanted = plain_registry(registry);
  json_object_object_foreach(table, key, member) {
    g_autofree char *name = plain_registry(key);
    if (strcmp(name, wanted) == 0) {
      return member;
    }
  }
  return NULL;
}

/* ---- The value of the header ------------------------------------------------------------------ */

static void append(struct secret *out, const char *text) {
  size_t length = MIN(strlen(text), out->capacity - out->length);
  memcpy(out->data + out->length, text, length);
  out->length += length;
}

static void append_string(struct secret *out, const char *text) {
  append(out, "\"");
  for (const char *at = text; *at; at++) {
    char piece[8] = {*at, '\0'};
    if (*at == '"' || *at == '\\') {
      g_snprintf(piece, sizeof piece, "\\%c", *at);
    } else if ((unsigned char)*at < 0x20 || *at == 0x7f) {
      g_snprintf(piece, sizeof piece, "\\u%04x", (unsigned int)*at);
    }
    append(out, piece);
  }
  append(out, "\"");
}

static void append_member(struct secret *out, const char *name, const char *value) {
  if (value && value[0]) {
    append(out, out->length > 1 ? ",\"" : "\"");
    append(out, name);
    append(out, "\":");
    append_string(out, value);
  }
}

static size_t room_for(const char *text) {
  return text ? 6 * strlen(text) + 32 : 0; /* every byte may become \u00XX */
}

static char *encode_login(const struct login *login, const char *registry) {
  struct secret json;
  secret_init(&json, 16 + room_for(login->user) + room_for(login->password) +
                         room_for(login->identity_token) + room_for(login->registry_token) +
                         room_for(registry));
  append(&json, "{");
  if (login->identity_token) {
    append_member(&json, "identitytoken", login->identity_token);
  } else if (login->registry_token) {
    append_member(&json, "registrytoken", login->registry_token);
  } else {
    append_member(&json, "username", login->user);
    append_member(&json, "password", login->password);
  }
  append_member(&json, "serveraddress", registry);
  append(&json, "}");
  char *value = g_base64_encode((const guchar *)json.data, json.length);
  secret_clear(&json);
  for (char *at = value; *at; at++) { /* to the alphabet of base64url */
    *at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
  }
  return value;
}

/* ---- The sources ------------------------------------------------------------------------------ */

/* "auth" is base64 of "user:password". */
static char *login_from_pair(const char *encoded, json_object *entry, const char *registry,
                             char **ret_complaint) {
  struct secret pair;
  secret_init(&pair, strlen(encoded) + 4);
  memcpy(pair.data, encoded, strlen(encoded));
  gsize length = 0;
  char *value = NULL;
  gsize valid = strspn(encoded, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
  if (valid > 3 && encoded[valid + strspn(encoded + valid, "=")] == '\0') {
    (void)g_base64_decode_inplace(pair.data, &length);
    pair.data[length] = '\0';
  }
  char *colon = memchr(pair.data, ':', length);
  if (!colon || colon == pair.data) {
    *ret_complaint = g_strdup("the login for it in Docker's configuration cannot be read");
  } else {
    *colon = '\0';
    struct login login = {.user = pair.data,
                          .password = colon + 1,
                          .identity_token = member_text(entry, "identitytoken")};
    value = encode_login(&login, registry);
  }
  secret_clear(&pair);
  return value;
}

static char *login_from_file(json_object *config, const char *registry, char **ret_complaint) {
  json_object *entry = find_registry(member_object(config, "auths"), registry);
  const char *pair = member_text(entry, "auth");
  struct login login = {.user = member_text(entry, "username"),
                        .password = member_text(entry, "password"),
                        .identity_token = member_text(entry, "identitytoken"),
                        .registry_token = member_text(entry, "registrytoken")};
  if (pair) {
    return login_from_pair(pair, entry, registry, ret_complaint);
  }
  if (login.identity_token || login.registry_token || (login.user && login.password)) {
    return encode_login(&login, registry);
  }
  return NULL;
}

static char *login_from_helper(const char *helper, const char *registry, int cancel_fd,
                               char **ret_complaint) {
  struct secret output;
  if (credential_helper_get(helper, registry, cancel_fd, &output, ret_complaint) !=
      CREDENTIAL_FOUND) {
    return NULL;
  }
  g_autoptr(SecretJson) answer = parse_object(output.data, output.length);
  secret_clear(&output);
  const char *user = member_text(answer, "Username");
  const char *secret = member_text(answer, "Secret");
  if (!user || !secret) {
    *ret_complaint = g_strdup_printf("docker-credential-%s gave no login that can be read", helper);
    return NULL;
  }
  gboolean is_token = strcmp(user, "<token>") == 0;
  struct login login = {
      .user = user, .password = secret, .identity_token = is_token ? secret : NULL};
  return encode_login(&login, registry);
}

char *registry_auth(const char *config_dir, const char *registry, int cancel_fd,
                    char **ret_complaint) {
  g_autofree char *complaint = NULL;
  g_autoptr(SecretJson) config = read_logins(config_dir, &complaint);
  char *value = NULL;
  if (config) {
    json_object *named = find_registry(member_object(config, "credHelpers"), registry);
    const char *helper = json_object_is_type(named, json_type_string)
                             ? json_object_get_string(named)
                             : member_text(config, "credsStore");
    if (helper && helper[0]) {
      value = login_from_helper(helper, registry, cancel_fd, &complaint);
    }
    if (!value) {
      g_autofree char *second = NULL;
      value = login_from_file(config, registry, &second);
      if (!complaint) {
        complaint = g_steal_pointer(&second);
      }
    }
  }
  if (complaint) {
    *ret_complaint = g_steal_pointer(&complaint);
  }
  return value;
}
