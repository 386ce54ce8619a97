/* Parts of the system are full, away or forgetful. */
#include "tests/integ/gateway/stage.h"

#define CHAT(more)                                                                                 \
    "{\"model\":\"" STAGE_MODEL "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" more "}"
#define STREAM ",\"stream\":true"

static void expect(struct stage *stage, const char *body, unsigned status, const char *holds) {
    char *answer = stage_ask(stage, "/v1/chat/completions", body);
    if (wire_status(answer) != status || !strstr(answer, holds)) fail_msg("%s", answer);
    free(answer);
}

static void test_submit_refused(void **state) {
    struct stage *stage = *state;
    const char *bodies[] = {CHAT(""), CHAT(STREAM)};
    for (size_t i = 0; i < FX_TEST_COUNT(bodies); i++) {
        stage->submit_code = FX_RESOURCE_EXHAUSTED;
        expect(stage, bodies[i], 429, "retry-after: 3\r\nretry-after-ms: 2500\r\n");
        stage->submit_code = FX_UNAVAILABLE;
        expect(stage, bodies[i], 503, "retry-after: 3\r\nretry-after-ms: 2500\r\n");
        stage->submit_code = FX_INTERNAL;
        expect(stage, bodies[i], 500, "\"code\":\"internal_error\"");
    }
    stage->submit_code = FX_OK;
    expect(stage, CHAT(""), 200, "Hello");
}

static void test_keys_away(void **state) {
    struct stage *stage = *state;
    stage->tenant_code = FX_UNAVAILABLE;
    expect(stage, CHAT(""), 503, "retry-after: 1\r\n");
    stage->tenant_code = FX_INTERNAL;
    expect(stage, CHAT(""), 503, "retry-after: 1\r\n");
    assert_int_equal(stage->submitted, 0);
}

static void ignore(void *ctx, const redisReply *reply, const fx_error *err) {
    (void)ctx, (void)reply, (void)err;
}

static void publish(void *user) {
    struct stage *stage = user;
    (void)!fx_redis_command(stage->redis, ignore, NULL, &(fx_error){0}, "PUBLISH fx:keys %s", "id");
}

static void test_key_cache(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < 3; i++)
        expect(stage, CHAT(""), 200, "Hello");
    assert_int_equal(stage->authenticated, 1);
    unsigned long long drops = stage->gateway->metrics.auth_drops;
    assert_true(fx_loop_call(stage->loop, publish, stage)); /* a key was revoked */
    for (int i = 0; i < 5000 && stage->gateway->metrics.auth_drops == drops; i++)
        usleep(1000);
    stage->tenant_code = FX_UNAUTHENTICATED;
    expect(stage, CHAT(""), 401, "invalid_api_key");
    assert_int_equal(stage->authenticated, 2);
}

static void test_key_cache_ends(void **state) {
    struct stage *stage = *state;
    expect(stage, CHAT(""), 200, "Hello");
    stage->tenant_code = FX_UNAUTHENTICATED;
    usleep((GW_AUTH_TTL_MS + 100) * 1000);
    expect(stage, CHAT(""), 401, "invalid_api_key");
}

static bool redis_ready(struct stage *stage, bool want) {
    for (int i = 0; i < 8000 && stage->gateway->metrics.redis_ready != want; i++)
        usleep(1000);
    return stage->gateway->metrics.redis_ready == want;
}

static unsigned admin_status(struct stage *stage, const char *path) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(fx_admin_port(stage->process->admin)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char head[128];
    bool closed;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    (void)snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                   path);
    wire_say(fd, head);
    char *answer = wire_read(fd, NULL, &closed);
    unsigned status = wire_status(answer);
    if (strcmp(path, "/metrics") == 0)
        assert_non_null(strstr(answer, "fx_gateway_requests_total "));
    free(answer);
    close(fd);
    return status;
}

static void test_redis_away(void **state) {
    struct stage *stage = *state;
    expect(stage, CHAT(""), 200, "Hello");
    redis_fixture_kill(&stage->redis_server);
    assert_true(redis_ready(stage, false));
    expect(stage, CHAT(STREAM), 503, "retry-after: 1\r\n");
    assert_int_equal(admin_status(stage, "/readyz"), 200);
    assert_int_equal(admin_status(stage, "/livez"), 200);
    assert_int_equal(admin_status(stage, "/metrics"), 200);
    int asked = stage->authenticated;
    redis_fixture_restart(&stage->redis_server, NULL);
    assert_true(redis_ready(stage, true));
    for (int i = 0; i < 8000 && !fx_redis_ready(stage->redis); i++)
        usleep(1000);
    stage->beat_ms = 0;
    expect(stage, CHAT(""), 200, "Hello");
    assert_true(stage->authenticated > asked); /* the cache went with the connection */
}

