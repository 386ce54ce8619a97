#include "common/rpc/core_internal.h"

bool fx_tls__on(const struct fx_tls *tls) {
    return (tls->ca && *tls->ca) || (tls->cert && *tls->cert) || (tls->key && *tls->key);
}

bool fx_tls__open(const struct fx_tls *tls, fx_certs **out, fx_error *err) {
    const struct fx_certs_files files = {tls->ca, tls->cert, tls->key};
    if (!fx_tls__on(tls)) return true;
    if (!tls->ca || !*tls->ca || !tls->cert || !*tls->cert || !tls->key || !*tls->key)
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "TLS needs all three of authority, certificate and key");
    return fx_certs_open(FX_CERTS_GRPC, &files, out, err);
}

/* Core asks before each handshake, one at a time. */
static grpc_ssl_certificate_config_reload_status fetch(void *user,
                                                       grpc_ssl_server_certificate_config **out) {
    struct fx_tls_server *tls = user;
    fx_auto_pems pems = {0};
    fx_error err;
    if (fx_certs_generation(tls->certs) == tls->generation)
        return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    if (!fx_certs_copy(tls->certs, &pems, &err)) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
    const grpc_ssl_pem_key_cert_pair pair = {pems.key, pems.cert};
    *out = grpc_ssl_server_certificate_config_create(pems.ca, &pair, 1);
    tls->generation = pems.generation;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

grpc_server_credentials *fx_tls__server(struct fx_tls_server *tls) {
    if (!tls->certs) return grpc_insecure_server_credentials_create();
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, fetch, tls));
}

bool fx_tls__client(fx_certs *certs, grpc_channel_credentials **out, uint64_t *generation,
                    fx_error *err) {
    fx_auto_pems pems = {0};
    if (!certs) {
        *out = grpc_insecure_credentials_create();
        return true;
    }
    if (!fx_certs_copy(certs, &pems, err)) return false;
    grpc_ssl_pem_key_cert_pair pair = {pems.key, pems.cert};
    *out = grpc_ssl_credentials_create_ex(pems.ca, &pair, NULL, NULL);
    if (!*out)
        return fx_fail(err, FX_INVALID_ARGUMENT, "these certificates are not usable for TLS");
    *generation = pems.generation;
    return true;
}
