/* mTLS: who has a certificate of the right authority gets in, nobody else. */
#include "tests/integ/rpc/certificates.h"
#include "tests/integ/rpc/echo_service.h"

struct fixture {
    struct echo echo;
    fx_server *server;
    char folder[32], target[64];
    char paths[16][64];
    size_t path_count;
};

static const char *path(struct fixture *fixture, const char *name) {
    assert_true(fixture->path_count < FX_TEST_COUNT(fixture->paths));
    char *out = fixture->paths[fixture->path_count++];
    (void)snprintf(out, sizeof fixture->paths[0], "%s/%s", fixture->folder, name);
    return out;
}

static int setup(void **state) {
    static struct fixture fixture;
    fixture = (struct fixture){.folder = "/tmp/fx-tls-XXXXXX"};
    assert_non_null(mkdtemp(fixture.folder));
    certificates_make(fixture.folder);
    struct fx_server_opts opts = {
        .tls = {path(&fixture, "ca.pem"), path(&fixture, "server.pem"),
                path(&fixture, "server.key")}
    };
    fixture.server = echo_open(&fixture.echo, opts, fixture.target);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    echo_close(&fixture->echo, fixture->server);
    char out[256];
    assert_int_equal(shell("rm -rf \"$0\"", fixture->folder, out, sizeof out), 0);
    return 0;
}

static enum fx_code call_as(struct fixture *fixture, struct fx_tls tls, const char *tls_name,
                            char text[256]) {
    fx_error err = {0};
    fx_client *client = NULL;
    struct fx_client_opts opts = {
        .target = fixture->target, .tls = tls, .tls_name = tls_name, .attempts_max = 1};
    fixture->path_count = 0;
    echo_check(fx_client_open(&opts, &client, &err), &err);
    enum fx_code code = echo_call(client, "/test.Echo/Who", 0, "", 3000, text, 256);
    fx_client_free(client);
    return code;
}

static void test_san(void **state) {
    struct fixture *fixture = *state;
    char text[256];
    struct fx_tls tls = {path(fixture, "ca.pem"), path(fixture, "worker.pem"),
                         path(fixture, "worker.key")};
    assert_int_equal(call_as(fixture, tls, NULL, text), FX_OK);
    assert_non_null(strstr(text, " worker-7.fractal"));
}

static void test_cn(void **state) {
    struct fixture *fixture = *state;
    char text[256];
    struct fx_tls tls = {path(fixture, "ca.pem"), path(fixture, "plain.pem"),
                         path(fixture, "plain.key")};
    assert_int_equal(call_as(fixture, tls, "localhost", text), FX_OK);
    assert_non_null(strstr(text, " plain"));
}

static void test_wrong_authority(void **state) {
    struct fixture *fixture = *state;
    char text[256];
    struct fx_tls tls = {path(fixture, "ca.pem"), path(fixture, "stranger.pem"),
                         path(fixture, "stranger.key")};
    assert_int_equal(call_as(fixture, tls, NULL, text), FX_UNAVAILABLE);
}

static void test_expired(void **state) {
    struct fixture *fixture = *state;
    char text[256];
    struct fx_tls tls = {path(fixture, "ca.pem"), path(fixture, "expired.pem"),
                         path(fixture, "expired.key")};
    assert_int_equal(call_as(fixture, tls, NULL, text), FX_UNAVAILABLE);
}

/* The client trusts another authority than the server's. */
static void test_untrusted_server(void **state) {
    struct fixture *fixture = *state;
    char text[256];
    struct fx_tls tls = {path(fixture, "other.pem"), path(fixture, "worker.pem"),
                         path(fixture, "worker.key")};
    assert_int_equal(call_as(fixture, tls, NULL, text), FX_UNAVAILABLE);
}

static void test_wrong_name(void **state) {
    struct fixture *fixture = *state;
    char text[256];
    struct fx_tls tls = {path(fixture, "ca.pem"), path(fixture, "worker.pem"),
                         path(fixture, "worker.key")};
    assert_int_equal(call_as(fixture, tls, "elsewhere.example", text), FX_UNAVAILABLE);
}

static void test_plaintext_client(void **state) {
    char text[256];
    assert_int_equal(call_as(*state, (struct fx_tls){0}, NULL, text), FX_UNAVAILABLE);
}

/* Does the server hang up on a TLS client of another implementation? A client it accepts waits
 * until it is ended after a second. */
static bool hangs_up(struct fixture *fixture, const char *options) {
    char command[512], out[16384];
    (void)snprintf(command, sizeof command,
                   "cd \"$0\" && timeout 1 openssl s_client -connect %s -CAfile ca.pem -alpn h2 %s "
                   "-verify_return_error -ign_eof </dev/null",
                   fixture->target, options);
    int status = shell(command, fixture->folder, out, sizeof out);
    assert_non_null(strstr(out, "Verify return code: 0 (ok)")); /* the client's view of us */
    return status != 124;                                       /* 124: ended by timeout */
}

static void test_no_certificate(void **state) {
    assert_true(hangs_up(*state, ""));
    assert_false(hangs_up(*state, "-cert worker.pem -key worker.key"));
}

static void test_bad_files(void **state) {
    struct fixture *fixture = *state;
    fx_client *client = NULL;
    fx_error err = {0};
    struct fx_client_opts opts = {.target = fixture->target};
    fixture->path_count = 0;
    opts.tls = (struct fx_tls){path(fixture, "missing.pem"), path(fixture, "worker.pem"),
                               path(fixture, "worker.key")};
    assert_false(fx_client_open(&opts, &client, &err));
    assert_int_equal(err.code, FX_NOT_FOUND);
    opts.tls.ca = path(fixture, "worker.ext"); /* no PEM */
    assert_false(fx_client_open(&opts, &client, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    opts.tls = (struct fx_tls){.cert = path(fixture, "worker.pem")};
    assert_false(fx_client_open(&opts, &client, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_null(client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_san),
        cmocka_unit_test(test_cn),
        cmocka_unit_test(test_wrong_authority),
        cmocka_unit_test(test_expired),
        cmocka_unit_test(test_untrusted_server),
        cmocka_unit_test(test_wrong_name),
        cmocka_unit_test(test_plaintext_client),
        cmocka_unit_test(test_no_certificate),
        cmocka_unit_test(test_bad_files),
    };
    /* one state for all of them */
    struct CMUnitTest all[FX_TEST_COUNT(tests)];
    void *state = NULL;
    (void)setup(&state);
    for (size_t i = 0; i < FX_TEST_COUNT(tests); i++) {
        all[i] = tests[i];
        all[i].initial_state = state;
    }
    int failed = cmocka_run_group_tests(all, NULL, NULL);
    (void)teardown(&state);
    return failed;
}
