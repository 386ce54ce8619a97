#include "services/worker/io_internal.h"
#include "common/base/clock.h"
#include "common/base/log.h"

/* From the engine's news to the log in Redis. A generation keeps all its tokens until its end is
 * acknowledged, so whatever Redis turns out not to have is sent again. */

void io_gen_settle(worker_io *io, struct gen *gen) {
    bool done = gen->lost || gen->finished;
    if (!gen->used || !done || gen->in_engine || gen->calls) return;
    if (gen->kept) {
        if (gen->lost) io_kept_free(io, gen);
        return;
    }
    if (gen->finished && gen->task) io_keep(io, gen);
    gen->used = false;
    gen_free(gen);
    io->used--;
    status_set(io->opts.status, STATUS_SLOTS_FREE, io->slots - io->used);
    io->pull_again = true;
}

static void drop(worker_io *io, struct gen *gen) {
    if (!gen->in_engine || gen->dropping) return;
    gen->dropping = true;
    engine_thread_order(io->opts.engine, (struct order){ORDER_DROP, gen});
}

void io_gen_let_go(worker_io *io, struct gen *gen) {
    if (gen->lost || gen->finished) return;
    gen->lost = true;
    drop(io, gen);
}

static void gen_lost(worker_io *io, struct gen *gen) {
    if (gen->lost || gen->finished) return;
    if (gen->kept) { /* expired, or another's by now: both may be */
        io_gen_let_go(io, gen);
        return;
    }
    status_add(io->opts.status, STATUS_LEASES_LOST, 1);
    fx_log(FX_LOG_WARN, FX_EVENT("lease_lost"), FX_KI("epoch", gen->epoch),
           FX_KI("tokens", gen->have));
    io_gen_let_go(io, gen);
}

void io_gen_cancel(worker_io *io, struct gen *gen) {
    if (gen->lost || gen->finished || gen->finish == FX_FINISH_CANCELLED) return;
    gen->finish = FX_FINISH_CANCELLED;
    drop(io, gen);
}

/* Tokens from `first` on are not in the log. */
static void resend_from(struct gen *gen, uint32_t first) {
    if (first - 1 < gen->sent) gen->sent = first - 1;
}

/* Tokens are in the log up to `last`, where those who wait for them find them. What one append
 * brought shares the wait for it. */
static void logged(worker_io *io, struct gen *gen, uint32_t last) {
    uint64_t now_us = fx_clock_us();
    if (last <= gen->acked) return;
    uint32_t fresh = last - gen->acked, waits = gen->acked_us ? fresh : fresh - 1;
    uint64_t each_us = gen->acked_us ? (now_us - gen->acked_us) / fresh : 0;
    if (!gen->acked)
        worker_figures_since(&io->figures, io->opts.status, STATUS_FIRST_TOKEN, gen->submitted_ms);
    for (uint32_t i = 0; i < waits; i++)
        worker_figures_add(&io->figures, io->opts.status, STATUS_INTER_TOKEN, each_us);
    gen->acked = last;
    gen->acked_us = now_us;
}

/* Redis knows us as the owner. */
static void heard(worker_io *io, struct gen *gen) {
    gen->server = fx_redis_report(io->redis)->servers;
    gen->heard_ms = fx_clock_ms();
}

void io_gen_answered(worker_io *io, struct gen *gen, uint32_t first,
                     const struct fx_write_result *result) {
    switch (result->status) {
    case FX_QUEUE_OK:
        heard(io, gen);
        logged(io, gen, result->last);
        if (result->cancelled) io_gen_cancel(io, gen);
        return;
    case FX_QUEUE_GAP:
        heard(io, gen);
        status_add(io->opts.status, STATUS_GAPS, 1);
        resend_from(gen, result->last + 1);
        return;
    case FX_QUEUE_CANCELLED:
        resend_from(gen, first);
        io_gen_cancel(io, gen);
        return;
    case FX_QUEUE_LEASE_LOST:
    case FX_QUEUE_NOT_FOUND:
        if (!io_gen_restore(io, gen)) gen_lost(io, gen);
        return;
    default: /* a token differs: not ours to write any more */ gen_lost(io, gen);
    }
}

/* What an earlier worker logged and Redis lost has no log probabilities here: where they are wanted
 * the lease runs out, and they are computed again. */
void io_gen_restored(worker_io *io, struct gen *gen, const struct fx_write_result *result) {
    bool known = result->last <= gen->have || gen->finish == FX_FINISH_CANCELLED;
    bool whole = !gen->logprobs_each || result->last >= gen->logged;
    if (result->status != FX_QUEUE_OK || !known || !whole) {
        gen_lost(io, gen);
        return;
    }
    heard(io, gen);
    gen->renewed_ms = fx_clock_ms();
    gen->sent = result->last;
    status_add(io->opts.status, STATUS_RESTORED, 1);
    fx_log(FX_LOG_WARN, FX_EVENT("restored"), FX_KI("logged", result->last),
           FX_KI("tokens", gen->have));
    if (result->cancelled) io_gen_cancel(io, gen);
}

static void on_append(void *ctx, size_t index, const struct fx_write_result *result,
                      const fx_error *err) {
    struct io_write *write = ctx;
    worker_io *io = write->io;
    struct gen *gen = write->gens[index];
    gen->calls--;
    write->left--;
    if (err)
        resend_from(gen, write->first[index]);
    else
        io_gen_answered(io, gen, write->first[index], result);
    io_gen_settle(io, gen);
    if (write->left == 0 && !err) io_flush(io);
}

static struct io_write *write_free(worker_io *io) {
    for (size_t i = 0; i < IO_WRITES_MAX; i++)
        if (io->writes[i].left == 0) return &io->writes[i];
    return NULL;
}

