/* Following a log: hints bring tokens as they are logged; the log itself is read at the start and
 * whenever a hint may have been missed. */
#include "common/queue/queue_log.h"
#include <stdio.h>
#include "common/base/clock.h"
#include "common/base/heap.h"

enum { PAGE_TOKENS = 512, TICKS_A_SILENCE = 4 };

struct fx_watch {
    fx_queue *queue;
    fx_watch *prev, *next;
    fx_redis_sub *sub;
    fx_queue_on_tokens on_tokens; /* NULL: freed by its owner, a call is still in flight */
    void *ctx;
    uint32_t model, after; /* the last token told */
    fx_gen_id id;
    uint64_t heard_ms; /* last time something came or was asked for */
    uint32_t busy;     /* calls in flight and callbacks on the stack */
    bool reading, again, silent, ended;
    bool doubted; /* it has ended, by its hash, and its log does not say so */
};

static void release(fx_watch *watch) {
    if (--watch->busy == 0 && !watch->on_tokens) free(watch);
}

/* Tells the owner what is new in `tokens`; the caller holds `busy`. */
static void tell(fx_watch *watch, struct fx_gen_tokens tokens) {
    if (!watch->on_tokens || watch->ended) return;
    uint32_t known = watch->after + 1 - tokens.first;
    if (known > tokens.count) known = tokens.count;
    tokens.first = watch->after + 1; /* also of an end that came before what was told */
    tokens.tokens += known;
    if (tokens.logprobs) tokens.logprobs += known;
    tokens.count -= known;
    if (!tokens.count && !tokens.finish && !tokens.gone) return;
    watch->after += tokens.count;
    watch->ended = tokens.finish != FX_FINISH_NONE;
    watch->on_tokens(watch->ctx, &tokens);
}

/* ---- reading ---- */

static void read_from_here(fx_watch *watch);

static void read_over(fx_watch *watch, bool more) {
    watch->reading = false;
    if ((more || watch->again) && watch->on_tokens && !watch->ended) read_from_here(watch);
    release(watch);
}

static void tell_state(fx_watch *watch, bool gone, enum fx_finish finish, const char *detail) {
    tell(watch, (struct fx_gen_tokens){
                    .first = watch->after + 1, .finish = finish, .detail = detail, .gone = gone});
}

/* It has ended, and its log, read again since that was known, says nothing new: Redis lost tokens
 * that were told, and another end came of it, or it lost the log. */
static void tell_end(fx_watch *watch, uint64_t tokens, enum fx_finish finish) {
    bool same = tokens == watch->after && finish != FX_FINISH_NONE;
    tell_state(watch, false, same ? finish : FX_FINISH_ERROR,
               same ? "" : "Redis lost what it had logged");
}

/* Nothing new in a silent log: does the generation still exist, and go on? */
static void on_state(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_watch *watch = call->ctx;
    bool known = !err && fx_queue__is_array(reply, 3);
    uint64_t state = fx_queue__item(reply, 0), tokens = fx_queue__item(reply, 1);
    enum fx_finish finish = (enum fx_finish)fx_queue__item(reply, 2);
    bool ended = known && state >= FX_GEN_FINISHED, doubted = watch->doubted;
    watch->doubted = ended;
    fx_queue__end(call);
    if (known && !state) tell_state(watch, true, FX_FINISH_NONE, "");
    if (ended && doubted) tell_end(watch, tokens, finish);
    read_over(watch, ended);
}

static FX_MUST bool state_send(fx_queue_call *call, fx_error *err) {
    struct fx_key gen;
    fx_span words[] = {fx_span_str("HMGET"), fx_key_gen(&gen, call->model, "gen", &call->id),
                       fx_span_str("state"), fx_span_str("n"), fx_span_str("finish")};
    call->step = on_state;
    return fx_queue__command(call, words, FX_COUNT(words), err);
}

static void on_page(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_watch *watch = call->ctx;
    struct fx_log_page page;
    /* Hints never overtake a read: `after` is still what was asked for. */
    bool ok = !err && fx_queue__log_read(reply, watch->after, &page);
    bool empty = ok && !page.tokens.count && !page.tokens.finish;
    if (empty && watch->silent && state_send(call, &(fx_error){0})) return;
    watch->doubted = false;
    fx_queue__end(call);
    if (ok) tell(watch, page.tokens);
    read_over(watch, ok && page.tokens.count == PAGE_TOKENS);
}

