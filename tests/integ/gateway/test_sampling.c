/* Sampling parameters, stop strings, log probabilities and several choices, every part a real
 * process. */
#include <math.h>
#include "common/base/heap.h"
#include "tests/e2e/suite.h"

#define CHAT "/v1/chat/completions"
#define TEXT "/v1/completions"
#define AUSTEN "It is a truth universally acknowledged, that a"

static json_t *choice_at(json_t *json, size_t index) {
    json_t *choice = json_array_get(json_object_get(json, "choices"), index);
    assert_int_equal(json_integer_value(json_object_get(choice, "index")), index);
    return choice;
}

static const char *text_of(json_t *choice) {
    const char *text = json_string_value(json_object_get(choice, "text"));
    assert_non_null(text);
    return text;
}

static int completion_tokens(json_t *json) {
    json_t *usage = json_object_get(json, "usage");
    return (int)json_integer_value(json_object_get(usage, "completion_tokens"));
}

static struct answer complete(struct suite *suite, const char *fields) {
    json_t *more = json_loads(fields, 0, NULL);
    assert_non_null(more);
    struct answer answer = suite_request(suite, "POST", TEXT, suite_prompt(AUSTEN, more));
    if (answer.status != 200) fail_msg("%s", answer.conn.body.at);
    return answer;
}

/* -- refusals -- */

static void assert_param(struct answer *answer, const char *param) {
    json_t *error = json_object_get(answer->json, "error");
    if (answer->status != 400) fail_msg("%s: %u", param, answer->status);
    assert_string_equal(json_string_value(json_object_get(error, "param")), param);
    assert_true(json_is_string(json_object_get(error, "code")));
    assert_true(answer->conn.body.len < 4096);
}

static void refuse(struct suite *suite, const char *path, const char *fields, const char *param) {
    json_t *more = json_loads(fields, 0, NULL);
    assert_non_null(more);
    json_t *body = json_pack("{s:s, s:i}", "model", SUITE_MODEL, "max_tokens", 4);
    if (strcmp(path, CHAT) == 0)
        (void)json_object_set_new(body, "messages",
                                  json_pack("[{s:s, s:s}]", "role", "user", "content", "hi"));
    else
        (void)json_object_set_new(body, "prompt", json_string("hi"));
    (void)json_object_update(body, more);
    json_decref(more);
    auto_answer answer = suite_request(suite, "POST", path, body);
    assert_param(&answer, param);
}

static void test_bad_stops(void **state) {
    struct suite *suite = *state;
    static const char *const bad[] = {"{\"stop\": \"\"}", "{\"stop\": [\"\"]}",
                                      "{\"stop\": [\"a\", \"b\", \"c\", \"d\", \"e\"]}",
                                      "{\"stop\": 7}"};
    enum { LONG = 100000 };
    char *longest = fx_alloc(1, LONG + 32);
    double taken = service_metric(&suite->workers[0], "fx_worker_generations_taken_total");
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++) {
        refuse(suite, CHAT, bad[i], "stop");
        refuse(suite, TEXT, bad[i], "stop");
    }
    (void)snprintf(longest, LONG + 32, "{\"stop\": \"");
    size_t from = strlen(longest);
    memset(longest + from, 'a', LONG);
    (void)snprintf(longest + from + LONG, 16, "\"}");
    refuse(suite, CHAT, longest, "stop");
    free(longest);
    assert_true(service_metric(&suite->workers[0], "fx_worker_generations_taken_total") <= taken);
}

