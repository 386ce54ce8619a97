/* Several loops on one port. */
#include <jansson.h>
#include "tests/integ/gateway/stage.h"
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/rpc/client.h"
#include "fractal/v1/inference.pb-c.h"

#define CHAT(model, more)                                                                          \
    "{\"model\":\"" model "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" more "}"
#define STREAM CHAT(STAGE_MODEL, ",\"stream\":true")

enum { LOOPS = 4, CLIENTS = 64 };

static void loops_open(struct stage *stage) {
    stage_gateway_close(stage);
    stage->config.http_loops = LOOPS;
    stage_gateway_open(stage);
    assert_int_equal(stage->process->loop_count, LOOPS);
}

static struct gw_metrics *metrics_of(struct stage *stage, size_t loop) {
    return &stage->process->loops[loop].metrics;
}

/* The answers to one request on each of so many connections. */
static void expect_all(struct stage *stage, unsigned status) {
    for (int i = 0; i < CLIENTS; i++) {
        char *answer = stage_ask(stage, "/v1/chat/completions", CHAT(STAGE_MODEL, ""));
        if (wire_status(answer) != status) fail_msg("%s", answer);
        free(answer);
    }
}

static char *admin_get(struct stage *stage, const char *path) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(fx_admin_port(stage->process->admin)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char head[128];
    bool closed;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    (void)snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                   path);
    wire_say(fd, head);
    char *answer = wire_read(fd, NULL, &closed);
    close(fd);
    return answer;
}

static unsigned long long metric(const char *page, const char *name) {
    const char *at = strstr(page, name);
    if (!at) fail_msg("no %s", name);
    return strtoull(at + strlen(name), NULL, 10);
}

/* The kernel deals the connections out; /metrics has the sum and the loops. */
static void test_every_loop(void **state) {
    struct stage *stage = *state;
    loops_open(stage);
    expect_all(stage, 200);
    char *page = admin_get(stage, "/metrics");
    unsigned long long sum = 0;
    for (int i = 0; i < LOOPS; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "\nfx_gateway_loop_requests_total{loop=\"%d\"} ", i);
        unsigned long long own = metric(page, name);
        assert_true(own > 0);
        assert_int_equal(own, metrics_of(stage, (size_t)i)->requests);
        sum += own;
    }
    assert_int_equal(sum, CLIENTS);
    assert_int_equal(metric(page, "\nfx_gateway_requests_total "), CLIENTS);
    assert_int_equal(metric(page, "\nfx_gateway_generations_total "), CLIENTS);
    free(page);
    page = admin_get(stage, "/readyz");
    assert_int_equal(wire_status(page), 200);
    free(page);
}

static void ignore(void *ctx, const redisReply *reply, const fx_error *err) {
    (void)ctx, (void)reply, (void)err;
}

static void publish(void *user) {
    struct stage *stage = user;
    (void)!fx_redis_command(stage->redis, ignore, NULL, &(fx_error){0}, "PUBLISH fx:keys %s", "id");
}

/* A key that every loop knows by heart is no key for any of them when it was revoked. */
static void test_revoked(void **state) {
    struct stage *stage = *state;
    unsigned long long drops[LOOPS];
    loops_open(stage);
    expect_all(stage, 200);
    for (size_t i = 0; i < LOOPS; i++) {
        assert_true(metrics_of(stage, i)->auth_hits > 0);
        drops[i] = metrics_of(stage, i)->auth_drops;
    }
    stage->tenant_code = FX_UNAUTHENTICATED;
    assert_true(fx_loop_call(stage->loop, publish, stage));
    for (size_t i = 0; i < LOOPS; i++)
        for (int j = 0; j < 5000 && metrics_of(stage, i)->auth_drops == drops[i]; j++)
            usleep(1000);
    expect_all(stage, 401);
}

/* Streams of all loops end with an error and [DONE] when the time to drain is over. */
static void test_drain(void **state) {
    struct stage *stage = *state;
    enum { STREAMS = 16 };
    int fds[STREAMS];
    bool closed;
    stage->config.health.drain_ms = 200;
    loops_open(stage);
    stage_say(stage, (struct stage_script){NULL, 0, 0, 20, 1, 0, NULL});
    for (int i = 0; i < STREAMS; i++) {
        fds[i] = stage_connect(stage);
        stage_post(fds[i], "/v1/chat/completions", STREAM);
    }
    assert_true(stage_wait(&stage->running, STREAMS));
    size_t serving = 0;
    for (size_t i = 0; i < LOOPS; i++)
        serving += metrics_of(stage, i)->running > 0;
    assert_true(serving > 1);
    gw_process_drain(stage->process);
    for (int i = 0; i < STREAMS; i++) {
        char *answer = wire_read(fds[i], NULL, &closed);
        assert_true(closed);
        assert_non_null(strstr(answer, "\"code\":\"gateway_shutting_down\""));
        assert_non_null(strstr(answer, "data: [DONE]\n\n\r\n0\r\n\r\n"));
        free(answer);
        close(fds[i]);
    }
    assert_int_equal(stage->running, STREAMS); /* other gateways have the rest */
    char *page = admin_get(stage, "/readyz");
    assert_int_equal(wire_status(page), 503);
    assert_non_null(strstr(page, "draining"));
    free(page);
}