/* A read that can't be sent now is sent by a later tick. */
static void read_from_here(fx_watch *watch) {
    fx_queue_call *call;
    fx_error err;
    watch->again = true;
    if (watch->reading || watch->ended) return;
    if (!fx_queue__call(watch->queue, on_page, watch, &call, &err)) return;
    call->model = watch->model;
    call->id = watch->id;
    if (!fx_queue__sent(call, fx_queue__log_send(call, watch->after, PAGE_TOKENS, &err))) return;
    watch->busy++;
    watch->reading = true;
    watch->again = false;
}

/* ---- hints: "<first> <finish> <tokens or detail>" ---- */

static FX_MUST bool head_cut(fx_span *text, uint32_t *out) {
    uint32_t count;
    const uint8_t *space = text->len ? memchr(text->at, ' ', text->len) : NULL;
    if (!space) return false;
    fx_span head = {text->at, (size_t)(space - text->at)};
    *text = (fx_span){space + 1, text->len - head.len - 1};
    return fx_queue__tokens(head, out, NULL, 1, &count) && count == 1;
}

static FX_MUST bool hint_read(fx_span payload, struct fx_log_page *page) {
    struct fx_gen_tokens *out = &page->tokens;
    uint32_t finish;
    *out = (struct fx_gen_tokens){
        .tokens = page->token, .logprobs = page->logprobs, .detail = page->detail};
    page->detail[0] = 0;
    if (!head_cut(&payload, &out->first) || !head_cut(&payload, &finish)) return false;
    out->finish = (enum fx_finish)finish;
    if (!finish)
        return fx_queue__tokens(payload, page->token, page->logprobs, FX_QUEUE_APPEND_MAX,
                                &out->count);
    (void)snprintf(page->detail, sizeof page->detail, "%.*s", (int)payload.len,
                   (const char *)payload.at);
    return true;
}

static void on_hint(fx_watch *watch, fx_span payload) {
    struct fx_log_page page;
    if (watch->reading || !hint_read(payload, &page) || page.tokens.first > watch->after + 1)
        read_from_here(watch);
    else
        tell(watch, page.tokens);
}

static void on_message(void *ctx, enum fx_redis_event event, fx_span payload) {
    fx_watch *watch = ctx;
    if (event == FX_REDIS_LOST) return;
    watch->busy++;
    watch->heard_ms = fx_clock_ms();
    watch->silent = false;
    if (event == FX_REDIS_SUBSCRIBED)
        read_from_here(watch);
    else
        on_hint(watch, payload);
    release(watch);
}

/* ---- silence: one timer for all watches ---- */

void fx_queue__watch_tick(fx_queue *queue) {
    uint64_t now = fx_clock_ms();
    for (fx_watch *watch = queue->watches; watch; watch = watch->next) {
        if (now - watch->heard_ms < queue->opts.silence_ms) continue;
        watch->heard_ms = now;
        watch->silent = true;
        read_from_here(watch);
    }
}

static void link_watch(fx_watch *watch) {
    fx_queue *queue = watch->queue;
    watch->next = queue->watches;
    if (watch->next) watch->next->prev = watch;
    queue->watches = watch;
    if (watch->next) return;
    uint32_t ms = queue->opts.silence_ms / TICKS_A_SILENCE + 1;
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    (void)event_add(queue->tick, &tv);
}

static void unlink_watch(fx_watch *watch) {
    fx_queue *queue = watch->queue;
    if (watch->next) watch->next->prev = watch->prev;
    if (watch->prev)
        watch->prev->next = watch->next;
    else
        queue->watches = watch->next;
    if (!queue->watches) (void)event_del(queue->tick);
}

bool fx_queue_watch(fx_queue *queue, uint32_t model, const fx_gen_id *id, uint32_t after,
                    fx_queue_on_tokens on_tokens, void *ctx, fx_watch **out, fx_error *err) {
    struct fx_key channel;
    fx_watch *watch = fx_alloc(1, sizeof *watch);
    if (!watch) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a watch");
    *watch = (fx_watch){.queue = queue,
                        .model = model,
                        .id = *id,
                        .after = after,
                        .ctx = ctx,
                        .on_tokens = on_tokens,
                        .heard_ms = fx_clock_ms()};
    if (!fx_redis_subscribe(queue->opts.redis, fx_key_gen(&channel, model, "hint", id), on_message,
                            watch, &watch->sub, err)) {
        free(watch);
        return false;
    }
    link_watch(watch);
    *out = watch;
    return true;
}

void fx_watch_free(fx_watch *watch) {
    if (!watch) return;
    fx_redis_unsubscribe(watch->sub);
    unlink_watch(watch);
    watch->on_tokens = NULL;
    if (!watch->busy) free(watch);
}
