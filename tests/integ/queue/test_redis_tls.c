/* rediss://: a real redis-server with a certificate; whom the client trusts, and whom Redis does.
 */
#include <event2/event.h>
#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include "common/base/certificates.h"
#include "common/base/clock.h"
#include "common/queue/redis.h"
#include "tests/integ/queue/redis_fixture.h"
#include "tests/integ/rpc/certificates.h"

enum { READY_MS = 5000, REFUSED_MS = 1000, VALUE_BYTES = 1 << 20, TEXT_MAX = 160 };

static struct server {
    struct redis_fixture redis;
    char folder[64];
    uint16_t port;
} server;

static uint16_t free_port(void) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    (void)close(fd);
    return ntohs(in.sin_port);
}

static const char *file(const char *name, char out[TEXT_MAX]) {
    (void)snprintf(out, TEXT_MAX, "%s/%s", server.folder, name);
    return out;
}

static void server_start(const char *auth_clients) {
    char port[8], cert[TEXT_MAX], key[TEXT_MAX], ca[TEXT_MAX];
    (void)snprintf(port, sizeof port, "%u", server.port);
    const char *const args[] = {"--bind",
                                "127.0.0.1",
                                "127.0.0.2",
                                "--tls-port",
                                port,
                                "--tls-cert-file",
                                file("server.pem", cert),
                                "--tls-key-file",
                                file("server.key", key),
                                "--tls-ca-cert-file",
                                file("ca.pem", ca),
                                "--tls-auth-clients",
                                auth_clients,
                                NULL};
    if (*server.redis.folder)
        redis_fixture_restart(&server.redis, args);
    else
        redis_fixture_start(&server.redis, args);
}

static int setup(void **state) {
    (void)state;
    (void)snprintf(server.folder, sizeof server.folder, "/tmp/fx-redis-tls-XXXXXX");
    assert_non_null(mkdtemp(server.folder));
    certificates_make(server.folder);
    server.port = free_port();
    server_start("no");
    return 0;
}

static int teardown(void **state) {
    char out[64];
    (void)state;
    redis_fixture_stop(&server.redis);
    assert_int_equal(shell("rm -r \"$0\"", server.folder, out, sizeof out), 0);
    return 0;
}

/* -- who is trusted -- */

struct row {
    const char *name, *scheme, *host;
    const char *ca, *cert; /* names of PEM files, cert's key beside it; NULL: none */
    bool demanding;        /* Redis wants a certificate */
    const char *error;     /* in the reason; NULL: it connects */
};

static const struct row rows[] = {
    {"by name",                "rediss", "localhost", "ca",    NULL,       false, NULL             },
    {"by address",             "rediss", "127.0.0.1", "ca",    NULL,       false, NULL             },
    {"another's name",         "rediss", "127.0.0.2", "ca",    NULL,       false, "certificate: IP"},
    {"another authority",      "rediss", "localhost", "other", NULL,       false, "certificate: "  },
    {"the system's authority", "rediss", "localhost", NULL,    NULL,       false, "certificate: "  },
    {"no TLS",                 "redis",  "localhost", NULL,    NULL,       false, "Redis"          },
    {"a certificate of ours",  "rediss", "localhost", "ca",    "worker",   true,  NULL             },
    {"a needless one",         "rediss", "localhost", "ca",    "worker",   false, NULL             },
    {"no certificate of ours", "rediss", "localhost", "ca",    NULL,       true,  "Redis"          },
    {"a stranger's",           "rediss", "localhost", "ca",    "stranger", true,  "Redis"          },
};

static void open_client(const struct row *row, struct event_base *base, fx_redis **out) {
    char url[96], ca[TEXT_MAX], cert[TEXT_MAX], key[TEXT_MAX], name[32];
    fx_error err = {0};
    (void)snprintf(url, sizeof url, "%s://%s:%u", row->scheme, row->host, server.port);
    struct fx_redis_opts opts = {.base = base, .url = url};
    (void)snprintf(name, sizeof name, "%s.pem", row->ca ? row->ca : "");
    if (row->ca) opts.tls.ca_file = file(name, ca);
    (void)snprintf(name, sizeof name, "%s.pem", row->cert ? row->cert : "");
    if (row->cert) opts.tls.cert_file = file(name, cert);
    (void)snprintf(name, sizeof name, "%s.key", row->cert ? row->cert : "");
    if (row->cert) opts.tls.key_file = file(name, key);
    opts.timeout_ms = 700;
    if (!fx_redis_open(&opts, out, &err)) fail_msg("%s", err.text);
}

