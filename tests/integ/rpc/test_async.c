/* The client on a loop: many calls at once, streams, cancels, bounds. */
#include <event2/event.h>
#include "tests/integ/rpc/echo_service.h"

enum { CALLS = 64, SLOTS = 64 };

struct fixture {
    struct echo echo;
    fx_server *server;
    struct event_base *base;
    fx_client *client;
    char target[64];
    uint32_t done, messages, want;
    enum fx_code codes[CALLS];
    char texts[CALLS][32];
    uint32_t retry_after_ms;
};

struct one {
    struct fixture *fixture;
    uint32_t index;
};

static int setup(void **state) {
    static struct fixture fixture;
    fixture = (struct fixture){0};
    fixture.server =
        echo_open(&fixture.echo, (struct fx_server_opts){.calls_max = SLOTS}, fixture.target);
    fixture.base = event_base_new();
    fixture.client = echo_client(fixture.target, fixture.base, CALLS);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    fx_client_free(fixture->client);
    event_base_free(fixture->base);
    echo_close(&fixture->echo, fixture->server);
    return 0;
}

static void on_done(void *user, const struct fx_client_result *result) {
    struct one *one = user;
    struct fixture *fixture = one->fixture;
    const echo_reply *reply = result->reply;
    fixture->codes[one->index] = result->code;
    fixture->retry_after_ms = result->retry_after_ms;
    (void)snprintf(fixture->texts[one->index], 32, "%s",
                   reply ? reply->next_page_token : result->text);
    if (++fixture->done == fixture->want) (void)event_base_loopbreak(fixture->base);
}

static void run(struct fixture *fixture, uint32_t want) {
    struct timeval limit = {20, 0};
    fixture->want = want;
    event_base_loopexit(fixture->base, &limit);
    if (fixture->done < want) event_base_loop(fixture->base, EVLOOP_NO_EXIT_ON_EMPTY);
    assert_int_equal(fixture->done, want);
}

static struct fx_client_request request_of(struct one *one, const char *method,
                                           echo_request *message) {
    return (struct fx_client_request){.method = method,
                                      .message = message,
                                      .reply = &fractal__v1__list_tenants_reply__descriptor,
                                      .deadline_ms = 15000,
                                      .user = one,
                                      .on_done = on_done};
}

static void start(struct one *one, const char *method, uint32_t number, const char *token) {
    fx_error err = {0};
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    message.page_size = number;
    message.page_token = (char *)(uintptr_t)token;
    struct fx_client_request request = request_of(one, method, &message);
    echo_check(fx_client_start(one->fixture->client, &request, NULL, &err), &err);
}

static void test_64_at_once(void **state) {
    struct fixture *fixture = *state;
    struct one ones[CALLS];
    for (uint32_t round = 0; round < 5; round++) {
        fixture->done = 0;
        for (uint32_t i = 0; i < CALLS; i++) {
            char token[32];
            ones[i] = (struct one){fixture, i};
            (void)snprintf(token, sizeof token, "%u/%u", round, i);
            start(&ones[i], i % 2 ? "/test.Echo/Now" : "/test.Echo/Later", 1, token);
        }
        run(fixture, CALLS);
        for (uint32_t i = 0; i < CALLS; i++) {
            char token[32];
            (void)snprintf(token, sizeof token, "%u/%u", round, i);
            assert_int_equal(fixture->codes[i], FX_OK);
            assert_string_equal(fixture->texts[i], token);
        }
    }
}

static void test_calls_max(void **state) {
    struct fixture *fixture = *state;
    struct one ones[CALLS], over = {fixture, 0};
    fx_error err = {0};
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    for (uint32_t i = 0; i < CALLS; i++) {
        ones[i] = (struct one){fixture, i};
        start(&ones[i], "/test.Echo/Later", 1, "x");
    }
    struct fx_client_request request = request_of(&over, "/test.Echo/Now", &message);
    assert_false(fx_client_start(fixture->client, &request, NULL, &err));
    assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
    assert_int_equal(fx_client_calls_active(fixture->client), CALLS);
    run(fixture, CALLS);
}

static void test_retry_after(void **state) {
    struct fixture *fixture = *state;
    struct one one = {fixture, 0};
    start(&one, "/test.Echo/Fail", FX_RESOURCE_EXHAUSTED, "full");
    run(fixture, 1);
    assert_int_equal(fixture->codes[0], FX_RESOURCE_EXHAUSTED);
    assert_string_equal(fixture->texts[0], "full");
    assert_int_equal(fixture->retry_after_ms, 250);
}

/* -- what ends UNAVAILABLE is tried again -- */

static uint64_t calls_served(struct fixture *fixture) {
    return fx_server_stats(fixture->server).calls;
}

