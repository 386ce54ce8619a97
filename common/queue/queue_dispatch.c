/* dispatch and reclaim: candidates are read first, the function checks them again. */
#include "common/queue/queue_internal.h"
#include "common/base/heap.h"

enum {
    TENANTS_MAX = 16,    /* of one dispatch */
    TENANT_IDS_MAX = 16, /* of each */
    RECLAIM_MAX = 32,    /* leases of one reclaim */
    RECLAIM_KEYS = 7,
    RECLAIM_ARGS = 5,
    ROUNDS_MAX = 8,
    ID_LEN = 2 * FX_GEN_ID_BYTES,
};
static const char ids_last[] = "15"; /* TENANT_IDS_MAX - 1, as ZRANGE wants it */
static const char tenants_last[] = "15";
static const char reclaim_last[] = "31";

struct tenant {
    struct fx_key number;
    uint32_t ids;
    char id[TENANT_IDS_MAX][ID_LEN + 1];
};
struct dispatch {
    uint32_t tenants, answered;
    uint32_t moved;
    bool failed;
    fx_error err;
    struct tenant tenant[TENANTS_MAX];
};

static void count_end(fx_queue_call *call, struct fx_count_result result, const fx_error *err) {
    fx_queue_on_count done = call->done.count;
    void *ctx = call->ctx;
    fx_queue__end(call);
    done(ctx, err ? NULL : &result, err);
}

static void dispatch_end(fx_queue_call *call, bool more, const fx_error *err) {
    struct dispatch *work = call->scratch;
    fx_error copy = err ? *err : (fx_error){0};
    count_end(call, (struct fx_count_result){.count = work->moved, .more = more},
              err ? &copy : NULL);
}

static FX_MUST bool tenants_read(fx_queue_call *call, fx_error *err);

static void on_dispatched(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    struct dispatch *work = call->scratch;
    fx_error failed;
    if (!err && !fx_queue__is_array(reply, 2)) {
        fx_queue__odd_reply("dispatch", &failed);
        err = &failed;
    }
    bool more = fx_queue__item(reply, 1) != 0;
    work->moved += (uint32_t)fx_queue__item(reply, 0);
    if (err || !more || ++call->rounds >= ROUNDS_MAX) {
        dispatch_end(call, more, err);
        return;
    }
    if (!tenants_read(call, &failed)) dispatch_end(call, false, &failed);
}

/* Candidates as keys and arguments of fx3_dispatch, in spans that the caller holds. */
struct candidates {
    fx_span keys[8 + TENANTS_MAX * (1 + TENANT_IDS_MAX)];
    fx_span args[3 + TENANTS_MAX * (1 + TENANT_IDS_MAX)];
    struct fx_key fixed[8], alive, work, count, wait[TENANTS_MAX];
    struct fx_key gen[TENANTS_MAX * TENANT_IDS_MAX];
};

static size_t candidates_fill(struct candidates *out, const struct dispatch *work, uint32_t model) {
    static const char *const fixed[] = {"tasks", "ready",  "tenants", "debt",
                                        "meta",  "leases", "alive",   "workers"};
    size_t n = 0;
    for (; n < FX_COUNT(fixed); n++)
        out->keys[n] = fx_key_model(&out->fixed[n], model, fixed[n]);
    out->args[0] = fx_key_number(&out->alive, FX_QUEUE_ALIVE_MS);
    out->args[1] = fx_key_model(&out->work, model, FX_KEY_WORK);
    out->args[2] = fx_key_number(&out->count, work->tenants);
    for (uint32_t t = 0; t < work->tenants; t++, n++) {
        out->args[n - 5] = work->tenant[t].number.span;
        out->keys[n] = fx_key_text(&out->wait[t], model, "wait", work->tenant[t].number.span);
    }
    size_t gen = 0;
    for (uint32_t t = 0; t < work->tenants; t++)
        for (uint32_t i = 0; i < work->tenant[t].ids; i++, n++) {
            out->args[n - 5] = fx_span_str(work->tenant[t].id[i]);
            out->keys[n] = fx_key_text(&out->gen[gen++], model, "gen", out->args[n - 5]);
        }
    return n;
}

static FX_MUST bool dispatch_send(fx_queue_call *call, fx_error *err) {
    fx_auto(void) memory = fx_alloc(1, sizeof(struct candidates));
    struct candidates *all = memory;
    if (!all) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a dispatch");
    size_t keys = candidates_fill(all, call->scratch, call->model);
    call->step = on_dispatched;
    return fx_queue__fcall(
        call, &(struct fx_redis_fcall){"fx3_dispatch", all->keys, keys, all->args, keys - 5}, err);
}

static void ids_read(struct tenant *tenant, const redisReply *reply) {
    for (size_t i = 0; i < reply->elements && tenant->ids < TENANT_IDS_MAX; i++) {
        fx_span id = fx_queue__text(reply, i);
        if (id.len == ID_LEN) memcpy(tenant->id[tenant->ids++], id.at, ID_LEN);
    }
}

/* One reply a tenant, in order; the last one sends the dispatch. */
static void on_ids(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    struct dispatch *work = call->scratch;
    fx_error failed;
    if (err && call->queue->closing) {
        dispatch_end(call, false, err);
        return;
    }
    if (err) {
        work->failed = true;
        work->err = *err;
    } else if (fx_queue__is_array(reply, 0)) {
        ids_read(&work->tenant[work->answered], reply);
    }
    work->answered++;
    if (call->owed) return;
    if (work->failed)
        dispatch_end(call, false, &work->err);
    else if (!dispatch_send(call, &failed))
        dispatch_end(call, false, &failed);
}

