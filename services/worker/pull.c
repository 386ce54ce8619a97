#include "services/worker/io_internal.h"
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/base/log.h"
#include "common/rpc/pb.h"
#include "fractal/v1/generation.pb-c.h"
#include <stdio.h>
#include <string.h>

enum { TASK_SCHEMA_MIN = 1, TASK_SCHEMA_MAX = 2 };

typedef Fractal__V1__GenerationTask task_type;

static struct gen *gen_take(worker_io *io) {
    for (uint32_t i = 0; i < io->slots; i++) {
        struct gen *gen = &io->gens[i];
        if (gen->used) continue;
        uint32_t *ids = gen->ids;
        *gen = (struct gen){.io = io, .used = true, .ids = ids};
        io->used++;
        status_set(io->opts.status, STATUS_SLOTS_FREE, io->slots - io->used);
        return gen;
    }
    return NULL;
}

static FX_MUST bool biases_read(struct gen *gen, const Fractal__V1__SamplingParams *params,
                                fx_error *err) {
    size_t count = params->n_logit_bias;
    if (count > FX_BIASES_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "logit_bias: %zu entries, at most %d", count,
                       FX_BIASES_MAX);
    if (!count) return true;
    gen->biases = fx_alloc(count, sizeof(*gen->biases));
    if (!gen->biases) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for logit_bias");
    for (size_t i = 0; i < count; i++)
        gen->biases[i] = (struct fx_bias){params->logit_bias[i]->id, params->logit_bias[i]->value};
    gen->sampling.bias = gen->biases;
    gen->sampling.bias_count = (uint32_t)count;
    return true;
}

static FX_MUST bool sampling_read(struct gen *gen, const task_type *task, fx_error *err) {
    const Fractal__V1__SamplingParams *params = task->sampling;
    if (!params) return true; /* greedy */
    bool seeded = params->seed_presence_case == FRACTAL__V1__SAMPLING_PARAMS__SEED_PRESENCE_SEED;
    if (!seeded && params->temperature > 0)
        return fx_fail(err, FX_INVALID_ARGUMENT, "the task samples without a seed");
    gen->sampling = (struct fx_sampling){
        .temperature = params->temperature,
        .top_k = params->top_k,
        .top_p = params->top_p,
        .min_p = params->min_p,
        .seed = seeded ? params->seed : 0,
        .choice = params->choice,
        .typical_p = params->typical_p,
        .presence = params->presence_penalty,
        .frequency = params->frequency_penalty,
        .repetition = params->repetition_penalty,
        .min_tokens = params->min_tokens,
    };
    return biases_read(gen, params, err);
}

static FX_MUST bool ids_read(const worker_io *io, struct gen *gen, const task_type *task,
                             const struct fx_task *taken, fx_error *err) {
    size_t prompt = task->n_prompt_ids, logged = taken->logged_count;
    if (prompt + logged > io->context_max)
        return fx_fail(err, FX_OUT_OF_RANGE, "%zu + %zu tokens; the context holds %u", prompt,
                       logged, io->context_max);
    if (task->n_stop_ids > FX_ENGINE_STOPS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%zu stop ids: at most %d", task->n_stop_ids,
                       FX_ENGINE_STOPS_MAX);
    gen->prompt_count = (uint32_t)prompt;
    gen->logged = gen->have = gen->sent = gen->acked = (uint32_t)logged;
    gen->stop_count = (uint32_t)task->n_stop_ids;
    if (prompt) memcpy(gen->ids, task->prompt_ids, prompt * sizeof(*gen->ids));
    if (logged) memcpy(gen_tokens(gen), taken->logged, logged * sizeof(*gen->ids));
    if (gen->stop_count) memcpy(gen->stops, task->stop_ids, gen->stop_count * sizeof(*gen->stops));
    return true;
}

static FX_MUST bool stop_read(const worker_io *io, struct gen *gen, const task_type *task,
                              fx_error *err) {
    return !task->n_stop || gen_stop_init(&gen->stop, io->opts.tokenizer, task->stop, task->n_stop,
                                          task->continues_prompt, err);
}

/* Room for the log probabilities of all that may still be generated; touched as it is used. */
static FX_MUST bool logprobs_read(const worker_io *io, struct gen *gen, const task_type *task,
                                  fx_error *err) {
    uint32_t room = io->context_max - gen->prompt_count;
    if (task->top_logprobs > FX_TOP_LOGPROBS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "top_logprobs must be 0 to %d",
                       FX_TOP_LOGPROBS_MAX);
    if (!task->logprobs) return true;
    if (task->max_tokens < room) room = task->max_tokens;
    gen->logprobs_each = 1 + task->top_logprobs;
    if (room <= gen->logged) return true;
    gen->logprobs = fx_alloc(room - gen->logged, gen->logprobs_each * sizeof(*gen->logprobs));
    return gen->logprobs || fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for logprobs");
}

static FX_MUST bool task_read(worker_io *io, struct gen *gen, const struct fx_task *taken,
                              fx_error *err) {
    task_type *task;
    if (!fx_pb_unpack(&fractal__v1__generation_task__descriptor, taken->task, &io->arena, &task,
                      err))
        return fx_wrap(err, "task");
    if (task->schema < TASK_SCHEMA_MIN || task->schema > TASK_SCHEMA_MAX)
        return fx_fail(err, FX_UNIMPLEMENTED, "a task of schema %u", task->schema);
    gen->max_tokens = task->max_tokens;
    gen->submitted_ms = task->submitted_ms;
    return sampling_read(gen, task, err) && ids_read(io, gen, task, taken, err) &&
           stop_read(io, gen, task, err) && logprobs_read(io, gen, task, err);
}

