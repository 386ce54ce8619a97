/* Addresses a server may be told to listen on. */
#include "tests/fx_test.h"
#include <arpa/inet.h>
#include <unistd.h>
#include "common/http/listen.h"

static const struct row {
    const char *name, *text;
    int port; /* -1: refused */
    bool loopback;
} rows[] = {
    {"v4",             "127.0.0.1:5000",  5000,  true },
    {"all of 127/8",   "127.9.9.9:1",     1,     true },
    {"any",            "0.0.0.0:5000",    5000,  false},
    {"no host",        ":5000",           5000,  false},
    {"localhost",      "localhost:80",    80,    true },
    {"v6",             "[::1]:5000",      5000,  true },
    {"v6 any",         "[::]:65535",      65535, false},
    {"port 0",         "127.0.0.1:0",     0,     true },
    {"no port",        "127.0.0.1",       -1,    false},
    {"empty port",     "127.0.0.1:",      -1,    false},
    {"port too large", "127.0.0.1:65536", -1,    false},
    {"signed port",    "127.0.0.1:+80",   -1,    false},
    {"bare v6",        "::1:5000",        -1,    false},
    {"a name",         "example:80",      -1,    false},
    {"empty",          "",                -1,    false},
};

static void test_parse(void **state) {
    const struct row *row = *state;
    struct fx_listen_addr addr = {0};
    fx_error err = {0};
    if (!fx_listen_parse(row->text, &addr, &err)) {
        if (row->port >= 0) fail_msg("%s", err.text);
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
        return;
    }
    struct sockaddr_in in; /* sin_port and sin6_port lie at the same place */
    memcpy(&in, &addr.at, sizeof in);
    assert_int_equal(ntohs(in.sin_port), row->port);
    assert_int_equal(addr.loopback, row->loopback);
}

/* One may be joined by others of ours; a second FIRST, or one ALONE, is refused. */
static void test_share(void **state) {
    static const enum fx_listen_share refused[] = {FX_LISTEN_FIRST, FX_LISTEN_ALONE};
    char text[32];
    uint16_t port, again;
    int first, second, third;
    fx_error err = {0};
    (void)state;
    assert_true(fx_listen_open_shared("127.0.0.1:0", FX_LISTEN_FIRST, &first, &port, &err));
    (void)snprintf(text, sizeof text, "127.0.0.1:%u", port);
    assert_true(fx_listen_open_shared(text, FX_LISTEN_JOIN, &second, &again, &err));
    assert_int_equal(again, port);
    for (size_t i = 0; i < FX_TEST_COUNT(refused); i++) {
        assert_false(fx_listen_open_shared(text, refused[i], &third, &again, &err));
        assert_int_equal(err.code, FX_UNAVAILABLE);
    }
    close(first);
    close(second);
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 1];
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i] =
            (struct CMUnitTest){rows[i].name, test_parse, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    tests[FX_TEST_COUNT(rows)] = (struct CMUnitTest)cmocka_unit_test(test_share);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
