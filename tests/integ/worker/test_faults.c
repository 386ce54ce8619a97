#include "tests/integ/worker/fleet.h"
#include <signal.h>
#include "common/base/clock.h"

/* Cancels, frozen and leaving workers, a Redis that goes away: the text stays whole, each epoch has
 * one writer, and slots come back. The backend is `ref`, so that TOKENS take their time. */
enum { TOKENS = 400 };
#define SLOW "FX_BACKEND=ref"
static const char *const slow[] = {SLOW, NULL};

static bool slot_is_free(void *ctx) {
    struct fleet *fleet = ctx;
    Fractal__V1__WorkerStatus status = fleet_status(fleet, 0);
    return status.slots_free == status.slots && status.kv_blocks_free == status.kv_blocks;
}

static void test_cancel_in_decode(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, slow);
    struct fleet_ask ask = fleet_ask("It was", TOKENS, 0.8F, 5);
    fleet_submit(fleet, &ask);
    fleet_wait_tokens(fleet, &ask, 5);
    uint64_t begun_ms = fx_clock_ms();
    fleet_cancel(fleet, &ask);
    fleet_until(fleet, slot_is_free, fleet, 2000);
    uint64_t took_ms = fx_clock_ms() - begun_ms;
    print_message("  slot and KV free %llu ms after the cancel\n", (unsigned long long)took_ms);
    assert_true(took_ms < 200);
    fleet_wait(fleet, &ask, 2000);
    assert_int_equal(ask.finish, FX_FINISH_CANCELLED);
    assert_true(ask.count < TOKENS);
}

static const char *const leases[] = {SLOW, "FX_LEASE_MS=1000", "FX_RENEW_MS=200", NULL};

static uint32_t runner_of(struct fleet *fleet) {
    for (uint32_t i = 0; i < 2; i++) {
        Fractal__V1__WorkerStatus status = fleet_status(fleet, i);
        if (status.slots_free < status.slots) return i;
    }
    fail_msg("nobody runs it");
    return 0;
}

/* The frozen worker's lease passes to the other, which ends the generation; awake again, its
 * appends are refused and it drops the sequence. */
static void test_frozen_worker(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(2, leases);
    struct fleet_ask ask = fleet_ask("It was", TOKENS, 0.8F, 6);
    fleet_submit(fleet, &ask);
    fleet_wait_tokens(fleet, &ask, 10);
    uint32_t frozen = runner_of(fleet);
    assert_int_equal(kill(fleet->workers[frozen].process.pid, SIGSTOP), 0);
    assert_true(ask.count < TOKENS);
    fleet_wait(fleet, &ask, 30000);
    uint32_t count = ask.count;
    assert_int_equal(kill(fleet->workers[frozen].process.pid, SIGCONT), 0);
    fleet_sleep(fleet, 1500);
    fleet_expect(fleet, &ask);
    assert_int_equal(ask.count, count);
    (void)fleet_idle(fleet, frozen);
    assert_true(fleet_log_has(fleet, frozen, "event=lease_lost"));
    fleet_worker_stop(fleet, frozen);
}

static void test_killed_worker(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(2, leases);
    struct fleet_ask ask = fleet_ask("It was", TOKENS, 0, 0);
    fleet_submit(fleet, &ask);
    fleet_wait_tokens(fleet, &ask, 10);
    assert_int_equal(kill(fleet->workers[runner_of(fleet)].process.pid, SIGKILL), 0);
    fleet_wait(fleet, &ask, 30000);
    fleet_expect(fleet, &ask);
}

/* Its first worker, with f32 KV, dies; the other has f16 KV, another numerics id. */
static void orphan(struct fleet *fleet, struct fleet_ask *ask, const char *inexact) {
    const char *const env[] = {SLOW, "FX_KV_DTYPE=f16", inexact, NULL};
    *ask = fleet_ask("It was", TOKENS, 0.8F, 10);
    fleet_submit(fleet, ask);
    fleet_wait_tokens(fleet, ask, 5);
    assert_int_equal(kill(fleet->workers[0].process.pid, SIGKILL), 0);
    fleet_worker_start(fleet, 1, env);
}

