#include "common/base/certificates_ssl.h"
#include <openssl/err.h>
#include <openssl/pem.h>

static X509 *next(BIO *pem) {
    return PEM_read_bio_X509(pem, NULL, NULL, NULL);
}

static bool authorities(SSL_CTX *ctx, BIO *pem) {
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    bool ok = true;
    for (X509 *cert; ok && (cert = next(pem)); X509_free(cert))
        ok = X509_STORE_add_cert(store, cert) == 1; /* one that is there already is fine */
    return ok;
}

static bool chain(SSL_CTX *ctx, BIO *pem) {
    X509 *leaf = next(pem);
    bool ok = leaf && SSL_CTX_use_certificate(ctx, leaf) == 1;
    X509_free(leaf);
    for (X509 *cert; ok && (cert = next(pem));) {
        ok = SSL_CTX_add0_chain_cert(ctx, cert) == 1;
        if (!ok) X509_free(cert);
    }
    return ok;
}

static bool key(SSL_CTX *ctx, BIO *pem) {
    EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, NULL, NULL);
    bool ok = key && SSL_CTX_use_PrivateKey(ctx, key) == 1;
    EVP_PKEY_free(key);
    return ok;
}

static bool use(SSL_CTX *ctx, const char *text, bool (*put)(SSL_CTX *ctx, BIO *pem)) {
    if (!text) return true;
    BIO *pem = BIO_new_mem_buf(text, -1);
    bool ok = pem && put(ctx, pem);
    (void)BIO_free(pem);
    return ok;
}

bool fx_pems_use(const struct fx_pems *pems, SSL_CTX *ctx, fx_error *err) {
    bool ok =
        use(ctx, pems->ca, authorities) && use(ctx, pems->cert, chain) && use(ctx, pems->key, key);
    const char *why = ok ? NULL : ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return ok ||
           fx_fail(err, FX_INVALID_ARGUMENT, "not usable for TLS: %s", why ? why : "no memory");
}
