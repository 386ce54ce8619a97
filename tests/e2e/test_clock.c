/* The wall clock of one kind of service is set, an hour on and then two hours back, while answers
 * run: no lease is lost, no text differs, no request fails, and what waits does not wait an hour.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include "tests/e2e/suite.h"

#define PROMPT "It is a truth universally acknowledged,"
enum {
    HOUR_S = 3600,
    TOKENS = 200,
    FEW = 8,
    STREAMS = 2,
    CHUNKS = 3,
    LEASES_MS = 2000, /* FX_LEASE_MS, and some */
    NOTICED_MS = 30000,
    STEP_MS = 60000,
    LIMIT = 1000000,
};

static const char *const programs[] = {"gateway", "scheduler", "worker", "tenant", "slicer"};
static char folder[64];
static volatile int64_t *shifts[FX_TEST_COUNT(programs)];
static char *whole, *few; /* undisturbed */

static json_t *tokens(int count) {
    return json_pack("{s:i, s:b}", "max_tokens", count, "ignore_eos", 1);
}

static void begin(struct suite *suite, struct stream streams[STREAMS]) {
    for (int i = 0; i < STREAMS; i++) {
        MUST(stream_open(&streams[i], suite, PROMPT, tokens(TOKENS), &err));
        MUST(stream_until(&streams[i], CHUNKS, &err));
    }
}

static void go_on(struct stream streams[STREAMS]) {
    for (int i = 0; i < STREAMS; i++) {
        MUST(stream_rest(&streams[i], &err));
        assert_string_equal(streams[i].text.at, whole);
        stream_close(&streams[i]);
    }
}

static void works(struct suite *suite) {
    auto_text text = suite_complete(suite, PROMPT, tokens(FEW));
    assert_string_equal(text, few);
}

/* Requests all through the time in which a lease would run out. */
static void works_for_a_while(struct suite *suite) {
    uint64_t end_ms = fx_clock_ms() + LEASES_MS;
    do
        works(suite);
    while (fx_clock_ms() < end_ms);
}

static void nothing_was_lost(struct suite *suite) {
    assert_true(service_metric(&suite->schedulers[0], "fx_scheduler_reclaimed_total") == 0);
    assert_true(service_metric(&suite->gateways[0], "fx_gateway_limited_total") == 0);
    assert_true(service_metric(&suite->gateways[0], "fx_gateway_limit_errors_total") == 0);
    assert_true(service_metric(&suite->gateways[0], "fx_gateway_auth_errors_total") == 0);
    for (uint32_t i = 0; i < suite->opts.workers; i++)
        assert_true(service_metric(&suite->workers[i], "fx_worker_leases_lost_total") == 0);
    for (uint32_t i = 0; suite_service(suite, i); i++)
        assert_int_equal(service_get(suite_service(suite, i), "/readyz"), 200);
}

static void set_in_mid_stream(void **state) {
    struct suite *suite = *state;
    for (size_t i = 0; i < FX_TEST_COUNT(programs); i++) {
        struct stream streams[STREAMS] = {0};
        begin(suite, streams);
        *shifts[i] = HOUR_S;
        works_for_a_while(suite);
        *shifts[i] = -HOUR_S;
        works_for_a_while(suite);
        go_on(streams);
        *shifts[i] = 0;
        works(suite);
        nothing_was_lost(suite);
        print_message("- %s\n", programs[i]);
    }
}

/* The shim does what it says: an answer tells the time it was made at. */
static void a_clock_is_really_set(void **state) {
    for (int hours = -1; hours <= 1; hours++) {
        *shifts[0] = hours * HOUR_S;
        int64_t now_s = time(NULL), created_s = 0;
        auto_answer answer =
            suite_request(*state, "POST", "/v1/completions", suite_prompt(PROMPT, tokens(FEW)));
        assert_int_equal(json_unpack(answer.json, "{s:I}", "created", &created_s), 0);
        assert_in_range(created_s - hours * HOUR_S, now_s - 1, now_s + HOUR_S / 2);
    }
    *shifts[0] = 0;
}

/* The clock is set on while a call waits for who does not answer. */
static void deadlines_still_end(void **state) {
    struct suite *suite = *state;
    char key[SUITE_KEY_MAX], fresh[SUITE_KEY_MAX];
    suite_key_make(suite, fresh);
    memcpy(key, suite->key, sizeof key);
    process_signal(&suite->tenant.process, SIGSTOP);
    *shifts[0] = HOUR_S;
    memcpy(suite->key, fresh, sizeof fresh); /* nobody knows it yet */
    uint64_t begin_ms = fx_clock_ms();
    auto_answer answer =
        suite_request(suite, "POST", "/v1/completions", suite_prompt(PROMPT, tokens(FEW)));
    memcpy(suite->key, key, sizeof key);
    assert_int_equal(answer.status, 503);
    assert_true(fx_clock_ms() - begin_ms < NOTICED_MS);
    process_signal(&suite->tenant.process, SIGCONT);
    suite_await_ready(&suite->tenant);
    *shifts[0] = 0;
    works(suite);
}

static void undisturbed(void **state) {
    char limit[16];
    (void)snprintf(limit, sizeof limit, "%d", LIMIT);
    free(suite_cli_ok(*state, WORDS("tenants", "limit", "default", "--tpm", limit)));
    whole = suite_complete(*state, PROMPT, tokens(TOKENS));
    few = suite_complete(*state, PROMPT, tokens(FEW));
}

static bool clocks_make(void) {
    const int64_t none = 0;
    (void)snprintf(folder, sizeof folder, "/tmp/fx-clock-XXXXXX");
    if (!mkdtemp(folder)) return false;
    for (size_t i = 0; i < FX_TEST_COUNT(programs); i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/fractal-%s", folder, programs[i]);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, &none, sizeof none) != sizeof none) return false;
        shifts[i] = mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        (void)close(fd);
        if (shifts[i] == MAP_FAILED) return false;
    }
    return true;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undisturbed),
        cmocka_unit_test(a_clock_is_really_set),
        cmocka_unit_test(set_in_mid_stream),
        cmocka_unit_test(deadlines_still_end),
    };
    char clock[96];
    if (!clocks_make()) return 1;
    (void)snprintf(clock, sizeof clock, "CLOCK_SHIFT=%s", folder);
    int failed = suite_main("clock", tests, FX_TEST_COUNT(tests),
                            &(struct suite_opts){
                                .workers = 2,
                                .env = WORDS("FX_LEASE_MS=1500", "FX_RENEW_MS=400", clock,
                                             "LD_PRELOAD=" FX_CLOCK_SHIFT_SO),
                                .worker_env = WORDS("FX_BACKEND=ref", "FX_THREADS=1"), /* slowly */
                            });
    folder_remove(folder);
    free(whole);
    free(few);
    return failed;
}