static bool wants_append(const struct gen *gen) {
    return gen->used && !gen->lost && !gen->finished && !gen->restoring &&
           gen->finish != FX_FINISH_CANCELLED && gen->sent < gen->have;
}

/* What an earlier worker generated has no log probabilities here; it goes on its own. */
static struct fx_append append_of(const worker_io *io, const struct gen *gen) {
    uint32_t first = gen->sent + 1, last = gen->have, most = FX_QUEUE_APPEND_MAX;
    bool logprobs = gen->logprobs && first > gen->logged;
    if (gen->logprobs && first <= gen->logged) last = gen->logged;
    if (logprobs) most = FX_QUEUE_APPEND_LOGPROBS_MAX;
    return (struct fx_append){
        .model = io->model,
        .id = gen->id,
        .epoch = gen->epoch,
        .first = first,
        .tokens = gen_tokens(gen) + first - 1,
        .count = last - first < most ? last - first + 1 : most,
        .logprobs = logprobs ? gen_logprobs(gen, first) : NULL,
        .logprobs_each = logprobs ? gen->logprobs_each : 0,
        .worker = io->opts.worker,
    };
}

static size_t appends_gather(worker_io *io, struct io_write *write) {
    size_t rows = 0;
    for (struct gen *gen = NULL; (gen = io_gen_next(io, gen)) && rows < io->slots;) {
        if (!wants_append(gen)) continue;
        io->appends[rows] = append_of(io, gen);
        write->gens[rows] = gen;
        write->first[rows++] = gen->sent + 1;
    }
    return rows;
}

static void send_appends(worker_io *io) {
    struct io_write *write = write_free(io);
    if (!write) return;
    size_t rows = appends_gather(io, write);
    fx_error err = {0};
    if (!rows || !fx_queue_append_many(io->queue, io->appends, rows, on_append, write, &err))
        return; /* nothing was sent: the tick tries again */
    write->left = (uint32_t)rows;
    for (size_t i = 0; i < rows; i++) {
        write->gens[i]->sent += io->appends[i].count;
        write->gens[i]->calls++;
        write->gens[i]->renewed_ms = fx_clock_ms();
    }
    status_add(io->opts.status, STATUS_APPEND_WRITES, 1);
    status_add(io->opts.status, STATUS_APPENDS, rows);
}

static void ended(worker_io *io, struct gen *gen) {
    heard(io, gen);
    if (gen->kept) {
        io_kept_finished(io, gen);
        return;
    }
    gen->finished = true;
    gen->finished_ms = fx_clock_ms();
    enum status_number counter = gen->finish == FX_FINISH_CANCELLED ? STATUS_CANCELLED
                                 : gen->finish == FX_FINISH_ERROR   ? STATUS_FAILED
                                                                    : STATUS_FINISHED;
    status_add(io->opts.status, counter, 1);
}

static void on_finish(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    struct gen *gen = ctx;
    worker_io *io = gen->io;
    gen->calls--;
    gen->finishing = false;
    if (!err && result->status == FX_QUEUE_OK)
        ended(io, gen);
    else if (!err)
        io_gen_answered(io, gen, gen->sent + 1, result);
    io_gen_settle(io, gen);
    if (!err) io_flush(io);
}

static bool wants_finish(const struct gen *gen) {
    bool complete = gen->sent == gen->have || gen->finish == FX_FINISH_CANCELLED;
    return gen->used && gen->finish != FX_FINISH_NONE && complete && !gen->lost && !gen->finished &&
           !gen->finishing && !gen->restoring;
}

static const char *detail_of(const struct gen *gen) {
    if (gen->finish == FX_FINISH_ERROR) return gen->detail;
    return gen->inexact ? "resumed with other numerics" : NULL;
}

/* False: no room now, for this one as for others. */
static bool send_finish(worker_io *io, struct gen *gen) {
    const struct fx_gen_end end = {io->model,   gen->id,        gen->epoch,     gen->have,
                                   gen->finish, detail_of(gen), io->opts.worker};
    fx_error err = {0};
    if (!fx_queue_finish(io->queue, &end, on_finish, gen, &err)) return false;
    gen->finishing = true;
    gen->calls++;
    return true;
}

void io_flush(worker_io *io) {
    if (!fx_redis_ready(io->redis)) return;
    send_appends(io);
    for (struct gen *gen = NULL; (gen = io_gen_next(io, gen));)
        if (wants_finish(gen) && !send_finish(io, gen)) return;
}

static enum fx_finish finish_of(enum fx_engine_end end) {
    static const enum fx_finish of[] = {
        [FX_ENGINE_STOP] = FX_FINISH_STOP,
        [FX_ENGINE_LENGTH] = FX_FINISH_LENGTH,
        [FX_ENGINE_FAILED] = FX_FINISH_ERROR,
    };
    return of[end];
}

static void news_end(worker_io *io, struct gen *gen) {
    gen->in_engine = false;
    if (gen->finish == FX_FINISH_NONE && !gen->lost) gen->finish = finish_of(gen->end);
    if (gen->finish == FX_FINISH_ERROR && !gen->lost)
        fx_log(FX_LOG_WARN, FX_EVENT("generation_failed"), FX_KS("reason", gen->detail));
    io_gen_settle(io, gen);
}

void io_news(worker_io *io) {
    struct news news;
    while (engine_thread_news(io->opts.engine, &news)) {
        if (news.kind == NEWS_END) {
            news_end(io, news.gen);
            continue;
        }
        FX_ASSERT(news.number == news.gen->have + 1);
        gen_tokens(news.gen)[news.gen->have++] = news.token;
    }
    io_flush(io);
}
