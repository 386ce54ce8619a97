#include "common/http/tls.h"
#include <openssl/err.h>
#include <pthread.h>
#include "common/base/certificates_ssl.h"
#include "common/base/heap.h"

struct fx_http_tls {
    fx_certs *certs;
    pthread_mutex_t lock;
    SSL_CTX *ctx; /* of `generation` */
    uint64_t generation;
};

static FX_MUST bool configure(SSL_CTX *ctx, const struct fx_pems *pems, fx_error *err) {
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
        return fx_fail(err, FX_INTERNAL, "TLS 1.2 is not there");
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    return fx_pems_use(pems, ctx, err);
}

static FX_MUST bool ctx_new(const struct fx_pems *pems, SSL_CTX **out, fx_error *err) {
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
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

/* Under the lock. Connections hold the context they began with. */
static FX_MUST bool renew(fx_http_tls *tls, fx_error *err) {
    fx_auto_pems pems = {0};
    SSL_CTX *ctx;
    if (fx_certs_generation(tls->certs) == tls->generation) return true;
    if (!fx_certs_copy(tls->certs, &pems, err) || !ctx_new(&pems, &ctx, err)) return false;
    SSL_CTX_free(tls->ctx);
    tls->ctx = ctx;
    tls->generation = pems.generation;
    return true;
}

bool fx_http_tls_open(const char *cert_file, const char *key_file, fx_http_tls **out,
                      fx_error *err) {
    const struct fx_certs_files files = {.cert = cert_file, .key = key_file};
    fx_auto(fx_http_tls) tls = fx_alloc(1, sizeof *tls);
    if (!tls) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for TLS");
    pthread_mutex_init(&tls->lock, NULL);
    if (!fx_certs_open(FX_CERTS_HTTP, &files, &tls->certs, err) || !renew(tls, err)) return false;
    *out = fx_take(tls);
    return true;
}

SSL *fx_http_tls_new(fx_http_tls *tls) {
    fx_error err;
    pthread_mutex_lock(&tls->lock);
    (void)!renew(tls, &err); /* no memory: as before */
    SSL *ssl = SSL_new(tls->ctx);
    pthread_mutex_unlock(&tls->lock);
    return ssl;
}

void fx_http_tls_free(fx_http_tls *tls) {
    if (!tls) return;
    SSL_CTX_free(tls->ctx);
    fx_certs_free(tls->certs);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}
