#include "kernels/cpu/avx2.h"

enum { VECTORS = FX_BLOCK / FX_LANES };

static uint32_t largest_bits(const float *x) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i largest = _mm256_setzero_si256();
    FX_UNROLL
    for (size_t i = 0; i < VECTORS; i++) {
        __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(x + i * FX_LANES));
        largest = _mm256_max_epi32(largest, _mm256_and_si256(bits, magnitude));
    }
    __m128i four =
        _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
    __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

FX_INLINE __m256i codes_of(const float *x, __m256 scale) {
    const __m256i max = _mm256_set1_epi32(FX_CODE_MAX), min = _mm256_set1_epi32(-FX_CODE_MAX);
    __m256i code = _mm256_cvtps_epi32(_mm256_div_ps(_mm256_loadu_ps(x), scale));
    return _mm256_max_epi32(_mm256_min_epi32(code, max), min);
}

static int32_t encode_block(const float *x, float scale, int8_t *q) {
    const __m256 scales = _mm256_set1_ps(scale);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); /* undo the packs' lanes */
    __m256i sum = _mm256_setzero_si256();
    FX_UNROLL
    for (size_t i = 0; i < FX_BLOCK; i += 4 * (size_t)FX_LANES) {
        __m256i a = codes_of(x + i, scales), b = codes_of(x + i + FX_LANES, scales);
        __m256i c = codes_of(x + i + 2 * (size_t)FX_LANES, scales);
        __m256i d = codes_of(x + i + 3 * (size_t)FX_LANES, scales);
        sum =
            _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d)));
        __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        bytes = _mm256_permutevar8x32_epi32(bytes, order);
        _mm256_storeu_si256((__m256i *)(void *)(q + i), bytes);
    }
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

/** fx_ref_encode.
 *  @shape x, q [blocks*64], scale, offset [blocks]  @pre x is 0 past cols  @tol exact */
void fx_avx2_encode(const struct fx_act *act, uint32_t row) {
    for (uint32_t block = 0; block < act->blocks; block++) {
        size_t at = (size_t)row * act->stride + (size_t)block * FX_BLOCK;
        size_t index = (size_t)row * act->blocks + block;
        uint32_t bits = largest_bits(act->x + at);
        bool finite = bits < 0x7f800000u;
        float scale = finite ? fx_math_float(bits) / (float)FX_CODE_MAX : NAN;
        int32_t sum = 0;
        if (finite && scale > 0.0f)
            sum = encode_block(act->x + at, scale, act->q + at);
        else
            memset(act->q + at, 0, FX_BLOCK);
        act->scale[index] = scale;
        act->offset[index] = 8 * sum;
    }
}
