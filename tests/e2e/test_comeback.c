/* Clients whose gateway dies in the middle of their answer: each goes on at the other one, or at
 * the same one when it is back, and has all of the answer, once. */
#include <signal.h>
#include "tests/e2e/suite.h"

#define PROMPT "It is a truth universally acknowledged,"
#define CHAT_TEXT "Call me Ishmael. Some years ago"
enum {
    TOKENS = 160,
    CHOICES = 2,
    CHUNKS = 6, /* read before the gateway dies */
    BYTES = 8,  /* printed before it dies */
    TRIES = 20, /* on a busy machine an answer may end before its gateway does: then once more */
    PIECE_MS = 60000,
    STEP_MS = 20000,
};

/* -- gateways that die -- */

static void end_gateway(struct suite *suite, int signal) {
    struct service *gateway = &suite->gateways[0];
    process_signal(&gateway->process, signal);
    WAIT_FOR(!process_runs(&gateway->process), STEP_MS, "the gateway does not end");
    assert_int_equal(gateway->process.code, signal == SIGKILL ? 128 + SIGKILL : 0);
    gateway->killed = true;
}

static void start_gateway(struct suite *suite) {
    suite_service_start(suite, &suite->gateways[0]);
    suite_await_ready(&suite->gateways[0]);
}

static double taken(struct suite *suite) {
    return service_metric(&suite->workers[0], "fx_worker_generations_taken_total");
}

/* -- requests -- */

static void ask(struct suite *suite, uint32_t gateway, const char *method, const char *path,
                const char *header, const json_t *body, struct http_conn *conn) {
    char bearer[128];
    auto_text text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    const struct http_request request = {
        .method = method,
        .path = path,
        .headers = WORDS(bearer, "Content-Type: application/json", header),
        .body = {(const uint8_t *)text, text ? strlen(text) : 0}
    };
    MUST(http_open(conn, suite->gateways[gateway].port, &err));
    MUST(http_send(conn, &request, &err));
}

/* -- streams of events -- */

/* What a client puts together, and where it is. */
struct seen {
    char id[64];
    struct http_text text[CHOICES], logprobs[CHOICES];
    long long n[CHOICES];
    bool end[CHOICES];
    uint32_t chunks;
};

static void seen_close(struct seen *seen) {
    for (int i = 0; i < CHOICES; i++) {
        free(seen->text[i].at);
        free(seen->logprobs[i].at);
    }
}
#define auto_seen __attribute__((cleanup(seen_close))) struct seen

static void append(struct http_text *to, const json_t *text) {
    http_text_append(to, json_string_length(text) ? json_string_value(text) : "",
                     json_string_length(text));
}

static void chunk_take(struct seen *seen, const json_t *chunk) {
    const json_t *choice = json_array_get(json_object_get(chunk, "choices"), 0);
    size_t index = (size_t)json_integer_value(json_object_get(choice, "index")), i;
    const json_t *content = json_object_get(json_object_get(choice, "logprobs"), "content"), *at;
    if (!choice || json_object_get(chunk, "error")) {
        auto_text text = json_dumps(chunk, 0);
        fail_msg("no chunk: %s", text);
    }
    (void)snprintf(seen->id, sizeof seen->id, "%s",
                   json_string_value(json_object_get(chunk, "id")));
    append(&seen->text[index], json_object_get(choice, "text"));
    append(&seen->text[index], json_object_get(json_object_get(choice, "delta"), "content"));
    json_array_foreach(content, i, at) {
        auto_text text = json_dumps(at, JSON_SORT_KEYS);
        http_text_append(&seen->logprobs[index], text, strlen(text));
    }
    seen->n[index] = json_integer_value(json_object_get(json_object_get(chunk, "fractal"), "n"));
    if (!json_is_string(json_object_get(choice, "finish_reason"))) return;
    assert_false(seen->end[index]);
    seen->end[index] = true;
}

/* All whole events of a body; false: no [DONE] among them. */
static bool events_take(struct seen *seen, const struct http_text *body) {
    const char *at = body->at ? body->at : "", *end;
    for (; (end = strstr(at, "\n\n")); at = end + 2) {
        const char *data = strstr(at, "data: ");
        if (!data || data > end) continue; /* a comment */
        if (strncmp(data, "data: [DONE]", 12) == 0) return true;
        auto_json chunk = json_loadb(data + 6, (size_t)(end - data) - 6, 0, NULL);
        chunk_take(seen, chunk);
        seen->chunks++;
    }
    return false;
}

