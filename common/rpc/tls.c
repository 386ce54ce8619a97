#include "common/base/heap.h"
#include "common/rpc/core_internal.h"

enum { PEM_BYTES_MAX = 1024 * 1024 };

bool fx_tls__on(const struct fx_tls *tls) {
    return (tls->ca && *tls->ca) || (tls->cert && *tls->cert) || (tls->key && *tls->key);
}

static FX_MUST bool read_pem(const char *path, char **out, fx_error *err) {
    fx_auto(FILE) file = fopen(path, "rbe");
    if (!file) return fx_fail_errno(err, "open '%s'", path);
    fx_auto(char) text = fx_alloc(PEM_BYTES_MAX, 1);
    if (!text) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "read '%s'", path);
    size_t len = fread(text, 1, PEM_BYTES_MAX - 1, file);
    if (ferror(file)) return fx_fail_errno(err, "read '%s'", path);
    if (len == PEM_BYTES_MAX - 1 || !strstr(text, "-----BEGIN "))
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%s' is no PEM file", path);
    *out = fx_take(text);
    return true;
}

struct pems {
    char *ca, *cert, *key;
};

static void pems_done(struct pems *pems) {
    if (pems->key) explicit_bzero(pems->key, strlen(pems->key));
    free(pems->ca);
    free(pems->cert);
    free(pems->key);
}

static FX_MUST bool pems_read(const struct fx_tls *tls, struct pems *out, fx_error *err) {
    if (!tls->ca || !*tls->ca || !tls->cert || !*tls->cert || !tls->key || !*tls->key)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "TLS needs all three of authority, certificate and key");
    return read_pem(tls->ca, &out->ca, err) && read_pem(tls->cert, &out->cert, err) &&
           read_pem(tls->key, &out->key, err);
}

bool fx_tls__server(const struct fx_tls *tls, grpc_server_credentials **out, fx_error *err) {
    if (!fx_tls__on(tls)) {
        *out = grpc_insecure_server_credentials_create();
        return true;
    }
    __attribute__((cleanup(pems_done))) struct pems pems = {0};
    if (!pems_read(tls, &pems, err)) return false;
    grpc_ssl_pem_key_cert_pair pair = {pems.key, pems.cert};
    *out = grpc_ssl_server_credentials_create_ex(
        pems.ca, &pair, 1, GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, NULL);
    if (!*out) return fx_fail(err, FX_INVALID_ARGUMENT, "'%s': not usable for TLS", tls->cert);
    return true;
}

bool fx_tls__client(const struct fx_tls *tls, grpc_channel_credentials **out, fx_error *err) {
    if (!fx_tls__on(tls)) {
        *out = grpc_insecure_credentials_create();
        return true;
    }
    __attribute__((cleanup(pems_done))) struct pems pems = {0};
    if (!pems_read(tls, &pems, err)) return false;
    grpc_ssl_pem_key_cert_pair pair = {pems.key, pems.cert};
    *out = grpc_ssl_credentials_create_ex(pems.ca, &pair, NULL, NULL);
    if (!*out) return fx_fail(err, FX_INVALID_ARGUMENT, "'%s': not usable for TLS", tls->cert);
    return true;
}
