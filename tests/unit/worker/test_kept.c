/* What a worker keeps of ended generations: in order, bounded, and found again after a reconnect.
 */
#include "tests/fx_test.h"
#include "services/worker/io_internal.h"

enum { SLOTS = 3, TOKENS = 4, MIB = 1 << 20, CONTEXT = 16 };

struct stage {
    struct worker_io io;
    struct worker_status status;
    struct gen gens[SLOTS];
    uint32_t ids[SLOTS][CONTEXT + 1];
};

static int setup(void **state) {
    struct stage *stage = fx_alloc(1, sizeof(*stage));
    assert_non_null(stage);
    stage->io.opts.status = &stage->status;
    stage->io.slots = SLOTS;
    stage->io.gens = stage->gens;
    TAILQ_INIT(&stage->io.kept);
    for (uint32_t i = 0; i < SLOTS; i++)
        stage->gens[i].ids = stage->ids[i];
    *state = stage;
    return 0;
}

static int teardown(void **state) {
    struct stage *stage = *state;
    while (!TAILQ_EMPTY(&stage->io.kept))
        io_kept_free(&stage->io, TAILQ_FIRST(&stage->io.kept));
    assert_int_equal(stage->io.kept_bytes, 0);
    assert_int_equal(stage->io.kept_count, 0);
    assert_int_equal(stage->io.kept_open, 0);
    free(stage);
    return 0;
}

/* One that has ended in slot 0, and leaves it. */
static void keep(struct stage *stage, uint8_t number, size_t task_bytes, enum fx_finish finish) {
    struct gen *gen = &stage->gens[0];
    *gen = (struct gen){.io = &stage->io,
                        .used = true,
                        .ids = stage->ids[0],
                        .prompt_count = 2,
                        .have = TOKENS,
                        .logged = 1,
                        .logprobs_each = 2,
                        .finish = finish,
                        .finished = true,
                        .task_len = task_bytes};
    gen->id.bytes[0] = number;
    gen->task = fx_alloc(1, task_bytes);
    gen->logprobs = fx_alloc(CONTEXT, 2 * sizeof(*gen->logprobs));
    assert_true(gen->task && gen->logprobs);
    for (uint32_t i = 0; i < 2 + TOKENS; i++)
        gen->ids[i] = 10 * number + i;
    for (uint32_t i = 0; i < 2 * (TOKENS - 1); i++)
        gen->logprobs[i].id = number + i;
    io_keep(&stage->io, gen);
    gen_free(gen);
}

static uint64_t dropped(const struct stage *stage) {
    return status_get(&stage->status, STATUS_KEPT_DROPPED);
}

static void all_of_it(void **state) {
    struct stage *stage = *state;
    keep(stage, 7, 100, FX_FINISH_STOP);
    const struct gen *kept = TAILQ_FIRST(&stage->io.kept);
    assert_int_equal(status_get(&stage->status, STATUS_KEPT), 1);
    assert_true(kept->kept && kept->finished && kept->task);
    assert_int_equal(kept->task_len, 100);
    for (uint32_t i = 0; i < TOKENS; i++)
        assert_int_equal(gen_tokens(kept)[i], 72 + i);
    for (uint32_t i = 0; i < TOKENS - 1; i++)
        assert_int_equal(gen_logprobs(kept, 2 + i)[1].id, 7 + 2 * i + 1);
    assert_int_equal(dropped(stage), 0);
}

/* Nobody waits for the tokens of a cancelled one: only that it was is told again. */
static void a_cancelled_one(void **state) {
    struct stage *stage = *state;
    keep(stage, 7, 100, FX_FINISH_CANCELLED);
    assert_int_equal(TAILQ_FIRST(&stage->io.kept)->have, 1);
}

static void the_oldest_go(void **state) {
    struct stage *stage = *state;
    for (uint8_t i = 0; i < 10; i++)
        keep(stage, i, 8 * MIB, FX_FINISH_STOP);
    assert_int_equal(stage->io.kept_count, 7); /* of a little more than 8 MiB in 64 */
    assert_int_equal(dropped(stage), 3);
    assert_int_equal(TAILQ_FIRST(&stage->io.kept)->id.bytes[0], 3);
    assert_true(stage->io.kept_bytes <= IO_KEPT_BYTES_MAX);
}

static void one_that_is_too_large(void **state) {
    struct stage *stage = *state;
    keep(stage, 1, MIB, FX_FINISH_STOP);
    keep(stage, 2, 65 * MIB, FX_FINISH_STOP);
    assert_int_equal(dropped(stage), 1);
    assert_int_equal(stage->io.kept_count, 1);
    assert_int_equal(TAILQ_FIRST(&stage->io.kept)->id.bytes[0], 1);
}

/* After a reconnect all are open; they don't make room until they are known to be there. */
static void sent_again(void **state) {
    struct stage *stage = *state;
    struct worker_io *io = &stage->io;
    struct gen *gen = NULL;
    keep(stage, 1, 30 * MIB, FX_FINISH_STOP);
    keep(stage, 2, 30 * MIB, FX_FINISH_STOP);
    for (uint32_t i = 0; i < SLOTS; i++)
        assert_ptr_equal(gen = io_gen_next(io, gen), &stage->gens[i]);
    assert_null(io_gen_next(io, gen)); /* nothing of them is to be sent */
    io_kept_verify(io);
    io_kept_verify(io);
    assert_int_equal(io->kept_open, 2);
    gen = io_gen_next(io, gen);
    assert_int_equal(gen->id.bytes[0], 1);
    assert_false(gen->finished);
    keep(stage, 3, 30 * MIB, FX_FINISH_STOP);
    assert_int_equal(dropped(stage), 1);
    io_kept_finished(io, gen); /* behind the other now */
    assert_int_equal(io->kept_open, 1);
    assert_int_equal(TAILQ_FIRST(&io->kept)->id.bytes[0], 2);
    assert_int_equal(TAILQ_NEXT(TAILQ_FIRST(&io->kept), entry)->id.bytes[0], 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_of_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_one, setup, teardown),
        cmocka_unit_test_setup_teardown(the_oldest_go, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_too_large, setup, teardown),
        cmocka_unit_test_setup_teardown(sent_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