static uint32_t chunks_in(const struct http_text *body) {
    uint32_t count = 0;
    for (const char *at = body->at; at && (at = strstr(at, "\n\n")); at += 2)
        count++;
    return count;
}

static void events_whole(struct suite *suite, uint32_t gateway, const char *method,
                         const char *path, const json_t *body, struct seen *seen) {
    auto_http conn = {0};
    ask(suite, gateway, method, path, NULL, body, &conn);
    MUST(http_read_all(&conn, PIECE_MS, &err));
    if (conn.status != 200) fail_msg("%u: %s", conn.status, conn.body.at);
    assert_true(events_take(seen, &conn.body));
}

/* What comes until the connection breaks. False: all of it came. */
static bool events_cut(struct suite *suite, const char *path, const json_t *body,
                       struct seen *seen) {
    auto_http conn = {0};
    fx_error cut = {0};
    ask(suite, 0, "POST", path, NULL, body, &conn);
    while (chunks_in(&conn.body) < CHUNKS)
        MUST(http_read(&conn, PIECE_MS, &err));
    end_gateway(suite, SIGKILL);
    while (http_read(&conn, PIECE_MS, &cut)) {
    }
    return !events_take(seen, &conn.body);
}

static void events_rest(struct suite *suite, uint32_t choices, struct seen *seen) {
    char path[256];
    int len = snprintf(path, sizeof path, "/v1/generations/%s/events?after=", seen->id);
    for (uint32_t i = 0; i < choices; i++)
        len += snprintf(path + len, sizeof path - (size_t)len, "%s%lld%s", i ? "," : "", seen->n[i],
                        seen->end[i] ? "e" : "");
    events_whole(suite, 1, "GET", path, NULL, seen);
}

static const char *text_of(const struct http_text *text) {
    return text->at ? text->at : "";
}

static void check_stream(struct suite *suite, const char *path, json_t *body, uint32_t choices) {
    auto_json owned = body;
    auto_seen whole = {0}, seen = {0};
    events_whole(suite, 1, "POST", path, body, &whole);
    double before = taken(suite);
    for (int try = 0; !events_cut(suite, path, body, &seen); try++) {
        assert_true(try < TRIES);
        seen_close(&seen);
        seen = (struct seen){0};
        start_gateway(suite);
        before = taken(suite);
    }
    events_rest(suite, choices, &seen);
    for (uint32_t i = 0; i < choices; i++) {
        assert_true(strlen(text_of(&whole.text[i])) > 0);
        assert_string_equal(text_of(&seen.text[i]), text_of(&whole.text[i]));
        assert_string_equal(text_of(&seen.logprobs[i]), text_of(&whole.logprobs[i]));
        assert_int_equal(seen.n[i], whole.n[i]);
        assert_true(seen.end[i]);
    }
    assert_true(taken(suite) == before + choices);
    start_gateway(suite);
}

static void a_stream_goes_on(void **state) {
    json_t *fields =
        json_pack("{s:i, s:b, s:b}", "max_tokens", TOKENS, "ignore_eos", 1, "stream", 1);
    check_stream(*state, "/v1/completions", suite_prompt(PROMPT, fields), 1);
}

static void choices_with_logprobs_go_on(void **state) {
    json_t *body = json_pack("{s:s, s:[{s:s, s:s}], s:i, s:b, s:b, s:i, s:b, s:i, s:i}", "model",
                             SUITE_MODEL, "messages", "role", "user", "content", CHAT_TEXT,
                             "max_tokens", TOKENS, "ignore_eos", 1, "stream", 1, "n", CHOICES,
                             "logprobs", 1, "top_logprobs", 2, "seed", 7);
    check_stream(*state, "/v1/chat/completions", body, CHOICES);
}

/* -- a POST that comes twice -- */

