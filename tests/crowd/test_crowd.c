/* fractal-crowd against a suite: what was recorded comes again; another text, a refusal and a
 * broken stream are told. */
#include <signal.h>
#include "tests/e2e/suite.h"

#define CROWD FX_BIN_DIR "/fractal-crowd"

static char address[32], texts[96];

/* With the suite's key; its summary is the last line of `out`. */
static struct output crowd(const struct suite *suite, const char *key, const char *const *args) {
    struct process_env env = {0};
    (void)suite;
    process_env_put(&env, "FX_API_KEY=%s", key);
    return process_run(&(struct process_opts){.args = args, .env = &env, .apart = true}, 60000);
}

static long figure(const char *out, const char *name) {
    const char *last = strstr(out, "{\"streams");
    auto_json line = last ? json_loads(last, 0, NULL) : NULL;
    const json_t *value = json_object_get(line, name);
    if (!value) fail_msg("no %s in: %s", name, out);
    return (long)json_number_value(value);
}

static void record(const struct suite *suite) {
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", suite->gateways[0].port);
    (void)snprintf(texts, sizeof texts, "%s/texts.json", suite->folder);
    auto_output got = crowd(suite, suite->key,
                            WORDS(CROWD, "record", address, texts, "--streams", "4", "--tokens",
                                  "40", "--requests", "3"));
    if (got.code != 0) fail_msg("%s", got.err);
    assert_int_equal(figure(got.out, "tokens"), 4 * 40 + 3 * 8);
}

static void the_same_comes_again(void **state) {
    const struct suite *suite = *state;
    record(suite);
    auto_output once = crowd(suite, suite->key, WORDS(CROWD, "compare", address, texts, "--once"));
    if (once.code != 0) fail_msg("%s", once.err);
    assert_int_equal(figure(once.out, "streams"), 4);
    assert_non_null(strstr(once.out, "begun\n"));
    auto_output ended = crowd(suite, suite->key, /* stdin has ended before it begins */
                              WORDS("sh", "-c", "exec \"$@\" </dev/null", "sh", CROWD, "compare",
                                    address, texts, "--streams", "2", "--rate", "50"));
    if (ended.code != 0) fail_msg("%s", ended.err);
    assert_int_equal(figure(ended.out, "streams"), 2);
}

static void another_text_is_told(void **state) {
    const struct suite *suite = *state;
    json_error_t why;
    auto_json all = json_load_file(texts, 0, &why);
    assert_non_null(all);
    json_object_set_new(json_array_get(all, 1), "text", json_string("another"));
    assert_int_equal(json_dump_file(all, texts, 0), 0);
    auto_output got = crowd(suite, suite->key, WORDS(CROWD, "compare", address, texts, "--once"));
    assert_int_equal(got.code, 1);
    assert_int_equal(figure(got.out, "differing"), 1);
    assert_int_equal(figure(got.out, "streams"), 3);
    assert_non_null(strstr(got.err, "differs at byte 0"));
    record(suite);
}

static void a_refusal_is_told(void **state) {
    const struct suite *suite = *state;
    auto_output got = crowd(suite, "fx-0", WORDS(CROWD, "compare", address, texts, "--once"));
    assert_int_equal(got.code, 1);
    assert_int_equal(figure(got.out, "failed"), 4);
    assert_non_null(strstr(got.err, "401"));
}

/* Alone it has failed; one that may come back has its text. */
static void a_gateway_that_goes_is_told(void **state) {
    struct suite *suite = *state;
    struct service *gateway = &suite->gateways[0];
    gateway->killed = true;
    process_signal(&gateway->process, SIGKILL);
    auto_output got = crowd(suite, suite->key, WORDS(CROWD, "compare", address, texts, "--once"));
    assert_int_equal(got.code, 1);
    assert_int_equal(figure(got.out, "failed"), 4);
    WAIT_FOR(!process_runs(&gateway->process), 10000, "it does not end");
    suite_service_start(suite, gateway);
    auto_output back =
        crowd(suite, suite->key, WORDS(CROWD, "compare", address, texts, "--once", "--resume"));
    if (back.code != 0) fail_msg("%s", back.err);
    assert_int_equal(figure(back.out, "streams"), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_comes_again),
        cmocka_unit_test(another_text_is_told),
        cmocka_unit_test(a_refusal_is_told),
        cmocka_unit_test(a_gateway_that_goes_is_told),
    };
    return suite_main("crowd", tests, FX_TEST_COUNT(tests), &(struct suite_opts){0});
}
