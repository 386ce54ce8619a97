/* HTTPS: a handshake and a request, a stream whose client leaves, plain text, old versions, files
 * that are none. */
#include <openssl/pem.h>
#include <openssl/x509.h>
#include "common/http/tls.h"
#include "tests/unit/http/wire.h"

static char folder_[] = "/tmp/fx-tls-XXXXXX";
static char cert_[64], key_[64];

/* A self-signed certificate for the test alone. */
static void certificate_write(void) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_NAME *name = X509_get_subject_name(cert);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)"localhost", -1, -1, 0);
    X509_set_issuer_name(cert, name);
    X509_set_pubkey(cert, key);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    FILE *file = fopen(cert_, "we");
    assert_int_equal(PEM_write_X509(file, cert), 1);
    fclose(file);
    file = fopen(key_, "we");
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static int setup(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder_));
    (void)snprintf(cert_, sizeof cert_, "%s/cert.pem", folder_);
    (void)snprintf(key_, sizeof key_, "%s/key.pem", folder_);
    certificate_write();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(cert_);
    unlink(key_);
    rmdir(folder_);
    return 0;
}

static void on_gone(void *ctx) {
    ((struct wire *)ctx)->gone++;
}

static void on_request(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    if (request->method == FX_HTTP_GET) {
        fx_http_reply(call, &(struct fx_http_reply){.status = 200, .body = fx_span_str("{}")});
        return;
    }
    fx_http_call_on_gone(call, on_gone, ctx);
    fx_http_stream_begin(call, NULL, 0, 0);
}

static SSL_CTX *serve(struct wire *wire) {
    SSL_CTX *ctx = NULL;
    fx_error err = {0};
    if (!fx_tls_server(cert_, key_, &ctx, &err)) fail_msg("%s", err.text);
    wire_start(wire, (struct fx_http_server_opts){.request = on_request, .tls = ctx});
    return ctx;
}

static SSL *client(SSL_CTX *ctx, int fd) {
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, fd);
    return ssl;
}

static void test_request(void **state) {
    (void)state;
    struct wire wire = {0};
    SSL_CTX *server = serve(&wire), *ctx = SSL_CTX_new(TLS_client_method());
    assert_int_equal(SSL_CTX_load_verify_locations(ctx, cert_, NULL), 1);
    int fd = wire_connect(&wire);
    SSL *ssl = client(ctx, fd);
    char text[512] = "";
    assert_int_equal(SSL_connect(ssl), 1);
    assert_int_equal(SSL_get_verify_result(ssl), X509_V_OK);
    for (int i = 0; i < 2; i++) {
        const char *get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_true(SSL_write(ssl, get, (int)strlen(get)) > 0);
        int got = SSL_read(ssl, text, sizeof text - 1);
        assert_true(got > 0);
        assert_int_equal(wire_status(text), 200);
    }
    const char *post = "POST / HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_true(SSL_write(ssl, post, (int)strlen(post)) > 0);
    assert_true(SSL_read(ssl, text, sizeof text - 1) > 0);
    close(fd); /* no close_notify: as a client that dies */
    assert_true(wire_wait(&wire.gone, 1));
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    wire_stop(&wire);
    SSL_CTX_free(server);
}

static void test_plain_text(void **state) {
    (void)state;
    struct wire wire = {0};
    SSL_CTX *server = serve(&wire);
    bool closed;
    int fd = wire_connect(&wire);
    wire_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    char *text = wire_read(fd, NULL, &closed);
    assert_true(closed);
    assert_int_equal(wire_status(text), 0);
    free(text);
    close(fd);
    wire_stop(&wire);
    SSL_CTX_free(server);
}

static void test_old_version(void **state) {
    (void)state;
    struct wire wire = {0};
    SSL_CTX *server = serve(&wire), *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(ctx, 0);
    SSL_CTX_set_max_proto_version(ctx, TLS1_1_VERSION);
    int fd = wire_connect(&wire);
    SSL *ssl = client(ctx, fd);
    assert_true(SSL_connect(ssl) <= 0);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fd);
    wire_stop(&wire);
    SSL_CTX_free(server);
}

static void test_files(void **state) {
    (void)state;
    SSL_CTX *ctx = NULL;
    fx_error err = {0};
    assert_false(fx_tls_server("/nowhere.pem", key_, &ctx, &err));
    assert_non_null(strstr(err.text, "/nowhere.pem"));
    assert_false(fx_tls_server(cert_, cert_, &ctx, &err));
    assert_non_null(strstr(err.text, cert_));
    assert_null(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_plain_text),
        cmocka_unit_test(test_old_version),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