static bool same_numerics(const worker_io *io, const struct fx_task *task) {
    return task->logged_count == 0 || strcmp(task->numerics_id, io->numerics_id) == 0;
}

static void gen_refuse(struct gen *gen, const struct fx_task *task, const char *why) {
    gen->have = gen->sent = gen->acked = task->logged_count;
    gen->finish = FX_FINISH_ERROR;
    free(gen->task); /* should Redis lose it, the next delivery is refused as well */
    gen->task = NULL;
    (void)snprintf(gen->detail, sizeof(gen->detail), "%s", why);
    fx_log(FX_LOG_WARN, FX_EVENT("task_refused"), FX_KS("reason", why));
}

static void on_given_back(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    (void)result, (void)err; /* unanswered: the lease runs out by itself */
    struct gen *gen = ctx;
    gen->calls--;
    io_gen_settle(gen->io, gen);
}

static void gen_give_back(worker_io *io, struct gen *gen) {
    const struct fx_renew renew = {io->model, gen->id, gen->epoch, io->opts.worker, true};
    fx_error err = {0};
    gen->lost = true;
    if (fx_queue_renew(io->queue, &renew, on_given_back, gen, &err)) gen->calls++;
    io_gen_settle(io, gen);
}

/* Another worker's tokens are not ours to continue: one with its numerics shall. */
static void gen_pass_on(worker_io *io, struct gen *gen, const struct fx_task *task) {
    fx_log(FX_LOG_WARN, FX_EVENT("numerics_differ"), FX_KS("theirs", task->numerics_id),
           FX_KS("ours", io->numerics_id));
    gen_give_back(io, gen);
}

static void gen_start(worker_io *io, struct gen *gen, const struct fx_task *task) {
    fx_error err = {0};
    fx_arena_reset(&io->arena);
    if (!task_read(io, gen, task, &err)) {
        gen_refuse(gen, task, err.text);
        return;
    }
    if (!gen->logged)
        worker_figures_since(&io->figures, io->opts.status, STATUS_QUEUE_TIME, gen->submitted_ms);
    gen->in_engine = true;
    engine_thread_order(io->opts.engine, (struct order){ORDER_ADD, gen});
}

static void task_take(worker_io *io, const struct fx_task *task) {
    struct gen *gen = gen_take(io);
    FX_ASSERT(gen); /* no more was asked for than is free */
    gen->id = task->id;
    gen->epoch = task->epoch;
    gen->renewed_ms = gen->heard_ms = fx_clock_ms();
    gen->server = fx_redis_report(io->redis)->servers;
    if (!gen_task_keep(gen, task))
        fx_log(FX_LOG_WARN, FX_EVENT("task_not_kept"), FX_KI("bytes", task->task.len));
    status_add(io->opts.status, STATUS_TAKEN, 1);
    if (task->logged_count) status_add(io->opts.status, STATUS_RESUMED, 1);
    gen->inexact = !same_numerics(io, task);
    if (task->cancelled) {
        gen->have = gen->sent = gen->acked = task->logged_count;
        gen->finish = FX_FINISH_CANCELLED;
    } else if (io->draining) { /* it was asked for before */
        gen_give_back(io, gen);
    } else if (gen->inexact && !io->opts.config->resume_inexact) {
        gen_pass_on(io, gen, task);
    } else {
        gen_start(io, gen, task);
    }
}

static void on_tasks(void *ctx, const struct fx_task *tasks, size_t count, const fx_error *err) {
    worker_io *io = ctx;
    bool more = count && count == io->pull_asked;
    io->pulling = false;
    if (err) { /* the tick pulls again */
        status_set(io->opts.status, STATUS_PULLING, 0);
        return;
    }
    for (size_t i = 0; i < count; i++)
        task_take(io, &tasks[i]);
    status_set(io->opts.status, STATUS_PULLING, 0); /* what came holds a slot by now */
    io_flush(io);
    if (io->pull_again) io_pull(io);
    if (more) io->pull_again = true; /* behind the next step */
}

/* Slots that have room in the KV pool, by the last step: each wants a block and one ahead. Who
 * would only wait here, behind those that wait already, is left to a worker that has room. */
static uint32_t spare_slots(const worker_io *io) {
    uint32_t spare = io->slots - io->used;
    uint64_t room = (status_get(io->opts.status, STATUS_KV_BLOCKS_FREE) + 1) / 2;
    if (status_get(io->opts.status, STATUS_WAITING)) return 0;
    return room < spare ? (uint32_t)room : spare;
}

/* What is used was counted when the pull was sent; slots only come free meanwhile. */
void io_pull(worker_io *io) {
    uint32_t spare = spare_slots(io);
    io->pull_again = true;
    if (io->pulling || io->draining || !spare || !fx_redis_ready(io->redis) ||
        worker_is_stuck(io->opts.status))
        return;
    const struct fx_pull pull = {io->model, io->opts.worker, io->numerics_id,
                                 spare < FX_QUEUE_PULL_MAX ? spare : FX_QUEUE_PULL_MAX,
                                 io->opts.config->resume_inexact};
    fx_error err = {0};
    if (!fx_queue_pull(io->queue, &pull, on_tasks, io, &err)) return;
    io->pulling = true;
    io->pull_asked = pull.count;
    status_set(io->opts.status, STATUS_PULLING, 1);
    io->pull_again = false;
    io->pulled_ms = fx_clock_ms();
}