static void wait_served(struct fixture *fixture, uint64_t want) {
    for (int i = 0; i < 5000 && calls_served(fixture) < want; i++)
        usleep(1000);
    assert_true(calls_served(fixture) >= want);
}

static void test_tried_again(void **state) {
    struct fixture *fixture = *state;
    struct one one = {fixture, 0};
    uint64_t begun_ms = fx_clock_ms(), before = calls_served(fixture);
    start(&one, "/test.Echo/Fail", FX_UNAVAILABLE, "away");
    run(fixture, 1);
    assert_int_equal(fixture->codes[0], FX_UNAVAILABLE);
    assert_string_equal(fixture->texts[0], "away"); /* the whole message was sent again */
    assert_int_equal(calls_served(fixture) - before, 3);
    assert_true(fx_clock_ms() - begun_ms >= 50 + 100);
}

/* Nothing is tried again past the deadline: the caller hears at once why it failed. */
static void test_no_time_left(void **state) {
    struct fixture *fixture = *state;
    struct one one = {fixture, 0};
    fx_error err = {0};
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    start(&one, "/test.Echo/Now", 0, "connected");
    run(fixture, 1);
    uint64_t before = calls_served(fixture);
    message.page_size = FX_UNAVAILABLE;
    struct fx_client_request request = request_of(&one, "/test.Echo/Fail", &message);
    request.deadline_ms = 49;
    echo_check(fx_client_start(fixture->client, &request, NULL, &err), &err);
    run(fixture, 2);
    if (fixture->codes[0] != FX_DEADLINE_EXCEEDED) /* on a busy machine */
        assert_int_equal(fixture->codes[0], FX_UNAVAILABLE);
    assert_in_range(calls_served(fixture) - before, 0, 1);
}

/* Cancelled while it waits for its next try. */
static void test_cancel_between(void **state) {
    struct fixture *fixture = *state;
    struct one one = {fixture, 0};
    fx_error err = {0};
    fx_client_call *call;
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    uint64_t before = calls_served(fixture);
    message.page_size = FX_UNAVAILABLE;
    struct fx_client_request request = request_of(&one, "/test.Echo/Fail", &message);
    echo_check(fx_client_start(fixture->client, &request, &call, &err), &err);
    wait_served(fixture, before + 1);
    usleep(10000);
    fx_client_cancel(call);
    run(fixture, 1);
    assert_int_equal(fixture->codes[0], FX_CANCELLED);
    assert_int_equal(calls_served(fixture) - before, 1);
    assert_int_equal(fx_client_calls_active(fixture->client), 0);
}

/* The client is freed meanwhile: its callers hear of it. */
static void test_free_between(void **state) {
    struct fixture *fixture = *state;
    struct one ones[8];
    uint64_t before = calls_served(fixture);
    for (uint32_t i = 0; i < FX_TEST_COUNT(ones); i++) {
        ones[i] = (struct one){fixture, i};
        start(&ones[i], "/test.Echo/Fail", FX_UNAVAILABLE, "away");
    }
    wait_served(fixture, before + FX_TEST_COUNT(ones));
    fx_client_free(fixture->client);
    assert_int_equal(fixture->done, FX_TEST_COUNT(ones));
    fixture->client = echo_client(fixture->target, fixture->base, CALLS);
}

/* `index` is the number of the message that cancels. */
static bool on_message(void *user, const void *message) {
    struct one *one = user;
    char text[16];
    const echo_reply *reply = message;
    (void)snprintf(text, sizeof text, "%u", one->fixture->messages);
    assert_string_equal(reply->next_page_token, text);
    return ++one->fixture->messages < one->index;
}

static void stream(struct fixture *fixture, struct one *one, uint32_t count) {
    fx_error err = {0};
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    message.page_size = count;
    struct fx_client_request request = request_of(one, "/test.Echo/Count", &message);
    request.on_message = on_message;
    echo_check(fx_client_start(fixture->client, &request, NULL, &err), &err);
}

static void test_empty_stream(void **state) {
    struct fixture *fixture = *state;
    struct one one = {fixture, 0};
    stream(fixture, &one, 0);
    run(fixture, 1);
    assert_int_equal(fixture->codes[0], FX_OK);
    assert_int_equal(fixture->messages, 0);
}

static bool count_message(void *user, const void *message) {
    struct one *one = user;
    (void)message;
    one->fixture->messages++;
    return true;
}

static void test_server_stream_whole(void **state) {
    struct fixture *fixture = *state;
    struct one one = {fixture, 0};
    fx_error err = {0};
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    message.page_size = 5000;
    struct fx_client_request request = request_of(&one, "/test.Echo/Count", &message);
    request.on_message = count_message;
    echo_check(fx_client_start(fixture->client, &request, NULL, &err), &err);
    run(fixture, 1);
    assert_int_equal(fixture->codes[0], FX_OK);
    assert_int_equal(fixture->messages, 5000);
    assert_int_equal(fixture->echo.sent, 5000);
}