/* FX_CONNECTIONS_MAX is the process's, whichever loop a connection comes to. */
static void test_connections(void **state) {
    struct stage *stage = *state;
    enum { MOST = 12 };
    int fds[MOST];
    bool closed;
    stage->config.connections_max = MOST;
    loops_open(stage);
    for (int i = 0; i < MOST; i++)
        fds[i] = stage_connect(stage);
    for (int i = 0; i < 2000 && stage->process->connections < MOST; i++)
        usleep(1000);
    assert_int_equal(stage->process->connections, MOST);
    for (int i = 0; i < 8; i++) {
        int fd = stage_connect(stage);
        char *answer = wire_read(fd, NULL, &closed);
        assert_int_equal(wire_status(answer), 503);
        assert_true(closed);
        free(answer);
        close(fd);
    }
    assert_int_equal(stage->process->connections, MOST);
    for (int i = 0; i < MOST; i++)
        close(fds[i]);
    for (int i = 0; i < 2000 && stage->process->connections; i++)
        usleep(1000);
    expect_all(stage, 200);
}

/* That loops share a port opens it to no second gateway. */
static void test_port_taken(void **state) {
    struct stage *stage = *state;
    struct gw_config config;
    struct gw_process *second = NULL;
    char taken[32];
    fx_error err = {0};
    loops_open(stage);
    config = stage->config;
    (void)snprintf(taken, sizeof taken, "127.0.0.1:%u", gw_process_port(stage->process));
    config.http_addr = taken;
    assert_false(gw_process_open(&config, &second, &err));
    assert_int_equal(err.code, FX_UNAVAILABLE);
    assert_non_null(strstr(err.text, "FX_HTTP_ADDR"));
    expect_all(stage, 200);
}

/* Calls of the gRPC API go to the loops in turn. */
static void test_rpc_in_turn(void **state) {
    struct stage *stage = *state;
    char target[32];
    uint8_t memory[4096];
    fx_arena arena;
    fx_error err = {0};
    fx_auto(fx_client) client = NULL;
    loops_open(stage);
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", gw_process_rpc_port(stage->process));
    struct fx_client_opts opts = {.target = target, .health_check_off = true};
    assert_true(fx_client_open(&opts, &client, &err));
    Fractal__V1__InferenceServiceListModelsRequest message =
        FRACTAL__V1__INFERENCE_SERVICE_LIST_MODELS_REQUEST__INIT;
    struct fx_client_metadata key = {"authorization", "Bearer " STAGE_KEY};
    fx_arena_init(&arena, memory, sizeof memory);
    for (int i = 0; i < 3 * LOOPS; i++) {
        void *reply = NULL;
        struct fx_client_request request = {
            .method = "/fractal.v1.InferenceService/ListModels",
            .message = &message,
            .reply = &fractal__v1__inference_service_list_models_response__descriptor,
            .deadline_ms = 5000,
            .metadata = &key,
            .metadata_count = 1,
            .arena = &arena,
        };
        if (!fx_client_call_wait(client, &request, &reply, &err)) fail_msg("%s", err.text);
        fx_arena_reset(&arena);
    }
    fx_arena_done(&arena);
    for (size_t i = 0; i < LOOPS; i++)
        assert_int_equal(metrics_of(stage, i)->auth_calls + metrics_of(stage, i)->auth_hits, 3);
}

/* -- a tokenizer that takes long to load -- */

enum { TOKENS = 300000, SYMBOLS = 92 };

static char symbol(int n) {
    char c = (char)('!' + n);
    if (c >= '"') c++;
    return c >= '\\' ? (char)(c + 1) : c;
}

/* The n-th made token and the two it is made of: pairs of symbols, then pairs and a symbol. */
static void token_set(int n, char whole[4], char left[3]) {
    bool pair = n < SYMBOLS * SYMBOLS;
    int rest = pair ? n : n - SYMBOLS * SYMBOLS;
    char *at = whole;
    if (!pair) *at++ = symbol(rest / (SYMBOLS * SYMBOLS));
    *at++ = symbol(rest / SYMBOLS % SYMBOLS);
    (void)snprintf(left, 3, "%.*s", (int)(at - whole), whole);
    *at++ = symbol(rest % SYMBOLS);
    *at = 0;
}

