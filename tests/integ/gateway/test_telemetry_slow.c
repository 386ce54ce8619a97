/* Telemetry's listeners that don't read, and keys that nobody can check: both take their time. */
#include "fractal/v1/worker.pb-c.h"
#include "services/gateway/telemetry.h"
#include "tests/e2e/listener.h"
#include "tests/integ/gateway/stage.h"

enum {
    CROWD = 1250, /* workers of several models: about 370 kB a snapshot */
    MODELS = 5,
    BUFFER_BYTES = 4096,
    MISSED_MS = 25000,
};

#define MUST(call)                                                                                 \
    do {                                                                                           \
        fx_error err = {0};                                                                        \
        if (!(call)) fail_msg("%s: %s", #call, err.text);                                          \
    } while (0)

static void on_beat(void *ctx, const fx_error *err) {
    atomic_int *left = ctx;
    assert_null(err);
    (*left)--;
}

struct crowd {
    struct stage *stage;
    fx_span figures;
    atomic_int left;
};

static void crowd_beat(void *user) {
    struct crowd *crowd = user;
    for (uint32_t i = 0; i < CROWD; i++) {
        struct fx_beat beat = {.model = 1000 + i % MODELS, .worker = {.slots = 4}};
        char name[32];
        (void)snprintf(name, sizeof name, "crowd-%u", i % MODELS);
        beat.model_name = name;
        beat.worker.figures = crowd->figures;
        (void)snprintf(beat.worker.worker, sizeof beat.worker.worker, "%060u", i);
        MUST(fx_queue_beat(crowd->stage->queue, &beat, on_beat, &crowd->left, &err));
    }
}

/* Beats every so often: a worker that is silent for 5 s is not told of. */
static void crowd_beats(struct stage *stage, fx_span figures) {
    struct crowd crowd = {.stage = stage, .figures = figures, .left = CROWD};
    assert_true(fx_loop_call(stage->loop, crowd_beat, &crowd));
    assert_true(stage_wait(&crowd.left, 0));
}

static int slow_open(const struct stage *stage) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(gw_process_port(stage->process)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = BUFFER_BYTES;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    wire_say(fd, "GET /v1/telemetry HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " STAGE_KEY
                 "\r\n\r\n");
    return fd;
}

/* What it reads at last is whole snapshots, the missed ones between two. */
static void whole_snapshots_read(int fd, uint32_t count) {
    char *text = calloc(1, WIRE_REPLY_MAX + 1), *at;
    size_t len = 0;
    for (uint32_t seen = 0; seen < count;) {
        ssize_t got = recv(fd, text + len, WIRE_REPLY_MAX - len, 0);
        assert_true(got > 0);
        len += (size_t)got;
        text[len] = 0;
        while (seen < count && (at = strstr(text, "}\n\n"))) {
            char *begin = strstr(text, "data: {");
            assert_true(begin && begin < at);
            seen++;
            len -= (size_t)(at + 3 - text);
            memmove(text, at + 3, len + 1);
        }
    }
    free(text);
}

/* One listener never reads, the other does: the first misses snapshots, is not cut, and costs no
 * more than what it left unread. */
static void test_a_slow_reader_misses_snapshots(void **state) {
    struct stage *stage = *state;
    auto_listener quick = {0};
    crowd_beats(stage, (fx_span){NULL, 0});
    int fd = slow_open(stage);
    MUST(listener_open(&quick, gw_process_port(stage->process), "/v1/telemetry", STAGE_KEY, &err));
    uint64_t end_ms = fx_clock_ms() + MISSED_MS;
    uint32_t read = 0;
    while (stage->gateway->metrics.telemetry_missed < 2) {
        json_t *snapshot;
        assert_true(fx_clock_ms() < end_ms);
        MUST(listener_next(&quick, 4000, &snapshot, &err));
        assert_true(quick.data.len > 100000);
        assert_float_equal(snapshot_number(snapshot, "models_omitted"), 0, 0);
        json_decref(snapshot);
        if (++read % 3 == 0) crowd_beats(stage, (fx_span){NULL, 0});
    }
    assert_int_equal(stage->gateway->metrics.telemetry_listeners, 2);
    whole_snapshots_read(fd, 3);
    close(fd);
}

/* Models that don't fit a snapshot are counted, and the rest is told whole. */
static void test_too_many_workers(void **state) {
    struct stage *stage = *state;
    uint8_t bytes[256];
    Fractal__V1__WorkerFigures figures = FRACTAL__V1__WORKER_FIGURES__INIT;
    auto_listener listener = {0};
    json_t *snapshot;
    figures.tokens_decoded = figures.tokens_prefilled = 1000000000000000;
    figures.kv_pages = UINT32_MAX;
    crowd_beats(stage, (fx_span){bytes, fractal__v1__worker_figures__pack(&figures, bytes)});
    MUST(listener_open(&listener, gw_process_port(stage->process), "/v1/telemetry", STAGE_KEY,
                       &err));
    MUST(listener_next(&listener, 4000, &snapshot, &err));
    double omitted = snapshot_number(snapshot, "models_omitted");
    assert_true(omitted >= 1 && omitted < MODELS);
    assert_true(listener.data.len < GW_TELEMETRY_EVENT_MAX);
    assert_non_null(snapshot_model(snapshot, STAGE_MODEL));
    double told = (double)json_array_size(json_object_get(snapshot, "models"));
    assert_true(told + omitted == MODELS + 1);
    json_decref(snapshot);
}

/* The tenant service is away: a stream goes on for a while, then ends; nobody new comes in. */
static void test_keys_unchecked(void **state) {
    struct stage *stage = *state;
    auto_listener listener = {0};
    auto_listener late = {0};
    json_t *snapshot;
    fx_error ended = {0};
    MUST(listener_open(&listener, gw_process_port(stage->process), "/v1/telemetry", STAGE_KEY,
                       &err));
    MUST(listener_next(&listener, 4000, &snapshot, &err));
    json_decref(snapshot);
    stage->tenant_code = FX_UNAVAILABLE;
    uint64_t begun_ms = fx_clock_ms();
    while (listener_next(&listener, 4000, &snapshot, &ended)) {
        json_decref(snapshot);
        assert_true(fx_clock_ms() - begun_ms < 2 * GW_TELEMETRY_UNCHECKED_MS_MAX);
    }
    assert_int_equal(ended.code, FX_OUT_OF_RANGE);
    assert_true(fx_clock_ms() - begun_ms > GW_TELEMETRY_UNCHECKED_MS_MAX - 3000);
    MUST(listener_open(&late, gw_process_port(stage->process), "/v1/telemetry", STAGE_KEY, &err));
    assert_int_equal(late.conn.status, 503);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_a_slow_reader_misses_snapshots),
        TEST(test_too_many_workers),
        TEST(test_keys_unchecked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
