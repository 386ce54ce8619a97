/* Clients that come back: the rest of an answer from wherever they are, its status, its cancel, and
 * POSTs that come twice. */
#include <hiredis/hiredis.h>
#include <jansson.h>
#include "tests/integ/gateway/stage.h"

#define KEY "Authorization: Bearer " STAGE_KEY "\r\n"
#define CHAT(more)                                                                                 \
    "{\"model\":\"" STAGE_MODEL "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" more "}"
#define STREAM ",\"stream\":true"
enum { EVENTS_MAX = 256, TEXT_MAX = 4096, ID_MAX = 64, CHOICES = 2 };

/* -- streams -- */

struct event {
    char at[ID_MAX];     /* its `id:` */
    uint32_t n[CHOICES]; /* tokens of the choices so far */
    size_t len[CHOICES]; /* of their texts so far */
    bool finished;
};

/* What a client puts together. */
struct seen {
    char id[ID_MAX], text[CHOICES][TEXT_MAX], reason[CHOICES][16];
    uint32_t roles, usages;
    size_t count;
    struct event events[EVENTS_MAX];
};

static void event_read(struct seen *seen, const char *at, json_t *json) {
    json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
    json_t *delta = json_object_get(choice, "delta"), *text = json_object_get(delta, "content");
    json_t *reason = json_object_get(choice, "finish_reason");
    size_t index = (size_t)json_integer_value(json_object_get(choice, "index"));
    json_t *n = json_object_get(json_object_get(json, "fractal"), "n");
    struct event *event = &seen->events[seen->count++];
    assert_in_range(seen->count, 1, EVENTS_MAX);
    assert_null(json_object_get(json, "error"));
    (void)snprintf(seen->id, sizeof seen->id, "%s", json_string_value(json_object_get(json, "id")));
    if (seen->count > 1) *event = event[-1];
    (void)snprintf(event->at, sizeof event->at, "%s", at);
    if (!choice) {
        seen->usages++;
        return;
    }
    if (json_object_get(delta, "role")) seen->roles++;
    size_t len = strlen(seen->text[index]);
    (void)snprintf(seen->text[index] + len, TEXT_MAX - len, "%s",
                   text ? json_string_value(text) : "");
    event->n[index] = (uint32_t)json_integer_value(n);
    event->len[index] = strlen(seen->text[index]);
    event->finished = json_is_string(reason);
    if (!event->finished) return;
    assert_string_equal(seen->reason[index], "");
    (void)snprintf(seen->reason[index], sizeof seen->reason[index], "%s",
                   json_string_value(reason));
}

/* Reads a whole stream; `ids`: each event must have one, else none may. */
static void stream_read(char *answer, bool ids, struct seen *seen) {
    char *at;
    *seen = (struct seen){0};
    if (wire_status(answer) != 200) fail_msg("%s", answer);
    for (at = stage_dechunk(answer); strcmp(at, "data: [DONE]\n\n") != 0;) {
        char *end = strstr(at, "\n\n"), *data = at, place[ID_MAX] = "";
        if (!end) fail_msg("a broken event: %s", at);
        *end = 0;
        if (strncmp(at, "id: ", 4) == 0) {
            data = strchr(at, '\n') + 1;
            (void)snprintf(place, sizeof place, "%.*s", (int)(data - at - 5), at + 4);
        }
        if (strncmp(data, "data: {", 7) == 0) {
            assert_int_equal(*place != 0, ids);
            json_t *json = json_loads(data + 6, JSON_REJECT_DUPLICATES, NULL);
            assert_non_null(json);
            event_read(seen, place, json);
            json_decref(json);
        } else if (*data != ':') {
            fail_msg("neither data nor a comment: %s", data);
        }
        at = end + 2;
    }
    free(answer);
}

static void post(struct stage *stage, const char *body, struct seen *seen) {
    stream_read(stage_ask(stage, "/v1/chat/completions", body), false, seen);
}

