#include "values.h"

/* One row's attention over made-up caches: cpu gives ref's bits, and the page size does not show.
 */

enum { TOKENS_MAX = 200, PAGES_MAX = TOKENS_MAX / 8 + 1 };

struct row {
    const char *name;
    uint32_t heads, kv_heads, head_dim;
};
static const struct row rows[] = {
    {"one head of 8",         1,  1, 8  },
    {"groups of 3, 32 wide",  6,  2, 32 },
    {"groups of 2, 16 wide",  4,  2, 16 },
    {"groups of 4, 64 wide",  8,  2, 64 },
    {"groups of 7, 24 wide",  14, 2, 24 },
    {"no groups, 128 wide",   2,  2, 128},
    {"groups of 5, 256 wide", 5,  1, 256},
};

struct cache {
    struct fx_kv kv;
    uint32_t table[PAGES_MAX];
    uint32_t page_tokens;
};

/* A cache of TOKENS_MAX tokens in pages laid out backwards, unwritten elements NaN. */
static void cache_fill(const struct fx_shape *shape, enum fx_kv_type type, uint32_t page_tokens,
                       enum values kind, struct cache *cache) {
    uint32_t pages = TOKENS_MAX / page_tokens + 1, dim = shape->head_dim;
    uint64_t bytes = fx_kv_page_bytes(shape, page_tokens, type);
    cache->page_tokens = page_tokens;
    cache->kv = (struct fx_kv){.page_stride_bytes = bytes + 64, .type = type};
    cache->kv.k = values_alloc(pages, bytes + 64);
    cache->kv.v = values_alloc(pages, bytes + 64);
    memset(cache->kv.k, 0xff, pages * (bytes + 64));
    memset(cache->kv.v, 0xff, pages * (bytes + 64));
    for (uint32_t p = 0; p < pages; p++)
        cache->table[p] = pages - 1 - p;
    float k[FX_HEAD_DIM_MAX], v[FX_HEAD_DIM_MAX];
    for (uint32_t token = 0; token < TOKENS_MAX; token++)
        for (uint32_t head = 0; head < shape->kv_heads; head++) {
            values_fill(kind, token * 31u + head, k, dim);
            values_fill(kind, token * 37u + head + 1000, v, dim);
            uint64_t at = cache->table[token / page_tokens] * cache->kv.page_stride_bytes +
                          head * (bytes / shape->kv_heads);
            fx_ref_kernels.kv_write(&cache->kv, k, v, dim, page_tokens, token % page_tokens,
                                    cache->kv.k + at, cache->kv.v + at);
        }
}

static void cache_free(struct cache *cache) {
    free(cache->kv.k);
    free(cache->kv.v);
}

static void attend(const struct fx_kernels *kernels, const struct fx_shape *shape,
                   const struct cache *cache, const float *q, uint32_t first, uint32_t position,
                   float *out) {
    struct fx_attend attend = {.shape = shape, .kv = &cache->kv, .table = cache->table};
    attend.page_tokens = cache->page_tokens;
    attend.first = first;
    attend.position = position;
    attend.q = q;
    attend.out = out;
    for (uint32_t head = 0; head < shape->kv_heads; head++)
        kernels->attend(&attend, head);
}

static const struct range {
    uint32_t first, position;
} ranges[] = {
    {0,   0  },
    {0,   1  },
    {0,   6  },
    {0,   7  },
    {0,   8  },
    {0,   15 },
    {0,   16 },
    {0,   62 },
    {0,   63 },
    {0,   64 },
    {0,   65 },
    {0,   127},
    {0,   128},
    {0,   199},
    {1,   1  },
    {5,   20 },
    {63,  64 },
    {60,  70 },
    {64,  64 },
    {100, 163},
    {130, 199},
    {127, 128},
    {17,  193},
};

static void compare(const struct row *row, enum fx_kv_type type, enum values kind) {
    struct fx_shape shape = {.heads = row->heads, .kv_heads = row->kv_heads};
    shape.head_dim = row->head_dim;
    size_t width = (size_t)row->heads * row->head_dim;
    float *q = values_alloc(width, 4), *want = values_alloc(width, 4),
          *got = values_alloc(width, 4);
    values_fill(kind == VALUES_LARGE ? VALUES_PLAIN : kind, 77, q, width);
    struct cache caches[4];
    for (uint32_t c = 0; c < 4; c++)
        cache_fill(&shape, type, 8u << c, kind, &caches[c]);
    for (size_t r = 0; r < FX_TEST_COUNT(ranges); r++) {
        attend(&fx_ref_kernels, &shape, &caches[3], q, ranges[r].first, ranges[r].position, want);
        for (uint32_t c = 0; c < 4; c++) {
            attend(values_cpu(), &shape, &caches[c], q, ranges[r].first, ranges[r].position, got);
            assert_same_floats(got, want, width, "keys %u..%u, pages of %u, %s", ranges[r].first,
                               ranges[r].position, caches[c].page_tokens, values_names[kind]);
        }
        attend(&fx_ref_kernels, &shape, &caches[1], q, ranges[r].first, ranges[r].position, got);
        assert_same_floats(got, want, width, "ref, keys %u..%u, pages of 16", ranges[r].first,
                           ranges[r].position);
    }
    for (uint32_t c = 0; c < 4; c++)
        cache_free(&caches[c]);
    free(q);
    free(want);
    free(got);
}

static void test_bits(void **state) {
    const struct row *row = *state;
    for (uint32_t kind = 0; kind < VALUES_KINDS; kind++) {
        compare(row, FX_KV_F32, (enum values)kind);
        compare(row, FX_KV_F16, (enum values)kind);
    }
}
FX_TEST_MAIN(test_bits, rows)
