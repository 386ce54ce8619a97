/* fx_probe against servers of the test's own: what a container's health check says. */
#include "common/base/probe.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "tests/fx_test.h"

struct server {
    int fd;
    const char *answer; /* NULL: none, and the connection stays open */
    char asked[512], addr[64];
    pthread_t thread;
};

static void *serve(void *arg) {
    struct server *server = arg;
    int peer = accept(server->fd, NULL, NULL);
    ssize_t got = recv(peer, server->asked, sizeof server->asked - 1, 0);
    if (got > 0 && server->answer)
        (void)!write(peer, server->answer, strlen(server->answer));
    else
        (void)recv(peer, (char[1]){0}, 1, 0); /* until the probe gives up */
    (void)close(peer);
    return NULL;
}

static void server_open(struct server *server, const char *answer, const char *host) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    *server = (struct server){.fd = socket(AF_INET, SOCK_STREAM, 0), .answer = answer};
    assert_int_equal(bind(server->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(server->fd, 1), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(server->addr, sizeof server->addr, "%s:%u", host, ntohs(at.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void server_close(struct server *server) {
    (void)pthread_join(server->thread, NULL);
    (void)close(server->fd);
}

static void test_ready(void **state) {
    static const char *const hosts[] = {"127.0.0.1", "0.0.0.0", "localhost"};
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(hosts); i++) {
        struct server server;
        fx_error err = {0};
        server_open(&server, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n", hosts[i]);
        if (!fx_probe(server.addr, "/readyz", &err)) fail_msg("%s", err.text);
        server_close(&server);
        assert_non_null(strstr(server.asked, "GET /readyz HTTP/1.1\r\n"));
    }
}

static void test_unready(void **state) {
    struct server server;
    fx_error err = {0};
    (void)state;
    server_open(&server, "HTTP/1.1 503 Service Unavailable\r\n\r\nRedis does not answer\n",
                "127.0.0.1");
    assert_false(fx_probe(server.addr, "/readyz", &err));
    server_close(&server);
    assert_int_equal(err.code, FX_UNAVAILABLE);
    assert_non_null(strstr(err.text, "/readyz: 503 Redis does not answer"));
}

/* A server that accepts and says nothing costs the limit, once. */
static void test_silent(void **state) {
    struct server server;
    fx_error err = {0};
    (void)state;
    server_open(&server, NULL, "127.0.0.1");
    uint64_t begin_ms = fx_clock_ms();
    assert_false(fx_probe(server.addr, "/livez", &err));
    uint64_t took_ms = fx_clock_ms() - begin_ms;
    server_close(&server);
    assert_true(took_ms >= FX_PROBE_MS - 100);
    assert_non_null(strstr(err.text, "no HTTP answer"));
}

static void test_wrong(void **state) {
    fx_error err = {0};
    (void)state;
    assert_false(fx_probe("nothing", "/readyz", &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    err = (fx_error){0};
    assert_false(fx_probe("127.0.0.1:1", "/readyz", &err)); /* nobody listens there */
    assert_int_equal(err.code, FX_UNAVAILABLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_unready),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