static char *events_get(struct stage *stage, const char *id, const char *query, const char *last) {
    char path[256], headers[256];
    (void)snprintf(path, sizeof path, "/v1/generations/%s/events%s", id, query);
    (void)snprintf(headers, sizeof headers, KEY "%s%s%s", last ? "Last-Event-ID: " : "",
                   last ? last : "", last ? "\r\n" : "");
    return stage_get(stage, path, headers);
}

/* -- from every place -- */

/* Characters of three bytes, what is no character, and text that may become a stop string. */
#define SAID                                                                                       \
    "a\xe2\x82\xac\xe2\x82"                                                                        \
    "bnonope-no"
static const struct stage_script said = {SAID, sizeof SAID - 1, 0, 4, 1, FX_FINISH_STOP, NULL};

/* What a client has that was told `n` tokens of choice 0, and not its end. */
static size_t length_at(const struct seen *seen, uint32_t n) {
    size_t len = 0;
    for (size_t i = 0; i < seen->count && !seen->events[i].finished; i++)
        if (seen->events[i].n[0] <= n) len = seen->events[i].len[0];
    return len;
}

static void test_after(void **state) {
    static struct seen whole, rest;
    struct stage *stage = *state;
    stage_say(stage, said);
    post(stage, CHAT(STREAM ",\"stop\":[\"nothing\",\"-not\"]"), &whole);
    assert_string_equal(whole.text[0], "a\xe2\x82\xac\xef\xbf\xbd"
                                       "bnonope-no");
    for (uint32_t n = 0; n <= said.len; n++) {
        char query[32];
        size_t had = length_at(&whole, n);
        (void)snprintf(query, sizeof query, "?after=%u", n);
        stream_read(events_get(stage, whole.id, query, NULL), true, &rest);
        assert_string_equal(rest.id, whole.id);
        assert_string_equal(rest.text[0], whole.text[0] + had);
        assert_string_equal(rest.reason[0], "stop");
        assert_int_equal(rest.roles, n == 0);
        assert_int_equal(rest.usages, 0);
    }
}

/* The first `count` events, and from there on what a new stream brings. */
static void test_last_event_id(void **state) {
    static struct seen whole, rest;
    struct stage *stage = *state;
    stage_say(stage, said);
    post(stage, CHAT(STREAM ",\"n\":2,\"logprobs\":true"), &whole);
    char id[ID_MAX];
    (void)snprintf(id, sizeof id, "%s", whole.id);
    stream_read(events_get(stage, id, "?include_usage=true", NULL), true, &whole);
    assert_int_equal(whole.usages, 1);
    for (size_t i = 0; i + 1 < whole.count; i++) {
        const struct event *event = &whole.events[i];
        stream_read(events_get(stage, id, "?after=0&include_usage=true", event->at), true, &rest);
        for (int c = 0; c < CHOICES; c++) {
            assert_string_equal(rest.text[c], whole.text[c] + event->len[c]);
            bool ended = strstr(event->at, c ? "e" : "e,") &&
                         (!c || event->at[strlen(event->at) - 1] == 'e');
            assert_string_equal(rest.reason[c], ended ? "" : "stop");
        }
        assert_int_equal(rest.usages, 1);
    }
    stream_read(events_get(stage, id, "?after=1%2C1", NULL), true, &rest); /* as pages write it */
    for (int c = 0; c < CHOICES; c++)
        assert_string_equal(rest.text[c], whole.text[c] + 1);
}