static void on_message(void *ctx, enum fx_redis_event event, fx_span payload) {
    int *seen = ctx;
    if (event == FX_REDIS_SUBSCRIBED) *seen = 1;
    if (event == FX_REDIS_MESSAGE && fx_span_eq_str(payload, "hello")) *seen = 2;
}

static void until(struct event_base *base, const int *seen, int want) {
    for (int i = 0; i < 500 && *seen != want; i++) {
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
        (void)usleep(5000);
    }
    assert_int_equal(*seen, want);
}

/* Large values both ways, and pub/sub, which has a connection of its own. */
static void check_works(fx_redis *redis, struct event_base *base) {
    static char value[VALUE_BYTES];
    fx_auto(redisReply) reply = NULL;
    fx_auto(redisReply) told = NULL;
    fx_auto(fx_redis_sub) sub = NULL;
    fx_error err = {0};
    int seen = 0;
    memset(value, 'v', sizeof value);
    if (!fx_redis_sync(redis, READY_MS, &reply, &err, "ECHO %b", value, sizeof value))
        fail_msg("%s", err.text);
    assert_int_equal(reply->len, VALUE_BYTES);
    assert_memory_equal(reply->str, value, VALUE_BYTES);
    assert_true(fx_redis_subscribe(redis, fx_span_str("c"), on_message, &seen, &sub, &err));
    until(base, &seen, 1);
    assert_true(fx_redis_sync(redis, READY_MS, &told, &err, "PUBLISH c hello"));
    until(base, &seen, 2);
}

static void test_trust(void **state) {
    const struct row *row = *state;
    fx_error err = {0};
    struct event_base *base = event_base_new();
    fx_redis *redis = NULL;
    redis_fixture_kill(&server.redis);
    server_start(row->demanding ? "yes" : "no");
    open_client(row, base, &redis);
    bool ready = fx_redis_wait_ready(redis, row->error ? REFUSED_MS : READY_MS, &err);
    if (ready == (row->error != NULL)) fail_msg("%s", ready ? "it connected" : err.text);
    if (row->error && !strstr(err.text, row->error)) fail_msg("'%s'", err.text);
    if (ready) check_works(redis, base);
    fx_redis_free(redis);
    event_base_free(base);
}

/* -- a sentinel, by TLS as well -- */

