#include "kernels/cpu/attend.h"

FX_INLINE void panel_run(const struct fx_panel *panel, const bool half, const int heads,
                         const int vectors, bool resume) {
    __m256 acc[12];
    FX_UNROLL
    for (int h = 0; h < heads; h++) {
        FX_UNROLL
        for (int v = 0; v < vectors; v++) {
            const float *out = panel->out + (size_t)h * panel->out_stride + (size_t)v * FX_LANES;
            acc[h * vectors + v] = resume ? _mm256_loadu_ps(out) : _mm256_setzero_ps();
        }
    }
    const size_t step = panel->step * (half ? sizeof(uint16_t) : sizeof(float));
    for (size_t s = 0, at = 0; s < panel->steps; s++, at += step) {
        __m256 coefficient[FX_GROUP_MAX];
        FX_UNROLL
        for (int h = 0; h < heads; h++)
            coefficient[h] = _mm256_broadcast_ss(panel->coefficients +
                                                 (size_t)h * panel->coefficient_stride + s);
        FX_UNROLL
        for (int v = 0; v < vectors; v++) {
            const void *from = panel->at[v] + at;
            __m256 value = half ? fx_avx2_load_f16(from) : _mm256_loadu_ps(from);
            FX_UNROLL
            for (int h = 0; h < heads; h++)
                acc[h * vectors + v] = _mm256_fmadd_ps(coefficient[h], value, acc[h * vectors + v]);
        }
    }
    FX_UNROLL
    for (int h = 0; h < heads; h++) {
        FX_UNROLL
        for (int v = 0; v < vectors; v++)
            _mm256_storeu_ps(panel->out + (size_t)h * panel->out_stride + (size_t)v * FX_LANES,
                             acc[h * vectors + v]);
    }
}

#define SHAPE(heads, vectors)                                                                      \
    static void panel_f32_##heads##x##vectors(const struct fx_panel *panel, bool resume) {         \
        panel_run(panel, false, heads, vectors, resume);                                           \
    }                                                                                              \
    static void panel_f16_##heads##x##vectors(const struct fx_panel *panel, bool resume) {         \
        panel_run(panel, true, heads, vectors, resume);                                            \
    }
SHAPE(1, 8)
SHAPE(1, 4)
SHAPE(1, 2)
SHAPE(1, 1)
SHAPE(2, 4)
SHAPE(2, 2)
SHAPE(2, 1)
SHAPE(3, 4)
SHAPE(3, 2)
SHAPE(3, 1)
SHAPE(4, 2)
SHAPE(4, 1)

static const struct shape {
    uint32_t heads, vectors;
    void (*run[2])(const struct fx_panel *panel, bool resume); /* f32, f16 */
} shapes[] = {
#define ENTRY(heads, vectors)                                                                      \
    {                                                                                              \
        heads, vectors, {                                                                          \
            panel_f32_##heads##x##vectors, panel_f16_##heads##x##vectors                           \
        }                                                                                          \
    }
    ENTRY(1, 8), ENTRY(1, 4), ENTRY(1, 2), ENTRY(1, 1), ENTRY(2, 4), ENTRY(2, 2),
    ENTRY(2, 1), ENTRY(3, 4), ENTRY(3, 2), ENTRY(3, 1), ENTRY(4, 2), ENTRY(4, 1),
};

static const struct shape *shape_for(uint32_t heads, uint32_t left) {
    const struct shape *shape = shapes;
    while (shape->heads != heads || shape->vectors > left)
        shape++;
    return shape;
}

uint32_t fx_panel_vectors(uint32_t heads, uint32_t left) {
    return shape_for(heads, left)->vectors;
}

void fx_panel_run(const struct fx_panel *panel, enum fx_kv_type type, uint32_t heads,
                  uint32_t vectors, bool resume) {
    shape_for(heads, vectors)->run[type == FX_KV_F16](panel, resume);
}