/* While it runs: the gateway that began it is gone, the answer goes on. */
static void test_other_gateway(void **state) {
    static struct seen rest;
    struct stage *stage = *state;
    bool closed;
    char id[ID_MAX];
    stage_say(stage, (struct stage_script){"0123456789", 10, 0, 60, 1, FX_FINISH_STOP, NULL});
    int fd = stage_connect(stage);
    stage_post(fd, "/v1/chat/completions", CHAT(STREAM));
    char *begun = wire_read(fd, "\"n\":3", &closed);
    const char *at = strstr(begun, "\"id\":\"");
    assert_non_null(at);
    (void)snprintf(id, sizeof id, "%.49s", at + 6);
    free(begun);
    struct gw_process *first = stage->process;
    stage_gateway_open(stage); /* one more */
    stream_read(events_get(stage, id, "?after=3", NULL), true, &rest);
    assert_string_equal(rest.text[0], "3456789");
    assert_string_equal(rest.reason[0], "stop");
    stage_gateway_close(stage);
    stage->process = first;
    stage->gateway = &first->loops[0];
    close(fd);
}

static void *drain(void *process) {
    gw_process_drain(process);
    return NULL;
}

/* A gateway that is told to end says so, and the answer goes on at another. */
static void test_hand_over(void **state) {
    static struct seen rest;
    struct stage *stage = *state;
    bool closed;
    char id[ID_MAX];
    pthread_t draining;
    stage_gateway_close(stage);
    stage->config.health.drain_ms = 100;
    stage_gateway_open(stage);
    stage_say(stage, (struct stage_script){"0123456789", 10, 0, 80, 1, FX_FINISH_STOP, NULL});
    int fd = stage_connect(stage);
    stage_post(fd, "/v1/chat/completions", CHAT(STREAM));
    free(wire_read(fd, "\"n\":2", &closed));
    struct gw_process *first = stage->process;
    assert_int_equal(pthread_create(&draining, NULL, drain, first), 0);
    char *end = wire_read(fd, "[DONE]", &closed);
    assert_non_null(strstr(end, "\"code\":\"gateway_shutting_down\""));
    const char *at = strstr(end, "/v1/generations/");
    assert_non_null(at);
    (void)snprintf(id, sizeof id, "%.49s", at + strlen("/v1/generations/"));
    free(end);
    close(fd);
    (void)pthread_join(draining, NULL);
    stage_gateway_open(stage);
    stream_read(events_get(stage, id, "", NULL), true, &rest);
    assert_string_equal(rest.text[0], "0123456789");
    assert_int_equal(stage->cancelled, 0);
    gw_process_close(first);
}

/* -- status and cancel -- */

static json_t *json_get(struct stage *stage, const char *id, const char *what, unsigned status) {
    char path[256];
    (void)snprintf(path, sizeof path, "/v1/generations/%s%s", id, what);
    char *answer = *what ? stage_ask(stage, path, "") : stage_get(stage, path, KEY);
    if (wire_status(answer) != status) fail_msg("%s", answer);
    json_t *json = json_loads(stage_body(answer), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    free(answer);
    return json;
}

static void assert_text(json_t *json, const char *name, const char *want) {
    assert_string_equal(json_string_value(json_object_get(json, name)), want);
}

static void test_status(void **state) {
    static struct seen whole;
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){"Hello", 5, 0, 0, 1, FX_FINISH_LENGTH, NULL});
    post(stage, CHAT(STREAM ",\"n\":2"), &whole);
    json_t *json = json_get(stage, whole.id, "", 200), *response, *choices;
    assert_text(json, "id", whole.id);
    assert_text(json, "object", "generation");
    assert_text(json, "model", STAGE_MODEL);
    assert_text(json, "status", "finished");
    assert_int_equal(json_integer_value(json_object_get(json, "prompt_tokens")), 3);
    choices = json_object_get(json, "choices");
    assert_int_equal(json_array_size(choices), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(choices, 1), "tokens")), 5);
    assert_text(json_array_get(choices, 1), "finish_reason", "length");
    response = json_object_get(json, "response");
    assert_text(response, "object", "chat.completion");
    json_t *message =
        json_object_get(json_array_get(json_object_get(response, "choices"), 1), "message");
    assert_text(message, "content", "Hello");
    json_decref(json);
}

