/* The whole path: real services, a real Redis, the bundled model. Everything shares the machine. */
#include "tests/e2e/suite.h"
#include "tests/bench/gateway_internal.h"

enum { ROUNDS = 5, CONNECTIONS = 32, PROCESSES_MAX = 16 }; /* 32: the worker's slots */
static const double WARM_S = 0.5, ROUND_S = 2;

struct process_use {
    const char *name;
    pid_t pid;
    double begun_s, us[ROUNDS]; /* an answer */
};

struct whole {
    struct suite suite;
    struct process_use processes[PROCESSES_MAX];
    size_t process_count;
    fx_error err;
};

static void processes_find(struct whole *whole) {
    const struct service *service;
    for (uint32_t i = 0; (service = suite_service(&whole->suite, i)); i++)
        whole->processes[whole->process_count++] =
            (struct process_use){.name = service->process.name, .pid = service->process.pid};
    whole->processes[whole->process_count++] =
        (struct process_use){.name = "redis", .pid = whole->suite.redis.pid};
    FX_ASSERT(whole->process_count <= PROCESSES_MAX);
}

static void on_counting(void *ctx, bool begins) {
    struct whole *whole = ctx;
    for (size_t i = 0; i < whole->process_count; i++) {
        double now_s = bench_cpu_s(whole->processes[i].pid);
        whole->processes[i].begun_s = begins ? now_s : now_s - whole->processes[i].begun_s;
    }
}

static FX_MUST bool round_run(struct whole *whole, struct load_opts opts, size_t round,
                              double *rate, fx_error *err) {
    struct load_result result;
    opts.port = whole->suite.gateways[0].port;
    opts.key = whole->suite.key;
    opts.model = SUITE_MODEL;
    opts.connections = CONNECTIONS;
    opts.warm_s = WARM_S;
    opts.seconds = ROUND_S;
    opts.any_text = true;
    opts.server = whole->suite.gateways[0].process.pid;
    opts.counting = on_counting;
    opts.ctx = whole;
    if (!load_run(&opts, &result, err)) return false;
    if (result.failed)
        return fx_fail(err, FX_DATA_LOSS, "%llu answers failed: %s",
                       (unsigned long long)result.failed, result.why);
    if (!result.answers) return fx_fail(err, FX_DATA_LOSS, "no answer came");
    *rate = (double)result.answers / result.seconds;
    for (size_t i = 0; i < whole->process_count; i++)
        whole->processes[i].us[round] = whole->processes[i].begun_s * 1e6 / (double)result.answers;
    return true;
}

static FX_MUST bool rounds_run(struct whole *whole, enum load_kind kind, uint32_t tokens,
                               fx_error *err) {
    double rates[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++)
        if (!round_run(whole, (struct load_opts){.kind = kind, .tokens = tokens}, i, &rates[i],
                       err))
            return false;
    (void)printf("  %2u token%s %-9s %6.0f answers/s; CPU us an answer:", tokens,
                 tokens == 1 ? ", " : "s,",
                 kind == LOAD_STREAM ? "streamed:" : "whole:", bench_median(rates, ROUNDS));
    for (size_t i = 0; i < whole->process_count; i++)
        (void)printf(" %s %.0f", whole->processes[i].name,
                     bench_median(whole->processes[i].us, ROUNDS));
    (void)printf("\n");
    return true;
}

static FX_MUST bool measure(struct whole *whole, fx_error *err) {
    (void)printf(
        "the whole path, bundled model in int4, %d connections, one of each service, Redis "
        "with appendfsync always in %s\n",
        CONNECTIONS, strncmp(whole->suite.redis.folder, "/dev/shm", 8) == 0 ? "memory" : "/tmp");
    return rounds_run(whole, LOAD_WHOLE, 1, err) && rounds_run(whole, LOAD_STREAM, 1, err) &&
           rounds_run(whole, LOAD_STREAM, 32, err);
}

/* The suite asserts, so it lives in a test. */
static void test_path(void **state) {
    struct whole *whole = *state;
    suite_open(&whole->suite, &(struct suite_opts){.workers = 1});
    processes_find(whole);
    bool ok = measure(whole, &whole->err);
    if (!ok) suite_show(&whole->suite);
    assert_true(ok);
}

static int end(void **state) {
    struct whole *whole = *state;
    return !*whole->suite.folder || suite_close(&whole->suite) ? 0 : -1;
}

bool gateway_path(fx_error *err) {
    static struct whole whole;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(test_path, NULL, end, &whole)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (_cmocka_run_group_tests("path", tests, FX_TEST_COUNT(tests), NULL, NULL) == 0) return true;
    return whole.err.code ? fx_fail(err, whole.err.code, "%s", whole.err.text)
                          : fx_fail(err, FX_UNAVAILABLE, "the services did not run well");
}
