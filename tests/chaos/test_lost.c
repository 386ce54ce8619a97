/* The only worker dies under a streamed answer and under one in one piece, and none comes. */
#include <signal.h>
#include "tests/e2e/suite.h"

#define DEADLINE "FX_RESUME_DEADLINE_MS=2000"
enum { TOKENS = 900, CHUNKS = 5, STEP_MS = 10000, ANSWER_MS = 20000, DEADLINE_MS = 2000 };

static void post(const struct suite *suite, struct http_conn *conn) {
    char bearer[128];
    auto_json body = suite_prompt("It is a truth", json_pack("{s:i}", "max_tokens", TOKENS));
    auto_text text = json_dumps(body, 0);
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    const struct http_request request = {.method = "POST",
                                         .path = "/v1/completions",
                                         .headers = WORDS(bearer, "Content-Type: application/json"),
                                         .body = fx_span_str(text)};
    MUST(http_open(conn, suite->gateways[0].port, &err));
    MUST(http_send(conn, &request, &err));
}

/* The code and the type of an error's JSON, both strings. */
static void assert_worker_lost(const char *json) {
    const char *code = NULL, *type = NULL, *message = NULL;
    auto_json parsed = json_loads(json, JSON_DISABLE_EOF_CHECK, NULL);
    if (json_unpack(parsed, "{s:{s:s, s:s, s:s}}", "error", "code", &code, "type", &type, "message",
                    &message) != 0)
        fail_msg("no error: %.200s", json);
    assert_string_equal(code, "worker_lost");
    assert_string_equal(type, "server_error");
    assert_true(*message != 0);
}

/* Its deltas, then exactly one event with the error, then [DONE], and the connection stays. */
static void check_stream(struct stream *stream) {
    static const char end[] = "data: [DONE]\n\n";
    char header[64];
    MUST(http_read_all(&stream->conn, ANSWER_MS, &err));
    const char *rest = stream->conn.body.at + stream->at;
    const char *error = strstr(rest, "data: {\"error\":");
    assert_non_null(error);
    assert_worker_lost(error + strlen("data: "));
    const char *after = strstr(error, "\n\n");
    assert_non_null(after);
    assert_string_equal(after + 2, end);
    assert_int_equal(stream->conn.status, 200);
    if (http_header(&stream->conn, "connection", header, sizeof header))
        assert_int_not_equal(strcasecmp(header, "close"), 0);
}

static void check_whole(struct http_conn *conn) {
    char header[64] = "";
    MUST(http_read_all(conn, ANSWER_MS, &err));
    assert_int_equal(conn->status, 503);
    assert_true(http_header(conn, "content-type", header, sizeof header));
    assert_int_equal(strncmp(header, "application/json", 16), 0);
    assert_worker_lost(conn->body.at);
    assert_true(http_header(conn, "x-should-retry", header, sizeof header));
    assert_string_equal(header, "true");
}

static void a_lost_worker_is_an_error_the_client_can_tell(void **state) {
    struct suite *suite = *state;
    struct service *worker = &suite->workers[0];
    auto_http whole = {0};
    auto_stream stream = {0};
    post(suite, &whole);
    MUST(stream_open(&stream, suite, "And then", json_pack("{s:i}", "max_tokens", TOKENS), &err));
    MUST(stream_until(&stream, CHUNKS, &err));
    process_signal(&worker->process, SIGKILL);
    worker->killed = true;
    uint64_t begin_ms = fx_clock_ms();
    check_stream(&stream);
    assert_true(fx_clock_ms() - begin_ms >= DEADLINE_MS);
    check_whole(&whole);
    print_message("given up after %llu ms\n", (unsigned long long)(fx_clock_ms() - begin_ms));
    assert_int_equal(service_metric(&suite->gateways[0], "fx_gateway_worker_lost_total"), 2);
}

/* Nobody's work is left behind for the next one. */
static void the_next_worker_finds_nothing_of_it(void **state) {
    struct suite *suite = *state;
    assert_true(process_wait(&suite->workers[0].process, STEP_MS));
    suite_worker_start(suite, 0);
    auto_text text = suite_complete(suite, "It is a truth", NULL);
    assert_true(*text != 0);
    WAIT_FOR(service_metric(&suite->schedulers[0], "fx_queue_running") +
                     service_metric(&suite->schedulers[0], "fx_queue_waiting") <=
                 0,
             STEP_MS, "something is left in the queue");
    assert_int_equal(service_metric(&suite->workers[0], "fx_worker_generations_taken_total"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_worker_is_an_error_the_client_can_tell),
        cmocka_unit_test(the_next_worker_finds_nothing_of_it),
    };
    return suite_main(
        "lost", tests, FX_TEST_COUNT(tests),
        &(struct suite_opts){.worker_env = WORDS("FX_BACKEND=ref"), /* slowly */
                             .env = WORDS(DEADLINE, "FX_LEASE_MS=1500", "FX_RENEW_MS=400")});
}
