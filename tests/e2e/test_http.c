/* The front door: what a client sees when it asks well, and when it does not. */
#include "tests/e2e/suite.h"
#include "common/base/hash.h"

#define CHAT "/v1/chat/completions"
#define TEXT "/v1/completions"
#define AUSTEN "It is a truth universally acknowledged,"
enum { STEP_MS = 10000, BACK_MS = 30000 };

/* -- helpers -- */

static json_t *chat(json_t *fields) {
    json_t *body =
        json_pack("{s:s, s:[{s:s, s:s}], s:i, s:i}", "model", SUITE_MODEL, "messages", "role",
                  "user", "content", "Call me Ishmael.", "max_tokens", 8, "temperature", 0);
    assert_non_null(body);
    if (fields) assert_int_equal(json_object_update(body, fields), 0);
    json_decref(fields);
    return body;
}

static const char *text_at(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    if (!text) fail_msg("no text '%s'", name);
    return text;
}

/* An error as every client expects it, of this status. */
static void assert_refused(const struct answer *answer, unsigned status, const char *what) {
    char id[128] = "";
    json_t *error = json_object_get(answer->json, "error"), *code = json_object_get(error, "code");
    if (answer->status != status)
        fail_msg("%s: %u instead of %u: %s", what, answer->status, status, answer->conn.body.at);
    assert_true(*text_at(error, "message") != 0);
    (void)text_at(error, "type");
    assert_true(json_is_null(code) || json_is_string(code));
    assert_true(http_header(&answer->conn, "x-request-id", id, sizeof id) && *id);
}

static void assert_refuses(struct suite *suite, const char *path, json_t *body, unsigned status) {
    auto_text shown = json_dumps(body, JSON_COMPACT);
    auto_answer answer = suite_request(suite, "POST", path, body);
    assert_refused(&answer, status, shown);
}

static unsigned models_status(struct suite *suite, const char *key) {
    char bearer[128];
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", key);
    auto_answer answer = suite_send(
        suite,
        &(struct http_request){.method = "GET", .path = "/v1/models", .headers = WORDS(bearer)});
    return answer.status;
}

static void assert_answers(struct suite *suite, json_t *fields) {
    auto_text text = suite_complete(suite, "and then", fields);
    assert_true(*text != 0);
}

/* -- asking well -- */

static void models_are_listed(void **state) {
    struct suite *suite = *state;
    auto_answer list = suite_request(suite, "GET", "/v1/models", NULL);
    assert_int_equal(list.status, 200);
    assert_string_equal(text_at(list.json, "object"), "list");
    json_t *data = json_object_get(list.json, "data");
    assert_int_equal(json_array_size(data), 1);
    assert_string_equal(text_at(json_array_get(data, 0), "id"), SUITE_MODEL);
    auto_answer one = suite_request(suite, "GET", "/v1/models/" SUITE_MODEL, NULL);
    assert_int_equal(one.status, 200);
    assert_string_equal(text_at(one.json, "id"), SUITE_MODEL);
    assert_string_equal(text_at(one.json, "object"), "model");
    auto_answer none = suite_request(suite, "GET", "/v1/models/no-such-model", NULL);
    assert_refused(&none, 404, "no-such-model");
}

static void chat_answers(void **state) {
    auto_answer answer = suite_request(*state, "POST", CHAT, chat(NULL));
    json_t *choice = json_array_get(json_object_get(answer.json, "choices"), 0);
    json_t *message = json_object_get(choice, "message");
    json_int_t prompt, completion, total;
    assert_int_equal(answer.status, 200);
    assert_string_equal(text_at(answer.json, "object"), "chat.completion");
    assert_string_equal(text_at(message, "role"), "assistant");
    assert_true(*text_at(message, "content") != 0);
    const char *reason = text_at(choice, "finish_reason");
    assert_true(strcmp(reason, "stop") == 0 || strcmp(reason, "length") == 0);
    assert_int_equal(json_unpack(answer.json, "{s:{s:I, s:I, s:I}}", "usage", "prompt_tokens",
                                 &prompt, "completion_tokens", &completion, "total_tokens", &total),
                     0);
    assert_in_range(completion, 1, 8);
    assert_int_equal(total, prompt + completion);
}

static void a_stream_says_the_same(void **state) {
    struct suite *suite = *state;
    auto_text whole = suite_complete(suite, AUSTEN, json_pack("{s:i}", "max_tokens", 48));
    auto_stream stream = {0};
    MUST(stream_open(&stream, suite, AUSTEN, json_pack("{s:i}", "max_tokens", 48), &err));
    MUST(stream_rest(&stream, &err));
    assert_string_equal(stream.text.at, whole);
}

