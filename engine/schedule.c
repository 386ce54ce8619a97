#include "engine/engine_internal.h"

/* Which sequences get how many rows of the next step. */

static struct fx_engine__slot *slot_at(const fx_engine *engine, uint32_t age) {
    return &engine->slots[engine->order[age]];
}

/* Pages a sequence needs for what it has and one token more. */
static uint32_t pages_wanted(const fx_engine *engine, const struct fx_engine__slot *slot) {
    uint32_t tokens = slot->count < engine->opts.context_max ? slot->count + 1 : slot->count;
    return fx_kv_pages_for(engine->kv, tokens, engine->opts.chunk_rows_max);
}

/* Pages of running sequences that they do not hold yet: what they were promised at admission, and
 * one ahead for each, so that who comes in is not sent out again at once. */
static uint32_t pages_promised(const fx_engine *engine) {
    uint32_t promised = 0;
    for (uint32_t age = 0; age < engine->order_count; age++) {
        const struct fx_engine__slot *slot = slot_at(engine, age);
        if (slot->state != SLOT_RUNNING) continue;
        uint32_t wanted = pages_wanted(engine, slot);
        uint32_t held = fx_kv_pages_held(engine->kv, engine->order[age]);
        promised += 1 + (wanted > held ? wanted - held : 0);
    }
    return promised;
}

/* Waiting sequences start in order of age, while prompt + 1 fits beside the running ones. */
static void admit(fx_engine *engine) {
    uint32_t promised = pages_promised(engine), spare = fx_kv_pages_free(engine->kv);
    for (uint32_t age = 0; age < engine->order_count; age++) {
        struct fx_engine__slot *slot = slot_at(engine, age);
        if (slot->state != SLOT_WAITING) continue;
        uint32_t wanted = pages_wanted(engine, slot);
        if (promised + wanted > spare) return;
        promised += 1 + wanted;
        slot->state = SLOT_RUNNING;
    }
}

/* The age of the youngest running sequence. */
static uint32_t youngest(const fx_engine *engine) {
    uint32_t age = engine->order_count;
    while (slot_at(engine, --age)->state != SLOT_RUNNING)
        continue;
    return age;
}

static void preempt(fx_engine *engine, uint32_t age) {
    struct fx_engine__slot *slot = slot_at(engine, age);
    fx_kv_clear(engine->kv, engine->order[age]);
    slot->state = SLOT_WAITING;
    slot->cached = 0;
    slot->rows = 0;
    engine->stats.preemptions++;
}

/* Takes the pages of the next `rows`, from the youngest if need be. False: the sequence was itself
 * the youngest and waits now. */
static bool take_pages(fx_engine *engine, uint32_t age, uint32_t rows) {
    const struct fx_engine__slot *slot = slot_at(engine, age);
    while (!fx_kv_reserve(engine->kv, engine->order[age], slot->cached, slot->cached + rows)) {
        uint32_t victim = youngest(engine);
        preempt(engine, victim);
        if (victim == age) return false;
    }
    return true;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t rows_planned(const fx_engine *engine) {
    uint32_t rows = 0;
    for (uint32_t age = 0; age < engine->order_count; age++)
        rows += slot_at(engine, age)->rows;
    return rows;
}

static void plan_decodes(fx_engine *engine) {
    for (uint32_t age = 0; age < engine->order_count; age++) {
        struct fx_engine__slot *slot = slot_at(engine, age);
        bool decodes = slot->state == SLOT_RUNNING && slot->count - slot->cached == 1;
        if (decodes && take_pages(engine, age, 1)) slot->rows = 1;
    }
}

static void plan_prefills(fx_engine *engine) {
    for (uint32_t age = 0; age < engine->order_count; age++) {
        struct fx_engine__slot *slot = slot_at(engine, age);
        uint32_t pending = slot->count - slot->cached;
        if (slot->state != SLOT_RUNNING || pending < 2) continue;
        uint32_t budget = engine->opts.rows_max - rows_planned(engine);
        uint32_t rows = least(least(pending, engine->opts.chunk_rows_max), budget);
        if (rows && take_pages(engine, age, rows)) slot->rows = rows;
    }
}

bool fx_engine__plan(fx_engine *engine) {
    for (uint32_t age = 0; age < engine->order_count; age++)
        slot_at(engine, age)->rows = 0;
    admit(engine);
    plan_decodes(engine);
    plan_prefills(engine);
    return rows_planned(engine) > 0;
}
