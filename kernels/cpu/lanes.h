#pragma once
#include "kernels/cpu/avx2.h"

/** Writes (or adds to) the first `lanes` of 8 outputs. */
FX_INLINE void fx_avx2_put(float *out, __m256 acc, uint32_t lanes, bool add) {
    if (lanes == FX_LANES) {
        if (add) acc = _mm256_add_ps(_mm256_loadu_ps(out), acc);
        _mm256_storeu_ps(out, acc);
        return;
    }
    __m256i mask = fx_avx2_mask(lanes);
    if (add) acc = _mm256_add_ps(_mm256_maskload_ps(out, mask), acc);
    _mm256_maskstore_ps(out, mask, acc);
}
