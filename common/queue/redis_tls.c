#include "common/queue/redis_tls.h"
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include "common/base/certificates_ssl.h"
#include "common/base/heap.h"

struct fx_redis_trust {
    fx_certs *certs;
    SSL_CTX *ctx; /* of `generation` */
    uint64_t generation;
};

static FX_MUST bool configure(SSL_CTX *ctx, const struct fx_pems *pems, fx_error *err) {
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
        return fx_fail(err, FX_INTERNAL, "TLS 1.2 is not there");
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    if (!pems->ca && SSL_CTX_set_default_verify_paths(ctx) != 1)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "FX_REDIS_CA: the system's store holds no certificates");
    return fx_pems_use(pems, ctx, err);
}

static FX_MUST bool ctx_new(const struct fx_pems *pems, SSL_CTX **out, fx_error *err) {
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for TLS");
    bool ok = configure(ctx, pems, err);
    ERR_clear_error();
    if (!ok) {
        SSL_CTX_free(ctx);
        return false;
    }
    *out = ctx;
    return true;
}

static FX_MUST bool renew(fx_redis_trust *trust, fx_error *err) {
    fx_auto_pems pems = {0};
    SSL_CTX *ctx;
    if (fx_certs_generation(trust->certs) == trust->generation) return true;
    if (!fx_certs_copy(trust->certs, &pems, err) || !ctx_new(&pems, &ctx, err)) return false;
    SSL_CTX_free(trust->ctx);
    trust->ctx = ctx;
    trust->generation = pems.generation;
    return true;
}

bool fx_redis__trust_open(const struct fx_redis_tls *tls, fx_redis_trust **out, fx_error *err) {
    const struct fx_certs_files files = {tls->ca_file, tls->cert_file, tls->key_file};
    fx_auto(fx_redis_trust) trust = fx_alloc(1, sizeof *trust);
    if (!trust) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for TLS");
    if (!fx_certs_open(FX_CERTS_REDIS, &files, &trust->certs, err) || !renew(trust, err))
        return false;
    *out = fx_take(trust);
    return true;
}

void fx_redis__trust_free(fx_redis_trust *trust) {
    if (!trust) return;
    SSL_CTX_free(trust->ctx);
    fx_certs_free(trust->certs);
    free(trust);
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

bool fx_redis__tls_new(fx_redis_trust *trust, const char *host, SSL **out, fx_error *err) {
    fx_error no_memory;
    (void)!renew(trust, &no_memory); /* then as before */
    SSL *ssl = SSL_new(trust->ctx);
    if (ssl && is_for(ssl, host)) {
        *out = ssl;
        return true;
    }
    SSL_free(ssl);
    ERR_clear_error();
    return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for TLS");
}