static json_int_t prompt_tokens(const struct answer *answer) {
    assert_int_equal(answer->status, 200);
    return json_integer_value(
        json_object_get(json_object_get(answer->json, "usage"), "prompt_tokens"));
}

/* Of text and of a chat, and the text again. */
static void token_ids_are_those_of_an_answer(void **state) {
    struct suite *suite = *state;
    auto_answer ids =
        suite_request(suite, "POST", "/tokenize",
                      json_pack("{s:s, s:s}", "model", SUITE_MODEL, "prompt", AUSTEN));
    assert_int_equal(ids.status, 200);
    json_t *tokens = json_object_get(ids.json, "tokens");
    auto_answer by_text = suite_request(suite, "POST", TEXT, suite_prompt(AUSTEN, NULL));
    auto_answer by_ids =
        suite_request(suite, "POST", TEXT, suite_prompt("", json_pack("{s:O}", "prompt", tokens)));
    assert_int_equal(json_array_size(tokens), prompt_tokens(&by_text));
    assert_int_equal(json_array_size(tokens), prompt_tokens(&by_ids));
    assert_true(json_equal(json_object_get(by_text.json, "choices"),
                           json_object_get(by_ids.json, "choices")));
    auto_json asked = chat(NULL);
    auto_answer said = suite_request(suite, "POST", CHAT, json_incref(asked));
    assert_int_equal(json_object_del(asked, "max_tokens") + json_object_del(asked, "temperature"),
                     0);
    auto_answer of_chat = suite_request(suite, "POST", "/tokenize", json_incref(asked));
    assert_int_equal(json_integer_value(json_object_get(of_chat.json, "count")),
                     prompt_tokens(&said));
    auto_answer plain = suite_request(suite, "POST", "/tokenize",
                                      json_pack("{s:s, s:s, s:b}", "model", SUITE_MODEL, "prompt",
                                                AUSTEN, "add_special_tokens", 0));
    auto_answer back = suite_request(suite, "POST", "/detokenize",
                                     json_pack("{s:s, s:O}", "model", SUITE_MODEL, "tokens",
                                               json_object_get(plain.json, "tokens")));
    assert_string_equal(text_at(back.json, "prompt"), AUSTEN);
}

/* What the chunks of one stream have in common. */
struct seen {
    char id[64], reason[16];
    uint32_t chunks, roles, reasons;
};

static void chunk_see(struct seen *seen, const char *text) {
    json_t *choice;
    size_t i;
    auto_json chunk = json_loads(text, 0, NULL);
    if (!chunk) fail_msg("no JSON: %s", text);
    if (!seen->chunks++) (void)snprintf(seen->id, sizeof seen->id, "%s", text_at(chunk, "id"));
    assert_string_equal(text_at(chunk, "id"), seen->id);
    assert_string_equal(text_at(chunk, "object"), "chat.completion.chunk");
    json_array_foreach(json_object_get(chunk, "choices"), i, choice) {
        const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
        assert_non_null(json_object_get(choice, "delta"));
        seen->roles += json_object_get(json_object_get(choice, "delta"), "role") != NULL;
        if (!reason) continue;
        seen->reasons++;
        (void)snprintf(seen->reason, sizeof seen->reason, "%s", reason);
    }
}

/* Only data lines and comments; [DONE] last. */
static struct seen events_see(char *body) {
    struct seen seen = {0};
    bool done = false;
    for (char *event = body, *end; *event; event = end + 2) {
        end = strstr(event, "\n\n");
        if (!end) fail_msg("a broken event: %s", event);
        *end = 0;
        if (*event == ':') continue;
        assert_false(done);
        assert_int_equal(strncmp(event, "data: ", 6), 0);
        assert_null(strchr(event, '\n'));
        done = strcmp(event, "data: [DONE]") == 0;
        if (!done) chunk_see(&seen, event + 6);
    }
    assert_true(done);
    return seen;
}

static void the_wire_of_a_stream(void **state) {
    struct suite *suite = *state;
    char token[128], value[128] = "";
    auto_json body = chat(json_pack("{s:b}", "stream", 1));
    auto_text text = json_dumps(body, 0);
    (void)snprintf(token, sizeof token, "X-Auth-Token: %s", suite->key);
    auto_answer answer = suite_send(
        suite, &(struct http_request){.method = "POST",
                                      .path = CHAT,
                                      .headers = WORDS(token, "Content-Type: application/json"),
                                      .body = fx_span_str(text)});
    const struct http_conn *conn = &answer.conn;
    assert_int_equal(answer.status, 200);
    assert_true(http_header(conn, "content-type", value, sizeof value));
    assert_int_equal(strncmp(value, "text/event-stream", 17), 0);
    assert_true(http_header(conn, "transfer-encoding", value, sizeof value));
    assert_string_equal(value, "chunked");
    if (http_header(conn, "connection", value, sizeof value))
        assert_true(strcasecmp(value, "close") != 0);
    struct seen seen = events_see(conn->body.at);
    assert_true(seen.chunks > 1);
    assert_int_equal(seen.roles, 1);
    assert_int_equal(seen.reasons, 1);
    assert_true(strcmp(seen.reason, "stop") == 0 || strcmp(seen.reason, "length") == 0);
}

