/* Idempotency-Key: a request that comes again, to whichever gateway, is the same generation. The
 * key's record is `fx:{t<tenant>}:once:<its SHA-256>`: the id of the answer and the SHA-256 of the
 * body.
 */
#include <stdio.h>
#include "common/base/hash.h"
#include "services/gateway/visit.h"

enum {
    KEY_BYTES_MAX = 255,
    KEPT_S = 24 * 3600,
    RECORD_BYTES = FX_GEN_ID_BYTES + FX_SHA256_BYTES,
    NAME_MAX_BYTES = 128,
};

static bool is_printable(fx_span text) {
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < 0x21 || text.at[i] > 0x7e) return false;
    return true;
}

bool gw_once_read(struct gw_visit *visit, fx_span key, fx_span body, struct gw_problem *problem) {
    if (!key.at) return true;
    if (!key.len || key.len > KEY_BYTES_MAX || !is_printable(key))
        return gw_refuse(problem, GW_BAD_VALUE, "idempotency-key",
                         "must be 1 to %d printable characters without a space", KEY_BYTES_MAX);
    visit->once.asked = true;
    fx_sha256(key, visit->once.key);
    fx_sha256(body, visit->once.body);
    return true;
}

/* -- the record -- */

struct record {
    uint8_t bytes[RECORD_BYTES];
};

static struct record record_of(const struct gw_visit *visit) {
    struct record record;
    memcpy(record.bytes, visit->id.bytes, FX_GEN_ID_BYTES);
    memcpy(record.bytes + FX_GEN_ID_BYTES, visit->once.body, FX_SHA256_BYTES);
    return record;
}

/* `mode`: "NX" leaves one that is there, "XX" replaces it. The reply is the one that was there. */
static FX_MUST bool record_set(struct gw_visit *visit, const char *mode, fx_redis_done done,
                               fx_error *err) {
    char name[NAME_MAX_BYTES], hex[FX_SHA256_HEX], kept[16];
    struct record record = record_of(visit);
    fx_hex((fx_span){visit->once.key, FX_SHA256_BYTES}, hex);
    (void)snprintf(name, sizeof name, "fx:{t%llu}:once:%s", (unsigned long long)visit->who.tenant,
                   hex);
    (void)snprintf(kept, sizeof kept, "%d", KEPT_S);
    const fx_span words[] = {
        fx_span_str("SET"), fx_span_str(name),  {record.bytes, RECORD_BYTES},
        fx_span_str(mode),  fx_span_str("GET"), fx_span_str("EX"),
        fx_span_str(kept)
    };
    return fx_redis_argv(visit->gateway->redis, FX_COUNT(words), words, done, visit, err);
}

/* -- the way in -- */

static void refuse(struct gw_visit *visit, const fx_error *err) {
    struct gw_problem problem;
    gw_problem_set(&problem, GW_UNAVAILABLE, NULL, "the queue: %s", err->text);
    gw_visit_refuse(visit, &problem);
}

static void on_replaced(void *ctx, const redisReply *reply, const fx_error *err) {
    struct gw_visit *visit = ctx;
    (void)reply;
    if (err)
        refuse(visit, err);
    else if (gw_visit_here(visit))
        gw_generation_admit(visit);
    gw_visit_unref(visit); /* the question's */
}

/* What came to nothing is tried anew, under an id that all who come for it at once arrive at. */
static void begin_anew(struct gw_visit *visit) {
    uint8_t next[FX_SHA256_BYTES];
    fx_gen_id id;
    fx_error err = {0};
    fx_sha256((fx_span){visit->id.bytes, FX_GEN_ID_BYTES}, next);
    memcpy(id.bytes, next, FX_GEN_ID_BYTES);
    gw_generation_set_id(visit, &id);
    gw_visit_ref(visit); /* the question's */
    if (!record_set(visit, "XX", on_replaced, &err)) on_replaced(visit, NULL, &err);
}

static void on_known(void *ctx, const struct fx_gen_about *about, const fx_error *err) {
    struct gw_visit *visit = ctx;
    if (err)
        refuse(visit, err);
    else if (!gw_visit_here(visit))
        ; /* it left meanwhile */
    else if (about->status != FX_QUEUE_OK)
        gw_generation_admit(visit); /* its gateway died before the submit, or it has expired */
    else if (about->cancelled || about->state == FX_GEN_CANCELLED || about->state == FX_GEN_FAILED)
        begin_anew(visit);
    else
        gw_generation_attach(visit);
    gw_visit_unref(visit); /* the question's */
}

static void known_ask(struct gw_visit *visit) {
    fx_error err = {0};
    gw_visit_ref(visit); /* the question's */
    if (!fx_queue_describe(visit->gateway->queue, visit->model.number, &visit->id, on_known, visit,
                           &err))
        on_known(visit, NULL, &err);
}

static void claimed(struct gw_visit *visit, fx_span record) {
    struct gw_problem problem;
    fx_gen_id id;
    if (!record.len) { /* it is the first */
        gw_generation_admit(visit);
        return;
    }
    if (record.len != RECORD_BYTES ||
        !fx_equal_ct(record.at + FX_GEN_ID_BYTES, visit->once.body, FX_SHA256_BYTES)) {
        gw_problem_set(&problem, GW_KEY_REUSED, "idempotency-key",
                       "this key came with another request before");
        gw_visit_refuse(visit, &problem);
        return;
    }
    memcpy(id.bytes, record.at, FX_GEN_ID_BYTES);
    gw_generation_set_id(visit, &id);
    known_ask(visit);
}

static void on_claimed(void *ctx, const redisReply *reply, const fx_error *err) {
    struct gw_visit *visit = ctx;
    if (err)
        refuse(visit, err);
    else if (gw_visit_here(visit))
        claimed(visit, fx_redis_span(reply));
    gw_visit_unref(visit); /* the question's */
}

void gw_once_claim(struct gw_visit *visit) {
    fx_error err = {0};
    visit->keeps = true;
    gw_visit_ref(visit); /* the question's */
    if (!record_set(visit, "NX", on_claimed, &err)) on_claimed(visit, NULL, &err);
}