static void test_hostile_numbers(void **state) {
    struct suite *suite = *state;
    refuse(suite, CHAT, "{\"logit_bias\": {\"260\": 5}}", "logit_bias"); /* the vocabulary's size */
    refuse(suite, CHAT, "{\"logit_bias\": {\"-1\": 5}}", "logit_bias");
    refuse(suite, CHAT, "{\"logit_bias\": {\"abc\": 5}}", "logit_bias");
    refuse(suite, TEXT, "{\"logit_bias\": {\"5\": 1e308}}", "logit_bias");
    refuse(suite, TEXT, "{\"prompt\": [1, 260]}", "prompt");
    refuse(suite, CHAT, "{\"logprobs\": true, \"top_logprobs\": 21}", "top_logprobs");
    refuse(suite, TEXT, "{\"logprobs\": 6}", "logprobs");
    refuse(suite, TEXT, "{\"n\": 17}", "n");
    auto_answer answer = complete(suite, "{\"top_k\": 1, \"logprobs\": 5, \"temperature\": 1}");
    json_t *logprobs = json_object_get(choice_at(answer.json, 0), "logprobs"), *value;
    size_t i;
    assert_int_equal(json_array_size(json_object_get(logprobs, "tokens")),
                     completion_tokens(answer.json));
    json_array_foreach(json_object_get(logprobs, "token_logprobs"), i, value) {
        assert_true(json_is_number(value) && isfinite(json_number_value(value)));
        assert_true(json_number_value(value) <= 0);
        json_t *top = json_array_get(json_object_get(logprobs, "top_logprobs"), i);
        assert_in_range(json_object_size(top), 5, 6);
    }
    auto_answer next = complete(suite, "{}");
    assert_int_equal(next.status, 200);
}

/* -- stop -- */

/* Behind the first place of `stop`; the bundled tokenizer has one byte a token. */
static size_t end_of(const char *text, const char *stop) {
    const char *at = strstr(text, stop);
    assert_non_null(at);
    return (size_t)(at - text) + strlen(stop);
}

static void test_stop(void **state) {
    struct suite *suite = *state;
    auto_text whole = suite_complete(suite, AUSTEN, json_pack("{s:i}", "max_tokens", 64));
    char stop[8] = {0};
    memcpy(stop, whole + 21, 5);
    auto_answer cut = suite_request(
        suite, "POST", TEXT,
        suite_prompt(AUSTEN, json_pack("{s:i, s:[ss]}", "max_tokens", 64, "stop", "\x01", stop)));
    json_t *choice = choice_at(cut.json, 0);
    size_t end = end_of(whole, stop);
    assert_string_equal(json_string_value(json_object_get(choice, "finish_reason")), "stop");
    assert_int_equal(completion_tokens(cut.json), end);
    assert_int_equal(strlen(text_of(choice)), end - strlen(stop));
    assert_memory_equal(text_of(choice), whole, end - strlen(stop));

    auto_stream stream = {0};
    MUST(stream_open(&stream, suite, AUSTEN,
                     json_pack("{s:i, s:s}", "max_tokens", 64, "stop", stop), &err));
    MUST(stream_rest(&stream, &err));
    assert_string_equal(stream.text.at, text_of(choice));

    /* what never gets whole is not lost */
    auto_answer never =
        suite_request(suite, "POST", TEXT,
                      suite_prompt(AUSTEN, json_pack("{s:i, s:s+}", "max_tokens", 64, "stop",
                                                     whole + 60, "\x01")));
    assert_string_equal(text_of(choice_at(never.json, 0)), whole);
}

/* -- finish_reason and several choices -- */

static json_t *chat(const char *fields) {
    json_t *body =
        json_pack("{s:s, s:[{s:s, s:s}], s:i, s:i}", "model", SUITE_MODEL, "messages", "role",
                  "user", "content", "Tell me of the whale", "seed", 9, "max_tokens", 20);
    json_t *more = json_loads(fields, 0, NULL);
    assert_non_null(more);
    (void)json_object_update(body, more);
    json_decref(more);
    return body;
}

enum { CHOICES_MAX = 16 };

/* A stream, put together again by choice. */
struct gathered {
    char *body;
    struct http_text text[CHOICES_MAX];
    char reason[CHOICES_MAX][16];
    uint32_t seen, roles[CHOICES_MAX]; /* choices in the order they came */
    json_t *logprobs[CHOICES_MAX], *usage;
    bool done;
};

static void text_add(struct http_text *text, const char *more) {
    size_t len = strlen(more);
    text->at = fx_realloc(text->at, text->len + len + 1, 1);
    memcpy(text->at + text->len, more, len + 1);
    text->len += len;
}

