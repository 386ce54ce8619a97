#include "kernels/cpu/avx2.h"

/* @pre head_dim % 8 == 0 */
static void narrow(const float *in, uint32_t head_dim, uint16_t *out) {
    for (uint32_t d = 0; d < head_dim; d += FX_LANES) {
        __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(in + d), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(out + d), halves);
    }
}

static void write_f16(const float *k, const float *v, uint32_t head_dim, uint32_t page_tokens,
                      uint32_t token, uint16_t *k_page, uint16_t *v_page) {
    uint16_t column[FX_HEAD_DIM_MAX];
    narrow(k, head_dim, column);
    for (uint32_t d = 0; d < head_dim; d++)
        k_page[(size_t)d * page_tokens + token] = column[d];
    narrow(v, head_dim, v_page + (size_t)token * head_dim);
}

static void write_f32(const float *k, const float *v, uint32_t head_dim, uint32_t page_tokens,
                      uint32_t token, float *k_page, float *v_page) {
    for (uint32_t d = 0; d < head_dim; d++)
        k_page[(size_t)d * page_tokens + token] = k[d];
    memcpy(v_page + (size_t)token * head_dim, v, head_dim * sizeof *v);
}

/** fx_ref_kv_write.
 *  @shape k, v [head_dim]; pages at struct fx_kv  @pre head_dim % 8 == 0  @tol exact */
void fx_avx2_kv_write(const struct fx_kv *kv, const float *k, const float *v, uint32_t head_dim,
                      uint32_t page_tokens, uint32_t token, uint8_t *k_page, uint8_t *v_page) {
    if (kv->type == FX_KV_F16)
        write_f16(k, v, head_dim, page_tokens, token, (uint16_t *)(void *)k_page,
                  (uint16_t *)(void *)v_page);
    else
        write_f32(k, v, head_dim, page_tokens, token, (float *)(void *)k_page,
                  (float *)(void *)v_page);
}
