/* Events over the limit, and a reader of events that refuses one. */
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include "services/cli/sse.h"

static bool count(void *user, fx_span data, fx_error *err) {
    size_t *bytes = user;
    (void)err;
    *bytes += data.len;
    return true;
}

static bool refuse(void *user, fx_span data, fx_error *err) {
    (void)user;
    (void)data;
    return fx_fail(err, FX_ABORTED, "no");
}

static cli_sse *open_sse(bool (*on_data)(void *, fx_span, fx_error *), void *user) {
    cli_sse *sse = NULL;
    fx_error err = {0};
    assert_true(cli_sse_new(&(struct cli_sse_opts){on_data, user}, &sse, &err));
    return sse;
}

/* "data:" and `letters` times x, without a line end. */
static bool feed_line(cli_sse *sse, size_t letters, fx_error *err) {
    fx_auto(uint8_t) text = fx_alloc(letters + 5, 1);
    memcpy(text, "data:", 5);
    memset(text + 5, 'x', letters);
    return cli_sse_feed(sse, (fx_span){text, letters + 5}, err);
}

static bool feed_end(cli_sse *sse, fx_error *err) {
    return cli_sse_feed(sse, fx_span_str("\n"), err);
}

static void test_line_limit(void **state) {
    fx_error err = {0};
    size_t bytes = 0;
    (void)state;
    fx_auto(cli_sse) sse = open_sse(count, &bytes);
    assert_true(feed_line(sse, CLI_SSE_EVENT_BYTES_MAX - 5, &err));
    assert_true(feed_end(sse, &err) && feed_end(sse, &err));
    assert_int_equal(bytes, CLI_SSE_EVENT_BYTES_MAX - 5);
    assert_false(feed_line(sse, CLI_SSE_EVENT_BYTES_MAX - 4, &err));
    assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
}

static void test_event_limit(void **state) {
    fx_error err = {0};
    size_t bytes = 0, half = CLI_SSE_EVENT_BYTES_MAX / 2;
    (void)state;
    fx_auto(cli_sse) sse = open_sse(count, &bytes);
    assert_true(feed_line(sse, half, &err) && feed_end(sse, &err));     /* half */
    assert_true(feed_line(sse, half - 1, &err) && feed_end(sse, &err)); /* all, with the LF */
    assert_true(feed_line(sse, 0, &err));
    assert_false(feed_end(sse, &err)); /* one more LF */
    assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
}

static void test_refused_event(void **state) {
    fx_error err = {0};
    (void)state;
    fx_auto(cli_sse) sse = open_sse(refuse, NULL);
    assert_true(cli_sse_feed(sse, fx_span_str("data: a\n"), &err));
    assert_false(cli_sse_feed(sse, fx_span_str("\n"), &err));
    assert_int_equal(err.code, FX_ABORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_limit),
        cmocka_unit_test(test_event_limit),
        cmocka_unit_test(test_refused_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