/* The bundled tokenizer with TOKENS merges more. */
static void large_tokenizer(struct stage *stage) {
    json_t *json = json_loadb(stage->tokenizer, stage->tokenizer_len, 0, NULL);
    assert_non_null(json);
    json_t *model = json_object_get(json, "model"), *vocab = json_object_get(model, "vocab");
    json_t *merges = json_object_get(model, "merges");
    for (int i = 0; i < TOKENS; i++) {
        char whole[4], left[3];
        token_set(i, whole, left);
        assert_int_equal(json_object_set_new(vocab, whole, json_integer(260 + i)), 0);
        json_t *merge = json_sprintf("%s %c", left, whole[strlen(whole) - 1]);
        assert_int_equal(json_array_append_new(merges, merge), 0);
    }
    stage->other_tokenizer = json_dumps(json, JSON_COMPACT);
    stage->other_tokenizer_len = strlen(stage->other_tokenizer);
    json_decref(json);
}

struct asking {
    struct stage *stage;
    pthread_t thread;
    uint64_t took_ms;
    char *answer;
    atomic_bool done;
};

struct telling {
    struct gateway *gateway;
    const struct gw_vocab *vocab;
};

/* Of a model no worker has: its tokenizer alone can refuse this. */
static char *ask_too_long(struct stage *stage) {
    char json[STAGE_CONTEXT + 256], prompt[STAGE_CONTEXT + 2];
    memset(prompt, ' ', sizeof prompt - 1);
    prompt[sizeof prompt - 1] = 0;
    (void)snprintf(json, sizeof json, "{\"model\":\"" STAGE_OTHER_MODEL "\",\"prompt\":\"%s\"}",
                   prompt);
    return stage_ask(stage, "/v1/completions", json);
}

static void *ask(void *arg) {
    struct asking *asking = arg;
    uint64_t begun_ms = 0;
    do { /* a list that is younger than 100 ms is believed */
        free(asking->answer);
        begun_ms = fx_clock_ms();
        asking->answer = ask_too_long(asking->stage);
    } while (wire_status(asking->answer) == 404 && usleep(20000) == 0);
    asking->took_ms = fx_clock_ms() - begun_ms;
    asking->done = true;
    return NULL;
}

static void tell_vocab(void *user) {
    struct telling *telling = user;
    const struct gw_model *model = gw_models_find(telling->gateway->models, STAGE_OTHER_MODEL);
    telling->vocab = model ? model->vocab : NULL;
}

static const struct gw_vocab *vocab_of(struct stage *stage, size_t loop) {
    struct telling telling = {&stage->process->loops[loop], NULL};
    assert_true(fx_loop_call(telling.gateway->loop, tell_vocab, &telling));
    return telling.vocab;
}

/* A request for it waits until it is there; all others go on meanwhile, on every loop. */
static void test_slow_load(void **state) {
    struct stage *stage = *state;
    struct asking asking = {.stage = stage};
    uint64_t longest_ms = 0, asked = 0;
    stage->config.http_loops = 2;
    loops_open(stage);
    large_tokenizer(stage);
    stage->show_other = 1;
    assert_int_equal(pthread_create(&asking.thread, NULL, ask, &asking), 0);
    while (!asking.done) {
        uint64_t begun_ms = fx_clock_ms();
        char *answer = stage_get(stage, "/v1/models", "Authorization: Bearer " STAGE_KEY "\r\n");
        assert_int_equal(wire_status(answer), 200);
        free(answer);
        uint64_t took_ms = fx_clock_ms() - begun_ms;
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
        asked++;
        usleep(2000);
    }
    pthread_join(asking.thread, NULL);
    print_message("loaded in %llu ms; of %llu other requests the slowest took %llu ms\n",
                  (unsigned long long)asking.took_ms, (unsigned long long)asked,
                  (unsigned long long)longest_ms);
    if (!strstr(asking.answer, "context_length_exceeded")) fail_msg("%s", asking.answer);
    assert_true(asking.took_ms >= 100); /* or it shows nothing */
    assert_true(asked > 10);
    assert_true(longest_ms * 2 < asking.took_ms);
    for (int i = 0; i < 1000 && !(vocab_of(stage, 0) && vocab_of(stage, 1)); i++)
        usleep(2000);
    assert_non_null(vocab_of(stage, 0));
    assert_ptr_equal(vocab_of(stage, 0), vocab_of(stage, 1)); /* one copy */
    free(asking.answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_loop, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_revoked, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_drain, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_connections, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_port_taken, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_rpc_in_turn, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_slow_load, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
