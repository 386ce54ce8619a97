/* How requests get to a scheduler: many in one call, the choices of each together; and one by one
 * to a scheduler that knows no better. */
#include <jansson.h>
#include "tests/integ/gateway/stage.h"

#define TEXT(more) "{\"model\":\"" STAGE_MODEL "\",\"prompt\":\"ab\"" more "}"

static json_t *ask(struct stage *stage, const char *body, unsigned status) {
    char *answer = stage_ask(stage, "/v1/completions", body);
    if (wire_status(answer) != status) fail_msg("%s", answer);
    json_t *json = json_loads(stage_body(answer), 0, NULL);
    assert_non_null(json);
    free(answer);
    return json;
}

static size_t choices_of(struct stage *stage, const char *body) {
    json_t *json = ask(stage, body, 200);
    size_t count = json_array_size(json_object_get(json, "choices"));
    json_decref(json);
    return count;
}

struct turning {
    atomic_bool stuck, free;
};

/* The loop stands still until the test says so: what came meanwhile is one turn's. */
static void stand_still(void *user) {
    struct turning *turning = user;
    turning->stuck = true;
    while (!turning->free)
        usleep(200);
}

enum { AT_ONCE = 16 };

static void test_one_turn_one_call(void **state) {
    struct stage *stage = *state;
    struct turning turning = {false, false};
    int fds[AT_ONCE];
    bool closed;
    assert_int_equal(choices_of(stage, TEXT("")), 1); /* the key is known now */
    int calls = stage->submit_calls, submitted = stage->submitted;
    for (int i = 0; i < AT_ONCE; i++) {
        fds[i] = stage_connect(stage);
        stage_post(fds[i], "/v1/completions", ""); /* 400: the connection is accepted */
        char *answer = wire_read(fds[i], "\"error\"", &closed);
        free(answer);
    }
    assert_true(fx_loop_post(stage->gateway->loop, stand_still, &turning));
    while (!turning.stuck)
        usleep(200);
    for (int i = 0; i < AT_ONCE; i++)
        stage_post(fds[i], "/v1/completions", TEXT(""));
    turning.free = true;
    for (int i = 0; i < AT_ONCE; i++) {
        char *answer = wire_read(fds[i], "Hello", &closed);
        if (!strstr(answer, "Hello")) fail_msg("%s", answer);
        free(answer);
        close(fds[i]);
    }
    assert_int_equal(stage->submitted, submitted + AT_ONCE);
    print_message("%d requests of one turn: %d calls\n", AT_ONCE, stage->submit_calls - calls);
    assert_true(stage->submit_calls - calls <= 2);
    assert_int_equal(stage->gateway->metrics.submit_calls, stage->submit_calls);
}

static void test_choices_in_one_call(void **state) {
    struct stage *stage = *state;
    assert_int_equal(choices_of(stage, TEXT(",\"n\":16,\"max_tokens\":2")), 16);
    assert_int_equal(stage->submit_calls, 1);
    assert_int_equal(stage->submitted, 16);
    assert_int_equal(stage->cancelled, 0);
}

/* What is refused whole was never in: nothing is to be cancelled. */
static void test_refused_whole(void **state) {
    struct stage *stage = *state;
    stage->submit_code = FX_RESOURCE_EXHAUSTED;
    json_decref(ask(stage, TEXT(",\"n\":4"), 429));
    assert_int_equal(stage->submit_calls, 1);
    assert_int_equal(stage->cancelled, 0);
    assert_int_equal(stage->running, 0);
    stage->submit_code = FX_OK;
    assert_int_equal(choices_of(stage, TEXT(",\"n\":4,\"max_tokens\":2")), 4);
}

/* A client that leaves before the turn's end was never there. */
static void test_left_meanwhile(void **state) {
    struct stage *stage = *state;
    struct turning turning = {false, false};
    assert_int_equal(choices_of(stage, TEXT("")), 1);
    int fd = stage_connect(stage);
    assert_true(fx_loop_post(stage->gateway->loop, stand_still, &turning));
    while (!turning.stuck)
        usleep(200);
    stage_post(fd, "/v1/completions", TEXT(",\"n\":3"));
    close(fd);
    turning.free = true;
    for (int i = 0; i < 2000 && stage->gateway->metrics.running; i++)
        usleep(1000);
    assert_int_equal(choices_of(stage, TEXT("")), 1);
    assert_true(stage_wait(&stage->running, 0));
    assert_true(stage->cancelled == 0 || stage->cancelled == 3); /* unseen, or seen and undone */
}

/* The first call tells; for a minute the others do not ask again. */
static void test_old_scheduler(void **state) {
    struct stage *stage = *state;
    stage->old_scheduler = 1;
    assert_int_equal(choices_of(stage, TEXT(",\"n\":4,\"max_tokens\":2")), 4);
    assert_int_equal(stage->submit_calls, 1);
    assert_int_equal(stage->submitted, 4);
    assert_int_equal(choices_of(stage, TEXT("")), 1);
    assert_int_equal(stage->submit_calls, 1);
    assert_int_equal(stage->submitted, 5);
    assert_int_equal(stage->gateway->metrics.submit_singles, 5);
    stage->old_scheduler = 0; /* a new one, or another of several: still served */
    assert_int_equal(choices_of(stage, TEXT("")), 1);
    assert_int_equal(stage->submit_calls, 1);
    stage_gateway_close(stage);
    stage_gateway_open(stage);
    assert_int_equal(choices_of(stage, TEXT("")), 1);
    assert_int_equal(stage->submit_calls, 2);
}

/* One of four that is refused refuses all, and what was admitted is cancelled. */
static void test_old_scheduler_refuses(void **state) {
    struct stage *stage = *state;
    stage->old_scheduler = 1;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 50, 1, FX_FINISH_STOP, NULL});
    stage->submit_good = 2;
    stage->submit_code = FX_RESOURCE_EXHAUSTED;
    json_decref(ask(stage, TEXT(",\"n\":4,\"max_tokens\":200"), 429));
    assert_int_equal(stage->submitted, 4);
    assert_true(stage_wait(&stage->cancelled, 2));
    assert_true(stage_wait(&stage->running, 0));
    stage->submit_code = FX_OK;
    assert_int_equal(choices_of(stage, TEXT(",\"n\":4,\"max_tokens\":2")), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_turn_one_call, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_choices_in_one_call, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_refused_whole, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_left_meanwhile, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_old_scheduler, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_old_scheduler_refuses, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
