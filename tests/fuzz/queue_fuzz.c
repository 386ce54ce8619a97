/* What Redis says to each call of the queue. The first byte: its low half chooses the call, its
 * high half how large the pieces are that the rest comes in; 0 is whole. Of a watch, and of the
 * hints, what stands behind the first NUL is what the pub/sub connection hears. A call is answered
 * once, by a result or an error that both hold together. */
#include "common/queue/queue.h"
#include "common/base/logprob.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/redis_peer.h"
#include "tests/fuzz/resp.h"

enum { INPUT_MAX = 4096, MODEL = 7 };

static const fx_gen_id id_ = {{0xab}};
static volatile uint64_t sink_;

static struct {
    fx_queue *queue;
    fx_watch *watch;
    fx_work *work;
    fx_queue_hints *hints;
    uint32_t owed; /* answers */
    uint32_t after;
    bool ended;
} now_;

static void touch(fx_span bytes) {
    for (size_t i = 0; i < bytes.len; i++)
        sink_ += bytes.at[i];
}

/* Every call's answer comes here: one, and an error or a result. */
static void answered(bool has_result, const fx_error *err) {
    FX_ASSERT(now_.owed-- > 0);
    FX_ASSERT(has_result == !err);
    if (err) FX_ASSERT(err->code != FX_OK && err->text[0]);
}

static void on_submit(void *ctx, const struct fx_submit_result *result, const fx_error *err) {
    (void)ctx;
    answered(result, err);
    if (result) sink_ += result->seed;
}

static void on_info(void *ctx, const struct fx_gen_info *info, const fx_error *err) {
    (void)ctx;
    answered(info, err);
    if (info) FX_ASSERT(strlen(info->worker) <= FX_QUEUE_WORKER_ID_MAX);
}

static void on_about(void *ctx, const struct fx_gen_about *about, const fx_error *err) {
    (void)ctx;
    answered(about, err);
    if (about) touch(about->task);
}

static void on_count(void *ctx, const struct fx_count_result *result, const fx_error *err) {
    (void)ctx;
    answered(result, err);
}

static void on_stats(void *ctx, const struct fx_queue_stats *stats, const fx_error *err) {
    (void)ctx;
    answered(stats, err);
    if (!stats) return;
    FX_ASSERT(stats->live_count <= FX_QUEUE_WORKERS_MAX && stats->slots_free <= stats->slots);
    for (size_t i = 0; i < stats->live_count; i++)
        touch(fx_span_str(stats->live[i].numerics_id));
}

static void on_models(void *ctx, const struct fx_queue_model *models, size_t count,
                      const fx_error *err) {
    (void)ctx;
    answered(!err, err);
    FX_ASSERT(count <= FX_QUEUE_MODELS_MAX);
    for (size_t i = 0; i < count; i++)
        touch(fx_span_str(models[i].name));
}

static void check_tokens(const struct fx_gen_tokens *tokens) {
    struct fx_logprob logprobs[FX_LOGPROBS_MAX];
    uint32_t count;
    FX_ASSERT(tokens->count <= FX_QUEUE_APPEND_MAX);
    FX_ASSERT(strlen(tokens->detail) <= FX_QUEUE_DETAIL_MAX);
    for (uint32_t i = 0; i < tokens->count; i++) {
        sink_ += tokens->tokens[i];
        if (tokens->logprobs && fx_logprobs_read(tokens->logprobs[i], logprobs, &count))
            FX_ASSERT(count >= 1 && count <= FX_LOGPROBS_MAX);
    }
}

static void on_log(void *ctx, const struct fx_gen_tokens *tokens, const fx_error *err) {
    (void)ctx;
    answered(tokens, err);
    if (tokens) check_tokens(tokens);
}

static void on_beat(void *ctx, const fx_error *err) {
    (void)ctx;
    answered(!err, err);
}

static void on_tasks(void *ctx, const struct fx_task *tasks, size_t count, const fx_error *err) {
    (void)ctx;
    answered(!err, err);
    FX_ASSERT(count <= FX_QUEUE_PULL_MAX && (!err || !count));
    for (size_t i = 0; i < count; i++) {
        touch(tasks[i].task);
        touch((fx_span){(const uint8_t *)tasks[i].logged,
                        tasks[i].logged_count * sizeof *tasks[i].logged});
        FX_ASSERT(strlen(tasks[i].numerics_id) <= FX_QUEUE_NAME_MAX);
    }
}

static void on_write(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    (void)ctx;
    answered(result, err);
}

static void on_append(void *ctx, size_t index, const struct fx_write_result *result,
                      const fx_error *err) {
    on_write(ctx, result, err);
    FX_ASSERT(index < 2);
}

/* In order, without gap or repetition, and nothing behind the end. */
static void on_tokens(void *ctx, const struct fx_gen_tokens *tokens) {
    (void)ctx;
    FX_ASSERT(!now_.ended && tokens->first == now_.after + 1);
    check_tokens(tokens);
    now_.after += tokens->count;
    now_.ended = tokens->finish != FX_FINISH_NONE;
    if (!now_.ended || now_.after % 2) return;
    fx_watch_free(now_.watch);
    now_.watch = NULL;
}

static void on_work(void *ctx, enum fx_work_event event, const fx_gen_id *id) {
    (void)ctx;
    FX_ASSERT((event == FX_WORK_CANCEL) == (id != NULL));
}

