#pragma once
#include "kernels/cpu/cpu.h"
#include "kernels/math.h"
#include <immintrin.h>

/* What the AVX2 files share; only they may include it. */

#define FX_INLINE static inline __attribute__((always_inline))
/* A register block keeps its registers to itself. */
#define FX_NOINLINE static __attribute__((noinline))
#define FX_UNROLL _Pragma("GCC unroll 8")

enum { FX_LANES = 8 };

/** fx_expf in each lane, the same operations in the same order. */
FX_INLINE __m256 fx_avx2_exp(__m256 x) {
    const __m256 magic = _mm256_set1_ps(FX_ROUND_MAGIC), one = _mm256_set1_ps(1.0f);
    x = _mm256_max_ps(_mm256_set1_ps(FX_EXP_LOW), x); /* these keep x when it is NaN */
    x = _mm256_min_ps(_mm256_set1_ps(FX_EXP_HIGH), x);
    __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(FX_LOG2E), magic);
    __m256 n = _mm256_sub_ps(shifted, magic);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-FX_LN2_HIGH), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-FX_LN2_LOW), r);
    __m256 p = _mm256_fmadd_ps(r, _mm256_set1_ps(1.0f / 5040), _mm256_set1_ps(1.0f / 720));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
    p = _mm256_fmadd_ps(p, r, one);
    p = _mm256_fmadd_ps(p, r, one);
    __m256i power = _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_castps_si256(magic));
    __m256i half = _mm256_srai_epi32(power, 1), bias = _mm256_set1_epi32(127);
    __m256i low = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    __m256i high = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(power, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(low)), _mm256_castsi256_ps(high));
}

/** The fixed tree over chains 0-7 (low) and 8-15 (high). */
FX_INLINE float fx_avx2_merge(__m256 low, __m256 high) {
    __m256 eight = _mm256_add_ps(low, high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/** Lanes [0, count) all ones, for count in 0..8. */
FX_INLINE __m256i fx_avx2_mask(uint32_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane);
}

FX_INLINE __m256 fx_avx2_load_f16(const uint16_t *at) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)at));
}