static json_t *seeded(int seed) {
    return json_pack("{s:f, s:i, s:i}", "temperature", 0.8, "seed", seed, "max_tokens", 40);
}

static void sampling_is_repeatable(void **state) {
    auto_text first = suite_complete(*state, "The whale", seeded(7));
    auto_text again = suite_complete(*state, "The whale", seeded(7));
    auto_text other = suite_complete(*state, "The whale", seeded(8));
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
}

/* -- asking badly -- */

static void wrong_keys_are_401(void **state) {
    static const char *const headers[] = {
        "Authorization: Bearer fx-0000000000000000000000000000000000000000000000000000000000000000",
        "Authorization: Bearer ", "Authorization: Basic abc", "Authorization: "};
    auto_json body = chat(NULL);
    auto_text text = json_dumps(body, 0);
    for (size_t i = 0; i < FX_TEST_COUNT(headers); i++) {
        struct http_request get = {
            .method = "GET", .path = "/v1/models", .headers = WORDS(headers[i])};
        struct http_request post = {.method = "POST",
                                    .path = CHAT,
                                    .headers = WORDS(headers[i]),
                                    .body = fx_span_str(text)};
        auto_answer listed = suite_send(*state, &get), said = suite_send(*state, &post);
        assert_refused(&listed, 401, headers[i]);
        assert_refused(&said, 401, headers[i]);
    }
}

static void a_revoked_key_is_401(void **state) {
    struct suite *suite = *state;
    char key[SUITE_KEY_MAX], id[17];
    uint8_t digest[FX_SHA256_BYTES];
    suite_key_make(suite, key);
    assert_int_equal(models_status(suite, key), 200);
    fx_sha256(fx_span_str(key), digest);
    fx_hex((fx_span){digest, 8}, id);
    free(suite_cli_ok(suite, WORDS("keys", "revoke", id)));
    WAIT_FOR(models_status(suite, key) == 401, 6000, "the key is not revoked");
    assert_int_equal(models_status(suite, suite->key), 200);
}

static void unknown_things_are_404(void **state) {
    assert_refuses(*state, CHAT, chat(json_pack("{s:s}", "model", "no-such-model")), 404);
    assert_refuses(*state, "/v1/nothing", chat(NULL), 404);
}

static void bad_bodies_are_400(void **state) {
    struct suite *suite = *state;
    static const char *const bodies[] = {
        "{\"model\": ",         "", "[]", "null", "{\"model\": \"" SUITE_MODEL "\"}",
        "{\"model\": \"\xff\"}"};
    char bearer[128];
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    for (size_t i = 0; i < FX_TEST_COUNT(bodies); i++) {
        struct http_request request = {.method = "POST",
                                       .path = CHAT,
                                       .headers = WORDS(bearer, "Content-Type: application/json"),
                                       .body = fx_span_str(bodies[i])};
        auto_answer answer = suite_send(suite, &request);
        assert_refused(&answer, 400, bodies[i]);
    }
    assert_answers(suite, json_pack("{s:i}", "max_tokens", 2));
}

static void bad_fields_are_400(void **state) {
    struct suite *suite = *state;
    static const char *const fields[] = {
        "{\"temperature\": -1}",
        "{\"temperature\": 3}",
        "{\"temperature\": \"hot\"}",
        "{\"top_p\": 1.5}",
        "{\"min_p\": -0.1}",
        "{\"max_tokens\": 0}",
        "{\"max_tokens\": -3}",
        "{\"messages\": []}",
        "{\"messages\": [{\"role\": \"user\"}]}",
        "{\"messages\": \"hello\"}",
        "{\"stop\": \"\"}",
        "{\"stop\": [\"\"]}",
        "{\"stop\": [\"a\", \"b\", \"c\", \"d\", \"e\"]}",
        "{\"stop\": 7}",
        "{\"seed\": \"x\"}",
        "{\"stream\": \"yes\"}",
        "{\"model\": 7}",
    };
    for (size_t i = 0; i < FX_TEST_COUNT(fields); i++)
        assert_refuses(suite, CHAT, chat(json_loads(fields[i], 0, NULL)), 400);
    assert_refuses(suite, TEXT, json_pack("{s:s, s:i}", "model", SUITE_MODEL, "max_tokens", 1),
                   400);
    assert_answers(suite, json_pack("{s:i}", "max_tokens", 2));
}

