/* The stage's worker: it beats, pulls and appends as a real one does, and says its script. */
#include "common/base/heap.h"
#include "fractal/v1/generation.pb-c.h"
#include "tests/integ/gateway/stage.h"

enum { BEAT_MS = 500 };

static void ignore_beat(void *ctx, const fx_error *err) {
    (void)ctx, (void)err;
}

static void ignore_count(void *ctx, const struct fx_count_result *result, const fx_error *err) {
    (void)ctx, (void)result, (void)err;
}

static void run_end(struct stage *stage, struct stage_run *run) {
    if (!run->used) return;
    run->used = false;
    if (--stage->running == 0) stage->idle_ms = fx_clock_ms();
}

static struct stage_run *run_find(struct stage *stage, const fx_gen_id *id) {
    for (size_t i = 0; i < STAGE_RUNS_MAX; i++)
        if (stage->runs[i].used && memcmp(&stage->runs[i].id, id, sizeof *id) == 0)
            return &stage->runs[i];
    return NULL;
}

static void ignore_write(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    (void)ctx, (void)result, (void)err;
}

static void run_finish(struct stage *stage, struct stage_run *run, enum fx_finish reason,
                       const char *detail) {
    struct fx_gen_end end = {.model = STAGE_NUMBER,
                             .id = run->id,
                             .epoch = run->epoch,
                             .last = run->n,
                             .reason = reason,
                             .detail = detail};
    (void)!fx_queue_finish(stage->queue, &end, ignore_write, NULL, &(fx_error){0});
    run_end(stage, run);
}

/* One append under way. */
struct writing {
    struct stage *stage;
    fx_gen_id id;
};

static void on_append(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    struct writing *writing = ctx;
    struct stage *stage = writing->stage;
    struct stage_run *run = run_find(stage, &writing->id);
    if (!err && run && result->status == FX_QUEUE_NOT_FOUND) run_end(stage, run); /* lost */
    /* cancelled before it was pulled, or its hint came before the pull's answer */
    if (!err && run && result->status == FX_QUEUE_CANCELLED)
        run_finish(stage, run, FX_FINISH_CANCELLED, NULL);
    free(writing);
}

static void append_send(struct stage *stage, const struct fx_append *append) {
    struct writing *writing = fx_alloc(1, sizeof *writing);
    *writing = (struct writing){stage, append->id};
    if (!fx_queue_append(stage->queue, append, on_append, writing, &(fx_error){0})) free(writing);
}

/* The token's own is -0.5, the likeliest are bytes from 0xfd on at -1, -2, ... */
static void logprobs_say(struct fx_logprob *out, uint32_t token, uint32_t each) {
    out[0] = (struct fx_logprob){token, -0.5F};
    for (uint32_t i = 1; i < each; i++)
        out[i] = (struct fx_logprob){0xfc + i, -1.0F * (float)i};
}

static void run_step(struct stage *stage, struct stage_run *run,
                     const struct stage_script *script) {
    uint32_t tokens[64];
    uint32_t burst = script->burst ? script->burst : 1, count = 0;
    uint32_t left = script->bytes ? (uint32_t)script->len - run->n : UINT32_MAX;
    if (left > run->max_tokens - run->n) left = run->max_tokens - run->n;
    for (; count < burst && count < left; count++)
        tokens[count] = script->bytes ? (uint8_t)script->bytes[run->n + count] : 'x';
    struct fx_append append = {.model = STAGE_NUMBER,
                               .id = run->id,
                               .epoch = run->epoch,
                               .first = run->n + 1,
                               .tokens = tokens,
                               .count = count};
    struct fx_logprob logprobs[FX_COUNT(tokens)][FX_LOGPROBS_MAX];
    if (run->logprobs_each) {
        for (uint32_t i = 0; i < count; i++)
            logprobs_say(logprobs[0] + (size_t)i * run->logprobs_each, tokens[i],
                         run->logprobs_each);
        append.logprobs = logprobs[0];
        append.logprobs_each = run->logprobs_each;
    }
    if (count) append_send(stage, &append);
    run->n += count;
    run->next_ms = fx_clock_ms() + script->every_ms;
    if (count == left)
        run_finish(stage, run, run->n == run->max_tokens ? FX_FINISH_LENGTH : script->finish,
                   script->detail);
}

static void run_begin(struct stage *stage, const struct fx_task *task) {
    Fractal__V1__GenerationTask *unpacked =
        fractal__v1__generation_task__unpack(NULL, task->task.len, task->task.at);
    assert_non_null(unpacked);
    for (size_t i = 0; i < STAGE_RUNS_MAX; i++) {
        struct stage_run *run = &stage->runs[i];
        if (run->used) continue;
        *run =
            (struct stage_run){.used = true,
                               .id = task->id,
                               .epoch = task->epoch,
                               .n = task->logged_count,
                               .max_tokens = unpacked->max_tokens,
                               .logprobs_each = unpacked->logprobs ? 1 + unpacked->top_logprobs : 0,
                               .next_ms = fx_clock_ms() + stage->script.first_ms};
        stage->running++;
        stage->pulled++;
        if (task->cancelled) run_finish(stage, run, FX_FINISH_CANCELLED, NULL);
        break;
    }
    fractal__v1__generation_task__free_unpacked(unpacked, NULL);
}

static void on_pull(void *ctx, const struct fx_task *tasks, size_t count, const fx_error *err) {
    struct stage *stage = ctx;
    for (size_t i = 0; !err && i < count; i++)
        run_begin(stage, &tasks[i]);
}

void stage__worker_event(void *ctx, enum fx_work_event event, const fx_gen_id *id) {
    struct stage *stage = ctx;
    struct stage_run *run = event == FX_WORK_CANCEL ? run_find(stage, id) : NULL;
    if (run) run_finish(stage, run, FX_FINISH_CANCELLED, NULL);
}

static void worker_turn(struct stage *stage) {
    uint32_t slots = stage->slots, busy = (uint32_t)stage->running;
    struct fx_beat beat = {
        .model = STAGE_NUMBER,
        .model_name = STAGE_MODEL,
        .worker = {.worker = "w",
                   .slots = slots,
                   .numerics_id = "test",
                   .slots_free = slots > busy ? slots - busy : 0,
                   .context_max = STAGE_CONTEXT}
    };
    struct fx_pull pull = {.model = STAGE_NUMBER,
                           .worker = "w",
                           .numerics_id = "test",
                           .count = slots > busy ? slots - busy : 0};
    fx_error err = {0};
    if (!fx_redis_ready(stage->redis) || !slots) return;
    if (fx_clock_ms() - stage->beat_ms > BEAT_MS) {
        stage->beat_ms = fx_clock_ms();
        (void)!fx_queue_beat(stage->queue, &beat, ignore_beat, NULL, &err);
    }
    (void)!fx_queue_dispatch(stage->queue, STAGE_NUMBER, ignore_count, NULL, &err);
    if (pull.count) (void)!fx_queue_pull(stage->queue, &pull, on_pull, stage, &err);
}

void stage__worker_tick(evutil_socket_t fd, short what, void *arg) {
    struct stage *stage = arg;
    (void)fd, (void)what;
    pthread_mutex_lock(&stage->lock);
    struct stage_script script = stage->script;
    pthread_mutex_unlock(&stage->lock);
    worker_turn(stage);
    for (size_t i = 0; i < STAGE_RUNS_MAX; i++)
        if (stage->runs[i].used && fx_clock_ms() >= stage->runs[i].next_ms)
            run_step(stage, &stage->runs[i], &script);
}
