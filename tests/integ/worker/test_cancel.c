/* A cancel in every phase of a generation, through the real scheduler and one real worker with two
 * slots: it ends as cancelled, or as what it was when that came first, once; and nothing is held.
 */
#include <signal.h>
#include <string.h>
#include "common/base/clock.h"
#include "tests/integ/worker/fleet.h"

enum { LONG = 400, PROMPT = 900, WAIT_MS = 20000, RACES = 12 };
static const char *const env[] = {"FX_BACKEND=ref", "FX_SLOTS_MAX=2", "FX_LEASE_MS=1000",
                                  "FX_RENEW_MS=200", NULL};

struct row {
    const char *name;
    void (*run)(struct fleet *fleet);
};

static void check_cancelled(struct fleet *fleet, struct fleet_ask *ask) {
    fleet_wait(fleet, ask, WAIT_MS);
    assert_int_equal(ask->finish, FX_FINISH_CANCELLED);
    assert_true(ask->count < ask->max_tokens);
}

static bool is_taken(void *ctx) {
    Fractal__V1__WorkerStatus status = fleet_status(ctx, 0);
    return status.slots_free < status.slots;
}

/* Both slots are taken: the third waits in its tenant's backlog. */
static void in_the_backlog(struct fleet *fleet) {
    struct fleet_ask asks[3];
    for (uint32_t i = 0; i < 3; i++)
        asks[i] = fleet_ask("It was", LONG, 0.8F, i);
    fleet_submit_all(fleet, asks, 3);
    fleet_wait_tokens(fleet, &asks[0], 1);
    fleet_wait_tokens(fleet, &asks[1], 1);
    for (uint32_t i = 3; i-- > 0;) {
        fleet_cancel(fleet, &asks[i]);
        check_cancelled(fleet, &asks[i]);
    }
    assert_int_equal(asks[2].count, 0);
}

/* The worker is frozen: what is dispatched to it stays unread. */
static void dispatched_and_unread(struct fleet *fleet) {
    struct fleet_ask ask = fleet_ask("It was", LONG, 0, 0);
    assert_int_equal(kill(fleet->workers[0].process.pid, SIGSTOP), 0);
    fleet_submit(fleet, &ask);
    fleet_sleep(fleet, 400);
    fleet_cancel(fleet, &ask);
    check_cancelled(fleet, &ask);
    assert_int_equal(kill(fleet->workers[0].process.pid, SIGCONT), 0);
    assert_int_equal(ask.count, 0);
}

static void in_prefill(struct fleet *fleet) {
    char text[PROMPT + 1];
    memset(text, 'a', PROMPT);
    text[PROMPT] = 0;
    struct fleet_ask ask = fleet_ask(text, 8, 0, 0);
    uint64_t before = fleet_status(fleet, 0).tokens_prefilled;
    fleet_submit(fleet, &ask);
    fleet_until(fleet, is_taken, fleet, WAIT_MS);
    fleet_cancel(fleet, &ask);
    check_cancelled(fleet, &ask);
    assert_int_equal(ask.count, 0);
    (void)fleet_idle(fleet, 0);
    assert_true(fleet_status(fleet, 0).tokens_prefilled - before < PROMPT);
}

static void in_decode(struct fleet *fleet) {
    struct fleet_ask ask = fleet_ask("It was", LONG, 0.8F, 5);
    fleet_submit(fleet, &ask);
    fleet_wait_tokens(fleet, &ask, 5);
    fleet_cancel(fleet, &ask);
    check_cancelled(fleet, &ask);
}

static void twice(struct fleet *fleet) {
    struct fleet_ask ask = fleet_ask("It was", LONG, 0.8F, 5);
    fleet_submit(fleet, &ask);
    fleet_wait_tokens(fleet, &ask, 2);
    fleet_cancel(fleet, &ask);
    fleet_cancel(fleet, &ask);
    check_cancelled(fleet, &ask);
    fleet_cancel(fleet, &ask);
}

struct answer {
    enum fx_queue_status status;
    bool done;
};

static void on_cancel(void *ctx, const struct fx_gen_info *info, const fx_error *err) {
    struct answer *answer = ctx;
    assert_null(err);
    answer->status = info->status;
    answer->done = true;
}

static bool is_done(void *ctx) {
    return ((struct answer *)ctx)->done;
}

static enum fx_queue_status cancel(struct fleet *fleet, const fx_gen_id *id) {
    struct answer answer = {0};
    assert_true(
        fx_queue_cancel(fleet->queue, fleet->model, id, on_cancel, &answer, &(fx_error){0}));
    fleet_until(fleet, is_done, &answer, WAIT_MS);
    return answer.status;
}

/* Sent about when the last token comes: either end is right, both are not. */
static void racing_the_finish(struct fleet *fleet) {
    uint32_t cancelled = 0;
    for (uint32_t i = 0; i < RACES; i++) {
        struct fleet_ask ask = fleet_ask("It was", 6, 0.8F, i);
        ask.ignore_eos = true;
        fleet_submit(fleet, &ask);
        fleet_wait_tokens(fleet, &ask, 1 + i % 6);
        assert_int_equal(cancel(fleet, &ask.id), FX_QUEUE_OK);
        fleet_wait(fleet, &ask, WAIT_MS);
        cancelled += ask.finish == FX_FINISH_CANCELLED;
        if (ask.finish == FX_FINISH_CANCELLED) continue;
        assert_int_equal(ask.finish, FX_FINISH_LENGTH);
        fleet_expect(fleet, &ask);
    }
    print_message("%u of %d cancelled\n", cancelled, RACES);
}

/* Its worker is frozen; the cancel comes just before or after the lease runs out. */
static void racing_a_reclaim(struct fleet *fleet) {
    for (uint32_t ms = 900; ms <= 1300; ms += 200) {
        struct fleet_ask ask = fleet_ask("It was", LONG, 0.8F, 5);
        fleet_submit(fleet, &ask);
        fleet_wait_tokens(fleet, &ask, 2);
        assert_int_equal(kill(fleet->workers[0].process.pid, SIGSTOP), 0);
        fleet_sleep(fleet, ms);
        fleet_cancel(fleet, &ask);
        fleet_sleep(fleet, 1500); /* a reclaim, if none was before */
        check_cancelled(fleet, &ask);
        assert_int_equal(kill(fleet->workers[0].process.pid, SIGCONT), 0);
        (void)fleet_idle(fleet, 0);
    }
}

static void an_unknown_id(struct fleet *fleet) {
    const fx_gen_id id = {
        {1, 2, 3}
    };
    assert_int_equal(cancel(fleet, &id), FX_QUEUE_NOT_FOUND);
}

static const struct row rows[] = {
    {"in the backlog",        in_the_backlog       },
    {"dispatched and unread", dispatched_and_unread},
    {"in prefill",            in_prefill           },
    {"in decode",             in_decode            },
    {"twice",                 twice                },
    {"racing the finish",     racing_the_finish    },
    {"racing a reclaim",      racing_a_reclaim     },
    {"an unknown id",         an_unknown_id        },
};

static struct fleet *fleet;

static void test_cancel(void **state) {
    const struct row *row = *state;
    row->run(fleet);
    (void)fleet_idle(fleet, 0);
}

static int setup(void **state) {
    (void)state;
    fleet = fleet_open(1, env);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fleet_close(&fleet);
    return 0;
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows)];
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i] =
            (struct CMUnitTest){rows[i].name, test_cancel, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, setup, teardown);
}