static void a_prompt_past_the_context_is_400(void **state) {
    char prompt[1101] = "";
    memset(prompt, 'x', sizeof prompt - 1);
    assert_refuses(*state, TEXT, suite_prompt(prompt, json_pack("{s:i}", "max_tokens", 1)), 400);
}

static void max_tokens_is_a_ceiling(void **state) {
    char prompt[1001] = "";
    memset(prompt, 'x', sizeof prompt - 1);
    auto_answer answer = suite_request(
        *state, "POST", TEXT, suite_prompt(prompt, json_pack("{s:i}", "max_tokens", 100000)));
    assert_int_equal(answer.status, 200);
    const char *reason =
        text_at(json_array_get(json_object_get(answer.json, "choices"), 0), "finish_reason");
    assert_true(strcmp(reason, "stop") == 0 || strcmp(reason, "length") == 0);
}

static void large_bodies_are_413(void **state) {
    enum { BODY_BYTES = 64 << 20 };
    struct suite *suite = *state;
    char bearer[128];
    auto_text body = malloc(BODY_BYTES);
    assert_non_null(body);
    memset(body, ' ', BODY_BYTES);
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    struct http_request request = {
        .method = "POST",
        .path = CHAT,
        .headers = WORDS(bearer, "Content-Type: application/json"),
        .body = {(const uint8_t *)body, BODY_BYTES}
    };
    auto_answer answer = suite_send(suite, &request);
    assert_refused(&answer, 413, "64 MiB");
}

/* The body never comes: the head alone is refused. */
static void an_announced_large_body_is_413_at_once(void **state) {
    struct suite *suite = *state;
    char bearer[128];
    auto_http conn = {0};
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    struct http_request request = {
        .method = "POST",
        .path = CHAT,
        .headers = WORDS(bearer, "Content-Type: application/json", "Content-Length: 9999999999")};
    MUST(http_open(&conn, suite->gateways[0].port, &err));
    MUST(http_send(&conn, &request, &err));
    while (!conn.status)
        MUST(http_read(&conn, STEP_MS, &err));
    assert_int_equal(conn.status, 413);
}

/* -- the processes -- */

static void the_admin_port_answers(void **state) {
    struct service *service;
    uint32_t i = 0;
    for (; (service = suite_service(*state, i)); i++) {
        assert_int_equal(service_get(service, "/livez"), 200);
        assert_int_equal(service_get(service, "/readyz"), 200);
        assert_int_equal(service_get(service, "/v1/models"), 404);
        free(service_metrics(service));
    }
    assert_int_equal(i, 5);
}

static unsigned chat_status(struct suite *suite) {
    auto_answer answer = suite_request(suite, "POST", CHAT, chat(NULL));
    return answer.status;
}

/* Last: it takes Redis away. */
static void without_redis_the_gateway_says_503(void **state) {
    struct suite *suite = *state;
    struct service *scheduler = &suite->schedulers[0];
    char after[32] = "";
    assert_int_equal(redis_fixture_end(&suite->redis), 0);
    WAIT_FOR(service_get(scheduler, "/readyz") == 503, STEP_MS, "the scheduler stays ready");
    assert_int_equal(service_get(scheduler, "/livez"), 200);
    assert_int_equal(service_get(&suite->gateways[0], "/readyz"), 200);
    auto_answer answer = suite_request(suite, "POST", CHAT, chat(NULL));
    assert_refused(&answer, 503, "without Redis");
    assert_true(http_header(&answer.conn, "retry-after", after, sizeof after));
    assert_in_range(strtoul(after, NULL, 10), 1, 60);
    redis_fixture_restart(&suite->redis, NULL);
    WAIT_FOR(chat_status(suite) == 200, BACK_MS, "it does not come back");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_listed),
        cmocka_unit_test(chat_answers),
        cmocka_unit_test(a_stream_says_the_same),
        cmocka_unit_test(token_ids_are_those_of_an_answer),
        cmocka_unit_test(the_wire_of_a_stream),
        cmocka_unit_test(sampling_is_repeatable),
        cmocka_unit_test(wrong_keys_are_401),
        cmocka_unit_test(a_revoked_key_is_401),
        cmocka_unit_test(unknown_things_are_404),
        cmocka_unit_test(bad_bodies_are_400),
        cmocka_unit_test(bad_fields_are_400),
        cmocka_unit_test(a_prompt_past_the_context_is_400),
        cmocka_unit_test(max_tokens_is_a_ceiling),
        cmocka_unit_test(large_bodies_are_413),
        cmocka_unit_test(an_announced_large_body_is_413_at_once),
        cmocka_unit_test(the_admin_port_answers),
        cmocka_unit_test(without_redis_the_gateway_says_503),
    };
    return suite_main("http", tests, FX_TEST_COUNT(tests), &(struct suite_opts){0});
}
