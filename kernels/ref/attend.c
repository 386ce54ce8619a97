#include "common/quant/int4.h"
#include "kernels/math.h"
#include "kernels/ref/ref.h"

/* Softmax state of one head over some keys: values relative to exp(max). */
struct part {
    float max, sum, mixed[FX_HEAD_DIM_MAX];
};

static float cached(enum fx_kv_type type, const uint8_t *page, size_t index) {
    if (type == FX_KV_F32) return ((const float *)(const void *)page)[index];
    return fx_f16_to_f32(((const uint16_t *)(const void *)page)[index]);
}

/* Where a head's part of the page with `token` starts, in K and V alike. */
static uint64_t page_at(const struct fx_attend *attend, uint32_t kv_head, uint32_t token) {
    uint64_t page_bytes = fx_kv_page_bytes(attend->shape, attend->page_tokens, attend->kv->type);
    return attend->table[token / attend->page_tokens] * attend->kv->page_stride_bytes +
           kv_head * (page_bytes / attend->shape->kv_heads);
}

static float score(const struct fx_attend *attend, uint32_t kv_head, const float *q,
                   uint32_t token) {
    uint32_t dim = attend->shape->head_dim;
    const uint8_t *page = attend->kv->k + page_at(attend, kv_head, token);
    float acc = 0.0f;
    for (uint32_t d = 0; d < dim; d++)
        acc = fmaf(q[d],
                   cached(attend->kv->type, page,
                          (size_t)d * attend->page_tokens + token % attend->page_tokens),
                   acc);
    return acc * (1.0f / sqrtf((float)dim));
}

/* Keys first..last, all of one 64-token block. */
static void attend_block(const struct fx_attend *attend, uint32_t kv_head, const float *q,
                         uint32_t first, uint32_t last, struct part *part) {
    uint32_t dim = attend->shape->head_dim;
    float weight[FX_BLOCK], chain[FX_CHAINS] = {0};
    part->max = -INFINITY;
    for (uint32_t token = first; token <= last; token++) {
        weight[token % FX_BLOCK] = score(attend, kv_head, q, token);
        if (weight[token % FX_BLOCK] > part->max) part->max = weight[token % FX_BLOCK];
    }
    for (uint32_t d = 0; d < dim; d++)
        part->mixed[d] = 0.0f;
    for (uint32_t token = first; token <= last; token++) {
        float p = fx_expf(weight[token % FX_BLOCK] - part->max);
        chain[token % FX_CHAINS] += p;
        const uint8_t *page = attend->kv->v + page_at(attend, kv_head, token);
        size_t at = (size_t)(token % attend->page_tokens) * dim;
        for (uint32_t d = 0; d < dim; d++)
            part->mixed[d] = fmaf(p, cached(attend->kv->type, page, at + d), part->mixed[d]);
    }
    part->sum = fx_ref_merge(chain);
}

static void merge(struct part *total, const struct part *block, uint32_t dim) {
    float max = block->max > total->max ? block->max : total->max;
    float keep = fx_expf(total->max - max), add = fx_expf(block->max - max);
    total->max = max;
    total->sum = fmaf(total->sum, keep, block->sum * add);
    for (uint32_t d = 0; d < dim; d++)
        total->mixed[d] = fmaf(total->mixed[d], keep, block->mixed[d] * add);
}

static void attend_head(const struct fx_attend *attend, uint32_t kv_head, const float *q,
                        float *out) {
    uint32_t dim = attend->shape->head_dim;
    struct part total, block;
    uint32_t last = fx_attend_block_end(attend, attend->first);
    attend_block(attend, kv_head, q, attend->first, last, &total);
    while (last < attend->position) {
        uint32_t first = last + 1;
        last = fx_attend_block_end(attend, first);
        attend_block(attend, kv_head, q, first, last, &block);
        merge(&total, &block, dim);
    }
    for (uint32_t d = 0; d < dim; d++)
        out[d] = total.mixed[d] / total.sum;
}

/** Attention of one row's query heads over one KV head. Per absolute 64-token block: scores by one
 *  fma chain over d, weights exp(score - block max), their sum in 16 chains by token, values by one
 *  fma chain over tokens; blocks merged in order.
 *  @shape q, out [heads*head_dim]; pages at struct fx_kv  @pre first <= position  @tol exact */
void fx_ref_attend(const struct fx_attend *attend, uint32_t kv_head) {
    size_t group = attend->shape->heads / attend->shape->kv_heads, dim = attend->shape->head_dim;
    for (size_t head = kv_head * group; head < (kv_head + 1) * group; head++)
        attend_head(attend, kv_head, attend->q + head * dim, attend->out + head * dim);
}
