/* SPDX-License-Identifier: Apache-2.0 */
/* fake-tls.h: certificates made on the spot, and a TLS peer on a port of 127.0.0.1 that does what a test says. */
#ifndef SANDHOST_TESTS_FAKE_TLS_H
#define SANDHOST_TESTS_FAKE_TLS_H

#include "fake-guest.h"

#include <arpa/inet.h>
#include <glib/gstdio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>

struct fake_identity {
  EVP_PKEY *key;
  X509 *certificate;
};

FAKE_UNUSED static void fake_add_extension(X509 *certificate, X509 *issuer, int kind,
                                           const char *value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
  g_assert_nonnull(extension);
  g_assert_cmpint(X509_add_ext(certificate, extension, -1), ==, 1);
  X509_EXTENSION_free(extension);
}

/* issuer NULL: an authority of its own. names: "IP:127.0.0.1"; NULL for an authority. */
FAKE_UNUSED static struct fake_identity fake_identity_new(const char *name, const char *names,
                                                          const struct fake_identity *issuer) {
  static int serial = 1;
  struct fake_identity self = {.key = EVP_EC_gen("P-256"), .certificate = X509_new()};
  X509 *certificate = self.certificate;
  X509 *signer = issuer ? issuer->certificate : certificate;
  g_assert_nonnull(self.key);
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, self.key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             (const unsigned char *)name, -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(signer));
  fake_add_extension(certificate, signer, NID_basic_constraints,
                     issuer ? "CA:FALSE" : "critical,CA:TRUE");
  if (names) {
    fake_add_extension(certificate, signer, NID_subject_alt_name, names);
  }
  g_assert_cmpint(X509_sign(certificate, issuer ? issuer->key : self.key, EVP_sha256()), >, 0);
  return self;
}

FAKE_UNUSED static void fake_identity_clear(struct fake_identity *self) {
  EVP_PKEY_free(self->key);
  X509_free(self->certificate);
}

/* Writes NAME.pem and NAME-key.pem into folder. */
FAKE_UNUSED static void fake_identity_save(const struct fake_identity *self, const char *folder,
                                           const char *certificate_name, const char *key_name) {
  g_autofree char *certificate = g_build_filename(folder, certificate_name, NULL);
  g_autofree char *key = g_build_filename(folder, key_name, NULL);
  FILE *file = fopen(certificate, "we");
  g_assert_nonnull(file);
  g_assert_cmpint(PEM_write_X509(file, self->certificate), ==, 1);
  fclose(file);
  file = fopen(key, "we");
  g_assert_nonnull(file);
  g_assert_cmpint(PEM_write_PrivateKey(file, self->key, NULL, NULL, 0, NULL, NULL), ==, 1);
  fclose(file);
}

/* ---- The peer -------------------------------------------------------------------------------- */

typedef struct FakeTls FakeTls;
typedef void (*fake_tls_script)(FakeTls *tls, SSL *ssl, int number);

struct FakeTls {
  int listen_fd;
  int stop[2];
  guint16 port;
  SSL_CTX *context; /* NULL: it accepts and stays silent */
  fake_tls_script script;
  void *data;
  GThread *thread;
  int connections; /* atomic */
  int requests;    /* atomic */
};

/* One connection at a time. */
FAKE_UNUSED static gpointer fake_tls_accept(gpointer data) {
  FakeTls *tls = data;
  for (;;) {
    struct pollfd fds[] = {{.fd = tls->listen_fd, .events = POLLIN},
                           {.fd = tls->stop[0], .events = POLLIN}};
    if (poll(fds, 2, -1) < 0 && errno == EINTR) {
      continue;
    }
    if (fds[1].revents) {
      return NULL;
    }
    /* cppcheck-suppress nullPointer; accept4(2) takes none where nobody asks who it is */
    int fd = accept4(tls->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
      continue;
    }
    int number = __atomic_fetch_add(&tls->connections, 1, __ATOMIC_SEQ_CST);
    if (!tls->context) {
      fake_wait_for_end(fd);
      close(fd);
      continue;
    }
    SSL *ssl = SSL_new(tls->context);
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1) {
      tls->script(tls, ssl, number);
    } else {
      shutdown(fd, SHUT_WR); /* so that why it failed is read before the connection is reset */
      fake_wait_for_end(fd);
    }
    ERR_clear_error();
    SSL_free(ssl);
    close(fd);
  }
}

/* identity NULL: a peer that says nothing. authority: clients need a certificate of it; NULL: they need none. */
FAKE_UNUSED static FakeTls *fake_tls_start(const struct fake_identity *identity,
                                           const struct fake_identity *authority,
                                           fake_tls_script script, void *data) {
  FakeTls *tls = g_new0(FakeTls, 1);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  signal(SIGPIPE, SIG_IGN); /* of this side: SSL_write has no MSG_NOSIGNAL */
  tls->script = script;
  tls->data = data;
  tls->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint(bind(tls->listen_fd, (struct sockaddr *)&address, sizeof address), ==, 0);
  g_assert_cmpint(listen(tls->listen_fd, 8), ==, 0);
  g_assert_cmpint(getsockname(tls->listen_fd, (struct sockaddr *)&address, &length), ==, 0);
  tls->port = ntohs(address.sin_port);
  g_assert_cmpint(pipe(tls->stop), ==, 0);
  if (identity) {
    tls->context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(tls->context, identity->certificate);
    SSL_CTX_use_PrivateKey(tls->context, identity->key);
  }
  if (identity && authority) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(tls->context), authority->certificate);
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  }
  tls->thread = g_thread_new("tls", fake_tls_accept, tls);
  return tls;
}

/* No connection may be open. */
FAKE_UNUSED static void fake_tls_end(FakeTls *take_tls) {
  close(take_tls->stop[1]);
  g_thread_join(take_tls->thread);
  close(take_tls->stop[0]);
  close(take_tls->listen_fd);
  SSL_CTX_free(take_tls->context);
  g_free(take_tls);
}

/* FALSE: the other side has closed. The header alone. */
FAKE_UNUSED static gboolean fake_tls_read_request(FakeTls *tls, SSL *ssl) {
  g_autoptr(GString) text = g_string_new(NULL);
  while (!g_str_has_suffix(text->str, "\r\n\r\n")) {
    char byte;
    if (SSL_read(ssl, &byte, 1) != 1) {
      return FALSE;
    }
    g_string_append_c(text, byte);
  }
  __atomic_fetch_add(&tls->requests, 1, __ATOMIC_SEQ_CST);
  return TRUE;
}

FAKE_UNUSED static void fake_tls_say(SSL *ssl, const char *text) {
  (void)SSL_write(ssl, text, (int)strlen(text));
}

/* Answers every request with "{}". */
FAKE_UNUSED static void fake_tls_serve(FakeTls *tls, SSL *ssl, int number) {
  (void)number;
  while (fake_tls_read_request(tls, ssl)) {
    fake_tls_say(ssl, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
  }
}

#endif
