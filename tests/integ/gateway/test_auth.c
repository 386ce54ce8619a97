/* Keys that many requests come with at once. */
#include "tests/integ/gateway/stage.h"

enum { MANY = 3000 }; /* more than the tenant client has calls */

struct crowd {
    struct stage *stage;
    const char *key;
    atomic_int known, refused;
};

static void on_checked(void *ctx, const struct gw_identity *who, const struct gw_problem *problem) {
    struct crowd *crowd = ctx;
    assert_true(!who == !!problem);
    if (who) assert_int_equal(who->tenant, STAGE_TENANT);
    (void)atomic_fetch_add(who ? &crowd->known : &crowd->refused, 1);
}

/* Within one turn of the loop: no answer can come in between. */
static void check_all(void *user) {
    struct crowd *crowd = user;
    fx_trace trace;
    fx_trace_accept((fx_span){0}, (fx_span){0}, &trace);
    for (int i = 0; i < MANY; i++)
        gw_auth_check(crowd->stage->process->loops[0].auth, fx_span_str(crowd->key), &trace,
                      on_checked, crowd);
}

static void expect(struct crowd *crowd, int known, int refused, int calls) {
    struct stage *stage = crowd->stage;
    int before = stage->authenticated;
    crowd->known = crowd->refused = 0;
    assert_true(fx_loop_call(stage->process->loops[0].loop, check_all, crowd));
    assert_true(stage_wait(known ? &crowd->known : &crowd->refused, MANY));
    assert_int_equal(crowd->known, known);
    assert_int_equal(crowd->refused, refused);
    assert_int_equal(stage->authenticated - before, calls);
}

static void test_one_question(void **state) {
    struct crowd crowd = {.stage = *state, .key = STAGE_KEY};
    expect(&crowd, MANY, 0, 1);
    expect(&crowd, MANY, 0, 0); /* kept */
    crowd.key = "fx-nobody's";
    expect(&crowd, 0, MANY, 1);
    expect(&crowd, 0, MANY, 1); /* a refusal is not kept */
}

static void test_tenant_away(void **state) {
    struct crowd crowd = {.stage = *state, .key = STAGE_KEY};
    crowd.stage->tenant_code = FX_INTERNAL;
    expect(&crowd, 0, MANY, 1);
    crowd.stage->tenant_code = FX_OK;
    expect(&crowd, MANY, 0, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_question, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_tenant_away, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
