#include "common/quant/int4.h"
#include <math.h>
#include <string.h>

enum { BLOCK = 64, CODE_MIN = -8, CODE_MAX = 7 };

static float block_max(const float *in, size_t count) {
    float max = 0.0f;
    for (size_t i = 0; i < count; i++)
        max = fmaxf(max, fabsf(in[i]));
    return max;
}

static int code_of(float value, float scale) {
    float code = rintf(value / scale);
    return (int)fminf(fmaxf(code, (float)CODE_MIN), (float)CODE_MAX);
}

static void block_encode(const float *in, size_t count, float scale, uint8_t *codes) {
    memset(codes, 0, BLOCK / 2);
    if (scale == 0.0f) return;
    for (size_t i = 0; i < count; i++) {
        unsigned nibble = (unsigned)code_of(in[i], scale) & 15u;
        codes[i / 2] = (uint8_t)(codes[i / 2] | (i % 2 ? nibble << 4 : nibble));
    }
}

bool fx_int4_encode(const float *in, size_t n, uint8_t *codes, float *scales, fx_error *err) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(in[i]))
            return fx_fail(err, FX_INVALID_ARGUMENT, "value %zu is not finite", i);
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t count = n - at < BLOCK ? n - at : BLOCK, block = at / BLOCK;
        scales[block] = block_max(in + at, count) / (float)CODE_MAX;
        block_encode(in + at, count, scales[block], codes + block * (BLOCK / 2));
    }
    return true;
}

void fx_int4_decode(const uint8_t *codes, const float *scales, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) {
        int nibble = i % 2 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
        out[i] = (float)(nibble < 8 ? nibble : nibble - 16) * scales[i / BLOCK];
    }
}
