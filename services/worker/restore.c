/* When Redis was restarted without its last second, or failed over to a replica that was behind, it
 * may not know any more that we own a generation, or that there is one. Then it is put back. */
#include "services/worker/io_internal.h"
#include "common/base/clock.h"
#include "common/base/log.h"

static void on_restored(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    struct gen *gen = ctx;
    worker_io *io = gen->io;
    gen->calls--;
    gen->restoring = false;
    if (!err) io_gen_restored(io, gen, result);
    io_gen_settle(io, gen);
    if (!err) io_flush(io);
}

/* Only where Redis is another since it last knew us as the owner, and only while an end that we did
 * not hear of could not have expired: what ended and was forgotten must not come back. */
static bool may_be_lost(const worker_io *io, const struct gen *gen) {
    uint64_t silent_ms = fx_clock_ms() - gen->heard_ms;
    return gen->task && gen->server != fx_redis_report(io->redis)->servers &&
           silent_ms < (uint64_t)gen->terms.retain_s * 1000;
}

bool io_gen_restore(worker_io *io, struct gen *gen) {
    fx_error err = {0};
    if (gen->restoring) return true;
    if (gen->lost || gen->finished || !may_be_lost(io, gen)) return false;
    const struct fx_restore restore = {
        .model = io->model,
        .id = gen->id,
        .epoch = gen->epoch,
        .worker = io->opts.worker,
        .numerics_id = io->numerics_id,
        .terms = gen->terms,
        .task = {gen->task,                 gen->task_len },
        .about = {gen->task + gen->task_len, gen->about_len},
    };
    gen->restoring = fx_queue_restore(io->queue, &restore, on_restored, gen, &err);
    if (gen->restoring) gen->calls++;
    return true; /* not sent: the next answer asks for it again */
}

bool gen_task_keep(struct gen *gen, const struct fx_task *task) {
    gen->task = fx_alloc(1, task->task.len + task->about.len + 1);
    if (!gen->task) return false;
    gen->terms = task->terms;
    gen->task_len = task->task.len;
    gen->about_len = task->about.len;
    if (task->task.len) memcpy(gen->task, task->task.at, task->task.len);
    if (task->about.len) memcpy(gen->task + task->task.len, task->about.at, task->about.len);
    return true;
}
