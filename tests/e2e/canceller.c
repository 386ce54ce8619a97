#include "tests/e2e/canceller.h"
#include "fractal/v1/inference.pb-c.h"

enum { STEP_MS = 10000, ANSWER_MS = 60000, NAME_MAX_LEN = 128 };

uint32_t cancel_choices(enum cancel_way way) {
    return way == LEAVE_TWO || way == POST_TWO ? 2 : 1;
}

/* -- HTTP -- */

static void post(const struct suite *suite, const char *path, json_t *body,
                 struct http_conn *conn) {
    char bearer[128];
    auto_text text = json_dumps(body, JSON_COMPACT);
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    const struct http_request request = {.method = "POST",
                                         .path = path,
                                         .headers = WORDS(bearer, "Content-Type: application/json"),
                                         .body = fx_span_str(text)};
    MUST(http_open(conn, suite->gateways[0].port, &err));
    MUST(http_send(conn, &request, &err));
}

static void http_begin(struct canceller *canceller) {
    const struct cancel_ask *ask = &canceller->ask;
    bool whole = ask->way == LEAVE_WHOLE || ask->way == POST_WHOLE;
    auto_json body = suite_prompt(
        ask->prompt, json_pack("{s:i, s:b, s:b, s:i}", "max_tokens", ask->tokens, "stream", !whole,
                               "ignore_eos", 1, "n", (int)cancel_choices(ask->way)));
    post(canceller->suite, "/v1/completions", body, &canceller->conn);
}

unsigned cancel_post(const struct suite *suite, const char *name) {
    char path[NAME_MAX_LEN];
    auto_http conn = {0};
    auto_json body = json_object();
    (void)snprintf(path, sizeof path, "/v1/generations/%s/cancel", name);
    post(suite, path, body, &conn);
    MUST(http_read_all(&conn, STEP_MS, &err));
    return conn.status;
}

/* -- gRPC -- */

static bool on_message(void *user, const void *message) {
    (void)user, (void)message;
    return true;
}

static void on_done(void *user, const struct fx_client_result *result) {
    struct canceller *canceller = user;
    canceller->code = result->code;
    canceller->call = NULL;
    canceller->done = true;
}

static void grpc_start(void *user) {
    struct canceller *canceller = user;
    char bearer[128];
    Fractal__V1__GenerateRequest generate = FRACTAL__V1__GENERATE_REQUEST__INIT;
    Fractal__V1__SamplingOptions sampling = FRACTAL__V1__SAMPLING_OPTIONS__INIT;
    const struct fx_client_metadata metadata = {"authorization", bearer};
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", canceller->suite->key);
    sampling.ignore_eos = true;
    generate.model = (char *)(uintptr_t)SUITE_MODEL;
    generate.prompt_case = FRACTAL__V1__GENERATE_REQUEST__PROMPT_TEXT;
    generate.text = (char *)(uintptr_t)canceller->ask.prompt;
    generate.max_tokens = (uint32_t)canceller->ask.tokens;
    generate.sampling = &sampling;
    const struct fx_client_request request = {
        .method = "/fractal.v1.InferenceService/Generate",
        .message = &generate,
        .reply = &fractal__v1__generate_response__descriptor,
        .deadline_ms = ANSWER_MS,
        .metadata = &metadata,
        .metadata_count = 1,
        .wait_for_ready = true,
        .user = canceller,
        .on_message = on_message,
        .on_done = on_done,
    };
    fx_error err = {0};
    if (!fx_client_start(canceller->client, &request, &canceller->call, &err)) {
        canceller->code = err.code;
        canceller->done = true;
    }
}

static void grpc_begin(struct canceller *canceller) {
    char target[32];
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", canceller->suite->gateways[0].grpc);
    MUST(fx_loop_open(8, &canceller->loop, &err));
    const struct fx_client_opts opts = {
        .target = target, .base = fx_loop_base(canceller->loop), .health_check_off = true};
    MUST(fx_client_open(&opts, &canceller->client, &err));
    MUST(fx_loop_start(canceller->loop, &err));
    assert_true(fx_loop_call(canceller->loop, grpc_start, canceller));
}

static void grpc_leave(void *user) {
    struct canceller *canceller = user;
    if (canceller->call) fx_client_cancel(canceller->call);
}

/* -- either -- */

void canceller_begin(struct canceller *canceller, const struct suite *suite,
                     const struct cancel_ask *ask) {
    *canceller = (struct canceller){.suite = suite, .ask = *ask};
    if (ask->way == GRPC)
        grpc_begin(canceller);
    else
        http_begin(canceller);
}

void canceller_cancel(struct canceller *canceller, const char *name) {
    switch (canceller->ask.way) {
    case LEAVE_STREAM:
    case LEAVE_WHOLE:
    case LEAVE_TWO: http_close(&canceller->conn); return;
    case GRPC: assert_true(fx_loop_call(canceller->loop, grpc_leave, canceller)); return;
    default:
        for (int i = 0; i < (canceller->ask.way == POST_TWICE ? 2 : 1); i++)
            assert_int_equal(cancel_post(canceller->suite, name), 200);
    }
}

static void http_check(struct http_conn *conn, bool whole, bool finished) {
    MUST(http_read_all(conn, ANSWER_MS, &err));
    assert_int_equal(conn->status, !whole || finished ? 200 : 500);
    if (!whole) assert_non_null(strstr(conn->body.at, "data: [DONE]\n"));
    assert_int_equal(strstr(conn->body.at, "generation_cancelled") != NULL, !finished);
}

void canceller_check(struct canceller *canceller, bool finished) {
    enum cancel_way way = canceller->ask.way;
    if (way == LEAVE_STREAM || way == LEAVE_WHOLE || way == LEAVE_TWO) return;
    if (way != GRPC) {
        http_check(&canceller->conn, way == POST_WHOLE, finished);
        return;
    }
    WAIT_FOR(canceller->done, STEP_MS, "the call does not end");
    if (!finished) assert_int_equal(canceller->code, FX_CANCELLED);
}

void canceller_close(struct canceller *canceller) {
    http_close(&canceller->conn);
    if (!canceller->loop) return;
    fx_loop_stop(canceller->loop);
    fx_client_free(canceller->client);
    fx_loop_free(canceller->loop);
    canceller->loop = NULL;
}
