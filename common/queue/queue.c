#include "common/queue/queue_internal.h"
#include "common/base/hash.h"
#include "common/base/heap.h"

extern const unsigned char fx_queue_lua[];
extern const unsigned long fx_queue_lua_len;

static const struct fx_queue_opts defaults = {
    .lease_ms = 3000,
    .retain_s = 600,
    .model_max = 4096,
    .tenant_max = 1024,
    .fruitless_max = 3,
    .calls_max = 2048,
    .silence_ms = 1000,
};

fx_span fx_queue_library(void) {
    return (fx_span){fx_queue_lua, fx_queue_lua_len};
}

const char *fx_queue_status_name(enum fx_queue_status status) {
    static const char *const names[] = {"OK",        "NOT_FOUND",  "LEASE_LOST",  "GAP",  "ABANDON",
                                        "CANCELLED", "MODEL_FULL", "TENANT_FULL", "TAKEN"};
    return (size_t)status < FX_COUNT(names) ? names[status] : "UNKNOWN";
}

static struct fx_queue_opts with_defaults(const struct fx_queue_opts *opts) {
    struct fx_queue_opts out = *opts;
    if (!out.lease_ms) out.lease_ms = defaults.lease_ms;
    if (!out.retain_s) out.retain_s = defaults.retain_s;
    if (!out.model_max) out.model_max = defaults.model_max;
    if (!out.tenant_max) out.tenant_max = defaults.tenant_max;
    if (!out.fruitless_max) out.fruitless_max = defaults.fruitless_max;
    if (!out.calls_max) out.calls_max = defaults.calls_max;
    if (!out.silence_ms) out.silence_ms = defaults.silence_ms;
    return out;
}

static void on_tick(evutil_socket_t fd, short what, void *ctx) {
    (void)fd, (void)what;
    fx_queue__watch_tick(ctx);
}

static void queue_delete(fx_queue *queue) {
    if (queue->tick) event_free(queue->tick);
    free(queue->calls);
    free(queue);
}

bool fx_queue_open(const struct fx_queue_opts *opts, fx_queue **out, fx_error *err) {
    fx_auto(fx_queue) queue = fx_alloc(1, sizeof *queue);
    if (!queue) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a queue");
    queue->opts = with_defaults(opts);
    queue->calls = fx_alloc(queue->opts.calls_max, sizeof *queue->calls);
    queue->tick = event_new(fx_redis_base(opts->redis), -1, EV_PERSIST, on_tick, queue);
    if (!queue->calls || !queue->tick)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a queue");
    *out = fx_take(queue);
    return true;
}

/* Redis still owes replies to calls in flight: the last one frees the memory. */
void fx_queue_free(fx_queue *queue) {
    if (!queue) return;
    fx_error err = {FX_CANCELLED, "the queue was closed"};
    FX_ASSERT(!queue->watches);
    queue->closing = true;
    queue->busy_count++;
    for (uint32_t i = 0; i < queue->begun; i++)
        if (queue->calls[i].busy && queue->calls[i].step)
            queue->calls[i].step(&queue->calls[i], NULL, &err);
    if (--queue->busy_count == 0) queue_delete(queue);
}

fx_redis *fx_queue_redis(const fx_queue *queue) {
    return queue->opts.redis;
}

/* ---- calls ---- */

bool fx_queue__call(fx_queue *queue, fx_queue_step step, void *ctx, fx_queue_call **out,
                    fx_error *err) {
    fx_queue_call *call = queue->idle;
    if (!call && queue->begun < queue->opts.calls_max) call = &queue->calls[queue->begun++];
    if (!call || queue->closing)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%u queue calls in flight",
                       queue->opts.calls_max);
    if (call == queue->idle) queue->idle = call->next;
    queue->busy_count++;
    *call = (fx_queue_call){.queue = queue, .step = step, .ctx = ctx, .busy = true};
    *out = call;
    return true;
}

static void recycle(fx_queue_call *call) {
    fx_queue *queue = call->queue;
    call->busy = false;
    call->next = queue->idle;
    queue->idle = call;
    if (--queue->busy_count == 0 && queue->closing) queue_delete(queue);
}

void fx_queue__end(fx_queue_call *call) {
    call->step = NULL;
    free(call->scratch);
    call->scratch = NULL;
    if (call->owed == 0) recycle(call);
}

static void on_reply(void *ctx, const redisReply *reply, const fx_error *err) {
    fx_queue_call *call = ctx;
    call->owed--;
    if (call->step)
        call->step(call, reply, err);
    else if (call->owed == 0)
        recycle(call);
}

bool fx_queue__fcall(fx_queue_call *call, const struct fx_redis_fcall *fcall, fx_error *err) {
    if (!fx_redis_fcall(call->queue->opts.redis, fcall, on_reply, call, err)) return false;
    call->owed++;
    return true;
}

bool fx_queue__command(fx_queue_call *call, const fx_span *words, size_t count, fx_error *err) {
    if (!fx_redis_argv(call->queue->opts.redis, count, words, on_reply, call, err)) return false;
    call->owed++;
    return true;
}

bool fx_queue__sent(fx_queue_call *call, bool sent) {
    if (!sent) fx_queue__end(call);
    return sent;
}

/* ---- replies ---- */

bool fx_queue__is_array(const redisReply *reply, size_t elements_min) {
    return reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= elements_min;
}

static uint64_t digits(fx_span text) {
    uint64_t value = 0;
    for (size_t i = 0; i < text.len && i < 20; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') return 0;
        value = value * 10 + (uint64_t)(text.at[i] - '0');
    }
    return value;
}

uint64_t fx_queue__number(const redisReply *reply) {
    if (!reply) return 0;
    if (reply->type == REDIS_REPLY_INTEGER)
        return reply->integer < 0 ? 0 : (uint64_t)reply->integer;
    return digits(fx_redis_span(reply));
}

fx_span fx_queue__text(const redisReply *reply, size_t index) {
    return fx_queue__is_array(reply, index + 1) ? fx_redis_span(reply->element[index])
                                                : (fx_span){NULL, 0};
}

uint64_t fx_queue__item(const redisReply *reply, size_t index) {
    return fx_queue__is_array(reply, index + 1) ? fx_queue__number(reply->element[index]) : 0;
}

bool fx_queue__id(fx_span hex, fx_gen_id *out) {
    return hex.len == 2 * sizeof out->bytes && fx_unhex(hex, out->bytes, sizeof out->bytes);
}

void fx_queue__odd_reply(const char *what, fx_error *err) {
    fx_error_set(err, FX_INTERNAL, "%s: Redis answered in another shape", what);
}

/* What stands before `mark`; `rest` is what stands behind it, empty where there is none. */
static fx_span cut(fx_span text, uint8_t mark, fx_span *rest) {
    const uint8_t *at = text.len ? memchr(text.at, mark, text.len) : NULL;
    size_t len = at ? (size_t)(at - text.at) : text.len;
    *rest = at ? (fx_span){at + 1, text.len - len - 1} : (fx_span){NULL, 0};
    return (fx_span){text.at, len};
}

bool fx_queue__tokens(fx_span text, uint32_t *out, fx_span *logprobs, uint32_t max,
                      uint32_t *count) {
    uint32_t n = 0;
    while (text.len) {
        fx_span behind = {NULL, 0}, word = cut(text, ' ', &text);
        if (logprobs) word = cut(word, '/', &behind);
        uint64_t value = digits(word);
        if (word.len == 0 || word.len > 10 || value > UINT32_MAX || n == max) return false;
        if (logprobs) logprobs[n] = behind;
        out[n++] = (uint32_t)value;
    }
    *count = n;
    return true;
}
