#include "common/rpc/pb.h"
#include "fractal/v1/generation.pb-c.h"
#include "tests/fx_test.h"

enum { ARENA = 4096, IDS = 100 };

static uint8_t memory_[ARENA], wire_[ARENA];
static uint32_t ids_[IDS];

static fx_span pack_task(void) {
    fx_arena arena;
    fx_span out = {0};
    fx_error err = {0};
    Fractal__V1__GenerationTask task = FRACTAL__V1__GENERATION_TASK__INIT;
    for (uint32_t i = 0; i < IDS; i++)
        ids_[i] = i * 1000;
    task.model_name = (char *)(uintptr_t) "model";
    task.prompt_ids = ids_;
    task.n_prompt_ids = IDS;
    fx_arena_init(&arena, wire_, sizeof wire_);
    assert_true(fx_pb_pack(&task, &arena, &out, &err));
    return out;
}

static void test_round_trip(void **state) {
    fx_span wire = pack_task();
    fx_arena arena;
    fx_error err = {0};
    Fractal__V1__GenerationTask *task = NULL;
    (void)state;
    fx_arena_init(&arena, memory_, sizeof memory_);
    assert_true(fx_pb_unpack(&fractal__v1__generation_task__descriptor, wire, &arena, &task, &err));
    assert_string_equal(task->model_name, "model");
    assert_int_equal(task->n_prompt_ids, IDS);
    assert_memory_equal(task->prompt_ids, ids_, sizeof ids_);
    fx_arena_done(&arena);
}

/* Every shorter arena is RESOURCE_EXHAUSTED until one is large enough; no other outcome. */
static void test_small_arenas(void **state) {
    fx_span wire = pack_task();
    size_t fits = 0;
    (void)state;
    for (size_t cap = 16; cap <= sizeof memory_ && !fits; cap += 16) {
        fx_arena arena;
        fx_error err = {0};
        void *task = NULL;
        fx_arena_init(&arena, memory_, cap);
        bool ok =
            fx_pb_unpack(&fractal__v1__generation_task__descriptor, wire, &arena, &task, &err);
        if (ok) fits = cap;
        if (!ok) assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
        if (!ok) assert_null(task);
        fx_arena_done(&arena);
    }
    assert_in_range(fits, sizeof ids_, sizeof memory_);
}

/* Every cut of a good message either parses (cut between fields) or is INVALID_ARGUMENT. */
static void test_cuts(void **state) {
    fx_span wire = pack_task();
    size_t refused = 0;
    (void)state;
    for (size_t len = 0; len < wire.len; len++) {
        fx_arena arena;
        fx_error err = {0};
        void *task = NULL;
        fx_arena_init(&arena, memory_, sizeof memory_);
        fx_span cut = {wire.at, len};
        if (!fx_pb_unpack(&fractal__v1__generation_task__descriptor, cut, &arena, &task, &err)) {
            assert_int_equal(err.code, FX_INVALID_ARGUMENT);
            refused++;
        }
        fx_arena_done(&arena);
    }
    assert_in_range(refused, wire.len / 2, wire.len);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_small_arenas),
        cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
