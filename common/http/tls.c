#include "common/http/tls.h"
#include <openssl/err.h>

static FX_MUST bool configure(SSL_CTX *ctx, const char *cert, const char *key, fx_error *err) {
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
        return fx_fail(err, FX_INTERNAL, "TLS 1.2 is not there");
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%s' holds no PEM certificate chain", cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%s' holds no PEM key of that certificate", key);
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    return true;
}

bool fx_tls_server(const char *cert_file, const char *key_file, SSL_CTX **out, fx_error *err) {
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for TLS");
    bool ok = configure(ctx, cert_file, key_file, err);
    ERR_clear_error();
    if (!ok) {
        SSL_CTX_free(ctx);
        return false;
    }
    *out = ctx;
    return true;
}