static void test_cancel(void **state) {
    struct stage *stage = *state;
    bool closed;
    char id[ID_MAX];
    stage_say(stage, (struct stage_script){NULL, 0, 0, 20, 1, FX_FINISH_STOP, NULL});
    int fd = stage_connect(stage);
    stage_post(fd, "/v1/chat/completions", CHAT(STREAM));
    char *begun = wire_read(fd, "\"n\":3", &closed);
    (void)snprintf(id, sizeof id, "%.49s", strstr(begun, "\"id\":\"") + 6);
    free(begun);
    json_t *json = json_get(stage, id, "", 200);
    assert_text(json, "status", "running");
    assert_true(json_is_null(json_object_get(json, "response")));
    json_decref(json);
    json_decref(json_get(stage, id, "/cancel", 200));
    char *rest = wire_read(fd, "[DONE]", &closed);
    assert_non_null(strstr(rest, "generation_cancelled"));
    free(rest);
    close(fd);
    assert_true(stage_wait(&stage->running, 0));
    for (int twice = 0; twice < 2; twice++) {
        json = json_get(stage, id, twice ? "/cancel" : "", 200);
        assert_text(json, "status", "cancelled");
        json_decref(json);
    }
}

static void test_refusals(void **state) {
    static struct seen whole;
    static const char *const ids[] = {
        "chatcmpl-00000000000000000000000000000000000000aa",
        "chatcmpl-",
        "x",
        "chatcmpl-0000000000000000000000000000000000000007z",
        "cmpl-ffffffffffffffffffffffffffffffffffffffff",
    };
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){"Hello", 5, 0, 0, 1, FX_FINISH_STOP, NULL});
    post(stage, CHAT(STREAM), &whole);
    for (size_t i = 0; i < FX_TEST_COUNT(ids); i++) {
        json_t *json = json_get(stage, ids[i], "", 404);
        assert_text(json_object_get(json, "error"), "code", "generation_not_found");
        json_decref(json);
        json_decref(json_get(stage, ids[i], "/cancel", 404));
    }
    static const char *const places[] = {"x", "1,2", "-1", "1x", "99999999999", "1,", "e"};
    for (size_t i = 0; i < FX_TEST_COUNT(places); i++) {
        char *answer = events_get(stage, whole.id, "", places[i]);
        assert_int_equal(wire_status(answer), 400);
        assert_non_null(strstr(answer, "last-event-id"));
        free(answer);
    }
    char path[128];
    (void)snprintf(path, sizeof path, "/v1/generations/%s", whole.id);
    char *answer = stage_get(stage, path, "");
    assert_int_equal(wire_status(answer), 401);
    free(answer);
}

/* The head of its events, and nothing behind it. */
static void test_head(void **state) {
    static struct seen whole;
    struct stage *stage = *state;
    bool closed;
    char head[512];
    post(stage, CHAT(STREAM), &whole);
    (void)snprintf(head, sizeof head,
                   "HEAD /v1/generations/%s/events HTTP/1.1\r\nHost: x\r\n" KEY
                   "Connection: close\r\n\r\n",
                   whole.id);
    int fd = stage_connect(stage);
    wire_say(fd, head);
    char *answer = wire_read(fd, NULL, &closed);
    assert_int_equal(wire_status(answer), 200);
    assert_non_null(strstr(answer, "content-type: text/event-stream"));
    assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
    free(answer);
    close(fd);
}

/* Another tenant's answer is none. */
static void test_other_tenant(void **state) {
    static struct seen whole;
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){"Hello", 5, 0, 0, 1, FX_FINISH_STOP, NULL});
    post(stage, CHAT(STREAM), &whole);
    redisContext *redis = redisConnectUnix(stage->redis_server.socket);
    assert_true(redis && !redis->err);
    char command[128];
    (void)snprintf(command, sizeof command, "HSET fx:{m7}:gen:%.32s tenant 43",
                   strchr(whole.id, '-') + 1);
    redisReply *reply = redisCommand(redis, command);
    assert_non_null(reply);
    freeReplyObject(reply);
    redisFree(redis);
    json_decref(json_get(stage, whole.id, "", 404));
    json_decref(json_get(stage, whole.id, "/cancel", 404));
    char *answer = events_get(stage, whole.id, "", NULL);
    assert_int_equal(wire_status(answer), 404);
    free(answer);
}

