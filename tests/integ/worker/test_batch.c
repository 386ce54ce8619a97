#include "tests/integ/worker/fleet.h"

/* 32 generations at once: each text is the one of the same request alone, and the weights are read
 * once for many rows. */
enum { STREAMS = 32, TOKENS = 700 };

static const char *const openings[] = {"It was", "The ", "My dear sir", "Upon the whole, "};

static void test_batch(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, (const char *const[]){"FX_SLOTS_MAX=32", NULL});
    static struct fleet_ask asks[STREAMS];
    Fractal__V1__WorkerStatus before = fleet_status(fleet, 0);
    for (uint32_t i = 0; i < STREAMS; i++)
        asks[i] = fleet_ask(openings[i % 4], TOKENS, i % 2 ? 0.8F : 0, i);
    fleet_submit_all(fleet, asks, STREAMS);
    for (uint32_t i = 0; i < STREAMS; i++)
        fleet_wait(fleet, &asks[i], 60000);
    Fractal__V1__WorkerStatus after = fleet_idle(fleet, 0);
    for (uint32_t i = 0; i < STREAMS; i++)
        fleet_expect(fleet, &asks[i]);
    double dense = (double)(after.dense_rows - before.dense_rows) /
                   (double)(after.dense_matmuls - before.dense_matmuls);
    double expert = (double)(after.expert_rows - before.expert_rows) /
                    (double)(after.expert_matmuls - before.expert_matmuls);
    double bytes = (double)(after.weight_bytes_read - before.weight_bytes_read) /
                   (double)(after.tokens_decoded - before.tokens_decoded);
    print_message(
        "  rows per dense matmul %.1f, per active expert %.1f; %.0f weight bytes a token\n", dense,
        expert, bytes);
    assert_true(dense >= 24);
    assert_true(expert >= 6);
    assert_int_equal(after.slots, STREAMS);
}

/* Too few KV blocks for all of them: the youngest wait and begin again, no text changes. */
static void test_scarce_kv(void **state) {
    (void)state;
    fleet_auto fleet = fleet_open(1, (const char *const[]){"FX_KV_MIB=2", NULL});
    static struct fleet_ask asks[8];
    for (uint32_t i = 0; i < 8; i++)
        asks[i] = fleet_ask(openings[i % 4], 400, 0.8F, 1000 + i);
    fleet_submit_all(fleet, asks, 8);
    for (uint32_t i = 0; i < 8; i++) {
        fleet_wait(fleet, &asks[i], 60000);
        fleet_expect(fleet, &asks[i]);
    }
    (void)fleet_idle(fleet, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_scarce_kv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