static pid_t sentinel_start(uint16_t port) {
    char path[TEXT_MAX], cert[TEXT_MAX], key[TEXT_MAX], ca[TEXT_MAX];
    FILE *conf = fopen(file("sentinel.conf", path), "we");
    assert_non_null(conf);
    (void)fprintf(conf,
                  "port 0\ntls-port %u\nbind 127.0.0.1\ndir %s\nlogfile sentinel.log\n"
                  "tls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\n"
                  "tls-auth-clients no\ntls-replication yes\n"
                  "sentinel monitor the-master 127.0.0.1 %u 1\n",
                  port, server.folder, file("server.pem", cert), file("server.key", key),
                  file("ca.pem", ca), server.port);
    assert_int_equal(fclose(conf), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execlp("redis-server", "redis-server", path, "--sentinel", (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

static void test_sentinel(void **state) {
    char url[96], ca[TEXT_MAX];
    fx_error err = {0};
    struct event_base *base = event_base_new();
    fx_redis *redis = NULL;
    uint16_t port = free_port();
    (void)state;
    redis_fixture_kill(&server.redis);
    server_start("no");
    pid_t pid = sentinel_start(port);
    (void)snprintf(url, sizeof url, "rediss+sentinel://localhost:%u/the-master", port);
    const struct fx_redis_opts opts = {
        .base = base, .url = url, .tls = {.ca_file = file("ca.pem", ca)}};
    assert_true(fx_redis_open(&opts, &redis, &err));
    if (!fx_redis_wait_ready(redis, READY_MS, &err)) fail_msg("%s", err.text);
    check_works(redis, base);
    fx_redis_free(redis);
    event_base_free(base);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* -- files -- */

static void test_files(void **state) {
    char cert[TEXT_MAX], key[TEXT_MAX], none[TEXT_MAX];
    (void)state;
    (void)file("worker.pem", cert);
    (void)file("server.key", key);
    (void)file("none.pem", none);
    const struct {
        struct fx_redis_tls tls;
        const char *variable;
        enum fx_code code;
    } bad[] = {
        {{.ca_file = none},                     "FX_REDIS_CA",   FX_NOT_FOUND       },
        {{.cert_file = cert},                   "FX_REDIS_CERT", FX_INVALID_ARGUMENT},
        {{.key_file = key},                     "FX_REDIS_CERT", FX_INVALID_ARGUMENT},
        {{.cert_file = none, .key_file = key},  "FX_REDIS_CERT", FX_NOT_FOUND       },
        {{.cert_file = cert, .key_file = none}, "FX_REDIS_KEY",  FX_NOT_FOUND       },
        {{.cert_file = cert, .key_file = key},  "FX_REDIS_KEY",  FX_INVALID_ARGUMENT}, /* another's */
    };
    struct event_base *base = event_base_new();
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++) {
        fx_redis *redis = NULL;
        fx_error err = {0};
        const struct fx_redis_opts opts = {.base = base, .url = "rediss://h", .tls = bad[i].tls};
        assert_false(fx_redis_open(&opts, &redis, &err));
        assert_int_equal(err.code, bad[i].code);
        if (!strstr(err.text, bad[i].variable)) fail_msg("%zu: %s", i, err.text);
    }
    event_base_free(base);
}

/* -- replaced files -- */

/* FOLDER/now.pem and now.key, and whom we trust, are copies of those of `cert` and `ca`. */
static void put(const char *cert, const char *ca) {
    char script[512], out[256];
    (void)snprintf(script, sizeof script,
                   "cd \"$0\" && cp %s.pem 1 && cp %s.key 2 && cp %s.pem 3 && mv 1 now.pem && "
                   "mv 2 now.key && mv 3 trusted.pem",
                   cert, cert, ca);
    assert_int_equal(shell(script, server.folder, out, sizeof out), 0);
}

static bool await_ready(fx_redis *redis, struct event_base *base, uint32_t ms) {
    for (uint64_t end_ms = fx_clock_ms() + ms; fx_clock_ms() < end_ms; (void)usleep(5000)) {
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
        if (fx_redis_ready(redis)) return true;
    }
    return false;
}

/* A client that Redis refuses, and that trusts another than Redis's authority, connects once its
 * files are right; nobody starts it again. A connection that is up stays when they go wrong. */
static void test_replaced(void **state) {
    const struct row row = {
        .scheme = "rediss", .host = "localhost", .ca = "trusted", .cert = "now"};
    struct event_base *base = event_base_new();
    fx_redis *redis = NULL;
    fx_error err = {0};
    (void)state;
    redis_fixture_kill(&server.redis);
    server_start("yes");
    put("stranger", "other");
    open_client(&row, base, &redis);
    assert_false(await_ready(redis, base, REFUSED_MS));
    put("stranger", "ca");
    assert_false(await_ready(redis, base, REFUSED_MS));
    put("worker", "ca");
    assert_true(await_ready(redis, base, READY_MS));
    check_works(redis, base);
    put("stranger", "other");
    (void)usleep(2 * FX_CERTS_LOOK_MS * 1000);
    fx_auto(redisReply) reply = NULL;
    assert_true(fx_redis_sync(redis, READY_MS, &reply, &err, "PING"));
    fx_redis_free(redis);
    event_base_free(base);
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 3];
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i] =
            (struct CMUnitTest){rows[i].name, test_trust, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    tests[FX_TEST_COUNT(rows)] = (struct CMUnitTest)cmocka_unit_test(test_files);
    tests[FX_TEST_COUNT(rows) + 1] = (struct CMUnitTest)cmocka_unit_test(test_sentinel);
    tests[FX_TEST_COUNT(rows) + 2] = (struct CMUnitTest)cmocka_unit_test(test_replaced);
    return cmocka_run_group_tests(tests, setup, teardown);
}