static void forget(void *user) {
    struct stage *stage = user;
    (void)!fx_redis_command(stage->redis, ignore, NULL, &(fx_error){0}, "FLUSHALL");
    for (size_t i = 0; i < STAGE_RUNS_MAX; i++)
        stage->runs[i].used = false;
    stage->running = 0;
    stage->beat_ms = 0;
}

/* Redis lost the generation and its log: it is submitted again and the text has neither a gap nor
 * a repetition. */
static void test_redis_forgets(void **state) {
    struct stage *stage = *state;
    bool closed;
    stage_say(stage, (struct stage_script){"Hello, world", 12, 0, 100, 1, FX_FINISH_STOP, NULL});
    int fd = stage_connect(stage);
    stage_post(fd, "/v1/chat/completions", CHAT(STREAM));
    char *head = wire_read(fd, "\"n\":4", &closed);
    assert_true(fx_loop_call(stage->loop, forget, stage));
    char *rest = wire_read(fd, "\r\n0\r\n\r\n", &closed);
    char *answer = calloc(1, WIRE_REPLY_MAX);
    (void)snprintf(answer, WIRE_REPLY_MAX, "%s%s", head, rest);
    struct stage_stream got = stage_stream_read(answer);
    assert_string_equal(got.text, "Hello, world");
    assert_string_equal(got.reason, "stop");
    assert_int_equal(stage->submitted, 2);
    free(got.text);
    free(answer);
    free(head);
    free(rest);
    close(fd);
}

static void test_stalled(void **state) {
    struct stage *stage = *state;
    stage_gateway_close(stage);
    stage->config.stall_ms_max = 1000;
    stage_gateway_open(stage);
    stage_say(stage, (struct stage_script){NULL, 0, 60000, 0, 1, 0, NULL});
    expect(stage, CHAT(STREAM), 200, "\"code\":\"generation_stalled\"");
    expect(stage, CHAT(""), 503, "\"code\":\"generation_stalled\"");
    assert_true(stage_wait(&stage->running, 0)); /* and cancelled */
}

struct draining {
    pthread_t thread;
    struct stage *stage;
};

static void *drain(void *arg) {
    gw_process_drain(((struct draining *)arg)->stage->process);
    return NULL;
}

/* SIGTERM while answers run: they end as they should, new connections are refused. */
static void test_drain(void **state) {
    struct stage *stage = *state;
    struct draining draining = {.stage = stage};
    enum { STREAMS = 5 };
    int fds[STREAMS];
    bool closed;
    stage_say(stage, (struct stage_script){"Hello, world", 12, 0, 50, 1, FX_FINISH_STOP, NULL});
    for (int i = 0; i < STREAMS; i++) {
        fds[i] = stage_connect(stage);
        stage_post(fds[i], "/v1/chat/completions", CHAT(STREAM));
    }
    assert_true(stage_wait(&stage->running, STREAMS));
    assert_int_equal(pthread_create(&draining.thread, NULL, drain, &draining), 0);
    for (int i = 0; i < STREAMS; i++) {
        char *answer = wire_read(fds[i], NULL, &closed);
        struct stage_stream got = stage_stream_read(answer);
        assert_string_equal(got.text, "Hello, world");
        assert_true(closed);
        free(got.text);
        free(answer);
        close(fds[i]);
    }
    pthread_join(draining.thread, NULL);
    assert_int_equal(admin_status(stage, "/readyz"), 503);
    assert_int_equal(admin_status(stage, "/livez"), 200);
}

/* The time to drain is over: what still runs ends with an error, and goes on without us. */
static void test_drain_ends(void **state) {
    struct stage *stage = *state;
    bool closed;
    stage_gateway_close(stage);
    stage->config.health.drain_ms = 300;
    stage_gateway_open(stage);
    stage_say(stage, (struct stage_script){NULL, 0, 0, 50, 1, 0, NULL});
    int fd = stage_connect(stage);
    stage_post(fd, "/v1/chat/completions", CHAT(STREAM));
    char *head = wire_read(fd, "\"n\":2", &closed);
    gw_process_drain(stage->process);
    char *rest = wire_read(fd, NULL, &closed);
    assert_non_null(strstr(rest, "\"code\":\"gateway_shutting_down\""));
    assert_non_null(strstr(rest, "data: [DONE]\n\n\r\n0\r\n\r\n"));
    assert_int_equal(stage->running, 1);
    free(head);
    free(rest);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_submit_refused, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_keys_away, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_key_cache, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_key_cache_ends, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_redis_away, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_redis_forgets, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_stalled, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_drain, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_drain_ends, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
