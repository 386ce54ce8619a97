#pragma once
#include "kernels/cpu/avx2.h"

enum { FX_GROUP_MAX = 4, FX_PANEL_VECTORS_MAX = 8 };

/** Query heads that share a KV head and are computed together. */
struct fx_group {
    uint32_t kv_head, heads;
    const float *q; /* [heads][head_dim] */
};

/** out[h][vector] (+)= chain over s of coefficients[h][s] * at[vector][s * step]: scores with
 *  s = dim and tokens as lanes, values with s = token and dims as lanes. */
struct fx_panel {
    const uint8_t *at[FX_PANEL_VECTORS_MAX]; /* 8 elements at each step */
    uint32_t steps;
    size_t step; /* in elements */
    const float *coefficients;
    size_t coefficient_stride; /* from a head to the next */
    float *out;                /* vectors side by side */
    size_t out_stride;         /* from a head to the next */
};
/** How many of `left` vectors fx_panel_run takes at once for this many heads. */
uint32_t fx_panel_vectors(uint32_t heads, uint32_t left);
/** `resume`: chains go on from out, else from 0. @pre vectors came from fx_panel_vectors */
void fx_panel_run(const struct fx_panel *panel, enum fx_kv_type type, uint32_t heads,
                  uint32_t vectors, bool resume);

static inline size_t fx_kv_size(enum fx_kv_type type) {
    return type == FX_KV_F16 ? sizeof(uint16_t) : sizeof(float);
}
/** Offset of a head's part of the page that holds `token`. */
static inline uint64_t fx_attend_page(const struct fx_attend *attend, uint32_t kv_head,
                                      uint32_t token) {
    uint64_t head_bytes =
        fx_kv_size(attend->kv->type) * attend->shape->head_dim * attend->page_tokens;
    return attend->table[token / attend->page_tokens] * attend->kv->page_stride_bytes +
           kv_head * head_bytes;
}
static inline const uint8_t *fx_attend_k(const struct fx_attend *attend, uint32_t kv_head,
                                         uint32_t token) {
    return attend->kv->k + fx_attend_page(attend, kv_head, token) +
           token % attend->page_tokens * fx_kv_size(attend->kv->type);
}
static inline const uint8_t *fx_attend_v(const struct fx_attend *attend, uint32_t kv_head,
                                         uint32_t token) {
    return attend->kv->v + fx_attend_page(attend, kv_head, token) +
           (size_t)(token % attend->page_tokens) * attend->shape->head_dim *
               fx_kv_size(attend->kv->type);
}

/** All ones in the lanes of tokens at..at+7 that lie in first..last. */
FX_INLINE __m256 fx_attend_mask(uint32_t at, uint32_t first, uint32_t last) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i token = _mm256_add_epi32(_mm256_set1_epi32((int)at), lane);
    __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)first), token);
    __m256i after = _mm256_cmpgt_epi32(token, _mm256_set1_epi32((int)last));
    __m256i outside = _mm256_or_si256(before, after);
    return _mm256_castsi256_ps(_mm256_xor_si256(outside, _mm256_set1_epi32(-1)));
}
FX_INLINE float fx_attend_max(__m256 lanes) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