/* -- a POST that comes twice -- */

static char *ask_once(struct stage *stage, const char *key, const char *json) {
    bool closed;
    int fd = stage_connect(stage);
    stage_post_once(fd, key, json);
    char *answer = wire_read(fd, NULL, &closed);
    close(fd);
    return answer;
}

static void test_once(void **state) {
    static struct seen first, second;
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){"Hello", 5, 0, 10, 1, FX_FINISH_STOP, NULL});
    stream_read(ask_once(stage, "a-key", CHAT(STREAM)), false, &first);
    int pulled = stage->pulled;
    stage_say(stage, (struct stage_script){"Other", 5, 0, 10, 1, FX_FINISH_STOP, NULL});
    stream_read(ask_once(stage, "a-key", CHAT(STREAM)), false, &second);
    assert_string_equal(first.id, second.id);
    assert_string_equal(second.text[0], "Hello");
    assert_int_equal(stage->pulled, pulled);
    char *answer = ask_once(stage, "a-key", CHAT(STREAM ",\"seed\":1"));
    assert_int_equal(wire_status(answer), 422);
    assert_non_null(strstr(answer, "idempotency_key_reused"));
    free(answer);
    stream_read(ask_once(stage, "b-key", CHAT(STREAM)), false, &second);
    assert_string_equal(second.text[0], "Other");
    answer = ask_once(stage, "a key", CHAT(STREAM));
    assert_int_equal(wire_status(answer), 400);
    free(answer);
}

/* Who said that it may come back finds its answer; without a key, leaving cancels. */
static void test_once_leaves(void **state) {
    struct stage *stage = *state;
    bool closed;
    stage_say(stage, (struct stage_script){"0123456789", 10, 0, 40, 1, FX_FINISH_STOP, NULL});
    int fd = stage_connect(stage), cancelled = stage->cancelled;
    stage_post_once(fd, "left", CHAT(""));
    assert_true(stage_wait(&stage->running, 1));
    close(fd);
    usleep(60000);
    assert_int_equal(stage->running, 1);
    fd = stage_connect(stage);
    stage_post_once(fd, "left", CHAT(""));
    char *answer = wire_read(fd, NULL, &closed);
    assert_non_null(strstr(answer, "\"content\":\"0123456789\""));
    free(answer);
    close(fd);
    assert_int_equal(stage->cancelled, cancelled);
    for (int i = 0; i < 500 && stage->gateway->metrics.running; i++)
        usleep(2000);
    assert_int_equal(stage->gateway->metrics.running, 0);
    for (int i = 0; i < 500 && stage->gateway->visit_count; i++)
        usleep(2000);
    assert_int_equal(stage->gateway->visit_count, 0); /* what a drain waits for */
}

/* What failed is tried anew. */
static void test_once_failed(void **state) {
    struct stage *stage = *state;
    stage_say(stage, (struct stage_script){"He", 2, 0, 2, 1, FX_FINISH_ERROR, "out of luck"});
    char *answer = ask_once(stage, "fails", CHAT(""));
    assert_int_equal(wire_status(answer), 500);
    free(answer);
    stage_say(stage, (struct stage_script){"Hello", 5, 0, 2, 1, FX_FINISH_STOP, NULL});
    for (int twice = 0; twice < 2; twice++) {
        answer = ask_once(stage, "fails", CHAT(""));
        assert_non_null(strstr(answer, "\"content\":\"Hello\""));
        free(answer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_after, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_last_event_id, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_other_gateway, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_hand_over, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_status, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_cancel, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_refusals, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_head, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_other_tenant, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_once, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_once_leaves, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_once_failed, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
