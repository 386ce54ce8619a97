#include "kernels/ref/ref.h"

float fx_ref_merge(float chain[FX_CHAINS]) {
    for (uint32_t width = FX_CHAINS / 2; width; width /= 2)
        for (uint32_t i = 0; i < width; i++)
            chain[i] += chain[i + width];
    return chain[0];
}
