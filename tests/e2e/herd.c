#include "tests/e2e/herd.h"

enum { SEED = 77 };

static json_t *fields_of(uint32_t number, int tokens) {
    bool seeded = number % 2;
    return json_pack("{s:i, s:f, s:i, s:b}", "max_tokens", tokens, "temperature",
                     seeded ? 1.0 : 0.0, "seed", SEED + (int)number, "ignore_eos", 1);
}

static void post(struct http_conn *conn, const struct suite *suite, json_t *body) {
    char bearer[128];
    auto_text text = json_dumps(body, JSON_COMPACT);
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    const struct http_request request = {.method = "POST",
                                         .path = "/v1/completions",
                                         .headers = WORDS(bearer, "Content-Type: application/json"),
                                         .body = fx_span_str(text)};
    MUST(http_open(conn, suite->gateways[0].port, &err));
    MUST(http_send(conn, &request, &err));
}

void herd_send(struct herd *herd, struct suite *suite, uint32_t first, uint32_t count, int tokens) {
    assert_true(count <= HERD_MAX);
    *herd = (struct herd){.suite = suite, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        struct herd_ask *ask = &herd->asks[i];
        uint32_t number = first + i;
        char prompt[64];
        (void)snprintf(prompt, sizeof prompt, "Chapter %u. It was", number);
        ask->streamed = number % 3 != 2;
        if (ask->streamed) {
            MUST(stream_open(&ask->stream, suite, prompt, fields_of(number, tokens), &err));
        } else {
            auto_json body = suite_prompt(prompt, fields_of(number, tokens));
            post(&ask->conn, suite, body);
        }
    }
}

void herd_begun(struct herd *herd) {
    for (uint32_t i = 0; i < herd->count; i++)
        if (herd->asks[i].streamed) MUST(stream_until(&herd->asks[i].stream, 1, &err));
}

void herd_await_services(struct suite *suite) {
    for (uint32_t i = 0; suite_service(suite, i); i++)
        suite_await_ready(suite_service(suite, i));
    for (uint32_t i = 0; i < suite->opts.gateways; i++)
        WAIT_FOR(service_metric(&suite->gateways[i], "fx_gateway_redis_up") > 0.5, SUITE_READY_MS,
                 "gateway %u does not find Redis", i);
}

static char *whole_text(struct http_conn *conn) {
    const char *text = NULL;
    MUST(http_read_all(conn, SUITE_ANSWER_MS, &err));
    if (conn->status != 200) fail_msg("%u: %s", conn->status, conn->body.at);
    auto_json json = json_loadb(conn->body.at, conn->body.len, 0, NULL);
    assert_int_equal(json_unpack(json, "{s:[{s:s}]}", "choices", "text", &text), 0);
    return strdup(text);
}

void herd_rest(struct herd *herd) {
    for (uint32_t i = 0; i < herd->count; i++) {
        struct herd_ask *ask = &herd->asks[i];
        if (ask->streamed) MUST(stream_rest(&ask->stream, &err));
        ask->text = ask->streamed ? strdup(ask->stream.text.at) : whole_text(&ask->conn);
    }
}

void herd_equal(const struct herd *got, const struct herd *want) {
    assert_int_equal(got->count, want->count);
    for (uint32_t i = 0; i < got->count; i++)
        assert_string_equal(got->asks[i].text, want->asks[i].text);
}

void herd_close(struct herd *herd) {
    for (uint32_t i = 0; i < herd->count; i++) {
        stream_close(&herd->asks[i].stream);
        http_close(&herd->asks[i].conn);
        free(herd->asks[i].text);
    }
    *herd = (struct herd){0};
}
