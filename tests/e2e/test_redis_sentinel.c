/* A master, its replica and three sentinels, all but one sentinel with a password: the master is
 * killed while generations run. The services find the new one, what had not been replicated is put
 * back, and every text is exact. */
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/stat.h>
#include "tests/e2e/herd.h"

enum {
    SENTINELS = 3,
    PORTS = 2 + SENTINELS + 1, /* the last: nobody listens there */
    LONGS = 8,
    LONG = 900,
    STEP_MS = 20000,
    FAILOVERS = 2,
};
#define MASTER "fractal"
#define PASSWORD "p@ss"
#define PASSWORD_ESCAPED "p%%40ss" /* for printf */

static uint16_t ports[PORTS];
static struct redis_fixture servers[2];
static struct process sentinels[SENTINELS];
static char folders[SENTINELS][64], url[256];

static redisContext *dial(uint16_t port) {
    redisContext *redis = redisConnect("127.0.0.1", port);
    if (!redis || redis->err) {
        if (redis) redisFree(redis);
        return NULL;
    }
    freeReplyObject(redisCommand(redis, "AUTH " PASSWORD)); /* one sentinel wants none */
    return redis;
}

/* The first element of an answer, or the answer; "" when there is none. */
static void ask(uint16_t port, const char *command, char *out, size_t cap) {
    redisContext *redis = dial(port);
    redisReply *reply = redis ? redisCommand(redis, command) : NULL;
    const redisReply *text =
        reply && reply->type == REDIS_REPLY_ARRAY && reply->elements ? reply->element[0] : reply;
    (void)snprintf(out, cap, "%s", text && text->str ? text->str : "");
    if (reply) freeReplyObject(reply);
    if (redis) redisFree(redis);
}

static bool says(uint16_t port, const char *command, const char *want) {
    char out[64];
    ask(port, command, out, sizeof out);
    return strcmp(out, want) == 0;
}

/* Has all that its master had when it began. */
static bool is_in_sync(uint16_t port) {
    char out[2048];
    ask(port, "INFO replication", out, sizeof out);
    return strstr(out, "role:slave") && strstr(out, "master_link_status:up");
}

static void server_start(uint32_t number, bool first) {
    char port[8], master[32];
    (void)snprintf(port, sizeof port, "%u", ports[number]);
    (void)snprintf(master, sizeof master, "%u", ports[1 - number]);
    const char *const alone[] = {"--port", port,           "--bind", "127.0.0.1", "--requirepass",
                                 PASSWORD, "--masterauth", PASSWORD, NULL};
    const char *const replica[] = {"--port",
                                   port,
                                   "--bind",
                                   "127.0.0.1",
                                   "--requirepass",
                                   PASSWORD,
                                   "--masterauth",
                                   PASSWORD,
                                   "--replicaof",
                                   "127.0.0.1",
                                   master,
                                   "--repl-diskless-sync-delay",
                                   "0",
                                   NULL};
    const char *const *args = number ? replica : alone;
    if (first)
        redis_fixture_start(&servers[number], args);
    else
        redis_fixture_restart(&servers[number], replica);
}

static void sentinel_start(uint32_t number) {
    char path[96];
    (void)snprintf(folders[number], sizeof folders[number], "/tmp/fx-sentinel-XXXXXX");
    assert_non_null(mkdtemp(folders[number]));
    (void)snprintf(path, sizeof path, "%s/conf", folders[number]);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    (void)fprintf(file,
                  "port %u\nbind 127.0.0.1\ndir %s\n"
                  "sentinel monitor " MASTER " 127.0.0.1 %u 2\n"
                  "sentinel down-after-milliseconds " MASTER " 1000\n"
                  "sentinel failover-timeout " MASTER " 4000\n"
                  "sentinel auth-pass " MASTER " " PASSWORD "\n"
                  "sentinel sentinel-pass " PASSWORD "\n%s",
                  ports[2 + number], folders[number], ports[0],
                  number < SENTINELS - 1 ? "requirepass " PASSWORD "\n" : "");
    assert_int_equal(fclose(file), 0);
    struct process_env env = {0};
    process_env_put(&env, "PATH=%s", getenv("PATH"));
    process_start(
        &sentinels[number], "sentinel",
        &(struct process_opts){.args = WORDS("redis-server", path, "--sentinel"), .env = &env});
}