static void on_hint(void *ctx, uint32_t model) {
    (void)ctx;
    sink_ += model;
}

/* ---- the calls ---- */

static bool submit(fx_error *err) {
    const struct fx_submit submit = {
        .model = MODEL, .tenant = 1, .id = id_, .task = fx_span_str("task")};
    return fx_queue_submit(now_.queue, &submit, on_submit, NULL, err);
}
static bool get(fx_error *err) {
    return fx_queue_get(now_.queue, MODEL, &id_, on_info, NULL, err);
}
static bool cancel(fx_error *err) {
    return fx_queue_cancel(now_.queue, MODEL, &id_, on_info, NULL, err);
}
static bool describe(fx_error *err) {
    return fx_queue_describe(now_.queue, MODEL, &id_, on_about, NULL, err);
}
static bool dispatch(fx_error *err) {
    return fx_queue_dispatch(now_.queue, MODEL, on_count, NULL, err);
}
static bool reclaim(fx_error *err) {
    return fx_queue_reclaim(now_.queue, MODEL, on_count, NULL, err);
}
static bool stats(fx_error *err) {
    return fx_queue_stats(now_.queue, MODEL, on_stats, NULL, err);
}
static bool models(fx_error *err) {
    return fx_queue_models(now_.queue, on_models, NULL, err);
}
static bool read_log(fx_error *err) {
    return fx_queue_read_log(now_.queue, MODEL, &id_, 0, FX_QUEUE_APPEND_MAX, on_log, NULL, err);
}
static bool beat(fx_error *err) {
    const struct fx_beat beat = {
        .model = MODEL, .model_name = "m", .worker = {.worker = "w", .slots = 2, .slots_free = 1}
    };
    return fx_queue_beat(now_.queue, &beat, on_beat, NULL, err);
}
static bool pull(fx_error *err) {
    const struct fx_pull pull = {MODEL, "w", "exact/1", 4, false};
    return fx_queue_pull(now_.queue, &pull, on_tasks, NULL, err);
}
static bool append(fx_error *err) {
    static const uint32_t tokens[] = {4, 5};
    const struct fx_append rows[] = {
        {.model = MODEL, .id = id_,      .epoch = 1, .first = 1, .tokens = tokens, .count = 2},
        {.model = MODEL, .id = {{0xcd}}, .epoch = 1, .first = 9, .tokens = tokens, .count = 1},
    };
    now_.owed++;
    return fx_queue_append_many(now_.queue, rows, FX_COUNT(rows), on_append, NULL, err);
}
static bool finish(fx_error *err) {
    const struct fx_gen_end end = {
        .model = MODEL, .id = id_, .epoch = 1, .last = 2, .reason = FX_FINISH_STOP};
    return fx_queue_finish(now_.queue, &end, on_write, NULL, err);
}

static bool watch(fx_error *err) {
    return fx_queue_watch(now_.queue, MODEL, &id_, 0, on_tokens, NULL, &now_.watch, err);
}
static bool work(fx_error *err) {
    return fx_queue_wait_tasks(now_.queue, MODEL, on_work, NULL, &now_.work, err);
}
static bool hints(fx_error *err) {
    return fx_queue_hints_open(now_.queue, on_hint, NULL, &now_.hints, err);
}

static const struct {
    bool (*begin)(fx_error *err);
    bool listens; /* to pub/sub; else it is answered once */
} calls[16] = {
    {submit,   false},
    {get,      false},
    {cancel,   false},
    {describe, false},
    {dispatch, false},
    {reclaim,  false},
    {stats,    false},
    {models,   false},
    {read_log, false},
    {beat,     false},
    {pull,     false},
    {append,   false},
    {finish,   false},
    {watch,    true },
    {work,     true },
    {hints,    true },
};

static void begin(size_t call) {
    fx_error err = {0};
    now_.owed = !calls[call].listens;
    bool sent = calls[call].begin(&err);
    FX_ASSERT(sent);
}

static void end(struct redis_peer *peer) {
    fx_watch_free(now_.watch);
    fx_work_free(now_.work);
    fx_queue_hints_free(now_.hints);
    fx_queue_free(now_.queue);
    FX_ASSERT(now_.owed == 0);
    redis_peer_close(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct redis_peer peer;
    fx_error err = {0};
    if (!size || size > INPUT_MAX || resp_is_huge(data, size)) return 0;
    size_t call = data[0] & 15, piece = data[0] >> 4 ? data[0] >> 4 : size;
    const uint8_t *at = data + 1, *end_at = data + size;
    const uint8_t *nul = calls[call].listens ? memchr(at, 0, size - 1) : NULL;
    const uint8_t *heard = nul ? nul + 1 : end_at;
    redis_peer_open(&peer);
    memset(&now_, 0, sizeof now_);
    FX_ASSERT(fx_queue_open(&(struct fx_queue_opts){.redis = peer.redis, .calls_max = 64},
                            &now_.queue, &err));
    begin(call);
    if (calls[call].listens) redis_peer_accept_push(&peer);
    redis_peer_say(&peer, peer.push, heard, (size_t)(end_at - heard), piece);
    redis_peer_say(&peer, peer.command, at, (size_t)((nul ? nul : end_at) - at), piece);
    if (size % 2) redis_peer_hang_up(&peer);
    end(&peer);
    return 0;
}
