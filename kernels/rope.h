#pragma once
#include <stdint.h>

/** cos and sin of position * theta^(-2i/head_dim), i < head_dim/2. Frequency and angle are f32, as
 *  the models were trained with; the functions of that angle are right to half an ulp.
 *  @shape cos, sin [positions][head_dim/2] */
void fx_rope_table(double theta, uint32_t head_dim, uint32_t positions, float *cos, float *sin);