static bool sentinels_agree(void) {
    for (uint32_t i = 0; i < SENTINELS; i++) {
        char out[512] = "";
        redisContext *redis = dial(ports[2 + i]);
        redisReply *reply = redis ? redisCommand(redis, "SENTINEL CKQUORUM " MASTER) : NULL;
        if (reply && reply->str) (void)snprintf(out, sizeof out, "%s", reply->str);
        if (reply) freeReplyObject(reply);
        if (redis) redisFree(redis);
        if (strncmp(out, "OK 3", 4) != 0) return false;
    }
    return true;
}

static void start(void) {
    size_t len;
    free_ports(ports, PORTS);
    server_start(0, true);
    server_start(1, true);
    WAIT_FOR(is_in_sync(ports[1]), STEP_MS, "no replica");
    for (uint32_t i = 0; i < SENTINELS; i++)
        sentinel_start(i);
    WAIT_FOR(sentinels_agree(), STEP_MS, "the sentinels do not find each other");
    len = (size_t)snprintf(url, sizeof url, "redis+sentinel://:" PASSWORD_ESCAPED "@127.0.0.1:%u",
                           ports[PORTS - 1]);
    for (uint32_t i = 0; i < SENTINELS; i++)
        len += (size_t)snprintf(url + len, sizeof url - len, ",127.0.0.1:%u", ports[2 + i]);
    (void)snprintf(url + len, sizeof url - len, "/" MASTER);
}

static void stop(void) {
    for (uint32_t i = 0; i < SENTINELS; i++) {
        if (sentinels[i].pid) process_close(&sentinels[i]);
        if (*folders[i]) folder_remove(folders[i]);
    }
    for (uint32_t i = 0; i < 2; i++)
        if (*servers[i].folder) redis_fixture_stop(&servers[i]);
}

static uint32_t master_number(void) {
    return says(ports[0], "ROLE", "master") ? 0 : 1;
}

static void a_failover(void **state) {
    struct suite *suite = *state;
    auto_herd want = {0};
    herd_send(&want, suite, 0, LONGS, LONG);
    herd_rest(&want);
    for (uint32_t i = 0; i < FAILOVERS; i++) {
        auto_herd got = {0};
        uint32_t master = master_number();
        WAIT_FOR(is_in_sync(ports[1 - master]), STEP_MS, "no replica");
        herd_send(&got, suite, 0, LONGS, LONG);
        herd_begun(&got);
        redis_fixture_kill(&servers[master]);
        herd_rest(&got);
        herd_equal(&got, &want);
        WAIT_FOR(says(ports[1 - master], "ROLE", "master"), STEP_MS, "no failover");
        herd_await_services(suite);
        server_start(master, false);
        WAIT_FOR(is_in_sync(ports[master]), STEP_MS, "the old master is no replica");
    }
}

/* The master is told to become a replica and keeps its connections: writes say so. */
static void a_planned_one(void **state) {
    struct suite *suite = *state;
    char answer[64];
    auto_herd want = {0}, got = {0};
    herd_send(&want, suite, 0, LONGS, LONG);
    herd_rest(&want);
    uint32_t master = master_number();
    WAIT_FOR(sentinels_agree(), STEP_MS, "the sentinels do not agree");
    herd_send(&got, suite, 0, LONGS, LONG);
    herd_begun(&got);
    WAIT_FOR((ask(ports[2], "SENTINEL FAILOVER " MASTER, answer, sizeof answer),
              strcmp(answer, "OK") == 0),
             STEP_MS, "no failover: %s", answer);
    herd_rest(&got);
    herd_equal(&got, &want);
    WAIT_FOR(says(ports[1 - master], "ROLE", "master"), STEP_MS, "no failover");
}

static const char *url_of(const struct suite *suite, const char *program, uint32_t number) {
    (void)suite, (void)program, (void)number;
    return url;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_failover),
                                       cmocka_unit_test(a_planned_one)};
    start();
    int failed =
        suite_main("redis_sentinel", tests, FX_TEST_COUNT(tests),
                   &(struct suite_opts){.workers = 2, .schedulers = 2, .redis_url = url_of});
    stop();
    return failed;
}
