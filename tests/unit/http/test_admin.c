/* The admin endpoints, their reasons, and a port that is taken. */
#include "common/http/admin.h"
#include "tests/unit/http/wire.h"

static atomic_bool ready_;

static bool ready(void *ctx, char *reason) {
    (void)ctx;
    if (!ready_) (void)snprintf(reason, FX_ADMIN_REASON_MAX, "redis is away");
    return ready_;
}

static bool live(void *ctx, char *reason) {
    (void)ctx, (void)reason;
    return false;
}

static atomic_int followed_; /* 1 + ready */

static void follow(void *ctx, bool ready, const char *reason) {
    (void)ctx;
    assert_string_equal(reason, ready ? "" : "redis is away");
    followed_ = 1 + ready;
}

static void metrics(void *ctx, fx_buf *out) {
    (void)ctx;
    fx_metric_counter(out, "fx_a_total", "Counts \\ a\nb.", 7);
    fx_metric_family(out, FX_METRIC_GAUGE, "fx_b", "B.");
    fx_metric_sample(out, "fx_b", "model", "x\"y\\", UINT64_MAX);
    fx_metric_sample_f64(out, "fx_b", "model", "half", 0.5);
}

static char *ask(const fx_admin *admin, const char *request) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(fx_admin_port(admin)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool closed;
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    wire_say(fd, request);
    wire_say(fd, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    char *text = wire_read(fd, NULL, &closed);
    close(fd);
    return text;
}

static void expect(const fx_admin *admin, const char *request, unsigned status, const char *body) {
    char *text = ask(admin, request);
    char *at = strstr(text, "\r\n\r\n");
    assert_int_equal(wire_status(text), status);
    assert_non_null(at);
    assert_string_equal(at + 4, body);
    free(text);
}

static void test_admin(void **state) {
    struct fx_admin_opts opts = {.addr = "127.0.0.1:0", .ready = ready, .metrics = metrics};
    fx_auto(fx_admin) admin = NULL;
    fx_error err = {0};
    (void)state;
    assert_true(fx_admin_open(&opts, &admin, &err));
    expect(admin, "GET /livez", 200, "ok\n");
    expect(admin, "GET /readyz", 503, "redis is away");
    ready_ = true;
    expect(admin, "GET /readyz", 200, "ok\n");
    expect(admin, "HEAD /readyz", 200, "");
    expect(admin, "POST /readyz", 405, "only GET\n");
    expect(admin, "GET /", 404, "/livez, /readyz or /metrics\n");
    expect(admin, "GET /metrics", 200,
           "# HELP fx_a_total Counts \\\\ a\\nb.\n# TYPE fx_a_total counter\nfx_a_total 7\n"
           "# HELP fx_b B.\n# TYPE fx_b gauge\n"
           "fx_b{model=\"x\\\"y\\\\\"} 18446744073709551615\nfx_b{model=\"half\"} 0.5\n");
}

/* Only what will pass says when to ask again. */
static void test_retry_after(void **state) {
    struct fx_admin_opts opts = {.addr = "127.0.0.1:0", .live = live, .ready = ready};
    fx_auto(fx_admin) admin = NULL;
    (void)state;
    ready_ = false;
    assert_true(fx_admin_open(&opts, &admin, &(fx_error){0}));
    char *unready = ask(admin, "GET /readyz"), *dead = ask(admin, "GET /livez");
    assert_int_equal(wire_status(dead), 503);
    assert_non_null(strstr(unready, "\r\nretry-after: 1\r\n"));
    assert_null(strstr(dead, "retry-after"));
    free(unready);
    free(dead);
}

static void follow_until(int want) {
    for (int i = 0; i < 5000 && followed_ != want; i++)
        usleep(1000);
    assert_int_equal(followed_, want);
}

static void test_follow(void **state) {
    struct fx_admin_opts opts = {.addr = "127.0.0.1:0", .ready = ready, .follow = follow};
    fx_auto(fx_admin) admin = NULL;
    (void)state;
    ready_ = false;
    assert_true(fx_admin_open(&opts, &admin, &(fx_error){0}));
    follow_until(1);
    ready_ = true;
    follow_until(2);
}

static void test_port_in_use(void **state) {
    struct fx_admin_opts opts = {.addr = "127.0.0.1:0", .ready = ready};
    fx_auto(fx_admin) first = NULL;
    fx_auto(fx_admin) second = NULL;
    fx_error err = {0};
    char addr[32];
    (void)state;
    assert_true(fx_admin_open(&opts, &first, &err));
    (void)snprintf(addr, sizeof addr, "127.0.0.1:%u", fx_admin_port(first));
    opts.addr = addr;
    assert_false(fx_admin_open(&opts, &second, &err));
    assert_int_equal(err.code, FX_UNAVAILABLE);
    assert_non_null(strstr(err.text, addr));
    assert_non_null(strstr(err.text, "in use"));
}

/* Opened and freed at once: the thread may not have begun. */
static void test_open_free(void **state) {
    struct fx_admin_opts opts = {.addr = "127.0.0.1:0", .ready = ready};
    (void)state;
    for (int i = 0; i < 20; i++) {
        fx_admin *admin = NULL;
        assert_true(fx_admin_open(&opts, &admin, &(fx_error){0}));
        fx_admin_free(admin);
    }
}

static void test_histogram(void **state) {
    struct fx_histogram times = {0};
    uint8_t text[2048] = {0};
    fx_buf out = {text, 0, sizeof text - 1};
    (void)state;
    fx_histogram_add(&times, 5000); /* on the bound: in its bucket */
    fx_histogram_add(&times, 5001);
    fx_histogram_add(&times, 90000000); /* past the last */
    fx_metric_histogram(&out, "fx_t_seconds", "T.", &times);
    const char *want[] = {
        "# TYPE fx_t_seconds histogram\n",      "fx_t_seconds_bucket{le=\"0.005\"} 1\n",
        "fx_t_seconds_bucket{le=\"0.01\"} 2\n", "fx_t_seconds_bucket{le=\"60\"} 2\n",
        "fx_t_seconds_bucket{le=\"+Inf\"} 3\n", "fx_t_seconds_count 3\n",
        "fx_t_seconds_sum 90.010001\n"};
    for (size_t i = 0; i < FX_TEST_COUNT(want); i++)
        if (!strstr((char *)text, want[i])) fail_msg("%s not in %s", want[i], text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admin),     cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_follow),    cmocka_unit_test(test_port_in_use),
        cmocka_unit_test(test_open_free), cmocka_unit_test(test_histogram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
