#include "services/worker/status.h"
#include "common/base/clock.h"
#include "common/http/admin.h"
#include "tests/fx_test.h"

enum { UNREADY_MS = 60000, DEAD_MS = 120000 };

static struct worker_status healthy(void) {
    struct worker_status status = {.worker = "w",
                                   .model = "m",
                                   .backend = "cpu",
                                   .unready_ms = UNREADY_MS,
                                   .dead_ms = DEAD_MS};
    status_set(&status, STATUS_LOADED, 1);
    status_set(&status, STATUS_SOUND_MS, fx_clock_ms());
    status_set(&status, STATUS_TURNED_MS, fx_clock_ms());
    status_set(&status, STATUS_REDIS_READY, 1);
    status_set(&status, STATUS_REGISTERED, 1);
    return status;
}

struct row {
    const char *name;
    enum status_number number;
    uint64_t value;
    const char *reason; /* NULL: ready */
};
static const struct row rows[] = {
    {"healthy",        STATUS_SLOTS,       4,  NULL       },
    {"draining",       STATUS_DRAINING,    1,  "draining" },
    {"no redis",       STATUS_REDIS_READY, 0,  "Redis"    },
    {"no scheduler",   STATUS_REGISTERED,  0,  "scheduler"},
    {"loading",        STATUS_LOADED,      0,  "loaded"   },
    {"many rows fail", STATUS_ROWS_FAILED, 99, NULL       },
};

static void test_ready(void **state) {
    const struct row *row = *state;
    struct worker_status status = healthy();
    char reason[FX_ADMIN_REASON_MAX] = "";
    status_set(&status, row->number, row->value);
    assert_int_equal(worker_ready(&status, reason), !row->reason);
    if (row->reason) assert_non_null(strstr(reason, row->reason));
}

struct stall_row {
    const char *name;
    uint64_t ms;
    bool ready, live;
};
static const struct stall_row stalls[] = {
    {"a long step",          UNREADY_MS / 2,  true,  true },
    {"no progress",          UNREADY_MS,      false, true },
    {"still none",           DEAD_MS - 10000, false, true },
    {"none for a long time", DEAD_MS,         false, false},
};

/* Redis has no say in whether it lives. */
static void test_stalls(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(stalls); i++) {
        struct worker_status status = healthy();
        char reason[FX_ADMIN_REASON_MAX] = "";
        print_message("- %s\n", stalls[i].name);
        status_set(&status, STATUS_SOUND_MS, fx_clock_ms() - stalls[i].ms);
        assert_int_equal(worker_ready(&status, reason), stalls[i].ready);
        assert_int_equal(worker_is_stuck(&status), !stalls[i].ready);
        status_set(&status, STATUS_REDIS_READY, 0);
        assert_int_equal(worker_live(&status, reason), stalls[i].live);
        if (!stalls[i].live) assert_non_null(strstr(reason, "progress"));
        status_set(&status, STATUS_LOADED, 0); /* loading takes as long as it takes */
        assert_true(worker_live(&status, reason));
    }
}

static void test_mute(void **state) {
    (void)state;
    struct worker_status status = healthy();
    char reason[FX_ADMIN_REASON_MAX] = "";
    status_set(&status, STATUS_SOUND_MS, fx_clock_ms() - UNREADY_MS);
    assert_false(worker_is_mute(&status));
    status_set(&status, STATUS_TURNED_MS, fx_clock_ms() - UNREADY_MS);
    assert_true(worker_is_mute(&status));
    assert_false(worker_ready(&status, reason));
    assert_non_null(strstr(reason, "I/O loop"));
}

static void test_metrics(void **state) {
    (void)state;
    static uint8_t bytes[FX_ADMIN_METRICS_MAX];
    struct worker_status status = healthy();
    fx_buf out = {bytes, 0, sizeof(bytes) - 1};
    const struct fx_engine_stats stats = {.steps = 11,
                                          .rows = 77,
                                          .dense_rows = 320,
                                          .dense_matmuls = 10,
                                          .pages = 64,
                                          .pages_free = 60};
    worker_status_engine(&status, &stats);
    worker_metrics(&status, &out);
    assert_true(fx_buf_fits(&out));
    const char *page = (const char *)bytes;
    assert_non_null(strstr(page, "\nfx_worker_steps_total{model=\"m\"} 11\n"));
    assert_non_null(strstr(page, "\nfx_worker_rows_total{model=\"m\"} 77\n"));
    assert_non_null(strstr(page, "\nfx_worker_dense_rows_total{model=\"m\"} 320\n"));
    assert_non_null(strstr(page, "\nfx_worker_kv_blocks_free{model=\"m\"} 60\n"));
    assert_non_null(strstr(page, "# TYPE fx_worker_steps_total counter\n"));
    assert_non_null(strstr(page, "# TYPE fx_worker_slots gauge\n"));
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 3];
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i] =
            (struct CMUnitTest){rows[i].name, test_ready, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    tests[FX_TEST_COUNT(rows)] = (struct CMUnitTest)cmocka_unit_test(test_metrics);
    tests[FX_TEST_COUNT(rows) + 1] = (struct CMUnitTest)cmocka_unit_test(test_stalls);
    tests[FX_TEST_COUNT(rows) + 2] = (struct CMUnitTest)cmocka_unit_test(test_mute);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
