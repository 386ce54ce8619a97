#pragma once
#include <stdint.h>

/** Rotary position embedding: frequency i of a head is theta^(-2i/head_dim), and then: */
enum fx_rope_rule {
    FX_ROPE_AS_IS,
    FX_ROPE_DIVIDED, /* over factor */
    FX_ROPE_BANDED,  /* wave lengths above context / low over factor, those below context / high as
                        they are, between them mixed in proportion (the Llama 3.1 rule) */
};
struct fx_rope {
    double theta;
    enum fx_rope_rule rule;
    double factor, low, high;
    uint32_t context;
};

/** cos and sin of position * frequency. Frequency and angle are f32, as the models were trained
 *  with; the functions of that angle are right to half an ulp.
 *  @shape cos, sin [positions][head_dim/2] */
void fx_rope_table(const struct fx_rope *rope, uint32_t head_dim, uint32_t positions, float *cos,
                   float *sin);
