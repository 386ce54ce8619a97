#pragma once
#include "kernels/launch/launch.h"

/* The numerics contract in plain C: kernels of struct fx_kernels, bit for bit what every backend
 * must give. Sums run in the order written; fused multiply-add only where fmaf stands. */

void fx_ref_matmul(const struct fx_mul *mul, uint32_t tile_begin, uint32_t tile_end);
void fx_ref_norm(const float *x, const float *gain, uint32_t cols, float eps, float *out);
void fx_ref_encode(const struct fx_act *act, uint32_t row);
void fx_ref_rope(float *head, const float *cos, const float *sin, uint32_t half);
void fx_ref_kv_write(const struct fx_kv *kv, const float *k, const float *v, uint32_t head_dim,
                     uint32_t page_tokens, uint32_t token, uint8_t *k_page, uint8_t *v_page);
void fx_ref_attend(const struct fx_attend *attend, uint32_t kv_head);
void fx_ref_route(const float *logits, uint32_t experts, uint32_t count, bool raw, int32_t *chosen,
                  float *weight);
void fx_ref_swiglu(const float *gate, const float *up, uint32_t n, float *out);
void fx_ref_combine(const float *rows, const uint32_t *slot, const int32_t *chosen,
                    const float *weight, uint32_t count, uint32_t n, float *x);

/** Merges 16 chains by the fixed tree: c[i] + c[i+8], then +4, +2, +1. Changes `chain`. */
float fx_ref_merge(float chain[FX_CHAINS]);