static void choice_gather(struct gathered *to, json_t *choice) {
    size_t index = (size_t)json_integer_value(json_object_get(choice, "index"));
    json_t *delta = json_object_get(choice, "delta");
    const char *content = json_string_value(json_object_get(delta, "content"));
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    json_t *logprobs = json_object_get(json_object_get(choice, "logprobs"), "content");
    assert_true(index < CHOICES_MAX && !to->reason[index][0]);
    if (index == to->seen) to->seen++;
    assert_true(index < to->seen); /* first seen in order */
    to->roles[index] += json_object_get(delta, "role") != NULL;
    if (content) text_add(&to->text[index], content);
    if (reason) (void)snprintf(to->reason[index], sizeof to->reason[index], "%s", reason);
    if (!to->logprobs[index]) to->logprobs[index] = json_array();
    if (logprobs) (void)json_array_extend(to->logprobs[index], logprobs);
}

static void event_gather(struct gathered *to, const char *line) {
    json_t *choice;
    size_t i;
    assert_true(!to->done && !to->usage); /* nothing behind usage but [DONE] */
    auto_json chunk = json_loads(line, 0, NULL);
    if (!chunk) fail_msg("no JSON: %s", line);
    json_t *choices = json_object_get(chunk, "choices");
    json_array_foreach(choices, i, choice) choice_gather(to, choice);
    if (!json_array_size(choices)) to->usage = json_incref(json_object_get(chunk, "usage"));
}

static struct gathered chat_stream(struct suite *suite, const char *fields) {
    struct gathered to = {0};
    json_t *body = chat(fields);
    (void)json_object_set_new(body, "stream", json_true());
    (void)json_object_set_new(body, "stream_options", json_pack("{s:b}", "include_usage", 1));
    auto_answer answer = suite_request(suite, "POST", CHAT, body);
    assert_int_equal(answer.status, 200);
    for (char *rest = answer.conn.body.at, *line; (line = strsep(&rest, "\n"));) {
        if (strcmp(line, "data: [DONE]") == 0)
            to.done = true;
        else if (strncmp(line, "data: ", 6) == 0)
            event_gather(&to, line + 6);
    }
    assert_true(to.done);
    assert_non_null(to.usage);
    return to;
}

static void gathered_free(struct gathered *gathered) {
    for (size_t i = 0; i < CHOICES_MAX; i++) {
        free(gathered->text[i].at);
        json_decref(gathered->logprobs[i]);
    }
    json_decref(gathered->usage);
}

static void test_length_is_told(void **state) {
    struct suite *suite = *state;
    const char *fields = "{\"ignore_eos\": true}";
    auto_answer whole = suite_request(suite, "POST", CHAT, chat(fields));
    struct gathered stream = chat_stream(suite, fields);
    assert_string_equal(
        json_string_value(json_object_get(choice_at(whole.json, 0), "finish_reason")), "length");
    assert_string_equal(stream.reason[0], "length");
    assert_int_equal(completion_tokens(whole.json), 20);
    assert_int_equal(json_integer_value(json_object_get(stream.usage, "completion_tokens")), 20);
    gathered_free(&stream);
}

static const char *content_of(json_t *json, size_t index) {
    json_t *message = json_object_get(choice_at(json, index), "message");
    return json_string_value(json_object_get(message, "content"));
}

static void test_choices(void **state) {
    struct suite *suite = *state;
    enum { N = 3 };
    const char *fields = "{\"n\": 3, \"ignore_eos\": true, \"logprobs\": true}";
    auto_answer whole = suite_request(suite, "POST", CHAT, chat(fields));
    auto_answer alone = suite_request(suite, "POST", CHAT, chat("{\"ignore_eos\": true}"));
    struct gathered stream = chat_stream(suite, fields);
    assert_int_equal(json_array_size(json_object_get(whole.json, "choices")), N);
    assert_int_equal(stream.seen, N);
    assert_int_equal(completion_tokens(whole.json), N * 20);
    assert_int_equal(json_integer_value(json_object_get(stream.usage, "completion_tokens")),
                     N * 20);
    assert_true(json_equal(stream.usage, json_object_get(whole.json, "usage")));
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(stream.roles[i], 1);
        assert_string_equal(stream.reason[i], "length");
        assert_string_equal(stream.text[i].at, content_of(whole.json, i));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(content_of(whole.json, i), content_of(whole.json, j));
    }
    assert_string_equal(content_of(alone.json, 0), content_of(whole.json, 0));
    gathered_free(&stream);
}

