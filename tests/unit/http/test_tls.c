/* HTTPS: a handshake and a request, a stream whose client leaves, plain text, old versions, files
 * that are none. */
#include "tests/fx_issuer.h"
#include "common/http/tls.h"
#include "tests/unit/http/wire.h"

static char folder_[] = "/tmp/fx-tls-XXXXXX";
static char ca_[64], cert_[64], key_[64];

/* A certificate for the test alone, of its own authority. */
static void certificate_write(void) {
    struct issuer issuer = issuer_open("authority");
    issuer_bundle(folder_, &issuer, NULL);
    issuer_issue(&issuer, folder_, &(struct issue){"tls", "localhost", "DNS:localhost", -60, 3600});
    issuer_close(&issuer);
}

static int setup(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder_));
    (void)snprintf(ca_, sizeof ca_, "%s/ca.pem", folder_);
    (void)snprintf(cert_, sizeof cert_, "%s/tls.pem", folder_);
    (void)snprintf(key_, sizeof key_, "%s/tls.key", folder_);
    certificate_write();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    issuer_remove(folder_);
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

static fx_http_tls *serve(struct wire *wire) {
    fx_http_tls *tls = NULL;
    fx_error err = {0};
    if (!fx_http_tls_open(cert_, key_, &tls, &err)) fail_msg("%s", err.text);
    wire_start(wire, (struct fx_http_server_opts){.request = on_request, .tls = tls});
    return tls;
}

static SSL *client(SSL_CTX *ctx, int fd) {
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, fd);
    return ssl;
}

static void test_request(void **state) {
    (void)state;
    struct wire wire = {0};
    fx_http_tls *server = serve(&wire);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    assert_int_equal(SSL_CTX_load_verify_locations(ctx, ca_, NULL), 1);
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
    fx_http_tls_free(server);
}

static void test_plain_text(void **state) {
    (void)state;
    struct wire wire = {0};
    fx_http_tls *server = serve(&wire);
    bool closed;
    int fd = wire_connect(&wire);
    wire_say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    char *text = wire_read(fd, NULL, &closed);
    assert_true(closed);
    assert_int_equal(wire_status(text), 0);
    free(text);
    close(fd);
    wire_stop(&wire);
    fx_http_tls_free(server);
}

static void test_old_version(void **state) {
    (void)state;
    struct wire wire = {0};
    fx_http_tls *server = serve(&wire);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(ctx, 0);
    SSL_CTX_set_max_proto_version(ctx, TLS1_1_VERSION);
    int fd = wire_connect(&wire);
    SSL *ssl = client(ctx, fd);
    assert_true(SSL_connect(ssl) <= 0);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fd);
    wire_stop(&wire);
    fx_http_tls_free(server);
}

static long serial_of(SSL *ssl) {
    X509 *cert = SSL_get1_peer_certificate(ssl);
    long serial = ASN1_INTEGER_get(X509_get0_serialNumber(cert));
    X509_free(cert);
    return serial;
}

static long serial_shown(struct wire *wire, SSL_CTX *ctx) {
    int fd = wire_connect(wire);
    SSL *ssl = client(ctx, fd);
    assert_int_equal(SSL_connect(ssl), 1);
    long serial = serial_of(ssl);
    SSL_free(ssl);
    close(fd);
    return serial;
}

/* New connections are shown the new certificate, those that are open go on. */
static void test_replaced(void **state) {
    static const char request[] = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    (void)state;
    struct wire wire = {0};
    fx_http_tls *server = serve(&wire);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    char answer[1024];
    int fd = wire_connect(&wire);
    SSL *ssl = client(ctx, fd);
    assert_int_equal(SSL_connect(ssl), 1);
    long old = serial_of(ssl);
    certificate_write();
    uint64_t end_ms = fx_clock_ms() + 10000;
    while (serial_shown(&wire, ctx) == old) {
        assert_true(fx_clock_ms() < end_ms);
        usleep(20000);
    }
    assert_int_equal(SSL_write(ssl, request, sizeof request - 1), sizeof request - 1);
    assert_true(SSL_read(ssl, answer, sizeof answer) > 0);
    assert_memory_equal(answer, "HTTP/1.1 200", 12);
    SSL_free(ssl);
    close(fd);
    SSL_CTX_free(ctx);
    wire_stop(&wire);
    fx_http_tls_free(server);
}

static void test_files(void **state) {
    (void)state;
    fx_http_tls *tls = NULL;
    fx_error err = {0};
    assert_false(fx_http_tls_open("/nowhere.pem", key_, &tls, &err));
    assert_non_null(strstr(err.text, "/nowhere.pem"));
    assert_false(fx_http_tls_open(cert_, cert_, &tls, &err));
    assert_non_null(strstr(err.text, cert_));
    assert_null(tls);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),     cmocka_unit_test(test_plain_text),
        cmocka_unit_test(test_old_version), cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
