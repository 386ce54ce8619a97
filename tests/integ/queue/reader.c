#include "tests/integ/queue/reader.h"

enum { WAIT_STEPS = 300, STEP_MS = 10 };

static void on_tokens(void *ctx, const struct fx_gen_tokens *tokens) {
    struct reader *reader = ctx;
    assert_int_equal(reader->finish, FX_FINISH_NONE);
    assert_int_equal(tokens->first, reader->told + 1);
    for (uint32_t i = 0; i < tokens->count; i++)
        assert_int_equal(tokens->tokens[i], reader->n * 100 + ++reader->told);
    reader->finish = tokens->finish;
}

void reader_open(struct rig *rig, uint32_t n, struct reader *reader) {
    fx_gen_id id = rig_id(n);
    fx_error err = {0};
    *reader = (struct reader){.n = n};
    assert_true(
        fx_queue_watch(rig->queue, RIG_MODEL, &id, 0, on_tokens, reader, &reader->watch, &err));
}

void reader_wait(struct rig *rig, const struct reader *reader) {
    for (int i = 0; i < WAIT_STEPS && !reader->finish; i++)
        rig_sleep(rig, STEP_MS);
    assert_int_not_equal(reader->finish, FX_FINISH_NONE);
}

void reader_close(struct reader *reader) {
    fx_watch_free(fx_take(reader->watch));
}
