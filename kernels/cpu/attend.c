#include "kernels/cpu/attend.h"

/* Up to 4 query heads of a group walk the cache together, so that K and V are loaded once for them.
 * Keys first..last of one 64-token block; weight[h][64] holds scores, then exp(score - max). */

/* Scores: tokens are the lanes, K pages [head_dim][page_tokens]. */
static void score_block(const struct fx_attend *attend, const struct fx_group *group,
                        uint32_t first, uint32_t last, float *weight) {
    uint32_t dim = attend->shape->head_dim;
    struct fx_panel panel = {.steps = dim, .coefficients = group->q, .coefficient_stride = dim};
    panel.step = attend->page_tokens;
    uint32_t begin = first % FX_BLOCK / FX_LANES, end = last % FX_BLOCK / FX_LANES + 1;
    for (uint32_t v = begin, count = 0; v < end; v += count) {
        count = fx_panel_vectors(group->heads, end - v);
        for (uint32_t i = 0; i < count; i++)
            panel.at[i] = fx_attend_k(attend, group->kv_head,
                                      first / FX_BLOCK * FX_BLOCK + (v + i) * FX_LANES);
        panel.out = weight + (size_t)v * FX_LANES;
        panel.out_stride = FX_BLOCK;
        fx_panel_run(&panel, attend->kv->type, group->heads, count, false);
    }
}

/* Scores of one head to weights; returns their sum. Lanes outside first..last become 0. */
static float weigh_block(float *weight, float scale, uint32_t first, uint32_t last, float *max) {
    const __m256 low = _mm256_set1_ps(-INFINITY), scales = _mm256_set1_ps(scale);
    __m256 mask[FX_BLOCK / FX_LANES], value[FX_BLOCK / FX_LANES], largest = low;
    __m256 chain[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    uint32_t begin = first % FX_BLOCK / FX_LANES, end = last % FX_BLOCK / FX_LANES + 1;
    for (uint32_t v = begin; v < end; v++) {
        mask[v] = fx_attend_mask(v * FX_LANES, first % FX_BLOCK, last % FX_BLOCK);
        value[v] = _mm256_mul_ps(_mm256_loadu_ps(weight + (size_t)v * FX_LANES), scales);
        largest = _mm256_max_ps(largest, _mm256_blendv_ps(low, value[v], mask[v]));
    }
    *max = fx_attend_max(largest);
    for (uint32_t v = begin; v < end; v++) {
        __m256 p = fx_avx2_exp(_mm256_sub_ps(value[v], _mm256_set1_ps(*max)));
        p = _mm256_and_ps(p, mask[v]);
        chain[v % 2] = _mm256_add_ps(chain[v % 2], p);
        _mm256_storeu_ps(weight + (size_t)v * FX_LANES, p);
    }
    return fx_avx2_merge(chain[0], chain[1]);
}

/* mixed[h] = the chain over tokens of weight * v: dims are the lanes, V pages
 * [page_tokens][head_dim]. Runs page by page; a page goes on with what the one before left. */
static void mix_block(const struct fx_attend *attend, const struct fx_group *group, uint32_t first,
                      uint32_t last, const float *weight, float *mixed) {
    uint32_t dim = attend->shape->head_dim;
    for (uint32_t token = first, count = 0; token <= last; token += count) {
        count = attend->page_tokens - token % attend->page_tokens;
        if (count > last - token + 1) count = last - token + 1;
        struct fx_panel panel = {.steps = count, .step = dim, .out_stride = FX_HEAD_DIM_MAX};
        panel.coefficients = weight + token % FX_BLOCK;
        panel.coefficient_stride = FX_BLOCK;
        const uint8_t *row = fx_attend_v(attend, group->kv_head, token);
        for (uint32_t v = 0, vectors = 0; v < dim / FX_LANES; v += vectors) {
            vectors = fx_panel_vectors(group->heads, dim / FX_LANES - v);
            for (uint32_t i = 0; i < vectors; i++)
                panel.at[i] = row + (size_t)(v + i) * FX_LANES * fx_kv_size(attend->kv->type);
            panel.out = mixed + (size_t)v * FX_LANES;
            fx_panel_run(&panel, attend->kv->type, group->heads, vectors, token != first);
        }
    }
}

struct part {
    float max[FX_GROUP_MAX], sum[FX_GROUP_MAX];
    float mixed[FX_GROUP_MAX][FX_HEAD_DIM_MAX];
};

static void attend_block(const struct fx_attend *attend, const struct fx_group *group,
                         uint32_t first, uint32_t last, struct part *part) {
    float weight[FX_GROUP_MAX][FX_BLOCK];
    float scale = 1.0f / sqrtf((float)attend->shape->head_dim);
    score_block(attend, group, first, last, weight[0]);
    for (uint32_t h = 0; h < group->heads; h++)
        part->sum[h] = weigh_block(weight[h], scale, first, last, &part->max[h]);
    mix_block(attend, group, first, last, weight[0], part->mixed[0]);
}

static void merge(struct part *total, const struct part *block, uint32_t head, uint32_t dim) {
    float max = block->max[head] > total->max[head] ? block->max[head] : total->max[head];
    float keep = fx_expf(total->max[head] - max), add = fx_expf(block->max[head] - max);
    total->max[head] = max;
    total->sum[head] = fmaf(total->sum[head], keep, block->sum[head] * add);
    float *mixed = total->mixed[head];
    for (uint32_t d = 0; d < dim; d += FX_LANES) {
        __m256 added = _mm256_mul_ps(_mm256_loadu_ps(block->mixed[head] + d), _mm256_set1_ps(add));
        __m256 kept = _mm256_loadu_ps(mixed + d);
        _mm256_storeu_ps(mixed + d, _mm256_fmadd_ps(kept, _mm256_set1_ps(keep), added));
    }
}

static void attend_group(const struct fx_attend *attend, const struct fx_group *group, float *out) {
    uint32_t dim = attend->shape->head_dim;
    struct part total, block;
    uint32_t last = fx_attend_block_end(attend, attend->first);
    attend_block(attend, group, attend->first, last, &total);
    while (last < attend->position) {
        uint32_t first = last + 1;
        last = fx_attend_block_end(attend, first);
        attend_block(attend, group, first, last, &block);
        for (uint32_t h = 0; h < group->heads; h++)
            merge(&total, &block, h, dim);
    }
    for (uint32_t h = 0; h < group->heads; h++) {
        const __m256 sum = _mm256_set1_ps(total.sum[h]);
        for (uint32_t d = 0; d < dim; d += FX_LANES)
            _mm256_storeu_ps(out + (size_t)h * dim + d,
                             _mm256_div_ps(_mm256_loadu_ps(total.mixed[h] + d), sum));
    }
}

/** fx_ref_attend.
 *  @shape q, out [heads*head_dim]; pages at struct fx_kv  @pre first <= position  @tol exact */
void fx_avx2_attend(const struct fx_attend *attend, uint32_t kv_head) {
    uint32_t shared = attend->shape->heads / attend->shape->kv_heads;
    size_t dim = attend->shape->head_dim;
    for (uint32_t head = 0; head < shared; head += FX_GROUP_MAX) {
        size_t at = (kv_head * (size_t)shared + head) * dim;
        uint32_t heads = shared - head < FX_GROUP_MAX ? shared - head : FX_GROUP_MAX;
        const struct fx_group group = {kv_head, heads, attend->q + at};
        attend_group(attend, &group, attend->out + at);
    }
}