static void ids_ask(fx_queue_call *call) {
    struct dispatch *work = call->scratch;
    call->step = on_ids;
    work->answered = 0;
    for (uint32_t t = 0; t < work->tenants && !work->failed; t++) {
        struct fx_key wait;
        fx_span words[] = {fx_span_str("ZRANGE"),
                           fx_key_text(&wait, call->model, "wait", work->tenant[t].number.span),
                           fx_span_str("0"), fx_span_str(ids_last)};
        work->failed = !fx_queue__command(call, words, FX_COUNT(words), &work->err);
    }
    if (!call->owed) dispatch_end(call, false, &work->err); /* not even the first was sent */
}

static void on_tenants(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    struct dispatch *work = call->scratch;
    if (err || !fx_queue__is_array(reply, 1)) {
        dispatch_end(call, false, err);
        return;
    }
    work->tenants = 0;
    for (size_t i = 0; i < reply->elements && work->tenants < TENANTS_MAX; i++) {
        struct tenant *tenant = &work->tenant[work->tenants++];
        *tenant = (struct tenant){0};
        (void)fx_key_number(&tenant->number, fx_queue__item(reply, i));
    }
    ids_ask(call);
}

static bool tenants_read(fx_queue_call *call, fx_error *err) {
    struct fx_key tenants;
    fx_span words[] = {fx_span_str("ZRANGE"), fx_key_model(&tenants, call->model, "tenants"),
                       fx_span_str("0"), fx_span_str(tenants_last)};
    call->step = on_tenants;
    return fx_queue__command(call, words, FX_COUNT(words), err);
}

bool fx_queue_dispatch(fx_queue *queue, uint32_t model, fx_queue_on_count done, void *ctx,
                       fx_error *err) {
    fx_queue_call *call;
    if (!fx_queue__call(queue, on_tenants, ctx, &call, err)) return false;
    call->done.count = done;
    call->model = model;
    call->scratch = fx_alloc(1, sizeof(struct dispatch));
    if (!call->scratch)
        return fx_queue__sent(call, fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory"));
    return fx_queue__sent(call, tenants_read(call, err));
}

/* ---- reclaim ---- */

static void on_reclaimed(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_error odd;
    if (!err && !fx_queue__is_array(reply, 2)) {
        fx_queue__odd_reply("reclaim", &odd);
        err = &odd;
    }
    struct fx_count_result result = {(uint32_t)fx_queue__item(reply, 0),
                                     (uint32_t)fx_queue__item(reply, 1), false};
    result.count += result.failed;
    result.more = result.count == RECLAIM_MAX;
    count_end(call, result, err);
}

struct leases {
    fx_span keys[RECLAIM_KEYS + 2 * RECLAIM_MAX], args[RECLAIM_ARGS + 2 * RECLAIM_MAX];
    struct fx_key fixed[RECLAIM_KEYS], numbers[4], gen[RECLAIM_MAX], log[RECLAIM_MAX],
        hint[RECLAIM_MAX];
};

static size_t leases_fill(struct leases *out, fx_queue_call *call, const redisReply *ids) {
    static const char *const fixed[] = {"tasks",   "ready", "leases", "meta",
                                        "tenants", "debt",  "dead"};
    _Static_assert(FX_COUNT(fixed) == RECLAIM_KEYS, "one name a key");
    size_t n = 0;
    for (; n < FX_COUNT(fixed); n++)
        out->keys[n] = fx_key_model(&out->fixed[n], call->model, fixed[n]);
    out->args[0] = fx_key_number(&out->numbers[0], call->queue->opts.fruitless_max);
    out->args[1] = fx_key_model(&out->numbers[1], call->model, FX_KEY_WORK);
    out->args[2] = fx_span_str(FX_KEY_HINTS);
    out->args[3] = fx_key_number(&out->numbers[2], call->model);
    out->args[4] = fx_key_number(&out->numbers[3], call->queue->opts.lease_ms);
    for (size_t i = 0; i < ids->elements && i < RECLAIM_MAX; i++, n += 2) {
        fx_span id = fx_queue__text(ids, i);
        out->keys[n] = fx_key_text(&out->gen[i], call->model, "gen", id);
        out->keys[n + 1] = fx_key_text(&out->log[i], call->model, "log", id);
        out->args[n - 2] = id;
        out->args[n - 1] = fx_key_text(&out->hint[i], call->model, "hint", id);
    }
    return n;
}

static void on_leases(fx_queue_call *call, const redisReply *reply, const fx_error *err) {
    fx_error failed;
    if (err || !fx_queue__is_array(reply, 1)) {
        count_end(call, (struct fx_count_result){0}, err);
        return;
    }
    fx_auto(void) memory = fx_alloc(1, sizeof(struct leases));
    struct leases *all = memory;
    if (!all) {
        fx_error_set(&failed, FX_RESOURCE_EXHAUSTED, "no memory for a reclaim");
        count_end(call, (struct fx_count_result){0}, &failed);
        return;
    }
    size_t keys = leases_fill(all, call, reply);
    call->step = on_reclaimed;
    if (!fx_queue__fcall(
            call, &(struct fx_redis_fcall){"fx3_reclaim", all->keys, keys, all->args, keys - 2},
            &failed))
        count_end(call, (struct fx_count_result){0}, &failed);
}

bool fx_queue_reclaim(fx_queue *queue, uint32_t model, fx_queue_on_count done, void *ctx,
                      fx_error *err) {
    fx_queue_call *call;
    struct fx_key leases;
    if (!fx_queue__call(queue, on_leases, ctx, &call, err)) return false;
    call->done.count = done;
    call->model = model;
    fx_span words[] = {fx_span_str("ZRANGE"), fx_key_model(&leases, model, "leases"),
                       fx_span_str("0"), fx_span_str(reclaim_last)};
    return fx_queue__sent(call, fx_queue__command(call, words, FX_COUNT(words), err));
}
