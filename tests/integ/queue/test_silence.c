/* A Redis that stood still makes every lease look expired: nothing is reclaimed until one lease
 * (1.5 s here) after it answers again, whoever asks. */
#include <signal.h>
#include "common/base/clock.h"
#include "tests/integ/queue/rig.h"

enum { LEASE_MS = 1500, STEP_MS = 20, SILENCE_MS = 1800, PATIENCE_MS = 20000 };

/* Reclaims by both clients until one has taken something back; how long that took. */
static uint64_t reclaimed_after(struct rig *rig) {
    uint64_t start_ms = fx_clock_ms();
    while (rig_reclaim(rig).count == 0) {
        assert_true(fx_clock_ms() - start_ms < PATIENCE_MS);
        rig_sleep(rig, STEP_MS);
    }
    return fx_clock_ms() - start_ms;
}

static void keep_reclaiming(struct rig *rig, uint32_t ms) {
    for (uint64_t end_ms = fx_clock_ms() + ms; fx_clock_ms() < end_ms; rig_sleep(rig, STEP_MS))
        assert_int_equal(rig_reclaim(rig).count, 0);
}

/* kill -STOP in mid-stream; Redis's own clock goes on. */
static void redis_stopped(struct rig *rig) {
    rig_running(rig, 1);
    keep_reclaiming(rig, 200);
    (void)kill(rig->server.pid, SIGSTOP);
    rig_sleep(rig, SILENCE_MS);
    (void)kill(rig->server.pid, SIGCONT);
    assert_in_range(reclaimed_after(rig), LEASE_MS - 100, PATIENCE_MS);
}

/* Shorter than a lease, but the lease was nearly over: its worker had no time to renew it. */
static void redis_stopped_briefly(struct rig *rig) {
    rig_running(rig, 1);
    keep_reclaiming(rig, LEASE_MS / 2);
    (void)kill(rig->server.pid, SIGSTOP);
    rig_sleep(rig, LEASE_MS * 2 / 3);
    (void)kill(rig->server.pid, SIGCONT);
    assert_in_range(reclaimed_after(rig), LEASE_MS - 100, PATIENCE_MS);
}

/* Its worker renews meanwhile and keeps what it has. */
static void the_worker_renews_in_time(struct rig *rig) {
    static const uint32_t token = 3;
    rig_running(rig, 1);
    keep_reclaiming(rig, 200);
    (void)kill(rig->server.pid, SIGSTOP);
    rig_sleep(rig, SILENCE_MS);
    (void)kill(rig->server.pid, SIGCONT);
    keep_reclaiming(rig, LEASE_MS / 3);
    assert_int_equal(rig_append(rig, 1, 1, 1, &token, 1).status, FX_QUEUE_OK);
    keep_reclaiming(rig, LEASE_MS * 2 / 3);
    assert_int_equal(rig_get(rig, 1).epoch, 1);
}

static void redis_killed(struct rig *rig) {
    fx_error err = {0};
    rig_running(rig, 1);
    keep_reclaiming(rig, 200);
    redis_fixture_kill(&rig->server);
    rig_sleep(rig, SILENCE_MS);
    redis_fixture_restart(&rig->server, NULL);
    if (!fx_redis_wait_ready(rig->redis, 5000, &err)) fail_msg("%s", err.text);
    assert_in_range(reclaimed_after(rig), LEASE_MS - 100, PATIENCE_MS);
    if (!fx_redis_wait_ready(rig->redis_b, 5000, &err)) fail_msg("%s", err.text);
}

/* Nobody reclaimed for a while: that is no different for Redis. */
static void schedulers_away(struct rig *rig) {
    rig_running(rig, 1);
    rig_sleep(rig, SILENCE_MS);
    assert_in_range(reclaimed_after(rig), LEASE_MS - 100, PATIENCE_MS);
}

/* One scheduler asks on while the other is away. The quickest of three counts: a machine that
 * stands still for half a lease is a silence too. */
static void one_scheduler_is_enough(struct rig *rig) {
    uint64_t best_ms = UINT64_MAX;
    for (uint32_t n = 1; n <= 3 && best_ms > LEASE_MS + 1000; n++) {
        uint64_t start_ms = fx_clock_ms();
        rig_running(rig, n);
        (void)reclaimed_after(rig);
        uint64_t took_ms = fx_clock_ms() - start_ms;
        assert_true(took_ms >= LEASE_MS);
        if (took_ms < best_ms) best_ms = took_ms;
        rig_flush(rig);
    }
    assert_true(best_ms <= LEASE_MS + 1000);
}

/* The wait is for what expires: what is given back is wanted at once. */
static void giving_back_does_not_wait(struct rig *rig) {
    rig_running(rig, 1);
    rig_sleep(rig, SILENCE_MS);
    assert_int_equal(rig_reclaim(rig).count, 0);
    assert_int_equal(rig_renew(rig, 1, 1, "w", true).status, FX_QUEUE_OK);
    assert_int_equal(rig_reclaim(rig).count, 1);
}

/* Idle, with nothing leased, there is nothing to watch: the first lease begins anew. */
static void idle_is_no_silence(struct rig *rig) {
    rig_running(rig, 1);
    (void)rig_finish(rig, 1, 1, 0, FX_FINISH_STOP);
    rig_sleep(rig, SILENCE_MS);
    uint64_t start_ms = fx_clock_ms();
    rig_running(rig, 2);
    (void)reclaimed_after(rig);
    assert_in_range(fx_clock_ms() - start_ms, LEASE_MS, LEASE_MS + 1000);
}

/* The clock of Redis's host is set: back, so that leases end in the future ... */
static void the_clock_is_set_back(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 0);
    (void)rig_int(rig, "HSET fx:{m7}:meta beat 99999999999999");
    (void)rig_int(rig, "ZADD fx:{m7}:leases XX 99999999999999 ab000000000000000000000000000001");
    assert_in_range(reclaimed_after(rig), LEASE_MS - 100, PATIENCE_MS);
}

/* ... or forward: they are all old. */
static void the_clock_is_set(struct rig *rig) {
    rig_running(rig, 1);
    assert_int_equal(rig_reclaim(rig).count, 0);
    (void)rig_int(rig, "HSET fx:{m7}:meta beat 99999999999999");
    rig_expire(rig, 1);
    assert_in_range(reclaimed_after(rig), LEASE_MS - 100, PATIENCE_MS);
}

static const struct rig_row rows[] = {
    {"redis stopped",             redis_stopped            },
    {"redis stopped briefly",     redis_stopped_briefly    },
    {"the worker renews in time", the_worker_renews_in_time},
    {"redis killed",              redis_killed             },
    {"schedulers away",           schedulers_away          },
    {"one scheduler is enough",   one_scheduler_is_enough  },
    {"giving back does not wait", giving_back_does_not_wait},
    {"idle is no silence",        idle_is_no_silence       },
    {"the clock is set",          the_clock_is_set         },
    {"the clock is set back",     the_clock_is_set_back    },
};
RIG_MAIN(rows)