static char *whole_text(struct http_conn *conn) {
    const char *text = NULL;
    MUST(http_read_all(conn, PIECE_MS, &err));
    if (conn->status != 200) fail_msg("%u: %s", conn->status, conn->body.at);
    auto_json json = json_loadb(conn->body.at, conn->body.len, 0, NULL);
    assert_int_equal(json_unpack(json, "{s:[{s:s}]}", "choices", "text", &text), 0);
    return strdup(text);
}

/* False: it was answered before its gateway died. */
static bool post_lost(struct suite *suite, const char *key, const json_t *body) {
    fx_error cut = {0};
    auto_http lost = {0};
    double decoded = service_metric(&suite->workers[0], "fx_worker_tokens_decoded_total");
    ask(suite, 0, "POST", "/v1/completions", key, body, &lost);
    WAIT_FOR(service_metric(&suite->workers[0], "fx_worker_tokens_decoded_total") >
                 decoded + CHUNKS,
             STEP_MS, "it decodes nothing");
    end_gateway(suite, SIGKILL);
    return !http_read_all(&lost, PIECE_MS, &cut) && !lost.status;
}

static void a_post_that_comes_twice_is_one(void **state) {
    struct suite *suite = *state;
    auto_http again = {0};
    char key[64];
    json_t *fields = json_pack("{s:i, s:b, s:f, s:i}", "max_tokens", TOKENS, "ignore_eos", 1,
                               "temperature", 1.0, "seed", 11);
    auto_json body = suite_prompt(PROMPT, fields);
    auto_text want = suite_complete(suite, PROMPT, json_deep_copy(body));
    double before = taken(suite);
    for (int try = 0;; try++) {
        (void)snprintf(key, sizeof key, "Idempotency-Key: comes-twice-%d", try);
        if (post_lost(suite, key, body)) break;
        assert_true(try < TRIES);
        start_gateway(suite);
        before = taken(suite);
    }
    ask(suite, 1, "POST", "/v1/completions", key, body, &again);
    auto_text got = whole_text(&again);
    assert_string_equal(got, want);
    assert_true(taken(suite) == before + 1);
    start_gateway(suite);
}

/* -- programs -- */

/* Runs one that prints an answer; once it has begun, `meanwhile`. False: it had all of it then. */
static bool run(const struct process_opts *opts, struct suite *suite,
                void (*meanwhile)(struct suite *suite), const char *want) {
    struct process process;
    struct process_opts apart = *opts;
    apart.apart = true;
    process_start(&process, opts->args[0], &apart);
    for (size_t len = 0; len < BYTES && process_runs(&process); (void)usleep(1000)) {
        auto_text out = process_text(process.out);
        len = strlen(out);
    }
    auto_text half = process_text(process.out);
    bool in_the_middle = strlen(half) < strlen(want);
    if (in_the_middle) meanwhile(suite);
    bool ended = process_wait(&process, PIECE_MS);
    int code = process.code;
    auto_text out = process_text(process.out);
    auto_text err = process_text(process.err);
    process_close(&process);
    if (!ended || code) fail_msg("%s: %d, %s%s", opts->args[0], code, out, err);
    assert_string_equal(out, want);
    return in_the_middle;
}

static void kill_it(struct suite *suite) {
    end_gateway(suite, SIGKILL);
}

static void drain_it(struct suite *suite) {
    end_gateway(suite, SIGTERM);
}

static void kill_and_start_it(struct suite *suite) {
    end_gateway(suite, SIGKILL);
    usleep(300000); /* long enough to be refused */
    start_gateway(suite);
}

static void check_program(struct suite *suite, const struct process_opts *alone,
                          const struct process_opts *opts, void (*meanwhile)(struct suite *suite)) {
    auto_output want = process_run(alone, PIECE_MS);
    if (want.code) fail_msg("%s%s", want.out, want.err);
    double before = taken(suite);
    for (int try = 0; !run(opts, suite, meanwhile, want.out); try++) {
        assert_true(try < TRIES);
        before = taken(suite);
    }
    assert_true(taken(suite) == before + 1);
    if (!process_runs(&suite->gateways[0].process)) start_gateway(suite);
}

static const char *const chat_args[] = {FX_BIN_DIR "/fractal-cli",
                                        "chat",
                                        "--max-tokens",
                                        "160",
                                        "--temperature",
                                        "1",
                                        "--seed",
                                        "5",
                                        "--model",
                                        SUITE_MODEL,
                                        CHAT_TEXT,
                                        NULL};

