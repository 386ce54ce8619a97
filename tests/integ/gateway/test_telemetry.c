/* GET /v1/telemetry and its tickets. */
#include "common/base/hash.h"
#include "fractal/v1/worker.pb-c.h"
#include "services/gateway/telemetry.h"
#include "tests/e2e/listener.h"
#include "tests/integ/gateway/stage.h"

enum { SNAPSHOT_MS = 4000, END_MS = 8000 };

#define MUST(call)                                                                                 \
    do {                                                                                           \
        fx_error err = {0};                                                                        \
        if (!(call)) fail_msg("%s: %s", #call, err.text);                                          \
    } while (0)
#define auto_json __attribute__((cleanup(json_free_at))) json_t *
static void json_free_at(json_t **json) {
    json_decref(*json);
}

static void listen_to(struct listener *listener, struct stage *stage, const char *path,
                      const char *key, unsigned status) {
    MUST(listener_open(listener, gw_process_port(stage->process), path, key, &err));
    assert_int_equal(listener->conn.status, status);
}

static void listen_well(struct listener *listener, struct stage *stage) {
    listen_to(listener, stage, "/v1/telemetry", STAGE_KEY, 200);
}

static json_t *next(struct listener *listener) {
    json_t *snapshot;
    MUST(listener_next(listener, SNAPSHOT_MS, &snapshot, &err));
    return snapshot;
}

/* Snapshots may still come; then the stream is whole. */
static void expect_end(struct listener *listener, uint32_t ms) {
    uint64_t end_ms = fx_clock_ms() + ms;
    fx_error err = {0};
    json_t *snapshot;
    while (listener_next(listener, SNAPSHOT_MS, &snapshot, &err)) {
        json_decref(snapshot);
        assert_true(fx_clock_ms() < end_ms);
    }
    if (err.code != FX_OUT_OF_RANGE) fail_msg("%s", err.text);
}

/* -- who may -- */

static void test_access(void **state) {
    struct stage *stage = *state;
    char *answer = stage_get(stage, "/v1/telemetry", "");
    assert_int_equal(wire_status(answer), 401);
    assert_non_null(strstr(answer, "missing_api_key"));
    free(answer);
    answer = stage_get(stage, "/v1/telemetry", "Authorization: Bearer nobody\r\n");
    assert_int_equal(wire_status(answer), 401);
    free(answer);
    answer = stage_ask(stage, "/v1/telemetry", "{}");
    assert_int_equal(wire_status(answer), 405);
    assert_non_null(strstr(answer, "\r\nallow: GET\r\n"));
    free(answer);
    answer = stage_get(stage, "/v1/telemetry/tickets", "Authorization: Bearer " STAGE_KEY "\r\n");
    assert_int_equal(wire_status(answer), 405);
    free(answer);
    assert_int_equal(stage->gateway->metrics.telemetry_listeners, 0);
}

static void test_head(void **state) {
    struct stage *stage = *state;
    bool closed;
    int fd = stage_connect(stage);
    wire_say(fd, "HEAD /v1/telemetry HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                 "Authorization: Bearer " STAGE_KEY "\r\n\r\n");
    char *answer = wire_read(fd, NULL, &closed);
    assert_true(closed);
    assert_int_equal(wire_status(answer), 200);
    assert_non_null(strstr(answer, "content-type: text/event-stream"));
    assert_string_equal(stage_body(answer), "");
    free(answer);
    close(fd);
}

static void test_old_http(void **state) {
    struct stage *stage = *state;
    bool closed;
    int fd = stage_connect(stage);
    wire_say(fd, "GET /v1/telemetry HTTP/1.0\r\nAuthorization: Bearer " STAGE_KEY "\r\n\r\n");
    char *answer = wire_read(fd, NULL, &closed);
    assert_int_equal(wire_status(answer), 505);
    free(answer);
    close(fd);
}

/* -- what is told -- */

struct beating {
    struct stage *stage;
    const char *worker;
    Fractal__V1__WorkerFigures figures;
};

static void on_beat(void *ctx, const fx_error *err) {
    (void)ctx;
    assert_null(err);
}

static void beat(void *user) {
    struct beating *beating = user;
    uint8_t bytes[1024];
    struct fx_beat beat = {
        .model = 99, .model_name = "org/figures", .worker = {.slots = 4, .slots_free = 3}
    };
    (void)snprintf(beat.worker.worker, sizeof beat.worker.worker, "%s", beating->worker);
    size_t len = fractal__v1__worker_figures__pack(&beating->figures, bytes);
    beat.worker.figures = (fx_span){bytes, len};
    MUST(fx_queue_beat(beating->stage->queue, &beat, on_beat, NULL, &err));
}

static void two_beats(struct stage *stage) {
    struct beating beats[2] = {
        {stage, "a", FRACTAL__V1__WORKER_FIGURES__INIT},
        {stage, "b", FRACTAL__V1__WORKER_FIGURES__INIT},
    };
    for (uint32_t i = 0; i < 2; i++) {
        beats[i].figures.interval_ms = 1000;
        beats[i].figures.interval_decoded = 10 + i;
        beats[i].figures.tokens_decoded = 100 * (i + 1);
        beats[i].figures.kv_pages = 8;
        beats[i].figures.kv_pages_free = 5;
        assert_true(fx_loop_call(stage->loop, beat, &beats[i]));
    }
}

static void test_figures(void **state) {
    struct stage *stage = *state;
    two_beats(stage);
    auto_listener listener;
    listen_well(&listener, stage);
    auto_json snapshot = next(&listener);
    assert_in_range(snapshot_number(snapshot, "at_ms"), fx_wall_ms() - 3000, fx_wall_ms());
    assert_float_equal(snapshot_number(snapshot, "models_omitted"), 0, 0);
    const json_t *model = snapshot_model(snapshot, "org/figures");
    assert_non_null(model);
    assert_float_equal(snapshot_number(model, "tokens_per_s.decode"), 21, 0);
    assert_float_equal(snapshot_number(model, "tokens.decode"), 300, 0);
    assert_float_equal(snapshot_number(model, "kv_pages.used"), 6, 0);
    assert_float_equal(snapshot_number(model, "slots.total"), 8, 0);
    assert_int_equal(json_array_size(json_object_get(model, "workers")), 2);
    model = snapshot_model(snapshot, STAGE_MODEL); /* its worker tells no figures */
    assert_non_null(model);
    assert_float_equal(snapshot_number(model, "slots.total"), 16, 0);
    assert_true(json_is_null(json_object_get(model, "kv_pages")));
}

static void test_once_a_second(void **state) {
    struct stage *stage = *state;
    auto_listener listener;
    listen_well(&listener, stage);
    double before = 0;
    for (int i = 0; i < 4; i++) {
        auto_json snapshot = next(&listener);
        double at_ms = snapshot_number(snapshot, "at_ms");
        if (i > 1) assert_in_range(at_ms - before, 500, 2500);
        before = at_ms;
    }
}

/* Redis is asked while somebody listens, once for all of them. */
static long long model_lists_read(struct stage *stage) {
    struct event_base *base = event_base_new();
    struct fx_redis_opts opts = {.base = base, .url = stage->redis_server.url};
    fx_redis *redis = NULL;
    redisReply *reply = NULL;
    long long calls = 0;
    MUST(fx_redis_open(&opts, &redis, &err));
    MUST(fx_redis_wait_ready(redis, 3000, &err));
    MUST(fx_redis_sync(redis, 3000, &reply, &err, "INFO commandstats"));
    const char *at = strstr(reply->str, "cmdstat_hgetall:calls=");
    if (at) calls = strtoll(at + strlen("cmdstat_hgetall:calls="), NULL, 10);
    freeReplyObject(reply);
    fx_redis_free(redis);
    (void)event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_free(base);
    return calls;
}

static void test_read_for_all_and_for_nobody(void **state) {
    struct stage *stage = *state;
    struct listener listeners[5];
    usleep(1500 * 1000);
    assert_int_equal(model_lists_read(stage), 0);
    for (size_t i = 0; i < FX_TEST_COUNT(listeners); i++)
        listen_well(&listeners[i], stage);
    usleep(2500 * 1000);
    assert_int_equal(stage->gateway->metrics.telemetry_listeners, 5);
    assert_in_range(model_lists_read(stage), 2, 5); /* at once, then each second */
    for (size_t i = 0; i < FX_TEST_COUNT(listeners); i++)
        listener_close(&listeners[i]);
    for (int i = 0; i < 2000 && stage->gateway->metrics.telemetry_listeners; i++)
        usleep(1000);
    assert_int_equal(stage->gateway->metrics.telemetry_listeners, 0);
    long long before = model_lists_read(stage);
    usleep(1500 * 1000);
    assert_int_equal(model_lists_read(stage), before);
}

static void test_same_bytes(void **state) {
    struct stage *stage = *state;
    auto_listener first;
    listen_well(&first, stage);
    auto_listener second;
    listen_well(&second, stage);
    char *seen[4] = {NULL};
    size_t same = 0;
    for (size_t i = 0; i < FX_TEST_COUNT(seen); i++) {
        json_decref(next(&first));
        seen[i] = strndup((const char *)first.data.at, first.data.len);
    }
    for (size_t i = 0; i < 3; i++) {
        json_decref(next(&second));
        for (size_t j = 0; j < FX_TEST_COUNT(seen); j++)
            same += fx_span_eq_str(second.data, seen[j]);
    }
    assert_true(same >= 2); /* they may have begun between two snapshots */
    for (size_t i = 0; i < FX_TEST_COUNT(seen); i++)
        free(seen[i]);
}

static void test_redis_away(void **state) {
    struct stage *stage = *state;
    auto_listener listener;
    listen_well(&listener, stage);
    fx_error silent = {0};
    json_t *none;
    json_decref(next(&listener));
    redis_fixture_kill(&stage->redis_server);
    while (listener_next(&listener, 2500, &none, &silent))
        json_decref(none);
    assert_int_equal(silent.code, FX_DEADLINE_EXCEEDED); /* no word, and open */
    redis_fixture_restart(&stage->redis_server, NULL);
    MUST(listener_next(&listener, 10000, &none, &err));
    json_decref(none);
}

/* -- bounds -- */

static void test_listeners_max(void **state) {
    struct stage *stage = *state;
    static struct listener listeners[GW_TELEMETRY_LISTENERS_MAX];
    char key[] = STAGE_KEY "0";
    for (size_t i = 0; i < FX_TEST_COUNT(listeners); i++) {
        key[sizeof key - 2] = (char)('0' + i / GW_TELEMETRY_KEY_LISTENERS_MAX);
        listen_to(&listeners[i], stage, "/v1/telemetry", key, 200);
        if (i + 1 != GW_TELEMETRY_KEY_LISTENERS_MAX) continue;
        auto_listener ninth;
        listen_to(&ninth, stage, "/v1/telemetry", key, 429);
    }
    auto_listener more;
    listen_to(&more, stage, "/v1/telemetry", STAGE_KEY "8", 503);
    char retry[16];
    assert_true(http_header(&more.conn, "retry-after", retry, sizeof retry));
    listener_close(&listeners[0]);
    for (int i = 0;
         i < 2000 && stage->gateway->metrics.telemetry_listeners == GW_TELEMETRY_LISTENERS_MAX; i++)
        usleep(1000);
    listen_to(&listeners[0], stage, "/v1/telemetry", STAGE_KEY "8", 200);
    for (size_t i = 0; i < FX_TEST_COUNT(listeners); i++) {
        json_decref(next(&listeners[i]));
        listener_close(&listeners[i]);
    }
}

/* -- keys that go -- */

static void ticket_get(struct stage *stage, char out[65]) {
    char *answer = stage_ask(stage, "/v1/telemetry/tickets", "");
    assert_int_equal(wire_status(answer), 200);
    auto_json json = json_loads(stage_body(answer), 0, NULL);
    const char *ticket = json_string_value(json_object_get(json, "ticket"));
    assert_non_null(ticket);
    assert_int_equal(strlen(ticket), 64);
    assert_int_equal(json_integer_value(json_object_get(json, "expires_in_s")), GW_TICKET_TTL_S);
    memcpy(out, ticket, 65);
    free(answer);
}

static void listen_by_ticket(struct listener *listener, struct stage *stage, const char *ticket,
                             unsigned status) {
    char path[128];
    (void)snprintf(path, sizeof path, "/v1/telemetry?x=1&ticket=%s", ticket);
    listen_to(listener, stage, path, NULL, status);
}

static void ignore(void *ctx, const redisReply *reply, const fx_error *err) {
    (void)ctx, (void)reply, (void)err;
}

static void publish(void *user) {
    struct stage *stage = user;
    (void)!fx_redis_command(stage->redis, ignore, NULL, &(fx_error){0}, "PUBLISH fx:keys %s", "id");
}

static void test_revoked(void **state) {
    struct stage *stage = *state;
    char ticket[65];
    auto_listener by_key;
    listen_well(&by_key, stage);
    ticket_get(stage, ticket);
    auto_listener by_ticket;
    listen_by_ticket(&by_ticket, stage, ticket, 200);
    json_decref(next(&by_key));
    json_decref(next(&by_ticket));
    stage->tenant_code = FX_UNAUTHENTICATED;
    assert_true(fx_loop_call(stage->loop, publish, stage));
    uint64_t begun_ms = fx_clock_ms();
    expect_end(&by_key, END_MS);
    expect_end(&by_ticket, END_MS);
    assert_true(fx_clock_ms() - begun_ms < 6000);
    assert_int_equal(stage->gateway->metrics.telemetry_listeners, 0);
}

static void test_a_good_key_stays(void **state) {
    struct stage *stage = *state;
    auto_listener listener;
    listen_well(&listener, stage);
    int asked = stage->authenticated;
    for (int i = 0; i < 8; i++) /* longer than a key is kept */
        json_decref(next(&listener));
    assert_in_range(stage->authenticated - asked, 1, 3);
}

static void test_tickets(void **state) {
    struct stage *stage = *state;
    char ticket[65], other[65];
    ticket_get(stage, ticket);
    ticket_get(stage, other);
    assert_string_not_equal(ticket, other);
    auto_listener first;
    listen_by_ticket(&first, stage, ticket, 200);
    json_decref(next(&first));
    static const char *const wrong[] = {
        "", "0", "zz", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    for (size_t i = 0; i < FX_TEST_COUNT(wrong); i++) {
        auto_listener refused;
        listen_by_ticket(&refused, stage, wrong[i], 401);
    }
    auto_listener again;
    listen_by_ticket(&again, stage, ticket, 401); /* for one stream */
    auto_listener second;
    listen_by_ticket(&second, stage, other, 200);
    json_decref(next(&second));
}

/* A ticket is for the stream alone, and a key in the header is what counts beside one. */
static void test_tickets_open_nothing_else(void **state) {
    struct stage *stage = *state;
    static const char *const paths[] = {"/v1/models", "/v1/models/x", "/v1/generations/x/events"};
    char ticket[65], path[160];
    ticket_get(stage, ticket);
    for (size_t i = 0; i < FX_TEST_COUNT(paths); i++) {
        (void)snprintf(path, sizeof path, "%s?ticket=%s", paths[i], ticket);
        auto_listener refused;
        listen_to(&refused, stage, path, NULL, 401);
    }
    (void)snprintf(path, sizeof path, "/v1/telemetry?ticket=%s", ticket);
    auto_listener wrong_key;
    listen_to(&wrong_key, stage, path, "fx-wrong", 401);
    auto_listener good;
    listen_by_ticket(&good, stage, ticket, 200); /* it was not spent */
    json_decref(next(&good));
}

/* Redis holds two digests for a minute. */
static void test_tickets_in_redis(void **state) {
    struct stage *stage = *state;
    char ticket[65], hex[FX_SHA256_HEX], of_key[FX_SHA256_HEX];
    uint8_t digest[FX_SHA256_BYTES];
    struct event_base *base = event_base_new();
    struct fx_redis_opts opts = {.base = base, .url = stage->redis_server.url};
    fx_redis *redis = NULL;
    redisReply *reply = NULL;
    ticket_get(stage, ticket);
    fx_sha256(fx_span_str(ticket), digest);
    fx_hex((fx_span){digest, sizeof digest}, hex);
    fx_sha256(fx_span_str(STAGE_KEY), digest);
    fx_hex((fx_span){digest, sizeof digest}, of_key);
    MUST(fx_redis_open(&opts, &redis, &err));
    MUST(fx_redis_wait_ready(redis, 3000, &err));
    MUST(fx_redis_sync(redis, 3000, &reply, &err, "KEYS fx:ticket:*"));
    assert_int_equal(reply->elements, 1);
    assert_string_equal(reply->element[0]->str + strlen("fx:ticket:"), hex);
    freeReplyObject(reply);
    MUST(fx_redis_sync(redis, 3000, &reply, &err, "GET fx:ticket:%s", hex));
    assert_string_equal(reply->str, of_key);
    freeReplyObject(reply);
    MUST(fx_redis_sync(redis, 3000, &reply, &err, "TTL fx:ticket:%s", hex));
    assert_in_range(reply->integer, GW_TICKET_TTL_S - 5, GW_TICKET_TTL_S);
    freeReplyObject(reply);
    MUST(fx_redis_sync(redis, 3000, &reply, &err, "DEL fx:ticket:%s",
                       hex)); /* as if it had run out */
    freeReplyObject(reply);
    auto_listener late;
    listen_by_ticket(&late, stage, ticket, 401);
    fx_redis_free(redis);
    (void)event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_free(base);
}

static void test_tickets_of_a_revoked_key(void **state) {
    struct stage *stage = *state;
    char ticket[65];
    ticket_get(stage, ticket);
    stage->tenant_code = FX_UNAUTHENTICATED;
    unsigned long long drops = stage->gateway->metrics.auth_drops;
    assert_true(fx_loop_call(stage->loop, publish, stage));
    for (int i = 0; i < 5000 && stage->gateway->metrics.auth_drops == drops; i++)
        usleep(1000);
    auto_listener refused;
    listen_by_ticket(&refused, stage, ticket, 401);
}

static unsigned ticket_status(int fd, char key) {
    bool closed;
    char head[256];
    (void)snprintf(head, sizeof head,
                   "POST /v1/telemetry/tickets HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
                   "Authorization: Bearer " STAGE_KEY "%c\r\n\r\n",
                   key);
    wire_say(fd, head);
    char *answer = wire_read(fd, "}", &closed);
    unsigned status = wire_status(answer);
    free(answer);
    return status;
}

/* So many of a key, and so many of all keys. */
static void test_tickets_max(void **state) {
    struct stage *stage = *state;
    int fd = stage_connect(stage);
    char key = 'A';
    for (uint32_t all = 0; all < GW_TICKETS_MAX; all += GW_TICKETS_KEY_MAX, key++) {
        for (uint32_t own = 0; own < GW_TICKETS_KEY_MAX; own++)
            assert_int_equal(ticket_status(fd, key), 200);
        assert_int_equal(ticket_status(fd, key), 429);
    }
    assert_int_equal(ticket_status(fd, key), 429);
    close(fd);
}

/* -- the end -- */

static void test_drain(void **state) {
    struct stage *stage = *state;
    auto_listener listener;
    listen_well(&listener, stage);
    json_decref(next(&listener));
    uint64_t begun_ms = fx_clock_ms();
    gw_process_drain(stage->process);
    assert_true(fx_clock_ms() - begun_ms < 4000); /* health.drain_ms is 5000 */
    expect_end(&listener, 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_access),
        TEST(test_head),
        TEST(test_old_http),
        TEST(test_figures),
        TEST(test_once_a_second),
        TEST(test_read_for_all_and_for_nobody),
        TEST(test_same_bytes),
        TEST(test_redis_away),
        TEST(test_listeners_max),
        TEST(test_revoked),
        TEST(test_a_good_key_stays),
        TEST(test_tickets),
        TEST(test_tickets_open_nothing_else),
        TEST(test_tickets_in_redis),
        TEST(test_tickets_of_a_revoked_key),
        TEST(test_tickets_max),
        TEST(test_drain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