static void test_other_numerics(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, leases);
    struct fleet_ask ask;
    orphan(fleet, &ask, "FX_RESUME_INEXACT=0");
    fleet_wait(fleet, &ask, 30000);
    assert_int_equal(ask.finish, FX_FINISH_ERROR);
    assert_true(ask.count < TOKENS);
    assert_true(fleet_log_has(fleet, 1, "event=numerics_differ"));
}

static void test_other_numerics_allowed(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, leases);
    struct fleet_ask ask;
    orphan(fleet, &ask, "FX_RESUME_INEXACT=1");
    fleet_wait(fleet, &ask, 30000);
    assert_int_equal(ask.count, TOKENS);
    assert_int_equal(ask.finish, FX_FINISH_LENGTH);
    assert_string_equal(ask.detail, "resumed with other numerics"); /* the mark */
}

/* SIGTERM: what runs is finished first. */
static void test_drain(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, slow);
    struct fleet_ask ask = fleet_ask("It was", TOKENS, 0.8F, 7);
    fleet_submit(fleet, &ask);
    fleet_wait_tokens(fleet, &ask, 3);
    fleet_worker_stop(fleet, 0);
    fleet_wait(fleet, &ask, 5000);
    fleet_expect(fleet, &ask);
}

/* Without a grace it is given back, and another goes on at once, long before the lease ends. */
static void test_give_back(void **state) {
    (void)state;
    static const char *const env[] = {SLOW, "FX_DRAIN_MS=0", "FX_LEASE_MS=60000", NULL};
    fleet_auto fleet = fleet_open(2, env);
    struct fleet_ask ask = fleet_ask("It was", TOKENS, 0.8F, 8);
    fleet_submit(fleet, &ask);
    fleet_wait_tokens(fleet, &ask, 3);
    fleet_worker_stop(fleet, runner_of(fleet));
    assert_int_equal(ask.finish, FX_FINISH_NONE);
    fleet_wait(fleet, &ask, 20000);
    fleet_expect(fleet, &ask);
}

/* Whatever the end meets: what is being taken at that moment goes to the other at once as well. */
static void test_leaves_while_taking(void **state) {
    (void)state;
    static const char *const env[] = {"FX_DRAIN_MS=0", "FX_LEASE_MS=60000", NULL};
    enum { ASKS = 12 };
    fleet_auto fleet = fleet_open(2, env);
    struct fleet_ask asks[ASKS];
    for (uint32_t i = 0; i < ASKS; i++)
        asks[i] = fleet_ask("It was", 20, 0.8F, 20 + i);
    fleet_submit_all(fleet, asks, ASKS);
    fleet_worker_stop(fleet, 0);
    for (uint32_t i = 0; i < ASKS; i++)
        fleet_wait(fleet, &asks[i], 20000);
    fleet_expect(fleet, &asks[ASKS - 1]);
}

/* Tokens made while Redis is away are appended when it is back. */
static void test_redis_restarts(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, slow);
    struct fleet_ask ask = fleet_ask("It was", TOKENS, 0.8F, 9);
    fleet_submit(fleet, &ask);
    fleet_wait_tokens(fleet, &ask, 10);
    redis_fixture_kill(&fleet->redis);
    (void)usleep(300000);
    redis_fixture_restart(&fleet->redis, NULL);
    fleet_wait(fleet, &ask, 30000);
    fleet_expect(fleet, &ask);
}

/* No weight lies in anonymous memory. */
static void test_memory(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, (const char *const[]){"FX_KV_MIB=100", NULL});
    uint64_t anonymous = fleet_proc_kib(fleet, 0, "RssAnon:");
    print_message("  RssAnon %llu KiB with a KV pool of 102400\n", (unsigned long long)anonymous);
    assert_true(anonymous >= 100 * 1024); /* the pool is taken at the start */
    assert_true(anonymous <= (100 + 64) * 1024);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel_in_decode), cmocka_unit_test(test_frozen_worker),
        cmocka_unit_test(test_killed_worker),    cmocka_unit_test(test_drain),
        cmocka_unit_test(test_give_back),        cmocka_unit_test(test_leaves_while_taking),
        cmocka_unit_test(test_redis_restarts),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_other_numerics),   cmocka_unit_test(test_other_numerics_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