static void check_chat(struct suite *suite, bool both, void (*meanwhile)(struct suite *suite)) {
    struct process_env one = suite_cli_env(suite), many = one;
    process_env_put(&one, "FX_GATEWAY_URL=http://127.0.0.1:%u", suite->gateways[0].port);
    process_env_put(&many, "FX_GATEWAY_URL=http://127.0.0.1:%u,http://127.0.0.1:%u",
                    suite->gateways[0].port, suite->gateways[1].port);
    check_program(suite, &(struct process_opts){.args = chat_args, .env = &one},
                  &(struct process_opts){.args = chat_args, .env = both ? &many : &one}, meanwhile);
}

static void chat_goes_on(void **state) {
    check_chat(*state, true, kill_it);
}

static void chat_goes_on_after_a_drain(void **state) {
    check_chat(*state, true, drain_it);
}

static void chat_waits_for_the_only_gateway(void **state) {
    check_chat(*state, false, kill_and_start_it);
}

/* Admitted, and no token made: the worker stands still until the gateway is back. */
static void chat_waits_for_its_first_token(void **state) {
    struct suite *suite = *state;
    const struct process *worker = &suite->workers[0].process;
    struct process_env env = suite_cli_env(suite);
    struct process chat;
    process_env_put(&env, "FX_GATEWAY_URL=http://127.0.0.1:%u", suite->gateways[0].port);
    const struct process_opts opts = {.args = chat_args, .env = &env, .apart = true};
    auto_output want = process_run(&opts, PIECE_MS);
    process_signal(worker, SIGSTOP);
    process_start(&chat, "chat", &opts);
    WAIT_FOR(service_metric(&suite->gateways[0], "fx_gateway_generations_running") > 0, STEP_MS,
             "it is not admitted");
    kill_and_start_it(suite);
    auto_text begun = process_text(chat.out);
    assert_string_equal(begun, "");
    process_signal(worker, SIGCONT);
    assert_true(process_wait(&chat, PIECE_MS));
    auto_text out = process_text(chat.out);
    process_close(&chat);
    assert_string_equal(out, want.out);
}

static void check_example(struct suite *suite, void (*meanwhile)(struct suite *suite)) {
    char both[64], key[96];
    (void)snprintf(both, sizeof both, "127.0.0.1:%u,127.0.0.1:%u", suite->gateways[0].grpc,
                   suite->gateways[1].grpc);
    (void)snprintf(key, sizeof key, "%s/api-key", suite->folder);
    FILE *file = fopen(key, "we");
    assert_true(file && fputs(suite->key, file) >= 0 && fclose(file) == 0);
    const char *const args[] = {
        FX_BIN_DIR "/fractal-example-chat", both, key, SUITE_MODEL, CHAT_TEXT, NULL};
    const char *const alone[] = {FX_BIN_DIR "/fractal-example-chat",
                                 both + strcspn(both, ",") + 1,
                                 key,
                                 SUITE_MODEL,
                                 CHAT_TEXT,
                                 NULL};
    check_program(suite, &(struct process_opts){.args = alone},
                  &(struct process_opts){.args = args}, meanwhile);
}

static void example_goes_on(void **state) {
    check_example(*state, kill_it);
}

static void example_goes_on_after_a_drain(void **state) {
    check_example(*state, drain_it);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_goes_on),
        cmocka_unit_test(choices_with_logprobs_go_on),
        cmocka_unit_test(a_post_that_comes_twice_is_one),
        cmocka_unit_test(chat_goes_on),
        cmocka_unit_test(chat_goes_on_after_a_drain),
        cmocka_unit_test(chat_waits_for_the_only_gateway),
        cmocka_unit_test(chat_waits_for_its_first_token),
        cmocka_unit_test(example_goes_on),
        cmocka_unit_test(example_goes_on_after_a_drain),
    };
    return suite_main("comeback", tests, FX_TEST_COUNT(tests),
                      &(struct suite_opts){.gateways = 2,
                                           .env = WORDS("FX_DRAIN_MS=50"),
                                           .worker_env = WORDS("FX_BACKEND=ref" /* slowly */)});
}