static void test_cancel_mid_stream(void **state) {
    struct fixture *fixture = *state;
    struct one one = {fixture, 20};
    stream(fixture, &one, 100000000);
    fixture->codes[20] = FX_OK;
    run(fixture, 1);
    assert_int_equal(fixture->codes[20], FX_CANCELLED);
    assert_int_equal(fixture->messages, 20);
    echo_until(&fixture->echo.cancelled, 1); /* the server saw it */
    uint32_t sent = fixture->echo.sent;
    usleep(50000);
    assert_int_equal(fixture->echo.sent, sent);
}

static void test_cancel_by_handle(void **state) {
    struct fixture *fixture = *state;
    struct one one = {fixture, 0};
    fx_error err = {0};
    fx_client_call *call = NULL;
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    struct fx_client_request request = request_of(&one, "/test.Echo/Hang", &message);
    echo_check(fx_client_start(fixture->client, &request, &call, &err), &err);
    echo_until(&fixture->echo.hanging, 1);
    fx_client_cancel(call);
    run(fixture, 1);
    assert_int_equal(fixture->codes[0], FX_CANCELLED);
    echo_until(&fixture->echo.cancelled, 1);
}

struct summing {
    struct one one; /* first: on_done gets it */
    fx_client_call *call;
    uint32_t next;
};

static void sum_more(void *user) {
    struct summing *summing = user;
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    if (summing->next > 100) {
        fx_client_half_close(summing->call);
        return;
    }
    message.page_size = summing->next;
    if (fx_client_send(summing->call, &message) == FX_CLIENT_SEND_OK) summing->next++;
}

/* The first write goes once the loop runs: the headers are on their way. */
static void sum_start(evutil_socket_t fd, short what, void *user) {
    struct summing *summing = user;
    struct timeval soon = {0, 1000};
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    (void)fd, (void)what;
    message.page_size = summing->next;
    if (fx_client_send(summing->call, &message) == FX_CLIENT_SEND_OK)
        summing->next++;
    else
        event_base_once(summing->one.fixture->base, -1, EV_TIMEOUT, sum_start, summing, &soon);
}

static void test_client_stream(void **state) {
    struct fixture *fixture = *state;
    struct summing summing = {
        .one = {fixture, 0}
    };
    fx_error err = {0};
    struct fx_client_request request = request_of(&summing.one, "/test.Echo/Sum", NULL);
    request.on_writable = sum_more;
    echo_check(fx_client_start(fixture->client, &request, &summing.call, &err), &err);
    sum_start(-1, 0, &summing);
    run(fixture, 1);
    assert_int_equal(fixture->codes[0], FX_OK);
    assert_string_equal(fixture->texts[0], "5050");
}

static void test_client_stream_cancelled(void **state) {
    struct fixture *fixture = *state;
    struct summing summing = {
        .one = {fixture, 0}
    };
    fx_error err = {0};
    struct fx_client_request request = request_of(&summing.one, "/test.Echo/Sum", NULL);
    echo_check(fx_client_start(fixture->client, &request, &summing.call, &err), &err);
    sum_start(-1, 0, &summing);
    while (fx_server_stats(fixture->server).calls_active == 0)
        event_base_loop(fixture->base, EVLOOP_NONBLOCK);
    fx_client_cancel(summing.call);
    run(fixture, 1);
    assert_int_equal(fixture->codes[0], FX_CANCELLED);
    uint64_t end = fx_clock_ms() + 5000;
    while (fx_server_stats(fixture->server).calls_active && fx_clock_ms() < end)
        usleep(1000);
    assert_int_equal(fx_server_stats(fixture->server).calls_active, 0);
}

static void test_free_in_flight(void **state) {
    struct fixture *fixture = *state;
    struct one ones[4];
    for (uint32_t i = 0; i < 4; i++) {
        ones[i] = (struct one){fixture, i};
        start(&ones[i], "/test.Echo/Hang", 0, "");
    }
    echo_until(&fixture->echo.hanging, 4);
    fx_client_free(fixture->client); /* delivers every on_done first */
    fixture->client = NULL;
    assert_int_equal(fixture->done, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(fixture->codes[i], FX_CANCELLED);
    echo_until(&fixture->echo.cancelled, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_64_at_once),
        TEST(test_calls_max),
        TEST(test_retry_after),
        TEST(test_tried_again),
        TEST(test_no_time_left),
        TEST(test_cancel_between),
        TEST(test_free_between),
        TEST(test_empty_stream),
        TEST(test_server_stream_whole),
        TEST(test_cancel_mid_stream),
        TEST(test_cancel_by_handle),
        TEST(test_client_stream),
        TEST(test_client_stream_cancelled),
        TEST(test_free_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
