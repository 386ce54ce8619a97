/* What Redis has acknowledged may still be lost with its last second, or with a master whose
 * replica was behind. So a generation that has ended leaves its slot but is kept until its finish
 * was acknowledged 3 s ago and Redis has no fsync under way; after each reconnect all that is kept
 * is finished again, which sends again what is missing. */
#include "services/worker/io_internal.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include <string.h>

enum { KEPT_MS = 3000, KEPT_ASK_MS = 1000 };

static size_t logprobs_count(const struct gen *gen) {
    return gen->logprobs && gen->have > gen->logged
               ? (size_t)(gen->have - gen->logged) * gen->logprobs_each
               : 0;
}

static size_t bytes_of(const struct gen *gen) {
    return sizeof(*gen) + (size_t)gen->have * sizeof(*gen->ids) +
           logprobs_count(gen) * sizeof(*gen->logprobs) + gen->task_len + gen->about_len;
}

static void count(worker_io *io) {
    status_set(io->opts.status, STATUS_KEPT, io->kept_count);
}

void io_kept_free(worker_io *io, struct gen *gen) {
    TAILQ_REMOVE(&io->kept, gen, entry);
    io->kept_bytes -= bytes_of(gen);
    io->kept_count--;
    if (!gen->finished) io->kept_open--;
    count(io);
    free(gen->ids);
    gen_free(gen);
    free(gen);
}

/* The oldest make room; what is just being sent again does not. */
static bool room(worker_io *io, size_t bytes) {
    if (bytes > IO_KEPT_BYTES_MAX) return false;
    for (struct gen *oldest = TAILQ_FIRST(&io->kept), *next;
         oldest && io->kept_bytes + bytes > IO_KEPT_BYTES_MAX; oldest = next) {
        if (!oldest->finished || oldest->calls) return false;
        next = TAILQ_NEXT(oldest, entry);
        io_kept_free(io, oldest);
        status_add(io->opts.status, STATUS_KEPT_DROPPED, 1);
    }
    return true;
}

/* False: no memory. */
static FX_MUST bool copy(const struct gen *gen, struct gen *out) {
    size_t logprobs = logprobs_count(gen);
    *out = *gen;
    out->sampling.bias = NULL;
    out->biases = NULL;
    out->stop = (struct gen_stop){0};
    out->prompt_count = 0;
    out->ids = fx_alloc((size_t)gen->have + 1, sizeof(*out->ids));
    out->logprobs = logprobs ? fx_alloc(logprobs, sizeof(*out->logprobs)) : NULL;
    if (!out->ids || (logprobs && !out->logprobs)) {
        free(out->ids);
        free(out->logprobs);
        return false;
    }
    memcpy(out->ids, gen_tokens(gen), gen->have * sizeof(*out->ids));
    if (logprobs) memcpy(out->logprobs, gen->logprobs, logprobs * sizeof(*out->logprobs));
    return true;
}

void io_keep(worker_io *io, struct gen *gen) {
    if (gen->finish == FX_FINISH_CANCELLED) gen->have = gen->logged; /* nobody waits for tokens */
    struct gen *kept = room(io, bytes_of(gen)) ? fx_alloc(1, sizeof(*kept)) : NULL;
    if (!kept || !copy(gen, kept)) {
        free(kept);
        status_add(io->opts.status, STATUS_KEPT_DROPPED, 1);
        return;
    }
    gen->task = NULL; /* is the copy's now */
    kept->kept = true;
    TAILQ_INSERT_TAIL(&io->kept, kept, entry);
    io->kept_bytes += bytes_of(kept);
    io->kept_count++;
    count(io);
}

void io_kept_finished(worker_io *io, struct gen *gen) {
    gen->finished = true;
    gen->finished_ms = fx_clock_ms();
    io->kept_open--;
    TAILQ_REMOVE(&io->kept, gen, entry);
    TAILQ_INSERT_TAIL(&io->kept, gen, entry);
}

void io_kept_verify(worker_io *io) {
    struct gen *gen;
    TAILQ_FOREACH(gen, &io->kept, entry) {
        if (gen->finished) io->kept_open++;
        gen->finished = false;
    }
    if (io->kept_open)
        fx_log(FX_LOG_INFO, FX_EVENT("kept_verified"), FX_KI("generations", io->kept_open));
}

struct gen *io_gen_next(worker_io *io, struct gen *gen) {
    if (gen && gen->kept) return TAILQ_NEXT(gen, entry);
    uint32_t next = gen ? (uint32_t)(gen - io->gens) + 1 : 0;
    if (next < io->slots) return &io->gens[next];
    return io->kept_open ? TAILQ_FIRST(&io->kept) : NULL;
}

/* ---- until it is safe ---- */

static bool fsync_pending(const redisReply *reply) {
    static const char name[] = "aof_pending_bio_fsync:", none[] = "aof_pending_bio_fsync:0";
    fx_span text = fx_redis_span(reply);
    return text.len && memmem(text.at, text.len, name, sizeof(name) - 1) &&
           !memmem(text.at, text.len, none, sizeof(none) - 1);
}

/* Was its finish acknowledged long enough before Redis was asked? */
static bool is_safe(const worker_io *io, const struct gen *gen) {
    return gen->finished && !gen->calls && gen->finished_ms + KEPT_MS <= io->kept_asked_ms;
}

/* A Redis that does not tell (no AOF, INFO forbidden) is trusted after the 3 s. */
static void on_persistence(void *ctx, const redisReply *reply, const fx_error *err) {
    worker_io *io = ctx;
    struct gen *next;
    io->kept_asking = false;
    if (err && err->code != FX_PERMISSION_DENIED && err->code != FX_INTERNAL) return;
    if (fsync_pending(reply)) return;
    for (struct gen *gen = TAILQ_FIRST(&io->kept); gen && is_safe(io, gen); gen = next) {
        next = TAILQ_NEXT(gen, entry);
        io_kept_free(io, gen);
    }
}

void io_kept_tick(worker_io *io, uint64_t now_ms) {
    const struct gen *oldest = TAILQ_FIRST(&io->kept);
    fx_error err = {0};
    if (!oldest || !oldest->finished || io->kept_asking) return;
    if (now_ms < oldest->finished_ms + KEPT_MS || now_ms < io->kept_asked_ms + KEPT_ASK_MS) return;
    io->kept_asked_ms = now_ms;
    io->kept_asking =
        fx_redis_command(io->redis, on_persistence, io, &err, "INFO %s", "persistence");
}
