#include "common/queue/redis_tls.h"
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

static bool given(const char *file) {
    return file && *file;
}

static FX_MUST bool authorities(SSL_CTX *ctx, const char *file, fx_error *err) {
    int ok = given(file) ? SSL_CTX_load_verify_locations(ctx, file, NULL)
                         : SSL_CTX_set_default_verify_paths(ctx);
    if (ok == 1) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT, "FX_REDIS_CA: '%s' holds no PEM certificates",
                   given(file) ? file : "the system's store");
}

static FX_MUST bool own_certificate(SSL_CTX *ctx, const struct fx_redis_tls *tls, fx_error *err) {
    if (!given(tls->cert_file) && !given(tls->key_file)) return true;
    if (!given(tls->cert_file) || !given(tls->key_file))
        return fx_fail(err, FX_INVALID_ARGUMENT, "FX_REDIS_CERT and FX_REDIS_KEY go together");
    if (SSL_CTX_use_certificate_chain_file(ctx, tls->cert_file) != 1)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "FX_REDIS_CERT: '%s' holds no PEM certificate chain", tls->cert_file);
    if (SSL_CTX_use_PrivateKey_file(ctx, tls->key_file, SSL_FILETYPE_PEM) != 1)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "FX_REDIS_KEY: '%s' holds no PEM key of FX_REDIS_CERT", tls->key_file);
    return true;
}

static FX_MUST bool configure(SSL_CTX *ctx, const struct fx_redis_tls *tls, fx_error *err) {
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
        return fx_fail(err, FX_INTERNAL, "TLS 1.2 is not there");
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    return authorities(ctx, tls->ca_file, err) && own_certificate(ctx, tls, err);
}

bool fx_redis__tls_open(const struct fx_redis_tls *tls, SSL_CTX **out, fx_error *err) {
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for TLS");
    bool ok = configure(ctx, tls, err);
    ERR_clear_error();
    if (!ok) {
        SSL_CTX_free(ctx);
        return false;
    }
    *out = ctx;
    return true;
}

/* An address has no name to be told to the server. */
static bool is_for(SSL *ssl, const char *host) {
    uint8_t address[sizeof(struct in6_addr)];
    bool literal =
        inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
    if (literal) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

bool fx_redis__tls_new(SSL_CTX *ctx, const char *host, SSL **out, fx_error *err) {
    SSL *ssl = SSL_new(ctx);
    if (ssl && is_for(ssl, host)) {
        *out = ssl;
        return true;
    }
    SSL_free(ssl);
    ERR_clear_error();
    return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for TLS");
}