/* As many as there may be, and no slot stays taken. */
static void test_sixteen(void **state) {
    struct suite *suite = *state;
    struct gathered stream = chat_stream(suite, "{\"n\": 16, \"max_tokens\": 5}");
    assert_int_equal(stream.seen, CHOICES_MAX);
    gathered_free(&stream);
    for (int i = 0; i < 200 && !worker_is_free(&suite->workers[0]); i++)
        usleep(10000);
    assert_true(worker_is_free(&suite->workers[0]));
}

/* -- logprobs -- */

static void test_logprobs(void **state) {
    struct suite *suite = *state;
    const char *fields = "{\"logprobs\": true, \"top_logprobs\": 4, \"temperature\": 0}";
    auto_answer whole = suite_request(suite, "POST", CHAT, chat(fields));
    struct gathered stream = chat_stream(suite, fields);
    json_t *logprobs = json_object_get(choice_at(whole.json, 0), "logprobs"), *entry;
    json_t *content = json_object_get(logprobs, "content");
    const char *text = content_of(whole.json, 0);
    size_t i, at = 0;
    assert_true(json_equal(stream.logprobs[0], content));
    assert_true(json_array_size(content) > 0);
    json_array_foreach(content, i, entry) {
        json_t *bytes = json_object_get(entry, "bytes"), *byte;
        json_t *top = json_object_get(entry, "top_logprobs");
        size_t j;
        json_array_foreach(bytes, j, byte)
            assert_int_equal(json_integer_value(byte), (uint8_t)text[at++]);
        assert_int_equal(json_array_size(top), 4);
        double own = json_number_value(json_object_get(entry, "logprob"));
        json_t *first = json_array_get(top, 0);
        assert_true(own <= 0 && own >= json_number_value(json_object_get(first, "logprob")));
        assert_string_equal(json_string_value(json_object_get(entry, "token")),
                            json_string_value(json_object_get(first, "token")));
    }
    assert_int_equal(at, strlen(text));
    gathered_free(&stream);
}

/* Log probabilities are those of the raw logits: a bias changes the text, not them. */
static void test_raw(void **state) {
    struct suite *suite = *state;
    auto_answer plain = complete(suite, "{\"logprobs\": 1, \"max_tokens\": 1}");
    auto_answer biased =
        complete(suite, "{\"logprobs\": 1, \"max_tokens\": 1, \"logit_bias\": {\"35\": 100}}");
    json_t *a = json_object_get(choice_at(plain.json, 0), "logprobs");
    json_t *b = json_object_get(choice_at(biased.json, 0), "logprobs");
    json_t *best = json_array_get(json_object_get(a, "top_logprobs"), 0);
    json_t *both = json_array_get(json_object_get(b, "top_logprobs"), 0);
    const char *key;
    json_t *value;
    assert_string_equal(text_of(choice_at(biased.json, 0)), "#");
    json_object_foreach(best, key, value)
        assert_true(json_equal(value, json_object_get(both, key)));
    assert_true(json_number_value(json_object_get(both, "#")) < -1);
}

/* Everything at once is the same text again. */
static void test_again(void **state) {
    struct suite *suite = *state;
    const char *fields =
        "{\"temperature\": 1.1, \"top_k\": 60, \"top_p\": 0.95, \"min_p\": 0.01, \"typical_p\": "
        "0.9, "
        "\"presence_penalty\": 0.5, \"frequency_penalty\": 0.3, \"repetition_penalty\": 1.1, "
        "\"logit_bias\": {\"101\": -1}, \"seed\": 4, \"min_tokens\": 10, \"stop\": [\"zz\"], "
        "\"n\": 2, \"logprobs\": 2}";
    auto_answer first = complete(suite, fields), second = complete(suite, fields);
    assert_true(json_equal(json_object_get(first.json, "choices"),
                           json_object_get(second.json, "choices")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_stops), cmocka_unit_test(test_hostile_numbers),
        cmocka_unit_test(test_stop),      cmocka_unit_test(test_length_is_told),
        cmocka_unit_test(test_choices),   cmocka_unit_test(test_sixteen),
        cmocka_unit_test(test_logprobs),  cmocka_unit_test(test_raw),
        cmocka_unit_test(test_again),
    };
    return suite_main("sampling", tests, FX_TEST_COUNT(tests), &(struct suite_opts){0});
}
