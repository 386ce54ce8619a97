#include "common/quant/int4.h"
#include "kernels/ref/ref.h"

/** Stores a head's k as a column of [head_dim][page_tokens], its v as a row of
 *  [page_tokens][head_dim]; f16 rounds to nearest even.  @tol exact */
void fx_ref_kv_write(const struct fx_kv *kv, const float *k, const float *v, uint32_t head_dim,
                     uint32_t page_tokens, uint32_t token, uint8_t *k_page, uint8_t *v_page) {
    for (uint32_t d = 0; d < head_dim; d++) {
        size_t k_at = (size_t)d * page_tokens + token, v_at = (size_t)token * head_dim + d;
        if (kv->type == FX_KV_F32) {
            ((float *)(void *)k_page)[k_at] = k[d];
            ((float *)(void *)v_page)[v_at] = v[d];
        } else {
            ((uint16_t *)(void *)k_page)[k_at] = fx_f32_to_f16(k[d]);
            ((uint16_t *)(void *)v_page)[v_at] = fx_f32_to_f16(v[d]);
        }
    }
}
