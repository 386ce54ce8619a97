#include "common/queue/queue_log.h"
#include <stdio.h>
#include <stdlib.h>

/* From the finish record behind token `after` on: "<after>-1". */
bool fx_queue__log_send(fx_queue_call *call, uint32_t after, uint32_t max, fx_error *err) {
    char from[24];
    struct fx_key log, count;
    (void)snprintf(from, sizeof from, "%u-1", after);
    fx_span words[] = {fx_span_str("XRANGE"), fx_key_gen(&log, call->model, "log", &call->id),
                       fx_span_str(from),     fx_span_str("+"),
                       fx_span_str("COUNT"),  fx_key_number(&count, max)};
    return fx_queue__command(call, words, FX_COUNT(words), err);
}

/* "<n>-0" is token n, "<n>-1" the finish record. */
static FX_MUST bool entry_id(fx_span text, uint32_t *n, bool *finish) {
    char copy[48], *dash, *end;
    if (text.len == 0 || text.len >= sizeof copy) return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = 0;
    unsigned long long number = strtoull(copy, &dash, 10);
    if (*dash != '-' || number > UINT32_MAX) return false;
    unsigned long long part = strtoull(dash + 1, &end, 10);
    *n = (uint32_t)number;
    *finish = part == 1;
    return *end == 0 && part <= 1;
}

static FX_MUST bool entry_read(const redisReply *entry, uint32_t after, struct fx_log_page *page) {
    struct fx_gen_tokens *out = &page->tokens;
    uint32_t n;
    bool finish;
    const redisReply *fields = fx_queue__is_array(entry, 2) ? entry->element[1] : NULL;
    if (!fields || out->finish || !entry_id(fx_queue__text(entry, 0), &n, &finish)) return false;
    if (!finish) {
        if (n != after + out->count + 1 || out->count == FX_QUEUE_APPEND_MAX) return false;
        page->logprobs[out->count] = fx_queue__text(fields, 3);
        page->token[out->count++] = (uint32_t)fx_queue__item(fields, 1);
        return true;
    }
    fx_span detail = fx_queue__text(fields, 3);
    if (n != after + out->count) return false;
    out->finish = (enum fx_finish)fx_queue__item(fields, 1);
    (void)snprintf(page->detail, sizeof page->detail, "%.*s", (int)detail.len,
                   detail.len ? (const char *)detail.at : "");
    return out->finish != FX_FINISH_NONE;
}

bool fx_queue__log_read(const redisReply *reply, uint32_t after, struct fx_log_page *page) {
    page->tokens = (struct fx_gen_tokens){
        .first = after + 1, .tokens = page->token, .logprobs = page->logprobs};
    page->detail[0] = 0;
    page->tokens.detail = page->detail;
    if (!fx_queue__is_array(reply, 0)) return false;
    for (size_t i = 0; i < reply->elements; i++)
        if (!entry_read(reply->element[i], after, page)) return false;
    return true;
}

static void on_log(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    struct fx_log_page page;
    fx_queue_on_log done = call->done.log;
    void *ctx = call->ctx;
    uint32_t after = call->count;
    fx_error odd;
    fx_queue__end(call);
    if (!err && !fx_queue__log_read(reply, after, &page)) {
        fx_error_set(&odd, FX_DATA_LOSS, "the log is damaged behind token %u", after);
        err = &odd;
    }
    done(ctx, err ? NULL : &page.tokens, err);
}

bool fx_queue_read_log(fx_queue *queue, uint32_t model, const fx_gen_id *id, uint32_t after,
                       uint32_t max, fx_queue_on_log done, void *ctx, fx_error *err) {
    fx_queue_call *call;
    if (max < 1 || max > FX_QUEUE_APPEND_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "a page of %u tokens", max);
    if (!fx_queue__call(queue, on_log, ctx, &call, err)) return false;
    call->done.log = done;
    call->model = model;
    call->id = *id;
    call->count = after;
    return fx_queue__sent(call, fx_queue__log_send(call, after, max, err));
}
