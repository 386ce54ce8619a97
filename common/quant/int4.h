#pragma once
#include "common/base/error.h"
#include <stdint.h>

/** The INT4 micro-block codec: per 64 consecutive values of a row, scale = max|w|/7 (f32, true
 *  division), q = clamp(round-half-to-even(w/scale), -8, 7), two per byte, even index in the low
 *  nibble. A tail block is padded with zeros; a zero block, or one whose scale rounds to 0, has
 *  scale 0 and codes 0. Non-finite input is refused.
 *  @shape in [n]; codes [ceil(n/64)*32]; scales [ceil(n/64)]  @err INVALID_ARGUMENT names the index
 */
FX_MUST bool fx_int4_encode(const float *in, size_t n, uint8_t *codes, float *scales,
                            fx_error *err);
/** out[i] = q[i] * scale. @shape out [n] */
void fx_int4_decode(const uint8_t *codes, const float *scales, size_t n, float *out);

/** IEEE binary16 <-> binary32, round to nearest even, subnormals and infinities kept; plain C, the
 *  same bits on every machine. bf16 widens exactly. */
float fx_f16_to_f32(uint16_t half);
uint16_t fx_f32_to_f16(float value);
float fx_bf16_to_f32(uint16_t value);
