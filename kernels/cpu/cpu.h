#pragma once
#include "kernels/launch/launch.h"

/* Kernels for AVX2 + FMA + F16C: the bits of kernels/ref. Their files alone are compiled with the
 * instruction sets on; fx_cpu_kernels() decides at run time whether they may run. */

void fx_avx2_matmul(const struct fx_mul *mul, uint32_t tile_begin, uint32_t tile_end);
void fx_avx2_matmul_i4(const struct fx_mul *mul, uint32_t tile_begin, uint32_t tile_end);
void fx_avx2_norm(const float *x, const float *gain, uint32_t cols, float eps, float *out);
void fx_avx2_encode(const struct fx_act *act, uint32_t row);
void fx_avx2_rope(float *head, const float *cos, const float *sin, uint32_t half);
void fx_avx2_kv_write(const struct fx_kv *kv, const float *k, const float *v, uint32_t head_dim,
                      uint32_t page_tokens, uint32_t token, uint8_t *k_page, uint8_t *v_page);
void fx_avx2_attend(const struct fx_attend *attend, uint32_t kv_head);
void fx_avx2_route(const float *logits, uint32_t experts, uint32_t count, bool raw, int32_t *chosen,
                   float *weight);
void fx_avx2_swiglu(const float *gate, const float *up, uint32_t n, float *out);
void fx_avx2_combine(const float *rows, const uint32_t *slot, const int32_t *chosen,
                     const float *weight, uint32_t count, uint32_t n, float *x);
