#include "kernels/team.h"
#include "common/base/clock.h"
#include "tests/fx_test.h"
#include <stdatomic.h>
#include <unistd.h>

enum { CHUNKS_MAX = 300, RUNS = 2000 };

struct board {
    uint32_t plain[CHUNKS_MAX]; /* not atomic: TSan sees a chunk run twice or a missing barrier */
    _Atomic uint32_t total;
};

static void mark(void *arg, uint32_t chunk) {
    struct board *board = arg;
    board->plain[chunk]++;
    atomic_fetch_add(&board->total, 1);
}

struct row {
    const char *name;
    uint32_t threads;
    bool sleepy; /* lets the workers fall asleep between runs */
};
static const struct row rows[] = {
    {"the caller alone",     1, false},
    {"two threads",          2, false},
    {"seven threads",        7, false},
    {"two, asleep between",  2, true },
    {"five, asleep between", 5, true },
};

static void test_each_chunk_once(void **state) {
    const struct row *row = *state;
    fx_auto(fx_team) team = NULL;
    assert_true(fx_team_open(row->threads, &team, NULL));
    assert_int_equal(fx_team_threads(team), row->threads);
    for (uint32_t run = 0; run < (row->sleepy ? 20 : RUNS); run++) {
        struct board board = {0};
        uint32_t chunks = run % 5 == 0 ? run % 3 : run % CHUNKS_MAX;
        fx_team_run(team, chunks, mark, &board);
        assert_int_equal(atomic_load(&board.total), chunks);
        for (uint32_t chunk = 0; chunk < CHUNKS_MAX; chunk++)
            assert_int_equal(board.plain[chunk], chunk < chunks);
        if (row->sleepy) (void)usleep(3000);
    }
}

/* Each chunk waits until all have begun, which takes as many threads as chunks. */
static void meet(void *arg, uint32_t chunk) {
    (void)chunk;
    _Atomic uint32_t *begun = arg;
    uint64_t deadline_ms = fx_clock_ms() + 30000;
    atomic_fetch_add(begun, 1);
    while (atomic_load(begun) < 3 && fx_clock_ms() < deadline_ms) {
    }
}

static void test_threads_work_together(void **state) {
    (void)state;
    fx_auto(fx_team) team = NULL;
    _Atomic uint32_t begun = 0;
    uint64_t start_ms = fx_clock_ms();
    assert_true(fx_team_open(3, &team, NULL));
    fx_team_run(team, 3, meet, &begun);
    assert_int_equal(atomic_load(&begun), 3);
    assert_true(fx_clock_ms() - start_ms < 30000);
}

int main(void) {
    static struct CMUnitTest tests[FX_TEST_COUNT(rows) + 1] = {
        cmocka_unit_test(test_threads_work_together)};
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i + 1] = (struct CMUnitTest){rows[i].name, test_each_chunk_once, NULL, NULL,
                                           (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
