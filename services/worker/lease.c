#include "services/worker/io_internal.h"

static void on_renew(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    struct gen *gen = ctx;
    worker_io *io = gen->io;
    gen->calls--;
    if (!err) io_gen_answered(io, gen, gen->sent + 1, result);
    io_gen_settle(io, gen);
    if (!err) io_flush(io);
}

static void renew(worker_io *io, struct gen *gen, bool give_back) {
    const struct fx_renew call = {io->model, gen->id, gen->epoch, io->opts.worker, give_back};
    fx_error err = {0};
    if (!fx_queue_renew(io->queue, &call, on_renew, gen, &err)) return;
    gen->calls++;
}

static bool held(const struct gen *gen) {
    return gen->used && !gen->lost && !gen->finished && !gen->restoring;
}

/* A lease is renewed only when the engine has made progress since it was last extended: a worker
 * that is stuck loses its generations. Appends renew too, so this is for prefills and waits. */
void io_renew(worker_io *io, uint64_t now_ms) {
    for (uint32_t i = 0; i < io->slots; i++) {
        struct gen *gen = &io->gens[i];
        bool due = now_ms - gen->renewed_ms >= io->opts.config->renew_ms;
        if (!held(gen) || !gen->in_engine || !due || io->progress_ms <= gen->renewed_ms) continue;
        gen->renewed_ms = now_ms;
        renew(io, gen, false);
    }
}

void io_give_back(worker_io *io) {
    for (uint32_t i = 0; i < io->slots; i++)
        if (held(&io->gens[i])) {
            renew(io, &io->gens[i], true);
            io_gen_let_go(io, &io->gens[i]);
        }
}
