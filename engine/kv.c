#include "engine/kv.h"
#include "common/base/heap.h"

struct table {
    uint32_t *pages;
    uint32_t first, end; /* pages[first, end) are held */
};

struct fx_kv_pool {
    struct fx_kv_pool_opts opts;
    struct table *tables;
    uint32_t *entries; /* of all tables */
    uint32_t *refs;
    uint32_t *spare; /* stack of free pages */
    uint32_t spare_count, table_len;
};

static uint32_t pages_of(const fx_kv_pool *kv, uint32_t tokens) {
    return (tokens + kv->opts.page_tokens - 1) / kv->opts.page_tokens;
}

static FX_MUST bool opts_check(const struct fx_kv_pool_opts *opts, fx_error *err) {
    if (opts->page_tokens != 16 && opts->page_tokens != 64)
        return fx_fail(err, FX_INVALID_ARGUMENT, "a KV page of %u tokens: 16 or 64",
                       opts->page_tokens);
    if (!opts->pages || !opts->sequences || !opts->context_max)
        return fx_fail(err, FX_INVALID_ARGUMENT, "a KV pool of %u pages, %u sequences, %u tokens",
                       opts->pages, opts->sequences, opts->context_max);
    return true;
}

static void tables_init(fx_kv_pool *kv) {
    uint64_t entries = (uint64_t)kv->opts.sequences * kv->table_len;
    for (uint64_t i = 0; i < entries; i++)
        kv->entries[i] = FX_KV_NO_PAGE;
    for (uint32_t s = 0; s < kv->opts.sequences; s++)
        kv->tables[s].pages = kv->entries + (size_t)s * kv->table_len;
    for (uint32_t page = 0; page < kv->opts.pages; page++)
        kv->spare[page] = kv->opts.pages - 1 - page;
    kv->spare_count = kv->opts.pages;
}

bool fx_kv_pool_open(const struct fx_kv_pool_opts *opts, fx_kv_pool **out, fx_error *err) {
    if (!opts_check(opts, err)) return false;
    fx_auto(fx_kv_pool) kv = fx_alloc(1, sizeof(*kv));
    if (!kv) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "page tables");
    kv->opts = *opts;
    kv->table_len = pages_of(kv, opts->context_max);
    kv->tables = fx_alloc(opts->sequences, sizeof(*kv->tables));
    kv->entries = fx_alloc((size_t)opts->sequences * kv->table_len, sizeof(*kv->entries));
    kv->refs = fx_alloc(opts->pages, sizeof(*kv->refs));
    kv->spare = fx_alloc(opts->pages, sizeof(*kv->spare));
    if (!kv->tables || !kv->entries || !kv->refs || !kv->spare)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "page tables of %u sequences", opts->sequences);
    tables_init(kv);
    *out = fx_take(kv);
    return true;
}

void fx_kv_pool_free(fx_kv_pool *kv) {
    if (!kv) return;
    free(kv->tables);
    free(kv->entries);
    free(kv->refs);
    free(kv->spare);
    free(kv);
}

static struct table *table_at(const fx_kv_pool *kv, uint32_t sequence) {
    FX_ASSERT(sequence < kv->opts.sequences);
    return &kv->tables[sequence];
}

static void page_drop(fx_kv_pool *kv, uint32_t page) {
    FX_ASSERT(kv->refs[page] > 0);
    if (--kv->refs[page] == 0) kv->spare[kv->spare_count++] = page;
}

static uint32_t page_take(fx_kv_pool *kv) {
    uint32_t page = kv->spare[--kv->spare_count];
    kv->refs[page] = 1;
    return page;
}

static void pages_drop(fx_kv_pool *kv, struct table *table, uint32_t end) {
    for (; table->first < end && table->first < table->end; table->first++) {
        page_drop(kv, table->pages[table->first]);
        table->pages[table->first] = FX_KV_NO_PAGE;
    }
}

/* The first page that position `next` or a later one can see. */
static uint32_t page_visible(const fx_kv_pool *kv, uint32_t next) {
    uint32_t window = kv->opts.window;
    if (!window || next < window) return 0;
    return (next - window + 1) / kv->opts.page_tokens;
}

/* Pages of `table` before `visible` that return to the pool when dropped. */
static uint32_t pages_returning(const fx_kv_pool *kv, const struct table *table, uint32_t visible) {
    uint32_t count = 0;
    for (uint32_t i = table->first; i < table->end && i < visible; i++)
        count += kv->refs[table->pages[i]] == 1;
    return count;
}

uint32_t fx_kv_missing(const fx_kv_pool *kv, uint32_t sequence, uint32_t next, uint32_t end) {
    const struct table *table = table_at(kv, sequence);
    uint32_t visible = page_visible(kv, next), wanted = pages_of(kv, end);
    uint32_t from = table->end > visible ? table->end : visible;
    uint32_t taken = wanted > from ? wanted - from : 0;
    uint32_t returned = pages_returning(kv, table, visible);
    return taken > returned ? taken - returned : 0;
}

bool fx_kv_reserve(fx_kv_pool *kv, uint32_t sequence, uint32_t next, uint32_t end) {
    FX_ASSERT(next <= end && end <= kv->opts.context_max);
    if (fx_kv_missing(kv, sequence, next, end) > kv->spare_count) return false;
    struct table *table = table_at(kv, sequence);
    uint32_t visible = page_visible(kv, next), wanted = pages_of(kv, end);
    pages_drop(kv, table, visible);
    if (table->end < visible) table->first = table->end = visible;
    for (; table->end < wanted; table->end++)
        table->pages[table->end] = page_take(kv);
    return true;
}

void fx_kv_clear(fx_kv_pool *kv, uint32_t sequence) {
    struct table *table = table_at(kv, sequence);
    pages_drop(kv, table, table->end);
    table->first = table->end = 0;
}

void fx_kv_share(fx_kv_pool *kv, uint32_t from, uint32_t to, uint32_t pages) {
    const struct table *source = table_at(kv, from);
    struct table *target = table_at(kv, to);
    FX_ASSERT(target->end == 0 && source->first == 0 && pages <= source->end);
    for (uint32_t i = 0; i < pages; i++) {
        target->pages[i] = source->pages[i];
        kv->refs[source->pages[i]]++;
    }
    target->end = pages;
}

uint32_t fx_kv_pages_for(const fx_kv_pool *kv, uint32_t tokens, uint32_t rows) {
    uint32_t all = pages_of(kv, tokens);
    if (!kv->opts.window) return all;
    uint32_t seen = pages_of(kv, kv->opts.window - 1 + rows) + 1;
    return seen < all ? seen : all;
}

const uint32_t *fx_kv_tables(const fx_kv_pool *kv, uint32_t *stride) {
    *stride = kv->table_len;
    return kv->entries;
}

uint32_t fx_kv_pages(const fx_kv_pool *kv) {
    return kv->opts.pages;
}

uint32_t fx_kv_pages_free(const fx_kv_pool *kv) {
    return kv->spare_count;
}

uint32_t fx_kv_pages_held(const fx_kv_pool *kv, uint32_t sequence) {
    const struct table *table = table_at(kv, sequence);
    return table->end - table->first;
}
